// A connection to a server: its address and its credentials.

import { BobbinError, delay, pause, refusal, unanswered } from "./errors.js";

export interface ConnectionOptions {
  /** The server, such as `https://bobbin.example.com`. Default: the page's own server. */
  url?: string;
  /** A key or a token, or a function that returns one. It is called again when the server rejects the last one. */
  token?: string | (() => string | Promise<string>);
  fetch?: typeof fetch;
}

/** Options of a request. */
export interface Sending {
  signal?: AbortSignal;
  /** The number of attempts; default 1. Only for requests that are safe to repeat: reads, and those with an idempotency key. */
  attempts?: number;
}

export class Connection {
  readonly url: string;
  readonly #options: ConnectionOptions;
  #token: Promise<string> | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const own = (globalThis as { location?: { origin: string } }).location?.origin;
    const url = options.url ?? own;
    if (url === undefined) throw new TypeError("createClient: `url` is the address of the server.");
    this.url = url.replace(/\/+$/, "");
  }

  /** Sends a request, with retries if allowed. A response with an error status throws. */
  async send(path: string, init: RequestInit, { signal, attempts = 1 }: Sending = {}): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#answered(path, { ...init, ...(signal && { signal }) });
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        const failed = error instanceof BobbinError ? error : unanswered(error);
        if (!failed.again || attempt >= attempts) throw failed;
        await pause(failed.retryAfter ?? delay(attempt), signal);
      }
    }
  }

  async #answered(path: string, init: RequestInit): Promise<Response> {
    const response = await this.#once(path, init);
    if (response.status !== 401 || typeof this.#options.token !== "function") return checked(response);
    // The token may have expired: request a new one, once.
    await response.body?.cancel();
    this.#token = undefined;
    return checked(await this.#once(path, init));
  }

  async #once(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    const token = await this.#credentials();
    if (token !== undefined && !headers.has("authorization")) headers.set("authorization", `Bearer ${token}`);
    const send = this.#options.fetch ?? fetch;
    return send(this.url + path, { ...init, headers });
  }

  async #credentials(): Promise<string | undefined> {
    const { token } = this.#options;
    if (typeof token !== "function") return token;
    const asked = (this.#token ??= Promise.resolve(token()));
    try {
      return await asked;
    } catch (error) {
      this.#token = undefined;
      throw error;
    }
  }
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw await refusal(response);
}
