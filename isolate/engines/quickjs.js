// The engine `quickjs`: one fresh machine per run. It links the compiled modules, starts them, and carries messages in
// both directions.

import harness from "sandbox-harness";
import { urlParts } from "../harness/url.js";
import { release } from "../wire.js";
import { Machine, Refused, Stopped } from "./machine.js";

/** The harness as bytecode, compiled once by the first machine. @type {Uint8Array | undefined} */
let harnessCode;

/** Modules that the isolate makes. Callers' specifiers cannot look like these. */
const ENTRY = "sandbox:entry";
const HARNESS = "sandbox:harness";
const GLOBALS = "globals:";
const IMPORT = "import:";

/**
 * @typedef {import("../wire.js").Packed} Packed
 * @typedef {import("../wire.js").Program} Program
 *
 * @typedef {object} Listener
 * @property {(kind: string, a: string, b: number, text: string, buffers: () => Uint8Array[]) => number} onMessage   0: no more of this kind
 * @property {(stopped: Stopped) => void} stopped    the sandbox is over; no more messages follow
 * @property {(error: { name: string, message: string, stack: string }) => void} unlinked   the modules cannot be linked
 * @property {() => Promise<void>} [computes]        it is about to compute; resolves when it may
 * @property {(bytes: number) => void} [waits]       it only waits now, with so much memory
 * @property {(bytes: () => number) => Promise<void>} [turned]   it wants to compute on; resolves when it may
 */

export class QuickJsSandbox {
  /** @type {Machine} */
  #machine;
  #program;
  #listener;
  /** The chain of tasks in the machine, one after another. @type {Promise<void>} */
  #turn = Promise.resolve();
  /** The number of tasks that have not begun. */
  #tasks = 0;
  #over = false;
  #harness = 0;
  /** Functions of the harness. @type {Map<string, number>} */
  #functions = new Map();
  /** The promise of the main module's evaluation. */
  #evaluation = 0;
  /** Sources by name. @type {Map<string, string>} */
  #modules = new Map();
  /** The pieces of the message that is arriving. @type {{ texts: string[], buffers: Uint8Array[] }} */
  #pieces = { texts: [], buffers: [] };
  /** The unhandled rejections that the harness requested. @type {import("./machine.js").Handle[]} */
  #uncaught = [];
  /** True until all modules are compiled. */
  #linking = true;

  /**
   * @param {Program} program
   * @param {{ memory: number, fuel: number | null }} limits   bytes and units
   * @param {Listener} listener
   */
  constructor(program, limits, listener) {
    this.#program = program;
    this.#listener = listener;
    this.#machine = new Machine({
      send: (args) => this.#onSend(args),
      resolve: (from, specifier) => this.#resolve(from, specifier),
      load: (name) => this.#source(name),
      turned: async () => this.#listener.turned?.(() => this.#bytes),
    });
    for (const module of program.modules) this.#modules.set(module.name, module.code);
    harnessCode ??= this.#machine.compileOwn(harness, HARNESS);
    const start = this.#machine.runOwn(harnessCode);
    this.#harness = this.#machine.callOwn(start, this.#machine.newSend());
    if (this.#machine.isException(this.#harness)) throw new Stopped("broken", this.#exception().message);
    this.#machine.limit(limits.memory, limits.fuel);
  }

  /** Evaluates the program with these values. @param {Packed} values @param {boolean} reports */
  start(values, reports) {
    this.#do(async () => {
      const machine = this.#machine;
      await this.#call("install", machine.newNumber(reports ? 1 : 0), ...(await this.#packed(values)));
      const global = machine.wasm.qjs_get_global();
      machine.setProperty(global, HARNESS, this.#harness);
      machine.evaluateOwn(`const h = globalThis["${HARNESS}"]; delete globalThis["${HARNESS}"]; export default h;`, HARNESS);
      if (!(await this.#link())) return;
      this.#evaluation = await this.#evaluate();
    });
  }

  /** Passes the answer to a call or a report. @param {number} id @param {boolean} ok @param {Packed} value */
  settle(id, ok, value) {
    return this.#do(async () => {
      const packed = await this.#packed(value);
      await this.#call("settle", this.#machine.newNumber(id), this.#machine.newNumber(ok ? 1 : 0), ...packed);
    });
  }

  /** Calls a function that the sandbox exported. @param {number} call @param {number} id @param {Packed} args */
  invoke(call, id, args) {
    this.#do(async () => {
      const packed = await this.#packed(args);
      await this.#call("invoke", this.#machine.newNumber(call), this.#machine.newNumber(id), ...packed);
    });
  }

  /** Resolves when all tasks so far are done. */
  quiet() {
    return this.#turn;
  }

  /** Ends the sandbox whatever it is doing. No more messages follow. */
  end() {
    this.#over = true;
    this.#machine.kill();
  }

  /** Queues a task; resolves when it is done. @param {() => Promise<unknown>} task @returns {Promise<void>} */
  #do(task) {
    this.#tasks++;
    const turn = this.#turn.then(async () => {
      this.#tasks--;
      if (this.#over) return;
      await this.#listener.computes?.();
      if (this.#over) return;
      try {
        // Answers that arrive back to back are turns of the network only, and would block everything else.
        await this.#machine.breathe();
        if (this.#over) return;
        await task();
        if (!this.#over) await this.#settleJobs();
        if (!this.#over && this.#tasks === 0) this.#listener.waits?.(this.#bytes);
      } catch (error) {
        if (this.#over) return;
        this.#over = true;
        this.#listener.stopped(this.#machine.stopped(error));
      }
    });
    this.#turn = turn;
    return turn;
  }

  /** The size of the machine's memory. */
  get #bytes() {
    return this.#machine.wasm.memory.buffer.byteLength;
  }

  async #settleJobs() {
    const machine = this.#machine;
    await this.#drain();
    if (this.#over || this.#evaluation === 0) return;
    const state = machine.wasm.qjs_promise_state(this.#evaluation);
    if (state === 0) return;
    const promise = this.#evaluation;
    this.#evaluation = 0;
    if (state === 2) {
      await this.#call("fail", machine.wasm.qjs_promise_result(promise));
      await this.#drain();
    }
  }

  /** Runs all pending jobs. */
  async #drain() {
    const machine = this.#machine;
    // The exception of a job may be large, and freeing it can take as long as running code.
    while ((await machine.enter("drain")) < 0) await machine.enter("qjs_free_value", machine.caught());
  }

  /** Calls a function of the harness, which may call code of the caller. @param {string} name @param {number[]} args handles */
  async #call(name, ...args) {
    const machine = this.#machine;
    const callee = this.#functions.get(name) ?? machine.property(this.#harness, name);
    this.#functions.set(name, callee);
    const at = machine.argumentsAt(args);
    const result = await machine.enter("qjs_call", callee, machine.undefined, args.length, at);
    machine.wasm.wasm_free(at);
    for (const arg of args) machine.free(arg);
    if (machine.isException(result)) throw new Stopped("broken", `${name}: ${this.#exception().message}`);
    machine.free(result);
  }

  /** @param {Packed} packed @returns {Promise<number[]>} handles */
  async #packed({ text, bytes }) {
    const handles = [await this.#machine.newText(text)];
    for (const content of bytes) handles.push(await this.#machine.newBuffer(content));
    release(bytes);
    return handles;
  }

  /** Receives the harness's messages; long ones come in pieces (harness/quickjs.js). @param {import("./machine.js").Arguments} args */
  #onSend(args) {
    if (this.#over) return 0;
    const [kind, text] = [args.text(0), args.text(3)];
    const { texts, buffers } = this.#pieces;
    if (kind === "uncaught") return (this.#uncaught = this.#machine.uncaught()).length;
    if (kind === "reason") return /** @type {import("./machine.js").Handle} */ (this.#uncaught[args.number(2)]);
    if (kind === "text") texts.push(text);
    else if (kind === "buffer") buffers.push(new Uint8Array(args.number(2)));
    else if (kind === "bytes") args.bytes(4, /** @type {Uint8Array} */ (buffers.at(-1)), args.number(2));
    else {
      this.#pieces = { texts: [], buffers: [] };
      if (kind === "url") return { handle: this.#machine.newString(urlParts(texts.join("") + text)) };
      return this.#listener.onMessage(kind, args.text(1), args.number(2), texts.join("") + text, () => buffers);
    }
    return 1;
  }

  // Modules.

  /** Compiles everything before anything is evaluated. @returns {Promise<boolean>} */
  async #link() {
    const machine = this.#machine;
    const [main, ...modules] = this.#program.modules;
    if (main === undefined) throw new Stopped("broken", "there is no main module");
    const compiled = await machine.compileModule(main.code, main.name);
    if (compiled === undefined) {
      this.#over = true;
      this.#listener.unlinked(this.#exception());
      return false;
    }
    const loaded = await machine.modules(compiled);
    for (const { name, code } of modules) {
      // Modules that only a dynamic import can reach. An error in one of them appears when it is imported.
      if (loaded.has(name)) continue;
      const found = await machine.compileModule(code, name);
      if (found === undefined) await machine.enter("qjs_free_value", machine.caught());
    }
    this.#linking = false;
    const all = await machine.modules(compiled);
    for (const { name } of this.#program.modules) {
      const module = all.get(name);
      if (module !== undefined) await machine.setMetaUrl(module, `sandbox:${name}`);
      else if (loaded.has(name)) throw new Stopped("broken", `the module ${name} was lost`);
    }
    return true;
  }

  async #evaluate() {
    const machine = this.#machine;
    const { main, fn, manner } = this.#program;
    const code = machine.writeText(
      `import h from "${HARNESS}"; import * as main from ${JSON.stringify(main)}; h.run(main, ${JSON.stringify(fn)}, "${manner}");`,
    );
    const promise = await machine.enter("qjs_eval", code.at, code.length, machine.writeText(ENTRY).at, 1);
    if (!machine.isException(promise)) return promise;
    this.#over = true;
    this.#listener.unlinked(this.#exception());
    return 0;
  }

  /** Resolves `specifier` in the module `from` to a module name. @param {string} from @param {string} specifier */
  #resolve(from, specifier) {
    if (from === ENTRY || from === GLOBALS || from.startsWith(IMPORT)) return specifier;
    // The line that the compiler adds to every module. Running code cannot import it.
    if (specifier === GLOBALS && this.#linking) return specifier;
    const resolved = this.#program.resolve(from, specifier);
    if ("error" in resolved) throw new Refused(resolved.error.name, resolved.error.message);
    return resolved.name;
  }

  /** @param {string} name */
  #source(name) {
    const program = this.#program;
    if (name === GLOBALS) {
      return exporting(program.globals, (global) => `h.global(${JSON.stringify(global)})`);
    }
    const imported = program.imports.find(([specifier]) => name === IMPORT + specifier);
    if (imported) {
      const [specifier, names] = imported;
      return exporting(names, (wanted) => `h.imported(${JSON.stringify(specifier)}, ${JSON.stringify(wanted)})`);
    }
    const code = this.#modules.get(name);
    if (code === undefined) throw new Stopped("broken", `there is no module ${name}`);
    return code;
  }

  #exception() {
    const machine = this.#machine;
    const error = machine.caught();
    const text = (/** @type {string} */ name) => {
      const value = machine.property(error, name);
      const read = machine.readString(value);
      machine.free(value);
      return read;
    };
    const read = { name: text("name"), message: text("message"), stack: text("stack") };
    machine.free(error);
    return read;
  }
}

/** The source of a module that exports values of the harness. @param {string[]} names @param {(name: string) => string} value */
function exporting(names, value) {
  const lines = names.map((name, at) => `const v${at} = ${value(name)}; export { v${at} as ${JSON.stringify(name)} };`);
  return `import h from "${HARNESS}";\n${lines.join("\n")}`;
}
