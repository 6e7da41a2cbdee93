// One instance of QuickJS (isolate/../quickjs.wasm, with the meter of scripts/build/src/fuel.rs) and its interface.
//
// The caller's code runs only inside `enter`. There the instance may be suspended between two rounds of any loop, so that
// the isolate's event loop continues, and there it may be killed. While it is suspended nothing else may touch it: users
// of a machine take turns.
//
// A machine that was killed, ran out of memory or broke is never entered again.

import engine from "../quickjs.wasm";
import { PIECE_BYTES, PIECE_UNITS } from "../wire.js";
import { Meter } from "./meter.js";

/**
 * QuickJS's limit of the stack in its memory. Deeper code gets a RangeError that it can catch. The wasm stack, just under
 * 1 MB, must not overflow first, even where nothing is optimized yet. For this the frames in memory are made large enough
 * (scripts/build/src/fuel/stack.rs).
 */
const STACK_BYTES = 260_000;
/** Bytes that fragmentation may take beyond the limit. */
const SLACK_BYTES = 8 << 20;

/** The intrinsics of an instance: without `performance`, `DOMException`, `atob`. */
const INTRINSICS = 0x3ff;

/** Units charged for a call out of the sandbox: about the cost of its network side. */
const CROSSING = 4000;
/** The maximum number of unhandled rejections to keep. */
const UNCAUGHT = 20;
/** The maximum length of a specifier, in UTF-16 units. */
const SPECIFIER_UNITS = 4096;

const MODULE = 1;
const COMPILE_ONLY = 32;
const STRIP_SOURCE = 16;
/** Property flags: writable, enumerable, configurable. */
const ORDINARY = 7;

/** Offsets in structures of this build of QuickJS. `modules` fails if they are wrong. */
const MODULE_LINK = 4;
const LINK_NEXT = 4;
const STRING_LENGTH = -24;

const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
const encoder = new TextEncoder();

/** Why a sandbox stopped; `lost`: the platform removed it. @typedef {"killed" | "memory" | "fuel" | "broken" | "lost"} Stop */

export class Stopped extends Error {
  /** @param {Stop} why @param {string} message @param {unknown} [cause] */
  constructor(why, message, cause) {
    super(message, { cause });
    this.why = why;
  }
}

/** An error that the caller's code can catch. */
export class Refused extends Error {
  /** @param {string} name @param {string} message */
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

/**
 * @typedef {object} Hooks
 * @property {(args: import("./machine.js").Arguments) => number | Handle} send   a message of the harness
 * @property {(from: string, specifier: string) => string} resolve             throws a Refused
 * @property {(name: string) => string} load                                  the source of a module
 * @property {() => Promise<void>} turned                                      after a turn of the event loop; may wait for room
 */

/** A value of the machine. @typedef {{ handle: number }} Handle */

/** The arguments of a call out of the sandbox. */
export class Arguments {
  #machine;
  #at;
  #count;

  /** @param {Machine} machine @param {number} at @param {number} count */
  constructor(machine, at, count) {
    this.#machine = machine;
    this.#at = at;
    this.#count = count;
  }

  /** @param {number} index */
  #pointer(index) {
    return this.#machine.view.getUint32(this.#at + 4 * index, true);
  }
  /** @param {number} index */
  text(index) {
    return this.#machine.readString(this.#pointer(index));
  }
  /** @param {number} index */
  number(index) {
    return this.#machine.wasm.qjs_get_float64(this.#pointer(index));
  }
  /** Copies a part of an array buffer to its offset in `target`. @param {number} index @param {Uint8Array} target @param {number} from */
  bytes(index, target, from) {
    if (index < this.#count) this.#machine.readBytes(this.#pointer(index), target, from);
  }
}

export class Machine {
  #hooks;
  /** @type {Stop | undefined} */
  #stop;
  /** Whether sandbox code runs, which can be suspended and killed, rather than our own code in the middle of it. */
  #metered = false;
  #meter;
  #limit = Number.MAX_SAFE_INTEGER;
  /** @type {Map<string, (...args: any[]) => Promise<any>>} */
  #entries = new Map();
  /** Unhandled rejections: handles of the promises, by the promise's pointer. @type {Map<number, number>} */
  #uncaught = new Map();

  /** @param {Hooks} hooks */
  constructor(hooks) {
    this.#hooks = hooks;
    const instance = new WebAssembly.Instance(engine, this.#imports());
    /** The instance's exports. @type {any} */
    this.wasm = instance.exports;
    this.#meter = new Meter(this.wasm.fuel);
    this.wasm._initialize();
    if (this.wasm.qjs_init2(INTRINSICS) !== 0) throw new Stopped("broken", "QuickJS did not start");
    this.wasm.qjs_set_max_stack_size(STACK_BYTES);
    this.wasm.qjs_set_module_loader(1);
    this.wasm.qjs_set_promise_rejection_handler(1);
  }

  /** Sets how many more bytes may be allocated, and how much fuel may be used. @param {number} bytes @param {number | null} fuel */
  limit(bytes, fuel) {
    this.wasm.qjs_set_memory_limit(this.#allocated() + bytes);
    this.#limit = this.wasm.memory.buffer.byteLength + bytes + SLACK_BYTES;
    this.#meter.begin(fuel);
  }

  /**
   * Ends the running code: at its next loop, or at once if it is suspended. A suspended machine must be woken. Its timer
   * ends with the request that waits for it, and its stack would stay forever.
   */
  kill() {
    this.#stop ??= "killed";
    this.#meter.wake();
  }

  /** Bytes allocated by the engine. */
  #allocated() {
    const at = this.#allocate(26 * 8);
    this.wasm.qjs_compute_memory_usage(at);
    const bytes = Number(this.view.getBigInt64(at, true));
    this.wasm.wasm_free(at);
    return bytes;
  }

  // Entering.

  /**
   * Calls an export in which code of the caller may run.
   *
   * @param {string} name
   * @param {any[]} args
   * @returns {Promise<any>} rejects with a Stopped; then the machine is gone
   */
  async enter(name, ...args) {
    this.#alive();
    // Many short calls block the event loop like one long call.
    if (this.#meter.due) {
      await this.#meter.turn();
      this.#alive();
    }
    let entry = this.#entries.get(name);
    if (!entry) {
      entry = /** @type {any} */ (WebAssembly).promising(this.wasm[name]);
      this.#entries.set(name, /** @type {any} */ (entry));
    }
    this.#meter.metered(false);
    this.#metered = true;
    try {
      return await /** @type {any} */ (entry)(...args);
    } catch (error) {
      throw this.stopped(error);
    } finally {
      this.#metered = false;
      this.#meter.own();
    }
  }

  #alive() {
    if (this.#stop) throw this.stopped(undefined);
  }

  /** Derives why the machine is gone from a thrown error. @param {unknown} error */
  stopped(error) {
    if (error instanceof Stopped) return error;
    if (this.wasm.oom.value !== 0) this.#stop = "memory";
    if (this.#stop === undefined) {
      this.#stop = "broken";
      return new Stopped("broken", error instanceof RangeError ? error.message : `The engine broke: ${error instanceof Error ? error.message : error}`, error);
    }
    return new Stopped(this.#stop, this.#stop);
  }

  /** The slice is used up. Returns 0 to continue, 1 to die, 2 to wait first. */
  #tick = () => {
    // Our own code never uses this much.
    if (!this.#metered) return 1;
    this.#meter.next();
    if (this.#meter.exhausted) this.#stop ??= "fuel";
    if (this.wasm.memory.buffer.byteLength > this.#limit) this.#stop ??= "memory";
    if (this.#stop) return 1;
    return this.#meter.due ? 2 : 0;
  };

  /** Waits for a turn of the event loop, in which the run may be ended. */
  #wait = async () => {
    await this.#meter.turn();
    await this.#hooks.turned();
    return this.#stop ? 1 : 0;
  };

  /** Yields to the event loop if the last turn was long ago. */
  breathe() {
    return this.#meter.breathe();
  }

  /** Units of fuel used. */
  get spent() {
    return this.#meter.spent;
  }

  // The imports of the instance.

  #imports() {
    const view = () => this.view;
    const nothing = () => 0;
    return {
      fuel: { tick: this.#tick, wait: new /** @type {any} */ (WebAssembly).Suspending(this.#wait) },
      env: {
        host_call: (/** @type {number} */ _name, /** @type {number} */ _length, /** @type {number} */ _this, /** @type {number} */ count, /** @type {number} */ at) =>
          this.#outside(() => {
            const answer = this.#hooks.send(new Arguments(this, at, count));
            return typeof answer === "object" ? answer.handle : this.newNumber(answer);
          }),
        host_module_normalize: (/** @type {number} */ from, /** @type {number} */ specifier) =>
          this.#outside(() => this.#resolve(from, specifier)),
        host_module_load: (/** @type {number} */ name, /** @type {number} */ length) =>
          this.#outside(() => {
            const text = this.writeText(this.#hooks.load(this.#readText(name)));
            view().setUint32(length, text.length, true);
            return text.at;
          }),
        // The interpreter's own interrupt handler is not set, because the meter is in every loop.
        host_interrupt: nothing,
        host_promise_rejection: (/** @type {number} */ promise, /** @type {number} */ reason, /** @type {number} */ handled) =>
          this.#outside(() => this.#rejected(promise, reason, handled !== 0)),
        host_get_timezone_offset: nothing,
      },
      wasi_snapshot_preview1: {
        clock_time_get: (/** @type {number} */ _clock, /** @type {bigint} */ _precision, /** @type {number} */ at) => {
          view().setBigUint64(at, BigInt(Date.now()) * 1_000_000n, true);
          return 0;
        },
        random_get: (/** @type {number} */ at, /** @type {number} */ length) => {
          crypto.getRandomValues(new Uint8Array(this.wasm.memory.buffer, at, length));
          return 0;
        },
        fd_close: nothing,
        fd_fdstat_get: nothing,
        fd_seek: nothing,
        fd_write: nothing,
      },
    };
  }

  /**
   * Runs our own work in the middle of a call of the sandbox. Nothing can be suspended there, so the work must be short.
   * Afterwards the sandbox continues with a slice, or with none if others have waited long enough.
   *
   * @template T
   * @param {() => T} work
   */
  #outside(work) {
    if (!this.#metered) return work();
    this.#meter.own();
    this.#metered = false;
    try {
      return work();
    } finally {
      this.#metered = true;
      this.#meter.charge(CROSSING);
      this.#meter.metered(this.#stop !== undefined);
    }
  }

  /** @param {number} promise @param {number} reason both handles are now owned here @param {boolean} handled */
  #rejected(promise, reason, handled) {
    this.free(reason);
    const id = this.wasm.qjs_get_value_ptr(promise);
    const kept = this.#uncaught.get(id);
    if (!handled && kept === undefined && this.#uncaught.size < UNCAUGHT) {
      this.#uncaught.set(id, promise);
      return;
    }
    this.free(promise);
    if (!handled || kept === undefined) return;
    this.#uncaught.delete(id);
    this.free(kept);
  }

  /** The reasons of the unhandled rejections. @returns {Handle[]} */
  uncaught() {
    return [...this.#uncaught.values()].map((promise) => ({ handle: this.wasm.qjs_promise_result(promise) }));
  }

  /** @param {number} from @param {number} specifier */
  #resolve(from, specifier) {
    try {
      const text = this.#readText(specifier);
      if (text.length > SPECIFIER_UNITS) throw new Refused("LinkError", `Cannot import "${text.slice(0, 100)}…": a specifier has no more than ${SPECIFIER_UNITS} characters`);
      // The engine cuts a specifier at its first NUL, but the string's header has the full length.
      const length = this.view.getUint32(specifier + STRING_LENGTH, true) & 0x7fffffff;
      const bytes = this.#end(specifier) - specifier;
      if (length !== bytes) throw new Refused("LinkError", `Cannot import "${text}…": a specifier has no NUL`);
      return this.writeText(this.#hooks.resolve(this.#readText(from), text)).at;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const made = this.wasm.qjs_new_error();
      this.setProperty(made, "name", this.newString(error.name));
      this.setProperty(made, "message", this.newString(error.message));
      this.wasm.qjs_throw(made);
      return 0;
    }
  }

  // Values. Every function returns a handle: a pointer to a reference that the caller owns.

  get view() {
    return new DataView(this.wasm.memory.buffer);
  }

  get undefined() {
    return this.wasm.qjs_get_undefined();
  }

  /** A short text. @param {string} text */
  newString(text) {
    const { at, length } = this.writeText(text);
    const handle = this.wasm.qjs_new_string(at, length);
    this.wasm.wasm_free(at);
    return handle;
  }

  /** Creates a text that may be long, in pieces, so that it does not block the event loop. @param {string} text */
  async newText(text) {
    if (text.length <= PIECE_UNITS) return this.newString(text);
    const pieces = [];
    let length = 0;
    for (let from = 0; from < text.length; ) {
      const last = text.charCodeAt(from + PIECE_UNITS - 1);
      // Do not split a surrogate pair.
      const to = from + PIECE_UNITS - (last >= 0xd800 && last < 0xdc00 ? 1 : 0);
      const bytes = encoder.encode(text.slice(from, to));
      pieces.push(bytes);
      length += bytes.length;
      from = to;
      await this.#pause();
    }
    const at = this.#allocate(length);
    let to = at;
    for (const bytes of pieces) {
      new Uint8Array(this.wasm.memory.buffer).set(bytes, to);
      to += bytes.length;
    }
    const handle = await this.enter("qjs_new_string", at, length);
    this.wasm.wasm_free(at);
    return handle;
  }

  /** @param {number} value */
  newNumber(value) {
    return this.wasm.qjs_new_number(value);
  }

  /** @param {Uint8Array} bytes */
  async newBuffer(bytes) {
    const at = this.#allocate(bytes.length);
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      if (from > 0) await this.#pause();
      new Uint8Array(this.wasm.memory.buffer).set(bytes.subarray(from, from + PIECE_BYTES), at + from);
    }
    this.#meter.charge(CROSSING);
    const handle = await this.enter("qjs_new_array_buffer", at, bytes.length);
    this.wasm.wasm_free(at);
    return handle;
  }

  /** Yields between two pieces of our own work. */
  async #pause() {
    this.#meter.charge(CROSSING);
    await this.breathe();
    this.#alive();
  }

  /** @param {number} handle */
  free(handle) {
    this.wasm.qjs_free_value(handle);
  }

  /** @param {number} object @param {string} name */
  property(object, name) {
    const { at } = this.writeText(name);
    const handle = this.wasm.qjs_get_prop_string(object, at);
    this.wasm.wasm_free(at);
    return handle;
  }

  /** @param {number} object @param {string} name @param {number} value */
  setProperty(object, name, value) {
    const { at } = this.writeText(name);
    this.wasm.qjs_set_prop_string(object, at, value);
    this.wasm.wasm_free(at);
  }

  /** @param {number} handle */
  isException(handle) {
    return this.wasm.qjs_is_exception(handle) !== 0;
  }

  /** Takes the pending exception. */
  caught() {
    return this.wasm.qjs_get_exception();
  }

  /** @param {number} handle */
  readString(handle) {
    const lengthAt = this.#allocate(4);
    const at = this.wasm.qjs_get_string_len(handle, lengthAt);
    const length = this.view.getUint32(lengthAt, true);
    this.wasm.wasm_free(lengthAt);
    if (at === 0) throw new Stopped("broken", "a string could not be read");
    const text = decoder.decode(new Uint8Array(this.wasm.memory.buffer, at, length));
    this.wasm.qjs_free_cstring(at);
    return text;
  }

  /** Copies a piece of a buffer to the same offset in `target`. @param {number} buffer @param {Uint8Array} target @param {number} from */
  readBytes(buffer, target, from) {
    const lengthAt = this.#allocate(4);
    const at = this.wasm.qjs_get_array_buffer(buffer, lengthAt);
    const length = at === 0 ? 0 : this.view.getUint32(lengthAt, true);
    this.wasm.wasm_free(lengthAt);
    const to = Math.min(from + PIECE_BYTES, length, target.length);
    if (from < to) target.set(new Uint8Array(this.wasm.memory.buffer, at + from, to - from), from);
  }

  /** Calls a function of ours that runs no code of the caller. @param {number} callee @param {number[]} args handles */
  callOwn(callee, ...args) {
    const at = this.argumentsAt(args);
    const result = this.wasm.qjs_call(callee, this.undefined, args.length, at);
    this.wasm.wasm_free(at);
    return result;
  }

  /** A list of handles, in the engine's format of arguments. @param {number[]} args */
  argumentsAt(args) {
    const at = this.#allocate(4 * Math.max(1, args.length));
    args.forEach((arg, index) => this.view.setUint32(at + 4 * index, arg, true));
    return at;
  }

  /** The only function that leads out of the sandbox. */
  newSend() {
    const { at, length } = this.writeText("send");
    return this.wasm.qjs_new_host_function(at, length, 0);
  }

  // Code.

  /** Compiles one of our scripts to bytecode, without its source. @param {string} source @param {string} name */
  compileOwn(source, name) {
    const code = this.writeText(source);
    const lengthAt = this.#allocate(4);
    const at = this.wasm.qjs_compile(code.at, code.length, this.writeText(name).at, 0, STRIP_SOURCE, lengthAt);
    if (at === 0) throw new Stopped("broken", `${name} does not compile`);
    return new Uint8Array(this.wasm.memory.buffer, at, this.view.getUint32(lengthAt, true)).slice();
  }

  /** Evaluates one of our scripts. @param {Uint8Array} bytecode */
  runOwn(bytecode) {
    const at = this.#allocate(bytecode.length);
    new Uint8Array(this.wasm.memory.buffer).set(bytecode, at);
    const handle = this.wasm.qjs_eval_bytecode(at, bytecode.length);
    this.wasm.wasm_free(at);
    return handle;
  }

  /** Evaluates one of our modules at once. @param {string} source @param {string} name */
  evaluateOwn(source, name) {
    const code = this.writeText(source);
    const handle = this.wasm.qjs_eval(code.at, code.length, this.writeText(name).at, MODULE);
    if (this.isException(handle)) throw new Stopped("broken", `${name} does not compile`);
    return handle;
  }

  /** Compiles a module and its imports. Returns undefined if that fails. @param {string} source @param {string} name */
  async compileModule(source, name) {
    const code = this.writeText(source);
    const nameAt = this.writeText(name);
    const value = await this.enter("JS_Eval", this.wasm.qjs_get_context_ptr(), code.at, code.length, nameAt.at, MODULE | COMPILE_ONLY);
    this.wasm.wasm_free(code.at);
    this.wasm.wasm_free(nameAt.at);
    return this.wasm.JS_HasException(this.wasm.qjs_get_context_ptr()) === 0 ? Number(value & 0xffffffffn) : undefined;
  }

  /** All loaded modules by name, found from any one of them. @param {number} any @returns {Promise<Map<string, number>>} */
  async modules(any) {
    const context = this.wasm.qjs_get_context_ptr();
    /** @type {Map<string, number>} */
    const found = new Map();
    const next = (/** @type {number} */ link) => this.view.getUint32(link + LINK_NEXT, true);
    const start = any + MODULE_LINK;
    let link = start;
    do {
      // The head of the list lies in the context, all others in modules.
      const inContext = link > context && link < context + 1000;
      if (!inContext) {
        const module = link - MODULE_LINK;
        const text = this.wasm.JS_AtomToCStringLen(context, 0, this.wasm.JS_GetModuleName(context, module));
        found.set(this.#readText(text), module);
        this.wasm.JS_FreeCString(context, text);
        await this.#pause();
      }
      link = next(link);
    } while (link !== start);
    return found;
  }

  /** Sets the `import.meta.url` of a module. @param {number} module @param {string} url */
  async setMetaUrl(module, url) {
    await this.#pause();
    const context = this.wasm.qjs_get_context_ptr();
    const meta = this.wasm.JS_GetImportMeta(context, module);
    const key = this.writeText("url");
    const text = this.writeText(url);
    const value = this.wasm.JS_NewStringLen(context, text.at, text.length);
    this.wasm.JS_DefinePropertyValueStr(context, meta, key.at, value, ORDINARY);
    this.wasm.JS_FreeValue(context, meta);
    this.wasm.wasm_free(key.at);
    this.wasm.wasm_free(text.at);
  }

  // Text in the instance's memory.

  /** @param {string} text */
  writeText(text) {
    const bytes = encoder.encode(text);
    const at = this.#allocate(bytes.length + 1);
    const memory = new Uint8Array(this.wasm.memory.buffer);
    memory.set(bytes, at);
    memory[at + bytes.length] = 0;
    return { at, length: bytes.length };
  }

  /** @param {number} at */
  #end(at) {
    return new Uint8Array(this.wasm.memory.buffer).indexOf(0, at);
  }

  /** Reads up to the NUL. @param {number} at */
  #readText(at) {
    return decoder.decode(new Uint8Array(this.wasm.memory.buffer, at, this.#end(at) - at));
  }

  /** @param {number} bytes */
  #allocate(bytes) {
    const at = this.wasm.wasm_malloc(Math.max(1, bytes));
    if (at === 0) {
      this.#stop = "memory";
      throw new Stopped("memory", "memory");
    }
    return at;
  }
}
