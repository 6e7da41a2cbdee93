// How a server is reached: its address, and what a request is allowed by.

import { BobbinError, delay, pause, refusal, unanswered } from "./errors.js";

export interface ConnectionOptions {
  /** The server, such as `https://bobbin.example.com`; the page's own unless given. */
  url?: string;
  /** A key or a token; or what gives one, which is asked again when the server refuses the last. */
  token?: string | (() => string | Promise<string>);
  fetch?: typeof fetch;
}

/** What a request is sent with. */
export interface Sending {
  signal?: AbortSignal;
  /** How often it is tried; once unless given. Only what may be repeated: requests that read, and those with a key of their own. */
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

  /** Sends a request, again where it may be; an answer that refuses is an error. */
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
    // The token has expired: one of its kind is asked for, once.
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
