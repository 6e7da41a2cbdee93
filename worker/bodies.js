// Reads the bodies of requests, with a limit on silence and on the memory of unfinished bodies. Bodies that are not needed
// are read to their end, so that a refusal reaches its client.

/** A body is abandoned if neither `PACE_BYTES` more of it nor its end arrive within this time. */
const SILENCE_MS = 30_000;
const PACE_BYTES = 64 << 10;
/** Bytes to read at once, because each piece is a call into wasm. */
const PIECE_BYTES = 256 << 10;

/** Limits for reading a body that is not needed: bytes, total time, and silence of the client. */
const DISCARD_BYTES = 16 << 20;
const DISCARD_MS = 10_000;
const DISCARD_SILENCE_MS = 2_000;

/** A text of a known length that comes in one or two packets. The platform reads these faster. */
const SMALL_BYTES = 64 << 10;
/** The memory limit of the unfinished texts of an isolate, beyond small ones. The oldest are abandoned. */
const HELD_BYTES = 32 << 20;

/** The limit on silence while other bodies of the object are queued. */
const CROWDED_SILENCE_MS = 5_000;

/** Bodies that one object and one isolate read at the same time. More for an object wait; more for an isolate are refused. */
const READ_AT_ONCE = 8;
const ISOLATE_READ_AT_ONCE = 32;

/** The header that passes the declared length of a body to an object, in bytes. */
export const LENGTH = "x-bobbin-length";

/** Reasons for a failed read that the Rust side recognizes. Any other text is the platform's. */
const STALLED = "stalled";
const CROWDED = "crowded";

/** @param {Request} request @returns {number | undefined} */
const declared = (request) => {
  const length = request.headers.get("content-length") ?? request.headers.get(LENGTH);
  return length === null ? undefined : Number(length);
};

/**
 * Returns the promise's result, or fails after a time. @template T @param {Promise<T>} promise @param {number} ms @returns {Promise<T>}
 */
async function within(promise, ms) {
  /** @type {ReturnType<typeof setTimeout> | null} */
  let timer = null;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(STALLED)), ms)));
  try {
    return await /** @type {Promise<T>} */ (Promise.race([promise, late]));
  } finally {
    clearTimeout(timer);
  }
}

/** @typedef {{ read(): Promise<{ done: boolean, value?: Uint8Array | undefined }>, cancel(): Promise<unknown> }} Reader */

/**
 * Reads a body that is not needed, within limits. Many clients read the response only after they have sent everything,
 * and lose it if the connection closes before.
 *
 * @param {Reader} reader
 */
async function discard(reader) {
  const until = Date.now() + DISCARD_MS;
  try {
    for (let length = 0; length < DISCARD_BYTES && Date.now() < until; ) {
      const { done, value } = await within(reader.read(), DISCARD_SILENCE_MS);
      if (done) return;
      length += value?.byteLength ?? 0;
    }
  } catch {
    // The client is gone or silent. Send the response anyway.
  }
  reader.cancel().catch(() => {});
}

/**
 * Drains the body of a request before its response, if it is unread. A body with a declared length above the limit is left
 * alone, and its client gets the response at once.
 *
 * @param {Request} request
 * @returns {Promise<void> | undefined}
 */
export function leftover(request) {
  const { body } = request;
  if (body === null || request.bodyUsed || body.locked || (declared(request) ?? 0) > DISCARD_BYTES) return undefined;
  return discard(body.getReader());
}

/** Unfinished texts, the oldest first. @type {Set<{ bytes: number, fail: (error: Error) => void }>} */
const unfinished = new Set();
let held = 0;

/** Makes room for received bytes. @param {number} bytes */
function hold(bytes) {
  held += bytes;
  for (const text of unfinished) {
    if (held <= HELD_BYTES) return;
    text.fail(new Error(CROWDED));
  }
}

/**
 * The body as text; undefined if it is longer than `limit` bytes.
 *
 * @param {Request} request
 * @param {number} limit
 * @param {boolean} known   the length was declared and is within the limit
 * @returns {Promise<string | undefined>}
 */
export async function bodyText(request, limit, known) {
  if (!request.body) return "";
  if (known && (declared(request) ?? 0) <= SMALL_BYTES) {
    return strict().decode(await within(request.arrayBuffer(), SILENCE_MS));
  }
  const reader = request.body.getReader({ mode: "byob" });
  const text = await readText(reader, limit);
  if (text === undefined) await discard({ read: () => reader.read(new Uint8Array(PIECE_BYTES)), cancel: () => reader.cancel() });
  return text;
}

/** A decoder that rejects invalid UTF-8, which would be stored as different text. */
const strict = () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** @param {ReadableStreamBYOBReader} reader @param {number} limit */
async function readText(reader, limit) {
  const decoder = strict();
  let text = "";
  let length = 0;
  let over = false;
  const { promise: failed, reject } = Promise.withResolvers();
  failed.catch(() => {});
  const entry = { bytes: 0, fail: (/** @type {Error} */ error) => (leave(), reject(error)) };
  const leave = () => {
    if (!unfinished.delete(entry)) return;
    held -= entry.bytes;
    over = true;
  };
  unfinished.add(entry);
  try {
    let piece = new ArrayBuffer(PIECE_BYTES);
    for (;;) {
      const reading = within(reader.readAtLeast(PACE_BYTES, new Uint8Array(piece)), SILENCE_MS);
      const { done, value } = await /** @type {typeof reading} */ (Promise.race([reading, failed]));
      if (value) {
        piece = /** @type {ArrayBuffer} */ (value.buffer);
        length += value.byteLength;
        if (length > limit) return undefined;
        text += decoder.decode(value, { stream: true });
      }
      if (done) return text + decoder.decode();
      const bytes = value?.byteLength ?? 0;
      entry.bytes += bytes;
      hold(bytes);
      if (over) throw new Error(CROWDED);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error;
  } finally {
    leave();
  }
}

/**
 * The bodies that the objects of this isolate read, with the time of the last read. A body that the platform killed is
 * never removed, but its time becomes old.
 *
 * @type {Map<object, number>}
 */
const isolateReads = new Map();

/** @param {object} body */
function admit(body) {
  if (isolateReads.size >= ISOLATE_READ_AT_ONCE) {
    const stale = Date.now() - 2 * SILENCE_MS;
    for (const [other, at] of isolateReads) if (at < stale) isolateReads.delete(other);
    if (isolateReads.size >= ISOLATE_READ_AT_ONCE) throw new Error(CROWDED);
  }
  isolateReads.set(body, Date.now());
}

/** The bodies that one object reads. */
export class Readers {
  #active = 0;
  /** @type {(() => void)[]} */
  #waiting = [];

  /** Resolves when there is room. @returns {Promise<void> | undefined} */
  enter() {
    if (this.#active < READ_AT_ONCE) return void this.#active++;
    const { promise, resolve } = /** @type {PromiseWithResolvers<void>} */ (Promise.withResolvers());
    this.#waiting.push(resolve);
    // The bodies ahead may be stalled, and are abandoned first.
    return within(promise, 2 * SILENCE_MS).catch((error) => {
      this.#waiting = this.#waiting.filter((other) => other !== resolve);
      throw error;
    });
  }

  /** Whether bodies are queued. */
  get crowded() {
    return this.#waiting.length > 0;
  }

  leave() {
    // The latest goes first, so that a queue of stalled bodies does not delay new ones.
    const next = this.#waiting.pop();
    if (next) next();
    else this.#active--;
  }
}

/** The body of a request on its way into wasm. Each `next` leads to one call of `take`. */
export class BodyReader {
  /** @type {ReadableStreamBYOBReader | undefined} */
  #reader;
  /** @type {((piece: Uint8Array | undefined, error: string | undefined) => void) | undefined} */
  #take;
  #ended = false;
  #piece = new ArrayBuffer(0);
  /** The object's counter of reads, and whether this body is counted. @type {Readers | undefined} */
  #readers;
  #counted = false;
  #left;
  /** @type {ReturnType<typeof setTimeout> | null} */
  #timer = null;
  /** Why it was abandoned, if it was: `stalled` or `crowded`. */
  why = "";

  /**
   * @param {{ body: ReadableStream<Uint8Array> | null, headers?: Headers }} request   or an object of a bucket
   * @param {(piece: Uint8Array | undefined, error: string | undefined) => void} take   both undefined: the end
   * @param {Readers | undefined} readers   those of the object, if the body is a client's
   */
  constructor(request, take, readers) {
    this.#take = take;
    this.#readers = readers;
    this.#reader = request.body?.getReader({ mode: "byob" });
    this.#ended = this.#reader === undefined;
    this.#left = request instanceof Request ? (declared(request) ?? 0) : 0;
  }

  next() {
    if (this.#ended || !this.#reader) return void this.#take?.(undefined, undefined);
    if (!this.#readers || this.#counted) return this.#ask(this.#reader);
    void this.#enter(this.#readers, this.#reader);
  }

  /** @param {Readers} readers @param {ReadableStreamBYOBReader} reader */
  async #enter(readers, reader) {
    try {
      await readers.enter();
    } catch {
      return this.#give(CROWDED);
    }
    this.#counted = true;
    if (this.#ended) return this.#uncount();
    try {
      admit(this);
    } catch {
      return this.#give(CROWDED);
    }
    this.#ask(reader);
  }

  /** @param {ReadableStreamBYOBReader} reader */
  #ask(reader) {
    // One buffer for the whole body: each read returns it.
    if (this.#piece.byteLength < PIECE_BYTES) this.#piece = new ArrayBuffer(PIECE_BYTES);
    this.#watch(SILENCE_MS);
    if (this.#counted) isolateReads.set(this, Date.now());
    reader.readAtLeast(PACE_BYTES, new Uint8Array(this.#piece)).then(this.#read, this.#failed);
  }

  /** Abandons the body after a silence of `ms`, or sooner while others are queued. @param {number} ms */
  #watch(ms) {
    const look = () => (ms <= CROWDED_SILENCE_MS || this.#readers?.crowded ? this.#give(STALLED) : this.#watch(ms - CROWDED_SILENCE_MS));
    this.#timer = setTimeout(look, CROWDED_SILENCE_MS);
  }

  /** Abandons the body. @param {string} why */
  #give(why) {
    if (this.#ended) return;
    this.why = why;
    this.#end();
    this.#reader?.cancel().catch(() => {});
    this.#take?.(undefined, why);
  }

  #end() {
    this.#ended = true;
    this.#piece = new ArrayBuffer(0);
    clearTimeout(this.#timer);
    this.#uncount();
  }

  #uncount() {
    if (!this.#counted) return;
    this.#counted = false;
    isolateReads.delete(this);
    this.#readers?.leave();
  }

  /** Stops calling `take`. */
  leave() {
    this.#take = undefined;
    if (!this.#ended) this.cancel();
  }

  /** Ends it: no more is needed. */
  cancel() {
    if (this.#ended || !this.#reader) return;
    this.#end();
    this.#reader.cancel().catch(() => {});
  }

  /** Reads and drops the rest, within limits. */
  async discard() {
    const reader = this.#reader;
    if (this.#ended || !reader) return;
    this.#end();
    if (this.#left > DISCARD_BYTES) return void reader.cancel().catch(() => {});
    await discard({
      read: () => reader.read(new Uint8Array(PIECE_BYTES)),
      cancel: () => reader.cancel(),
    });
  }

  #read = (/** @type {ReadableStreamReadResult<Uint8Array>} */ { done, value }) => {
    if (this.#ended) return;
    clearTimeout(this.#timer);
    if (value) this.#piece = /** @type {ArrayBuffer} */ (value.buffer);
    this.#left -= value?.byteLength ?? 0;
    // The last piece may be short, and may come with the end.
    if (done) this.#end();
    this.#take?.(value?.byteLength ? value : undefined, undefined);
  };
  #failed = (/** @type {unknown} */ error) => {
    if (this.#ended) return;
    this.#end();
    this.#take?.(undefined, error instanceof Error ? error.message : String(error));
  };
}
