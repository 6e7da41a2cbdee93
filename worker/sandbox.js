// Runs of code in the isolate Worker, on the side of the object that starts them: remote calls in both directions. Values
// are packed as a text and bytes, which only the Rust sides read.

import { RpcTarget } from "cloudflare:workers";

/** @typedef {{ text: string, bytes: Uint8Array[] }} Packed */
/**
 * A result; `held` is the number to pass to `taken`, if that is needed.
 *
 * @typedef {({ value: Packed } | { error: Packed }) & { held?: number }} Called
 */
/**
 * The functions of the other side.
 *
 * @typedef {{ call(fn: number, args: Packed): Promise<Called>, dup?(): Functions } & Partial<Disposable>} Functions
 */
/** @typedef {[ok: boolean, text: string, bytes: Uint8Array[]]} Answer */
/** An answer with the bytes to pass to `taken`. @typedef {[...Answer, held: number]} Counted */

/**
 * The callbacks into Rust. `call` and `report` receive the sandbox's functions, to call those among the values.
 *
 * @typedef {object} Ear
 * @property {(fn: number, text: string, bytes: Uint8Array[], functions: Functions | undefined) => Promise<Counted>} call
 * @property {(bytes: number) => void} taken
 * @property {(text: string, bytes: Uint8Array[], functions: Functions | undefined) => Promise<void>} report
 * @property {() => Promise<string | undefined>} ended
 */

/** @type {Packed} */
const OVER = { text: JSON.stringify([[1], ["e", "Error", "The run has ended, and its calls with it.", ""]]), bytes: [] };

/** Frees the memory of copied contents, long before the engine would. @param {Uint8Array[]} bytes */
function release(bytes) {
  for (const { buffer } of bytes) {
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
  }
}

/** The object's interface for the isolate. */
class Door extends RpcTarget {
  /** @type {Ear | undefined} */
  #ear;
  #keep;
  /**
   * Answers that were sent and not taken yet, by number, and the bytes of each.
   *
   * @type {Map<number, { contents: Uint8Array[], held: number }>}
   */
  #sent = new Map();
  #last = 0;

  /** @param {Ear} ear @param {(functions: Functions | undefined) => Functions | undefined} keep */
  constructor(ear, keep) {
    super();
    this.#ear = ear;
    this.#keep = keep;
  }

  /** @param {number} fn @param {Packed} args @param {Functions} [functions] @returns {Promise<Called>} */
  async call(fn, args, functions) {
    // A call that was in flight when its run ended. The platform would report an exception.
    if (!this.#ear) return { error: OVER };
    const answer = this.#ear.call(fn, args.text, args.bytes, this.#keep(functions));
    release(args.bytes);
    const [ok, text, bytes, held] = await answer;
    /** @type {Called} */
    const called = ok ? { value: { text, bytes } } : { error: { text, bytes } };
    if (held === 0) return called;
    this.#sent.set(++this.#last, { contents: bytes, held });
    return { ...called, held: this.#last };
  }

  /** Handles that the sandbox took an answer. @param {number} answer its `held` */
  taken(answer) {
    const sent = this.#sent.get(answer);
    if (!sent) return;
    this.#sent.delete(answer);
    release(sent.contents);
    this.#ear?.taken(sent.held);
  }

  /** @param {Packed} value @param {Functions} [functions] */
  async report(value, functions) {
    const heard = this.#ear?.report(value.text, value.bytes, this.#keep(functions));
    release(value.bytes);
    await heard;
  }

  /** Resolves to the reason why the run is to end, or to `null` when it is no longer needed. */
  async ended() {
    const reason = await this.#ear?.ended();
    return reason === undefined ? null : { reason };
  }

  /** Disconnects Rust. */
  close() {
    this.#ear = undefined;
    this.#sent.clear();
  }
}

/** One run. */
export class SandboxRun {
  #door;
  /** Calls the sandbox's functions, once it has given one away. @type {Functions | undefined} */
  #functions;
  #left = false;

  /**
   * @param {Ear["call"]} call
   * @param {Ear["taken"]} taken
   * @param {Ear["report"]} report
   * @param {Ear["ended"]} ended
   */
  constructor(call, taken, report, ended) {
    this.#door = new Door({ call, taken, report, ended }, (functions) => this.#keep(functions));
  }

  /**
   * Returns the outcome: JSON, then the packed value and the arguments of each log, then the sandbox's functions.
   *
   * @param {{ run(request: object, door: Door): Promise<any> }} isolate   the binding
   * @param {string} request   JSON
   * @param {string} text      of the packed values
   * @param {Uint8Array[]} bytes
   */
  async run(isolate, request, text, bytes) {
    const outcome = await isolate.run({ ...JSON.parse(request), values: { text, bytes } }, this.#door);
    try {
      const { value, logs, functions, ...rest } = outcome;
      const packed = [value, ...logs.map((/** @type {{ args: Packed }} */ log) => log.args)];
      const plain = { ...rest, logs: logs.map((/** @type {{ level: string, timestamp: number }} */ log) => ({ level: log.level, timestamp: log.timestamp })) };
      return [JSON.stringify(plain), packed.map((one) => one?.text), packed.map((one) => one?.bytes), this.#keep(functions)];
    } finally {
      // Its stub of the sandbox's functions was kept above, or is not needed.
      outcome[Symbol.dispose]?.();
    }
  }

  /**
   * Calls a function of the sandbox.
   *
   * @param {Functions} functions @param {number} fn @param {string} text @param {Uint8Array[]} bytes
   * @returns {Promise<Answer>}
   */
  async back(functions, fn, text, bytes) {
    const answer = await functions.call(fn, { text, bytes });
    const [ok, packed] = "value" in answer ? [true, answer.value] : [false, answer.error];
    return [ok, packed.text, packed.bytes];
  }

  /** Ends all calls, in both directions. */
  leave() {
    this.#left = true;
    this.#door.close();
    this.#functions?.[Symbol.dispose]?.();
    this.#functions = undefined;
  }

  /**
   * Keeps a stub beyond the call that brought it. All stubs of a run are equivalent, so one is kept.
   *
   * @param {Functions | undefined} functions
   */
  #keep(functions) {
    if (!functions) return undefined;
    if (!this.#left) this.#functions ??= functions.dup?.() ?? functions;
    if (this.#functions !== functions) functions[Symbol.dispose]?.();
    return this.#functions;
  }
}
