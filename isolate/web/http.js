// Headers, Request, Response and fetch, for code in the sandbox. A body is complete: text, bytes, or the fields of a form,
// multipart included. There are no streams and no files; `body` is always null.

import { AbortController, AbortSignal } from "./events.js";
import { TextDecoder, TextEncoder } from "./encoding.js";
import { FormData } from "./form.js";
import { Headers, receivedHeaders, TOKEN } from "./http/headers.js";
import { URL, URLSearchParams } from "./url.js";

export { Headers };

/** @typedef {string | ArrayBuffer | ArrayBufferView | URLSearchParams | FormData | null | undefined} BodyInit */
/** @typedef {import("./http/headers.js").HeadersInit} HeadersInit */
/** @typedef {{ method?: string, headers?: HeadersInit, body?: BodyInit, signal?: AbortSignal | null }} RequestInit */
/** @typedef {{ status?: number, statusText?: string, headers?: HeadersInit }} ResponseInit */

/** Methods that are normalized to upper case. */
const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
/** Statuses of responses without a body. */
const EMPTY = [101, 103, 204, 205, 304];
const REDIRECTS = [301, 302, 303, 307, 308];

/** The common part of requests and responses. */
class Message {
  /** @type {string | Uint8Array | null} */
  #content;
  #used = false;
  /** @type {Headers} */
  #headers;

  /** @param {BodyInit} body @param {HeadersInit | undefined} headers */
  constructor(body, headers) {
    const [content, type] = contentOf(body);
    this.#content = content;
    this.#headers = new Headers(headers);
    if (type !== undefined && !this.#headers.has("content-type")) this.#headers.set("content-type", type);
  }

  get headers() {
    return this.#headers;
  }

  get body() {
    return null;
  }

  get bodyUsed() {
    return this.#used;
  }

  async text() {
    const content = this.#take();
    return typeof content === "string" ? content : new TextDecoder().decode(content ?? new Uint8Array());
  }

  async json() {
    return JSON.parse(await this.text());
  }

  async bytes() {
    const content = this.#take() ?? "";
    return typeof content === "string" ? new TextEncoder().encode(content) : content;
  }

  /** @returns {Promise<ArrayBuffer>} */
  async arrayBuffer() {
    const bytes = await this.bytes();
    return /** @type {ArrayBuffer} */ (bytes.slice().buffer);
  }

  #take() {
    // An empty body can be read repeatedly.
    if (this.#content === null) return null;
    if (this.#used) throw new TypeError("The body was read already; `clone()` before the first time");
    this.#used = true;
    return this.#content;
  }

  /** The body for another message, without consuming it. @param {Message} message */
  static contentOf(message) {
    if (message.#used) throw new TypeError("The body was read already");
    return message.#content;
  }
}

/** @param {FormData} form @returns {[string, string]} */
function multipart(form) {
  const fields = [...form];
  // Choose a boundary that no field contains.
  let boundary = "----bobbin";
  while (fields.some(([name, value]) => `${name}${value}`.includes(boundary))) boundary += "-";
  const escaped = (/** @type {string} */ name) => name.replace(/\r?\n|\r/g, "%0D%0A").replaceAll('"', "%22");
  const parts = fields.map(([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(name)}"\r\n\r\n${value.replace(/\r?\n|\r/g, "\r\n")}\r\n`);
  return [`${parts.join("")}--${boundary}--\r\n`, `multipart/form-data; boundary=${boundary}`];
}

/**
 * The content of a body, and its own content type if it has one.
 *
 * @param {BodyInit} body @returns {[string | Uint8Array | null, string?]}
 */
function contentOf(body) {
  if (body === null || body === undefined) return [null];
  if (body instanceof URLSearchParams) return [String(body), "application/x-www-form-urlencoded;charset=UTF-8"];
  if (body instanceof FormData) return multipart(body);
  if (body instanceof ArrayBuffer) return [new Uint8Array(body.slice(0))];
  if (ArrayBuffer.isView(body)) return [new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice()];
  if (typeof body === "object" && Object.prototype.toString.call(body) === "[object Object]") {
    throw new TypeError("A body is a text or bytes: write an object with JSON.stringify, or Response.json");
  }
  return [String(body).toWellFormed(), "text/plain;charset=UTF-8"];
}

export class Request extends Message {
  /** @type {string} */
  #url;
  /** @type {string} */
  #method;
  /** Created on first access. @type {AbortSignal | undefined} */
  #signal;

  /** @param {string | URL | Request} input @param {RequestInit} [init] */
  constructor(input, init = {}) {
    const from = input instanceof Request ? input : undefined;
    const signal = init.signal === undefined ? from && from.#signal : (init.signal ?? undefined);
    if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TypeError("Request: `signal` must be an AbortSignal");
    const method = methodOf(init.method ?? from?.method ?? "GET");
    const given = init.body ?? null;
    const body = given === null && from ? Message.contentOf(from) : given;
    if (body !== null && (method === "GET" || method === "HEAD")) throw new TypeError(`Request: ${method} has no body`);
    super(body, init.headers ?? from?.headers);
    const url = from?.url ?? new URL(/** @type {string | URL} */ (input)).href;
    if (/^[^/?#]*\/\/[^/?#]*@/.test(url)) throw new TypeError("Request: user and password do not belong in the URL");
    this.#url = url;
    this.#method = method;
    this.#signal = signal;
  }

  get url() {
    return this.#url;
  }

  get method() {
    return this.#method;
  }

  get signal() {
    return (this.#signal ??= new AbortController().signal);
  }

  /** The signal, if one was given or accessed. @param {Request} request */
  static signalOf(request) {
    return request.#signal;
  }

  clone() {
    Message.contentOf(this);
    return new Request(this);
  }

  get [Symbol.toStringTag]() {
    return "Request";
  }
}

/** @param {unknown} method */
function methodOf(method) {
  const name = String(method);
  if (!TOKEN.test(name)) throw new TypeError(`Request: "${name}" is no method`);
  return METHODS.includes(name.toUpperCase()) ? name.toUpperCase() : name;
}

export class Response extends Message {
  #status;
  #statusText;
  /** The URL of a fetched response; empty for one created here. */
  #url = "";
  /** @type {"default" | "basic"} */
  #type = "default";

  /** @param {BodyInit} [body] @param {ResponseInit} [init] */
  constructor(body = null, init = {}) {
    super(body, init.headers);
    const status = Math.trunc(Number(init.status ?? 200));
    if (!(status >= 200 && status <= 599)) throw new RangeError(`Response: ${init.status} is no status from 200 to 599`);
    if (body !== null && EMPTY.includes(status)) throw new TypeError(`Response: ${status} has no body`);
    this.#status = status;
    this.#statusText = String(init.statusText ?? "");
  }

  /** @param {unknown} value @param {ResponseInit} [init] */
  static json(value, init = {}) {
    const text = JSON.stringify(value);
    if (text === undefined) throw new TypeError("Response.json: the value cannot be written as JSON");
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(text, { ...init, headers });
  }

  /** @param {string | URL} url @param {number} [status] */
  static redirect(url, status = 302) {
    if (!REDIRECTS.includes(status)) throw new RangeError(`Response.redirect: ${status} is no redirect`);
    return new Response(null, { status, headers: { location: new URL(url).href } });
  }

  /** The response that `fetch` returns. @param {HostAnswer} answer @param {string} url */
  static from({ status, headers, body }, url) {
    const response = new Response(EMPTY.includes(status) ? null : body, { status, headers: receivedHeaders(headers) });
    response.#url = url;
    response.#type = "basic";
    return response;
  }

  get status() {
    return this.#status;
  }

  get statusText() {
    return this.#statusText;
  }

  get ok() {
    return this.#status < 300;
  }

  get url() {
    return this.#url;
  }

  get type() {
    return this.#type;
  }

  get redirected() {
    return false;
  }

  clone() {
    const copy = new Response(Message.contentOf(this), { status: this.#status, statusText: this.#statusText, headers: this.headers });
    copy.#url = this.#url;
    copy.#type = this.#type;
    return copy;
  }

  get [Symbol.toStringTag]() {
    return "Response";
  }
}

/** The id of the last abortable request. */
let lastFetch = 0;

/**
 * Sends a request to a host that the definition allows. Redirects are not followed but returned.
 *
 * @param {string | URL | Request} input
 * @param {RequestInit} [init]
 * @returns {Promise<Response>}
 */
export async function fetch(input, init) {
  const request = new Request(input, init);
  const signal = Request.signalOf(request);
  signal?.throwIfAborted();
  const content = Message.contentOf(request) ?? undefined;
  const { method, headers } = request;
  const [url = ""] = request.url.split("#");
  const sent = { method, headers: [...headers], body: content };
  const answer = signal ? await abortable(url, sent, signal) : await host.fetch(url, sent);
  return Response.from(answer, url);
}

/**
 * A request that the signal also aborts at the host.
 *
 * @param {string} url
 * @param {HostRequest} sent
 * @param {AbortSignal} signal
 * @returns {Promise<HostAnswer>}
 */
function abortable(url, sent, signal) {
  const id = ++lastFetch;
  return new Promise((resolve, reject) => {
    // Abort at the host first: the rejection may end the run, and then nothing more can be sent.
    const abort = () => void host.abort(id).finally(() => reject(signal.reason));
    signal.addEventListener("abort", abort, { once: true });
    const over = () => signal.removeEventListener("abort", abort);
    host.fetch(url, { ...sent, id }).then(resolve, (error) => reject(signal.aborted ? signal.reason : error)).finally(over);
  });
}

// Functions for the harness.

/**
 * The request for an endpoint.
 *
 * @param {{ url: string, method: string, headers: Record<string, string> | [string, string][], body: Uint8Array }} facts
 */
export function received({ url, method, headers: given, body }) {
  const headers = receivedHeaders(Array.isArray(given) ? given : Object.entries(given));
  return new Request(url, { method, headers, body: body.length === 0 || method === "GET" ? null : body });
}

/** Converts an endpoint's result for the host. @param {unknown} answer */
export function answered(answer) {
  if (!(answer instanceof Response)) return { value: answer };
  const { status, headers } = answer;
  return { response: { status, headers: [...headers], body: Message.contentOf(answer) ?? undefined } };
}
