// The engine `v8`: a Worker for each run, created by the platform's Worker Loader. It is as fast as the platform and has
// its limits: docs/run-code.md lists them.

import { RpcTarget } from "cloudflare:workers";
import worker from "sandbox-worker";
import { Stopped } from "./machine.js";

/** The compatibility date of the run's Worker. From 2026-12-01 on it would have `Temporal`, which the engine `quickjs` lacks. */
const COMPATIBILITY_DATE = "2026-10-01";
const SANDBOX = "sandbox";
/** The generated modules take their exports from `sandbox-values`; the main module fills it. */
const ENTRY = "entry";
const VALUES = "sandbox-values";
const VALUES_CODE = "export let harness; export const fill = (values) => { harness = values };";
/** How long one run may block the event loop by fetching messages. */
const TURN_MS = 8;
/** Messages of one run that are processed between two turns. */
const BATCH = 64;

/**
 * @typedef {import("../wire.js").Packed} Packed
 * @typedef {import("../wire.js").Program} Program
 * @typedef {import("./quickjs.js").Listener} Listener
 * @typedef {import("../harness/worker.js").ToSandbox} ToSandbox
 * @typedef {import("../harness/worker.js").FromSandbox} FromSandbox
 *
 * The binding of a Worker Loader.
 * @typedef {{ load(code: object): { getEntrypoint(name: string): any } }} Loader
 */

export class V8Sandbox {
  #program;
  #listener;
  #over = false;
  /** Messages for the sandbox. @type {ToSandbox[]} */
  #told = [];
  /** Callbacks for when the sandbox has fetched the messages above. @type {(() => void)[]} */
  #untaken = [];
  #wake = () => {};
  #turn = Date.now();
  /** Resolves when the earlier messages are processed. @type {Promise<void>} */
  #hearing = Promise.resolve();
  /** Names of modules, by their keys in the sandbox. @type {Map<string, string>} */
  #names = new Map();
  /** @type {any} */
  #entry;

  /** @param {Loader} loader @param {Program} program @param {Listener} listener */
  constructor(loader, program, listener) {
    this.#program = program;
    this.#listener = listener;
    for (const [name, key] of program.keys) this.#names.set(key, name);
    // Not `get` with an id: if the Worker of an id fails once, that id stays failed.
    this.#entry = loader.load(workerOf(program)).getEntrypoint("Sandbox");
  }

  /** Evaluates the program with these values. @param {Packed} values @param {boolean} reports */
  start({ text, bytes }, reports) {
    const { fn, manner, keys, modules } = this.#program;
    const keyOf = (/** @type {string} */ name) => /** @type {string} */ (keys.get(name));
    const resolved = modules.map(({ name, resolved }) => [keyOf(name), resolved.map(([specifier, target]) => [specifier, keyOf(target)])]);
    this.#entry.run({ reports, text, bytes, entry: ENTRY, fn, manner, resolved }, new Ear(this)).then(
      () => this.#stopped(new Stopped("lost", "the sandbox ended by itself")),
      (/** @type {unknown} */ error) => this.#failed(error instanceof Error ? error : new Error(String(error))),
    );
  }

  /**
   * Passes the answer to a call or a report. Resolves when the sandbox has fetched it, never if it is over.
   *
   * @param {number} id @param {boolean} ok @param {Packed} value
   */
  settle(id, ok, { text, bytes }) {
    this.#tell({ kind: "settle", a: id, b: ok ? 1 : 0, text, bytes });
    return new Promise((taken) => this.#untaken.push(() => taken(undefined)));
  }

  /** Calls a function that the sandbox exported. @param {number} call @param {number} id @param {Packed} args */
  invoke(call, id, { text, bytes }) {
    this.#tell({ kind: "invoke", a: call, b: id, text, bytes });
  }

  /** Resolves when the sandbox had time to process its messages. It runs in its own event loop. */
  async quiet() {
    await this.#breathe();
    await this.#hearing;
  }

  /** No more messages follow. Running code continues until it waits, and is then dropped by the platform. */
  end() {
    if (this.#over) return;
    this.#over = true;
    this.#told = [];
    this.#tell({ kind: "over", a: 0, b: 0, text: "", bytes: [] });
    this.#entry[Symbol.dispose]?.();
  }

  /** Processes the sandbox's messages in order. @param {FromSandbox[]} messages @returns {Promise<void>} */
  onMessage(messages) {
    return (this.#hearing = this.#hearing.then(() => this.#hear(messages)));
  }

  /** @param {FromSandbox[]} messages */
  async #hear(messages) {
    for (const [at, message] of messages.entries()) {
      // The number of messages matters too, because the platform may stop the clock while code runs.
      if (at % BATCH === BATCH - 1 || Date.now() - this.#turn >= TURN_MS) await this.#breathe();
      if (this.#over) return;
      this.#take(message);
    }
  }

  async #breathe() {
    await new Promise((resolve) => setTimeout(resolve, 0));
    this.#turn = Date.now();
  }

  /** @param {FromSandbox} message */
  #take({ kind, a, b, text, buffers }) {
    if (kind === "resolve") this.#resolve(Number(a), text);
    else if (kind === "turn") this.#tell({ kind: "turned", a: 0, b: 0, text: "", bytes: [] });
    else this.#listener.onMessage(kind, String(a), b, text, () => buffers.map((buffer) => new Uint8Array(buffer)));
  }

  /** Resolves to the messages for the sandbox as soon as there are any. @returns {Promise<ToSandbox[]>} */
  async nextMessages() {
    // A sandbox in an endless loop of requests and answers would block everything else.
    if (Date.now() - this.#turn >= TURN_MS) await this.#breathe();
    if (this.#told.length === 0) await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
    const [told, untaken] = [this.#told, this.#untaken];
    this.#told = [];
    this.#untaken = [];
    for (const taken of untaken) taken();
    return told;
  }

  /** @param {ToSandbox} message */
  #tell(message) {
    this.#told.push(message);
    this.#wake();
  }

  /** @param {number} id @param {string} asked */
  #resolve(id, asked) {
    const [from, specifier] = JSON.parse(asked);
    const { keys, resolve } = this.#program;
    const found = resolve(this.#names.get(from) ?? "", specifier);
    const answer = "error" in found ? { name: found.error.name, message: found.error.message } : { key: keys.get(found.name) };
    this.#tell({ kind: "resolved", a: id, b: 0, text: JSON.stringify(answer), bytes: [] });
  }

  /** @param {Error} error why the Worker failed */
  #failed(error) {
    const [, name, message, place] = /^Failed to start Worker:\s+Uncaught (\w+): ([^\n]*)(?:\n\s*at ([^\n]*))?/.exec(error.message) ?? [];
    if (name === undefined || message === undefined) {
      const memory = /memory/i.test(error.message);
      return this.#stopped(new Stopped(memory ? "memory" : "lost", `the sandbox was lost: ${error.message}`));
    }
    if (this.#over) return;
    this.#over = true;
    this.#listener.unlinked({ name, message, stack: place === undefined ? "" : `    at ${place}` });
  }

  /** @param {Stopped} stopped */
  #stopped(stopped) {
    if (this.#over) return;
    this.#over = true;
    this.#listener.stopped(stopped);
  }
}

/** The only object that the sandbox can reach. */
class Ear extends RpcTarget {
  #sandbox;

  /** @param {V8Sandbox} sandbox */
  constructor(sandbox) {
    super();
    this.#sandbox = sandbox;
  }

  /** @param {FromSandbox[]} messages */
  onMessage(messages) {
    return this.#sandbox.onMessage(messages);
  }

  nextMessages() {
    return this.#sandbox.nextMessages();
  }
}

/** The Worker of a program. @param {Program} program */
function workerOf({ main, keys, modules, globals, imports }) {
  const key = (/** @type {string} */ name) => /** @type {string} */ (keys.get(name));
  /** @type {Record<string, { js: string }>} */
  const all = { [SANDBOX]: { js: worker }, [VALUES]: { js: VALUES_CODE } };
  for (const { name, code } of modules) all[key(name)] = { js: code };
  all[ENTRY] = { js: `import { harness } from "${VALUES}"; import * as main from "${key(main)}"; harness.evaluated(main);` };
  all.globals = exporting(globals.map((name) => [name, `harness.global(${JSON.stringify(name)})`]));
  all.imports = exporting(modules.map(({ name }) => [key(name), `harness.importer(${JSON.stringify(key(name))}, ${JSON.stringify(name)})`]));
  for (const [specifier, names] of imports) {
    all[key(`import:${specifier}`)] = exporting(names.map((name) => [name, `harness.imported(${JSON.stringify(specifier)}, ${JSON.stringify(name)})`]));
  }
  return { compatibilityDate: COMPATIBILITY_DATE, mainModule: SANDBOX, modules: all, env: {}, globalOutbound: null };
}

/** A module that exports values of the harness. @param {[string, string][]} values */
function exporting(values) {
  const lines = values.map(([name, value], at) => `const v${at} = ${value}; export { v${at} as ${JSON.stringify(name)} };`);
  return { js: `import { harness } from "${VALUES}";\n${lines.join("\n")}` };
}
