// What the Worker does on the JavaScript side, because it would cross into wasm many times there for nothing, or
// because it must go on when the wasm instance is lost: the heads of requests, making responses, and the bridge from an
// object's socket to a stream of server-sent events. Bodies of requests are in bodies.js.

import { LENGTH, bodyText } from "./bodies.js";

// The executor of the wasm side needs a microtask for each wake. The platform's own function wraps each, to report
// what it throws, and costs six times a promise's job.
globalThis.queueMicrotask = (job) => void Promise.resolve().then(/** @type {() => void} */ (job));

/** Counts the wasm instances; each adds itself. */
export const instances = { instanceId: 0 };

const SAFE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
const JSON_TYPE = { ...SAFE, "content-type": "application/json; charset=utf-8" };
export const EVENTS_TYPE = { ...SAFE, "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };

/** The run that an answer is about. */
export const RUN = "x-bobbin-run";

/** Headers of an answer that a page may read: those of src/request/cors.rs. */
const EXPOSED =
  "accept-ranges, content-length, content-range, etag, last-modified, location, mcp-session-id, " +
  "retry-after, www-authenticate, x-bobbin-run, x-bobbin-thread, x-request-id, x-vercel-ai-ui-message-stream";

/** @param {Record<string, string>} headers @param {string | undefined} origin one that may read the answer */
export function forOrigin(headers, origin) {
  if (origin === undefined) return headers;
  return { ...headers, "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED, vary: "origin" };
}

/**
 * An answer of the API.
 *
 * @param {number} status
 * @param {string | undefined} body     JSON
 * @param {string | undefined} origin   a page's, when it may read the answer
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

/** What a page for people may do: be read. */
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

/** @param {WebSocket} client @param {string | undefined} run    the one that it follows, if it has begun */
export function upgraded(client, run) {
  return new Response(null, { status: 101, webSocket: client, headers: run === undefined ? {} : { [RUN]: run } });
}

/**
 * The answer to a preflight of an allowed origin.
 *
 * @param {string} origin
 * @param {string} methods
 * @param {string} headers
 * @param {number} seconds   how long it may be remembered
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

/** A key in a header of its own, as some clients send it, is the same as one of `authorization`. @param {Request} request */
function keyOf(request) {
  const key = request.headers.get("x-api-key");
  return key === null ? null : `Bearer ${key}`;
}

/**
 * What the router reads of a request, as lines, because each value by itself would be a crossing into JavaScript: the
 * method, the URL, `body` if there is one, and each header of `HEAD` after an equals sign, or nothing where it is absent.
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
 * Those of these headers that a request has: JSON, an array of pairs.
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
 * Sends a call with the body of a request, as a stream, to an object, and gives its answer back as it comes. No header
 * of the client's goes along: what the object is to know of them is in the call.
 *
 * @param {DurableObjectNamespace} objects
 * @param {string} name     of the object
 * @param {string} header   that carries the call
 * @param {string} call     ASCII
 * @param {Request} request
 * @param {string | undefined} origin   a page's, when it may read the answer
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

/** The head of an answer: its status, a line break, its headers as JSON. @param {Response} answer */
const headText = (answer) => `${answer.status}\n${JSON.stringify([...answer.headers])}`;

/** A request to another object, and its answer: an `Incoming` is made of that. */
export class Asked {
  #cancel = new AbortController();
  #asked;
  /** @type {Response | undefined} */
  answer;

  /**
   * @param {DurableObjectNamespace} objects
   * @param {string} name     of the object
   * @param {string} header   that carries the call
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

/** Bytes of an answer that are poured at once: each piece is a crossing into wasm. */
const PIECE_BYTES = 256 << 10;

/** How long a client may take nothing, or an object give nothing, before an answer is broken off. */
const PATIENCE_MS = 60_000;

/**
 * An object's answer with any headers.
 *
 * @param {number} status
 * @param {string} headers    JSON, an array of pairs
 * @param {Uint8Array | undefined} bytes   the body; undefined for none
 */
export function served(status, headers, bytes) {
  return new Response(bytes ?? null, { status, headers: JSON.parse(headers) });
}

/**
 * An object's answer whose body is made piece by piece, each when the one before was taken.
 *
 * @param {number} status
 * @param {string} headers    JSON, an array of pairs
 * @param {number} length     bytes; negative when they are not known
 * @param {Flow} flow
 * @param {{ waitUntil(promise: Promise<unknown>): void }} ctx   the object's, which is kept meanwhile
 */
export function poured(status, headers, length, flow, ctx) {
  const { readable, writable } = length < 0 ? new IdentityTransformStream() : new FixedLengthStream(length);
  ctx.waitUntil(pour(flow, writable.getWriter()));
  return new Response(readable, { status, headers: JSON.parse(headers) });
}

/** Fills as much of a piece as it can, and says how much; 0 is the end. @typedef {{ next(piece: Uint8Array): Promise<number>, free(): void }} Flow */

/**
 * That somebody is gone is not always reported by the platform: what is not taken for too long tells.
 *
 * @param {Flow} flow
 * @param {WritableStreamDefaultWriter<Uint8Array>} writer
 */
async function pour(flow, writer) {
  // One piece of memory for the whole body: a write resolves when it was taken.
  const piece = new Uint8Array(PIECE_BYTES);
  try {
    for (;;) {
      const length = await inTime(flow.next(piece));
      if (length === 0) break;
      await inTime(writer.write(piece.subarray(0, length)));
    }
    await inTime(writer.close());
  } catch (error) {
    // The answer is broken off; its status has been sent, so that is all that the client can be told.
    writer.abort(error).catch(() => {});
  } finally {
    flow.free();
  }
}

/**
 * Stores an object, whose content is made piece by piece: all of it or nothing.
 *
 * @param {R2Bucket} bucket
 * @param {string} key
 * @param {number} length
 * @param {Flow} flow
 */
export async function putObject(bucket, key, length, flow) {
  const { readable, writable } = new FixedLengthStream(length);
  const stored = bucket.put(key, readable);
  // Heard below; a refusal may come while the content is still poured.
  stored.catch(() => {});
  await pour(flow, writable.getWriter());
  await inTime(stored);
}

/**
 * A part of an object as a stream; null when there is no such object.
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
 * @param {number} limit      bytes that the body has at most
 * @param {boolean} known     the length was declared and is within the limit
 * @returns {Promise<unknown>}   the object's answer; undefined when the body is too long; a text that says why it cannot be read
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
 * A request to elsewhere and its answer. The calls between here and wasm are few: one sends, one gives the head, and
 * each `next` is answered by one call of `take`, as a promise for each chunk would cost more.
 */
export class Outgoing {
  #cancel = new AbortController();
  #answer;
  /** @type {ReadableStreamDefaultReader<Uint8Array> | undefined} */
  #reader;
  /** @type {((chunk: Uint8Array | undefined, error: string | undefined) => void) | undefined} */
  #take;

  /**
   * Sends it, and follows no redirect.
   *
   * @param {string} method
   * @param {string} url
   * @param {string} headers                  JSON, an array of pairs
   * @param {Uint8Array | undefined} body     taken over
   * @param {(chunk: Uint8Array | undefined, error: string | undefined) => void} take   neither: the end
   * @param {Ai} [ai]   asks a model of Workers AI instead: `url` is its id, `headers` the gateway, JSON or empty
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
   * The head of the answer: its status, a line break, its headers as JSON, an array of pairs. All headers when it
   * failed or when they are wanted: going through them takes longer than everything else about a short answer.
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

  /** `take` is not called any more. @param {boolean} cancel   whether the answer has not come to its end */
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
 * The answer of a model of Workers AI, whatever its status. A binding that gives none itself (one that stands in for it) gives a
 * stream or an object, of which one is made.
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

/** Bytes that may wait for a client that does not read. */
const WAITING_BYTES = 8 << 20;

/**
 * Copies what an object sends on a socket, which is server-sent-events text already, into a response. The socket
 * hibernates, so that an open page keeps no object awake; this side holds the stream and its heartbeat.
 *
 * The response ends when the socket does, when the object's side leaves a ping unanswered, after `lifeMs`, or when
 * the client has taken nothing for `patienceMs`; the client then comes back with Last-Event-ID. That somebody
 * is gone is never reported by the platform: only what is not taken tells.
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

  /** @param {boolean} gone the client does not read any more */
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
      // The platform answers for the object, without waking it.
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
  // A client waits so long before it comes back; written at once, so that it sees the response begin.
  write("retry: 1000\n\n");
  socket.accept();
  return new Response(readable, { headers: forOrigin(EVENTS_TYPE, origin) });
}
