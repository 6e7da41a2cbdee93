// What the Worker does on the JavaScript side, because it would cross into wasm many times there for nothing, or
// because it must go on when the wasm instance is lost: reading request bodies, making responses, and the bridge
// from an object's socket to a stream of server-sent events.

// The executor of the wasm side needs a microtask for each wake. The platform's own function wraps each, to report
// what it throws, and costs six times a promise's job.
globalThis.queueMicrotask = (/** @type {() => void} */ job) => void Promise.resolve().then(job);

/** Counts the wasm instances; each adds itself. */
export const instances = { instanceId: 0 };

const SAFE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
const JSON_TYPE = { ...SAFE, "content-type": "application/json; charset=utf-8" };
const EVENTS_TYPE = { ...SAFE, "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };

/** @param {Record<string, string>} headers @param {string | undefined} origin one that may read the answer */
function forOrigin(headers, origin) {
  if (origin === undefined) return headers;
  return { ...headers, "access-control-allow-origin": origin, "access-control-expose-headers": "retry-after", vary: "origin" };
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

/** @param {WebSocket} client */
export function upgraded(client) {
  return new Response(null, { status: 101, webSocket: client });
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

/**
 * What the router reads of a request, as lines, because each value by itself would be a crossing into JavaScript: the
 * method, the URL, `body` if there is one, and each header of `HEAD` after an equals sign, or nothing where it is absent.
 *
 * @param {Request} request
 */
export function headOf(request) {
  let lines = `${request.method}\n${request.url}\n${request.body === null ? "" : "body"}`;
  for (const name of HEAD) {
    const value = request.headers.get(name);
    lines += value === null ? "\n" : `\n=${value}`;
  }
  return lines;
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
 * The body as text; undefined when it is longer than `limit` bytes.
 *
 * @param {Request} request
 * @param {number} limit
 * @param {boolean} known   the length was declared and is within the limit
 * @returns {Promise<string | undefined>}
 */
export async function bodyText(request, limit, known) {
  if (known) return request.text();
  if (!request.body) return "";
  const reader = request.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    length += value.byteLength;
    if (length > limit) {
      await discard(reader);
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** How much of a refused body is read after all. */
const DISCARD_BYTES = 64 << 20;
const DISCARD_MS = 10_000;

/**
 * Reads a refused body to its end, within bounds: many clients see an answer only when they are done sending, and
 * a connection that is closed before loses it.
 *
 * @param {Request} request
 */
export async function discardBody(request) {
  if (request.body) await discard(request.body.getReader());
}

/** @param {ReadableStreamDefaultReader<Uint8Array>} reader */
async function discard(reader) {
  const until = Date.now() + DISCARD_MS;
  for (let length = 0; length < DISCARD_BYTES && Date.now() < until; ) {
    // A client that has gone is not told anything any more.
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (done || !value) return;
    length += value.byteLength;
  }
  reader.cancel().catch(() => {});
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
   */
  constructor(method, url, headers, body, take) {
    this.#take = take;
    const { signal } = this.#cancel;
    this.#answer = fetch(url, { method, headers: JSON.parse(headers), redirect: "manual", signal, ...(body && { body }) });
  }

  /**
   * The head of the answer: its status, a line break, its headers as JSON, an array of pairs. All headers when it
   * failed, which is when they matter: going through them takes longer than everything else about a short answer.
   *
   * @returns {Promise<string>}
   */
  async head() {
    const answer = await this.#answer;
    this.#reader = answer.body?.getReader();
    const type = answer.headers.get("content-type");
    const ofGood = () => (type === null ? [] : [["content-type", type]]);
    return `${answer.status}\n${JSON.stringify(answer.ok ? ofGood() : [...answer.headers])}`;
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
