// The parts of the Worker in JavaScript: those that would otherwise cross into wasm many times, and those that must survive
// the loss of the wasm instance. They read the heads of requests, build responses, and bridge an object's socket to a
// stream of server-sent events. bodies.js reads the bodies of requests.

import { LENGTH, bodyText } from "./bodies.js";

// The wasm executor needs a microtask per wake. The platform's own `queueMicrotask` wraps each one to report errors, and
// costs six times as much as a promise job.
globalThis.queueMicrotask = (job) => void Promise.resolve().then(/** @type {() => void} */ (job));

/** Counts the wasm instances; each increments it. */
export const instances = { instanceId: 0 };

const SAFE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
const JSON_TYPE = { ...SAFE, "content-type": "application/json; charset=utf-8" };
export const EVENTS_TYPE = { ...SAFE, "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };

/** The header with the run that a response is about. */
export const RUN = "x-bobbin-run";

/** Response headers that a web page may read: those of crates/protocols/src/request/cors.rs. */
const EXPOSED =
  "accept-ranges, content-length, content-range, etag, last-modified, location, mcp-session-id, " +
  "retry-after, www-authenticate, x-bobbin-run, x-bobbin-thread, x-request-id, x-vercel-ai-ui-message-stream";

/** @param {Record<string, string>} headers @param {string | undefined} origin an origin that may read the response */
export function forOrigin(headers, origin) {
  if (origin === undefined) return headers;
  return { ...headers, "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED, vary: "origin" };
}

/**
 * A response of the API.
 *
 * @param {number} status
 * @param {string | undefined} body     JSON
 * @param {string | undefined} origin   of a web page that may read the response
 * @param {string | undefined} extra    one more header, `name: value`
 */
export function answer(status, body, origin, extra) {
  let headers = forOrigin(body === undefined ? SAFE : JSON_TYPE, origin);
  if (extra !== undefined) {
    const at = extra.indexOf(": ");
    headers = { ...headers, [extra.slice(0, at)]: extra.slice(at + 2) };
  }
  return new Response(body ?? null, { status, headers });
}

/** Headers of an HTML page for people: no scripts, forms or frames. */
const PAGE_TYPE = {
  ...SAFE,
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

/** @param {number} status @param {string} html */
export function page(status, html) {
  return new Response(html, { status, headers: PAGE_TYPE });
}

/** @param {WebSocket} client @param {string | undefined} run    the run that it follows, if it has begun */
export function upgraded(client, run) {
  return new Response(null, { status: 101, webSocket: client, headers: run === undefined ? {} : { [RUN]: run } });
}

/**
 * The response to a preflight of an allowed origin.
 *
 * @param {string} origin
 * @param {string} methods
 * @param {string} headers
 * @param {number} seconds   how long a browser may cache it
 */
export function preflight(origin, methods, headers, seconds) {
  return new Response(null, {
    status: 204,
    headers: {
      ...forOrigin(SAFE, origin),
      "access-control-allow-methods": methods,
      "access-control-allow-headers": headers,
      "access-control-max-age": String(seconds),
    },
  });
}

/** The headers that the router reads. */
const HEAD = [
  ...["host", "origin", "authorization", "content-type", "content-length", "idempotency-key"],
  ...["upgrade", "last-event-id"],
];

/** `x-api-key`, which some clients send, as the value of `authorization`. @param {Request} request */
function keyOf(request) {
  const key = request.headers.get("x-api-key");
  return key === null ? null : `Bearer ${key}`;
}

/**
 * The parts of a request that the router reads, as lines, because reading each value would be a call into JavaScript: the
 * method, the URL, `body` if there is one, and each header of `HEAD` after an equals sign, or an empty line if it is absent.
 *
 * @param {Request} request
 */
export function headOf(request) {
  let lines = `${request.method}\n${request.url}\n${request.body === null ? "" : "body"}`;
  for (const name of HEAD) {
    const value = request.headers.get(name) ?? (name === "authorization" ? keyOf(request) : null);
    lines += value === null ? "\n" : `\n=${value}`;
  }
  return lines;
}

/**
 * The named headers of a request: JSON, an array of pairs.
 *
 * @param {Request} request
 * @param {string} names   separated by commas; `*` for all
 */
export function headersOf(request, names) {
  const pairs = [];
  for (const name of names === "*" ? request.headers.keys() : names.split(",")) {
    const value = request.headers.get(name);
    if (value !== null) pairs.push([name, value]);
  }
  return JSON.stringify(pairs);
}

/**
 * Sends a call with the body of a request, as a stream, to an object, and returns its response as it comes. The client's
 * headers are not forwarded: the call has all that the object needs.
 *
 * @param {DurableObjectNamespace} objects
 * @param {string} name     of the object
 * @param {string} header   the header that carries the call
 * @param {string} call     ASCII
 * @param {Request} request
 * @param {string | undefined} origin   of a web page that may read the response
 */
export async function forward(objects, name, header, call, request, origin) {
  const { method, body } = request;
  const length = request.headers.get("content-length");
  const headers = length === null ? { [header]: call } : { [header]: call, [LENGTH]: length };
  const init = { method, body, headers, redirect: /** @type {const} */ ("manual") };
  const answer = await objects.getByName(name).fetch("https://thread/", init);
  if (origin === undefined) return answer;
  const response = new Response(answer.body, answer);
  for (const [name, value] of Object.entries(forOrigin({}, origin))) response.headers.set(name, value);
  return response;
}

/** The head of a response: its status, a line break, its headers as JSON. @param {Response} answer */
const headText = (answer) => `${answer.status}\n${JSON.stringify([...answer.headers])}`;

/** A request to another object, and its response, which a `BodyReader` reads. */
export class ObjectRequest {
  #cancel = new AbortController();
  #asked;
  /** @type {Response | undefined} */
  answer;

  /**
   * @param {DurableObjectNamespace} objects
   * @param {string} name     of the object
   * @param {string} header   the header that carries the call
   * @param {string} call     ASCII
   */
  constructor(objects, name, header, call) {
    const init = { headers: { [header]: call }, redirect: /** @type {const} */ ("manual"), signal: this.#cancel.signal };
    this.#asked = objects.getByName(name).fetch("https://thread/", init);
  }

  async head() {
    this.answer = await this.#asked;
    return headText(this.answer);
  }

  leave() {
    if (!this.answer) this.#cancel.abort();
  }
}

/** Bytes of a response to write at once, because each piece is a call into wasm. */
const PIECE_BYTES = 256 << 10;

/** How long a client may read nothing, or an object produce nothing, before a response is broken off. */
const PATIENCE_MS = 60_000;

/**
 * An object's response with any headers.
 *
 * @param {number} status
 * @param {string} headers    JSON, an array of pairs
 * @param {Uint8Array | undefined} bytes   the body; undefined for none
 */
export function served(status, headers, bytes) {
  return new Response(bytes ?? null, { status, headers: JSON.parse(headers) });
}

/**
 * An object's response whose body is made piece by piece, each after the previous one was read.
 *
 * @param {number} status
 * @param {string} headers    JSON, an array of pairs
 * @param {number} length     bytes; negative if unknown
 * @param {Flow} flow
 * @param {{ waitUntil(promise: Promise<unknown>): void }} ctx   the object's, which stays alive meanwhile
 */
export function poured(status, headers, length, flow, ctx) {
  const { readable, writable } = length < 0 ? new IdentityTransformStream() : new FixedLengthStream(length);
  ctx.waitUntil(pour(flow, writable.getWriter()));
  return new Response(readable, { status, headers: JSON.parse(headers) });
}

/**
 * Fills a piece as far as it can, and returns the number of bytes; 0 is the end.
 *
 * @typedef {{ next(piece: Uint8Array): Promise<number>, free(): void }} Flow
 */

/**
 * Writes a flow. The platform does not always report a disconnected client, so a time limit on each step detects it.
 *
 * @param {Flow} flow
 * @param {WritableStreamDefaultWriter<Uint8Array>} writer
 */
async function pour(flow, writer) {
  // One buffer for the whole body: a write resolves when its bytes were read.
  const piece = new Uint8Array(PIECE_BYTES);
  try {
    for (;;) {
      const length = await inTime(flow.next(piece));
      if (length === 0) break;
      await inTime(writer.write(piece.subarray(0, length)));
    }
    await inTime(writer.close());
  } catch (error) {
    // Break off the response. Its status was already sent, so the client can get no other sign.
    writer.abort(error).catch(() => {});
  } finally {
    flow.free();
  }
}

/**
 * Stores an object whose content is made piece by piece: all of it or nothing.
 *
 * @param {R2Bucket} bucket
 * @param {string} key
 * @param {number} length
 * @param {Flow} flow
 */
export async function putObject(bucket, key, length, flow) {
  const { readable, writable } = new FixedLengthStream(length);
  const stored = bucket.put(key, readable);
  // Awaited below; a rejection may come while the content is still written.
  stored.catch(() => {});
  await pour(flow, writable.getWriter());
  await inTime(stored);
}

/**
 * A part of an object as a stream; null if it does not exist.
 *
 * @param {R2Bucket} bucket
 * @param {string} key
 * @param {number} offset
 * @param {number} length
 */
export function getObject(bucket, key, offset, length) {
  return inTime(bucket.get(key, { range: { offset, length } }));
}

/** @param {R2Bucket} bucket @param {string[]} keys */
export function deleteObjects(bucket, keys) {
  return inTime(bucket.delete(keys));
}

/** @template T @param {Promise<T>} promise @returns {Promise<T>} */
async function inTime(promise) {
  /** @type {ReturnType<typeof setTimeout> | null} */
  let timer = null;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("nothing moves")), PATIENCE_MS)));
  try {
    return await /** @type {Promise<T>} */ (Promise.race([promise, late]));
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Sends a call with the body of a request to an object: `head`, a line break, the body.
 *
 * @param {DurableObjectNamespace<import("bobbin-wasm").Entries & Rpc.DurableObjectBranded>} objects
 * @param {string} name       of the object
 * @param {string} head
 * @param {Request} request
 * @param {number} limit      the maximum size of the body in bytes
 * @param {boolean} known     the length was declared and is within the limit
 * @returns {Promise<unknown>}   the object's answer; undefined if the body is too long; a text if it cannot be read
 */
export async function relay(objects, name, head, request, limit, known) {
  let body;
  try {
    body = await bodyText(request, limit, known);
  } catch (error) {
    return String(error instanceof Error ? error.message : error);
  }
  return body === undefined ? undefined : objects.getByName(name).call(`${head}\n${body}`);
}

/**
 * An outgoing request and its response. Calls between here and wasm are few: one sends, one returns the head, and each `next`
 * leads to one call of `take`, because a promise for each chunk would cost more.
 */
export class Outgoing {
  #cancel = new AbortController();
  #answer;
  /** @type {ReadableStreamDefaultReader<Uint8Array> | undefined} */
  #reader;
  /** @type {((chunk: Uint8Array | undefined, error: string | undefined) => void) | undefined} */
  #take;

  /**
   * Sends the request. Redirects are not followed.
   *
   * @param {string} method
   * @param {string} url
   * @param {string} headers                  JSON, an array of pairs
   * @param {Uint8Array | undefined} body     taken over
   * @param {(chunk: Uint8Array | undefined, error: string | undefined) => void} take   both undefined: the end
   * @param {Ai} [ai]   calls a model of Workers AI instead: `url` is its id, `headers` the gateway, JSON or empty
   */
  constructor(method, url, headers, body, take, ai) {
    this.#take = take;
    const { signal } = this.#cancel;
    if (ai) {
      this.#answer = askModel(ai, url, headers, body, signal);
      return;
    }
    this.#answer = fetch(url, { method, headers: JSON.parse(headers), redirect: "manual", signal, ...(body && { body }) });
  }

  /**
   * The head of the response: its status, a line break, its headers as JSON, an array of pairs. After a success only the
   * content type, unless `all` is set: iterating over headers takes longer than the rest of a short response.
   *
   * @param {boolean} all
   * @returns {Promise<string>}
   */
  async head(all) {
    const answer = await this.#answer;
    this.#reader = answer.body?.getReader();
    const type = answer.headers.get("content-type");
    const ofGood = () => (type === null ? [] : [["content-type", type]]);
    return `${answer.status}\n${JSON.stringify(answer.ok && !all ? ofGood() : [...answer.headers])}`;
  }

  next() {
    if (this.#reader) this.#reader.read().then(this.#read, this.#failed);
    else this.#take?.(undefined, undefined);
  }

  /** Stops calling `take`. @param {boolean} cancel   whether the response is unfinished */
  leave(cancel) {
    this.#take = undefined;
    if (cancel) this.#cancel.abort();
  }

  #read = (/** @type {ReadableStreamReadResult<Uint8Array>} */ { done, value }) =>
    this.#take?.(done ? undefined : value, undefined);
  #failed = (/** @type {unknown} */ error) =>
    this.#take?.(undefined, error instanceof Error ? error.message : String(error));
}

/**
 * The response of a model of Workers AI, whatever its status. A stand-in for the binding may return a stream or an object
 * instead, which is wrapped in a response.
 *
 * @param {Ai} ai
 * @param {string} model
 * @param {string} gateway                 JSON, or empty
 * @param {Uint8Array | undefined} input   JSON
 * @param {AbortSignal} signal
 * @returns {Promise<Response>}
 */
async function askModel(ai, model, gateway, input, signal) {
  const options = { returnRawResponse: true, signal, ...(gateway && { gateway: JSON.parse(gateway) }) };
  /** @type {unknown} */
  const answer = await ai.run(/** @type {any} */ (model), JSON.parse(new TextDecoder().decode(input)), /** @type {any} */ (options));
  if (answer instanceof Response) return answer;
  if (answer instanceof ReadableStream) return new Response(answer, { headers: { "content-type": "text/event-stream" } });
  return Response.json(answer);
}

/** The limit on bytes that wait for a client that does not read. */
const WAITING_BYTES = 8 << 20;

/**
 * Copies what an object sends on a socket, already formatted as server-sent events, into a response. The socket hibernates,
 * so that an open page does not keep the object awake. This side holds the stream and its heartbeat.
 *
 * The response ends when the socket does, when the object does not answer a ping, after `lifeMs`, or when the client has
 * read nothing for `patienceMs`. The client then reconnects with Last-Event-ID. The platform never reports a disconnected
 * client: only unread output reveals it.
 *
 * @param {WebSocket} socket
 * @param {{ waitUntil(promise: Promise<unknown>): void }} ctx
 * @param {number} lifeMs
 * @param {number} heartbeatMs
 * @param {number} patienceMs
 * @param {string | undefined} origin
 */
export function bridge(socket, ctx, lifeMs, heartbeatMs, patienceMs, origin) {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  let waiting = 0;
  let takenAt = Date.now();
  let pinged = false;
  let over = false;

  /** @type {() => void} */
  let ended;
  ctx.waitUntil(new Promise((resolve) => (ended = () => resolve(undefined))));

  /** @param {boolean} gone the client no longer reads */
  const end = (gone) => {
    if (over) return;
    over = true;
    clearInterval(beat);
    clearTimeout(life);
    try {
      socket.close(1000, "the stream ended");
    } catch {
      // It is closed already.
    }
    (gone ? writer.abort("nobody reads") : writer.close()).catch(() => {}).then(ended);
  };

  /** @param {string} text */
  const write = (text) => {
    const bytes = encoder.encode(text);
    if (waiting === 0) takenAt = Date.now();
    waiting += bytes.byteLength;
    writer.write(bytes).then(
      () => {
        waiting -= bytes.byteLength;
        takenAt = Date.now();
      },
      () => end(true),
    );
    if (waiting > WAITING_BYTES) end(true);
  };

  const beat = setInterval(() => {
    if (waiting > 0 && Date.now() - takenAt > patienceMs) return end(true);
    if (pinged) return end(false);
    write(": \n\n");
    pinged = true;
    try {
      // The platform answers for the object without waking it.
      socket.send("ping");
    } catch {
      end(false);
    }
  }, heartbeatMs);
  const life = setTimeout(() => end(false), lifeMs);

  socket.addEventListener("message", ({ data }) => {
    if (over) return;
    if (data === "pong") pinged = false;
    else if (typeof data === "string") write(data);
  });
  socket.addEventListener("close", () => end(false));
  socket.addEventListener("error", () => end(false));
  // The client waits this long before it reconnects. Written at once, so that it sees the response begin.
  write("retry: 1000\n\n");
  socket.accept();
  return new Response(readable, { headers: forOrigin(EVENTS_TYPE, origin) });
}
