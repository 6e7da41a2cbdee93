// The bodies of requests: read with a deadline for silence and a bound on what unfinished ones hold, and read to their end
// when nobody wants them, so that a refusal reaches its client.

/** A body is given up when in this time neither `PACE_BYTES` more of it have come nor its end. */
const SILENCE_MS = 30_000;
const PACE_BYTES = 64 << 10;
/** Bytes that are taken from a body at once: each piece is a crossing into wasm. */
const PIECE_BYTES = 256 << 10;

/** How much of a body that nobody wants is read after all, and for how long; and how long its client may be silent. */
const DISCARD_BYTES = 16 << 20;
const DISCARD_MS = 10_000;
const DISCARD_SILENCE_MS = 2_000;

/** A text of a known length that comes as one or two packets: the platform reads it faster than we do. */
const SMALL_BYTES = 64 << 10;
/** What the unfinished texts of an isolate hold together, beyond small ones; the oldest gives way. */
const HELD_BYTES = 32 << 20;

/** The same silence where other bodies of the object wait for their turn. */
const CROWDED_SILENCE_MS = 5_000;

/** Bodies that one object, and that one isolate, reads at the same time. An object's next ones wait; an isolate's are refused. */
const READ_AT_ONCE = 8;
const ISOLATE_READ_AT_ONCE = 32;

/** The header in which an object is told how long a body was declared to be, bytes. */
export const LENGTH = "x-bobbin-length";

/** Why a body could not be read, as the Rust side knows it; any other text is the platform's. */
const STALLED = "stalled";
const CROWDED = "crowded";

/** @param {Request} request @returns {number | undefined} */
const declared = (request) => {
  const length = request.headers.get("content-length") ?? request.headers.get(LENGTH);
  return length === null ? undefined : Number(length);
};

/**
 * A promise, or after a time a failure. @template T @param {Promise<T>} promise @param {number} ms @returns {Promise<T>}
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
 * Reads a body that nobody wants, within bounds: many clients see an answer only when they are done sending, and a
 * connection that is closed before loses it.
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
    // The client has gone, or sends nothing: it is told what there is to tell.
  }
  reader.cancel().catch(() => {});
}

/**
 * What is left to do before a request may be answered: a promise when its body is unread. One that was declared so long
 * that it would not be read to its end is left alone: its client is answered at once.
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

/** Makes room for bytes that have come. @param {number} bytes */
function hold(bytes) {
  held += bytes;
  for (const text of unfinished) {
    if (held <= HELD_BYTES) return;
    text.fail(new Error(CROWDED));
  }
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
  if (!request.body) return "";
  if (known && (declared(request) ?? 0) <= SMALL_BYTES) {
    return strict().decode(await within(request.arrayBuffer(), SILENCE_MS));
  }
  const reader = request.body.getReader({ mode: "byob" });
  const text = await readText(reader, limit);
  if (text === undefined) await discard({ read: () => reader.read(new Uint8Array(PIECE_BYTES)), cancel: () => reader.cancel() });
  return text;
}

/** What is no UTF-8 is refused: it would be stored as something else. */
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
 * The bodies that the objects of this isolate read, by when they were last asked for more. What the platform kills does
 * not leave: its entries are old.
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
    // Those before it may be stalled, and are given up first.
    return within(promise, 2 * SILENCE_MS).catch((error) => {
      this.#waiting = this.#waiting.filter((other) => other !== resolve);
      throw error;
    });
  }

  /** Whether bodies wait for their turn. */
  get crowded() {
    return this.#waiting.length > 0;
  }

  leave() {
    // The latest: a pile of bodies that have stalled keeps no new one waiting.
    const next = this.#waiting.pop();
    if (next) next();
    else this.#active--;
  }
}

/** The body of a request on its way into wasm: each `next` is answered by one call of `take`. */
export class Incoming {
  /** @type {ReadableStreamBYOBReader | undefined} */
  #reader;
  /** @type {((piece: Uint8Array | undefined, error: string | undefined) => void) | undefined} */
  #take;
  #ended = false;
  #piece = new ArrayBuffer(0);
  /** Where it counts as one that is read, and whether it does. @type {Readers | undefined} */
  #readers;
  #counted = false;
  #left;
  /** @type {ReturnType<typeof setTimeout> | null} */
  #timer = null;
  /** Why it was given up, if it was: `stalled` or `crowded`. */
  why = "";

  /**
   * @param {{ body: ReadableStream<Uint8Array> | null, headers?: Headers }} request   or an object of a bucket
   * @param {(piece: Uint8Array | undefined, error: string | undefined) => void} take   neither: the end
   * @param {Readers | undefined} readers   those of the object, when the body is a client's
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
    // One piece of memory for the whole body: it comes back with each answer.
    if (this.#piece.byteLength < PIECE_BYTES) this.#piece = new ArrayBuffer(PIECE_BYTES);
    this.#watch(SILENCE_MS);
    if (this.#counted) isolateReads.set(this, Date.now());
    reader.readAtLeast(PACE_BYTES, new Uint8Array(this.#piece)).then(this.#read, this.#failed);
  }

  /** Gives it up when nothing has come for so long, or sooner while others wait. @param {number} ms */
  #watch(ms) {
    const look = () => (ms <= CROWDED_SILENCE_MS || this.#readers?.crowded ? this.#give(STALLED) : this.#watch(ms - CROWDED_SILENCE_MS));
    this.#timer = setTimeout(look, CROWDED_SILENCE_MS);
  }

  /** Gives it up. @param {string} why */
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

  /** `take` is not called any more. */
  leave() {
    this.#take = undefined;
    if (!this.#ended) this.cancel();
  }

  /** Ends it: no more is wanted. */
  cancel() {
    if (this.#ended || !this.#reader) return;
    this.#end();
    this.#reader.cancel().catch(() => {});
  }

  /** Reads what is left, within bounds, and gives it away. */
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
