// One run, from its request to its outcome.
//
// A run settles once: when the code ends, when its caller ends it, or when its engine reaches a limit. Then its machine is
// dropped. If the code gave functions away, the machine lives until its caller no longer needs them.

import { RpcTarget } from "cloudflare:workers";
import { failure } from "./failure.js";
import { LOGS_BYTES, LOGS_ENTRIES, PACKED_UNDEFINED, packedError } from "./wire.js";

/**
 * @typedef {import("./wire.js").Packed} Packed
 * @typedef {import("./wire.js").Request} Request
 * @typedef {import("./wire.js").Program} Program
 * @typedef {import("./wire.js").Outcome} Outcome
 * @typedef {import("./wire.js").Status} Status
 * @typedef {import("./wire.js").Failure} Failure
 * @typedef {import("./wire.js").Answer} Answer
 * @typedef {import("./wire.js").Door} Door
 *
 * The part of an engine that runs a program: engines/quickjs.js and engines/v8.js.
 * @typedef {object} Sandbox
 * @property {(values: Packed, reports: boolean) => void} start
 * @property {(id: number, ok: boolean, value: Packed) => Promise<void>} settle   resolves when it has taken the answer
 * @property {(call: number, id: number, args: Packed) => void} invoke
 * @property {() => Promise<void>} quiet   resolves when all messages so far are processed, with their consequences
 * @property {() => void} end
 */

const ENDED = packedError("Error", "the run of this function has ended");

/**
 * The state of a run; `lingering`: settled, but its functions may still be called.
 *
 * @typedef {"waiting" | "running" | "lingering" | "over"} Phase
 */

export class Run {
  /** @type {Phase} */
  #phase = "waiting";
  #door;
  #started = Date.now();
  /** @type {Sandbox | undefined} */
  #sandbox;
  /** @type {(outcome: Outcome) => void} */
  #settle = () => {};
  /** @type {() => void} */
  #finish = () => {};
  /** @type {import("./wire.js").Log[]} */
  #logs = [];
  #logsLeft = LOGS_BYTES;
  #logsCut = false;
  /** Pending calls of the sandbox's functions, by number. @type {Map<number, (answer: Answer) => void>} */
  #calls = new Map();
  #lastCall = 0;
  /** The object that calls the sandbox's functions, once it has given one away. @type {Functions | undefined} */
  #functions;
  /** @type {Program | undefined} */
  #program;
  /** Whether the success waits for pending calls, and their number. */
  #awaitsCalls = false;
  #underWay = 0;
  /** The success that waits for pending calls. @type {(() => void) | undefined} */
  #held;

  /** @param {Door} door */
  constructor(door) {
    this.#door = door;
    /** Never rejects. @type {Promise<Outcome>} */
    this.outcome = new Promise((resolve) => (this.#settle = resolve));
    /** Resolves when nothing of the run is left. @type {Promise<void>} */
    this.over = new Promise((resolve) => (this.#finish = resolve));
  }

  get settled() {
    return this.#phase === "lingering" || this.#phase === "over";
  }

  /** Starts the clock of the run. */
  begin() {
    this.#started = Date.now();
  }

  /** Sets the program that stacks refer to. @param {Program} program */
  program(program) {
    this.#program = program;
  }

  /** @param {Sandbox} sandbox @param {Request} request */
  start(sandbox, request) {
    this.#sandbox = sandbox;
    this.#phase = "running";
    this.#awaitsCalls = request.awaitsCalls;
    sandbox.start(request.values, request.report);
  }

  /** Ends the run for its caller. Without a reason, the caller is gone. @param {string | undefined} reason */
  end(reason) {
    if (this.#phase === "lingering") this.#close();
    else this.settle("terminated", { error: { name: "Terminated", message: reason ?? "the caller has gone" } });
  }

  /** @param {Status} status @param {{ value?: Packed, error?: Failure, functions?: Functions }} [more] */
  settle(status, more = {}) {
    if (this.settled) return;
    const { functions, ...rest } = more;
    this.#phase = functions ? "lingering" : "over";
    this.#settle({
      status,
      ...rest,
      ...(functions && { functions }),
      logs: this.#logs,
      ...(this.#logsCut && { logsCut: /** @type {const} */ (true) }),
      durationMs: Date.now() - this.#started,
    });
    if (!functions) this.#close();
  }

  #close() {
    this.#phase = "over";
    this.#sandbox?.end();
    this.#sandbox = undefined;
    for (const answer of this.#calls.values()) answer({ error: ENDED });
    this.#calls.clear();
    this.#finish();
  }

  /** Calls a function of the sandbox. @param {number} fn @param {Packed} args @returns {Promise<Answer>} */
  invoke(fn, args) {
    const sandbox = this.#sandbox;
    if (!sandbox) return Promise.resolve({ error: ENDED });
    return new Promise((resolve) => {
      const call = ++this.#lastCall;
      this.#calls.set(call, resolve);
      sandbox.invoke(call, fn, args);
    });
  }

  /**
   * Handles a message of the sandbox. Returns 0 if the sandbox shall send no more of that kind.
   *
   * @param {string} kind
   * @param {string} a
   * @param {number} b
   * @param {string} text
   * @param {() => Uint8Array[]} buffers
   */
  onMessage(kind, a, b, text, buffers) {
    switch (kind) {
      case "log":
        return this.#log(a, b, text, buffers);
      case "call":
        this.#underWay++;
        this.#send(Number(a), text, (packed) => this.#door.call(b, packed, this.#functions), buffers).then(() => this.#answered());
        break;
      case "report":
        this.#send(Number(a), text, (packed) => this.#door.report(packed, this.#functions).then(() => ({ value: PACKED_UNDEFINED })), buffers);
        break;
      case "answer":
        this.#answer(Number(a), b === 1 ? { value: { text, bytes: buffers() } } : { error: { text, bytes: buffers() } });
        break;
      case "done":
        if (a === "success") this.#succeeded({ text, bytes: buffers() });
        else this.#failed(a === "link_error" ? "link_error" : "error", text);
        break;
      case "given":
        this.#functions ??= new Functions(this);
        break;
    }
    return 1;
  }

  /** @param {Packed} value */
  #succeeded(value) {
    const settle = () => this.settle("success", { value, ...(this.#functions && { functions: this.#functions }) });
    if (this.#awaitsCalls && this.#underWay > 0) this.#held = settle;
    else settle();
  }

  /** Handles the end of a call. The answer may lead the code to make another call. */
  async #answered() {
    this.#underWay--;
    if (!this.#held || this.#underWay > 0) return;
    await this.#sandbox?.quiet();
    if (this.#underWay === 0) this.#held?.();
  }

  /** @param {Status} status @param {string} text the harness's description of the error */
  #failed(status, text) {
    const [name, message, stack, maker] = JSON.parse(text);
    this.settle(status, { error: this.#program ? failure({ name, message, stack, maker }, this.#program) : { name, message } });
  }

  /** @param {string} level @param {number} size @param {string} text @param {() => Uint8Array[]} buffers */
  #log(level, size, text, buffers) {
    if (this.#logs.length >= LOGS_ENTRIES || size > this.#logsLeft) {
      this.#logsCut = true;
      return 0;
    }
    this.#logsLeft -= size;
    this.#logs.push({ level, args: { text, bytes: buffers() }, timestamp: Date.now() });
    return 1;
  }

  /**
   * Sends a call or report. Resolves when the sandbox has taken the answer.
   *
   * @param {number} id
   * @param {string} text
   * @param {(packed: Packed) => Promise<Answer & { held?: number }>} send
   * @param {() => Uint8Array[]} buffers
   */
  async #send(id, text, send, buffers) {
    const packed = { text, bytes: buffers() };
    /** @type {Answer & { held?: number }} */
    let answer;
    try {
      answer = await send(packed);
    } catch (error) {
      // The caller's object is lost, and whether it called the function is unknown.
      answer = { error: packedError("Error", `the call was lost: ${error instanceof Error ? error.message : error}`) };
    }
    if ("value" in answer) await this.#sandbox?.settle(id, true, answer.value);
    else await this.#sandbox?.settle(id, false, answer.error);
    // After the end of the run the caller keeps no count, so this is skipped. Errors are ignored, because the caller may be gone.
    if (answer.held !== undefined && this.#sandbox) this.#door.taken(answer.held).catch(() => {});
  }

  /** @param {number} call @param {Answer} answer */
  #answer(call, answer) {
    this.#calls.get(call)?.(answer);
    this.#calls.delete(call);
  }
}

/** The functions that a sandbox gave away. */
export class Functions extends RpcTarget {
  #run;

  /** @param {Run} run */
  constructor(run) {
    super();
    this.#run = run;
  }

  /** @param {number} fn @param {Packed} args @returns {Promise<Answer>} */
  call(fn, args) {
    return this.#run.invoke(fn, args);
  }
}
