// Runs of code in the isolate Worker, from the side of the object that starts them: remote calls both ways. Values pass
// packed, a text and bytes beside it; only the Rust sides read them.

import { RpcTarget } from "cloudflare:workers";

/** @typedef {{ text: string, bytes: Uint8Array[] }} Packed */
/** An answer; `held` is a number for `taken`, where one is wanted. @typedef {({ value: Packed } | { error: Packed }) & { held?: number }} Called */
/** @typedef {{ call(fn: number, args: Packed): Promise<Called>, dup?(): Functions } & Partial<Disposable>} Functions  of the other side */
/** @typedef {[ok: boolean, text: string, bytes: Uint8Array[]]} Answer */
/** The same, and bytes that `taken` is told. @typedef {[...Answer, held: number]} Counted */

/**
 * What Rust hears. `call` and `report` are given the functions of the sandbox, to call those among the values.
 *
 * @typedef {object} Ear
 * @property {(fn: number, text: string, bytes: Uint8Array[], functions: Functions | undefined) => Promise<Counted>} call
 * @property {(bytes: number) => void} taken
 * @property {(text: string, bytes: Uint8Array[], functions: Functions | undefined) => Promise<void>} report
 * @property {() => Promise<string | undefined>} ended
 */

/** @type {Packed} */
const OVER = { text: JSON.stringify([[1], ["e", "Error", "The run has ended, and its calls with it.", ""]]), bytes: [] };

/** Frees the memory of contents that were copied, long before the engine would. @param {Uint8Array[]} bytes */
function release(bytes) {
  for (const { buffer } of bytes) {
    if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
  }
}

/** What the isolate may ask of the object. */
class Door extends RpcTarget {
  /** @type {Ear | undefined} */
  #ear;
  #keep;
  /** Answers that are sent and not taken yet, and what each counts, by their numbers. @type {Map<number, { contents: Uint8Array[], held: number }>} */
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
    // A call that was on its way when its run ended. To throw would be the platform's to report.
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

  /** The sandbox has taken an answer. @param {number} answer its `held` */
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

  /** Why the run is to end; with `null` nobody needs it any more. */
  async ended() {
    const reason = await this.#ear?.ended();
    return reason === undefined ? null : { reason };
  }

  /** Rust does not hear any more. */
  close() {
    this.#ear = undefined;
    this.#sent.clear();
  }
}

/** One run. */
export class SandboxRun {
  #door;
  /** What calls the sandbox's functions, once it has given one away. @type {Functions | undefined} */
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
   * The outcome: JSON, then the packed value and the arguments of each log, then the sandbox's functions.
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
      // What it has of the sandbox's was kept, or nobody wants it any more.
      outcome[Symbol.dispose]?.();
    }
  }

  /**
   * Calls a function of the sandbox's.
   *
   * @param {Functions} functions @param {number} fn @param {string} text @param {Uint8Array[]} bytes
   * @returns {Promise<Answer>}
   */
  async back(functions, fn, text, bytes) {
    const answer = await functions.call(fn, { text, bytes });
    const [ok, packed] = "value" in answer ? [true, answer.value] : [false, answer.error];
    return [ok, packed.text, packed.bytes];
  }

  /** Nothing here is called any more, in either direction. */
  leave() {
    this.#left = true;
    this.#door.close();
    this.#functions?.[Symbol.dispose]?.();
    this.#functions = undefined;
  }

  /**
   * A stub that came with a call is the callee's only for as long as that takes. All of a run are the same.
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
