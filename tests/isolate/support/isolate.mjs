// The isolate Worker in the real runtime, beside a Worker that calls it, and runs of code whose functions, reports and
// end are those of the test. Every test of the contract runs once for each engine of BOBBIN_ENGINES.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until, within } from "../../worker/support/poll.mjs";
import { builtFolder } from "../../../scripts/compile.mjs";
import { checkout, freePort, scratch } from "../../worker/support/server.mjs";
import { WORKERD } from "../../worker/support/workerd.mjs";
import { pack, unpack } from "./values.mjs";

/** @typedef {import("./values.mjs").Packed} Packed */

export const engines = (process.env.BOBBIN_ENGINES ?? "quickjs,v8").split(",");

/**
 * What a test may need that not every engine has: that code can be ended whatever it does, limits of memory and of fuel,
 * and waiting for the outside at the top level of a module.
 *
 * @typedef {"ending" | "memory" | "fuel" | "waiting at the top"} Need
 */

/** docs/run-code.md lists these; exclusions.test.mjs has what happens instead. @type {Record<string, Need[]>} */
const LACKS = { quickjs: [], v8: ["ending", "memory", "fuel", "waiting at the top"] };

/** The built Worker; another build can be tried. */
const DIST = process.env.BOBBIN_ISOLATE_DIST ?? builtFolder("dist-isolate");

/**
 * @typedef {object} Options
 * @property {string} [fn]
 * @property {unknown[]} [args]
 * @property {Record<string, unknown>} [globals]
 * @property {Record<string, Record<string, unknown>>} [imports]
 * @property {Record<string, string>} [modules]
 * @property {"typescript" | "javascript"} [language]
 * @property {string} [filename]
 * @property {number} [memory]
 * @property {number} [fuel]
 * @property {boolean} [report]
 * @property {boolean} [awaitsCalls]
 * @property {string} [id]
 * @property {string} [owner]
 * @property {string[]} [ancestors]
 * @property {string} [engine]
 * @property {string} [caller]     the object that calls: each has a name
 * @property {boolean} [local]     the global `local` gives back what it gets, without asking the test
 * @property {Packed} [values]     instead of args, globals and imports: as they cross
 *
 * @typedef {object} Result
 * @property {"success" | "error" | "link_error" | "memory" | "terminated"} status
 * @property {any} value
 * @property {any} error
 * @property {{ level: string, args: any[], timestamp: number }[]} logs
 * @property {boolean} logsCut
 * @property {any[]} reports
 * @property {number} durationMs
 * @property {number | undefined} settleMs   from the wish of its end to the outcome, at the caller
 * @property {number} tookMs     from the request to the outcome, at the caller
 * @property {any} raw
 */

/** Code that runs, and what the test can do with it. */
class Running {
  /** @type {(result: Result) => void} */
  #resolve = () => {};
  /** @type {((...args: any[]) => unknown)[]} */
  functions = [];
  /** @type {any[]} */
  reports = [];
  /** @type {Map<number, (answer: any) => void>} */
  asked = new Map();
  lastAsked = 0;

  /** @param {Connection} connection @param {number} run */
  constructor(connection, run) {
    this.connection = connection;
    this.run = run;
    /** @type {Promise<Result>} */
    this.result = new Promise((resolve) => (this.#resolve = resolve));
  }

  /** @param {string} [reason] */
  terminate(reason = "the test wants it") {
    this.connection.say({ op: "ended", run: this.run, reason });
  }

  /** The caller needs neither the run nor its functions any more. */
  release() {
    this.connection.say({ op: "ended", run: this.run, reason: null });
  }

  /** As if it had never been: its functions cannot be called any more. */
  forget() {
    this.release();
    this.connection.runs.delete(this.run);
    this.connection.say({ op: "forget", run: this.run });
  }

  exported = (/** @type {(...args: any[]) => unknown} */ fn) => this.functions.push(fn) - 1;

  imported = (/** @type {number} */ id, /** @type {string} */ name) => {
    const call = async (/** @type {any[]} */ ...args) => {
      const number = ++this.lastAsked;
      const answered = new Promise((resolve) => this.asked.set(number, resolve));
      this.connection.say({ op: "invoke", run: this.run, call: number, fn: id, args: pack(args, this.exported) });
      const answer = await answered;
      if ("error" in answer) throw unpack(answer.error, this.imported);
      return unpack(answer.value, this.imported);
    };
    Object.defineProperty(call, "name", { value: name });
    return call;
  };

  /** @param {any} message */
  async take(message) {
    switch (message.op) {
      case "call": {
        let answer;
        try {
          const fn = this.functions[message.fn];
          assert.ok(fn, `the sandbox calls a function that it was not given: ${message.fn}`);
          answer = { value: pack(await fn(...unpack(message.args, this.imported)), this.exported) };
        } catch (error) {
          answer = { error: pack(error, this.exported) };
        }
        return this.connection.say({ op: "answer", run: this.run, call: message.call, answer });
      }
      case "report":
        this.reports.push(unpack(message.value, this.imported));
        return this.connection.say({ op: "answer", run: this.run, call: message.call, answer: {} });
      case "answer":
        this.asked.get(message.call)?.(message.answer);
        return this.asked.delete(message.call);
      case "outcome": {
        const { value, logs, functions, ...told } = message.outcome;
        return this.#resolve({
          ...told,
          error: told.error,
          value: value && unpack(value, this.imported),
          logs: logs.map((/** @type {any} */ log) => ({ ...log, args: unpack(log.args, this.imported) })),
          logsCut: told.logsCut ?? false,
          reports: this.reports,
          settleMs: message.settleMs,
          tookMs: message.tookMs,
          raw: message.outcome,
        });
      }
      case "rejected":
        throw new Error(`run rejected: ${message.message}`);
    }
  }
}

/** A WebSocket to one calling object. */
class Connection {
  /** @type {Map<number, Running>} */
  runs = new Map();
  #last = 0;

  /** @param {WebSocket} socket */
  constructor(socket) {
    this.socket = socket;
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data));
      void this.runs.get(message.run)?.take(message);
    };
  }

  /** @param {string} url @returns {Promise<Connection>} */
  static async to(url) {
    const socket = new WebSocket(url);
    await once(/** @type {any} */ (socket), "open");
    return new Connection(socket);
  }

  /** @param {object} message */
  say(message) {
    this.socket.send(JSON.stringify(message));
  }

  /** @param {(run: Running) => object} request */
  run(request) {
    const running = new Running(this, ++this.#last);
    this.runs.set(running.run, running);
    this.say({ op: "run", run: running.run, request: request(running) });
    return running;
  }
}

export class IsolateServer {
  #port = 0;
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #process;
  /** @type {string | undefined} */
  #folder;
  /** @type {Map<string, Promise<Connection>>} */
  #connections = new Map();
  /** What workerd printed. */
  printed = "";
  #loader;

  /** @param {{ loader?: boolean }} [settings] whether there is a Worker Loader */
  constructor({ loader = true } = {}) {
    this.#loader = loader;
  }

  async up() {
    this.#port = await freePort();
    const folder = scratch("isolate");
    this.#folder = folder;
    copyFileSync(join(checkout, "tests/isolate/support/caller.js"), join(folder, "caller.js"));
    const files = ["index.js", "quickjs.wasm", "compiler.wasm"];
    for (const file of files) {
      try {
        linkSync(join(DIST, file), join(folder, file));
      } catch {
        copyFileSync(join(DIST, file), join(folder, file));
      }
    }
    const config = join(folder, "config.capnp");
    writeFileSync(config, configuration(this.#port, this.#loader));
    const child = spawn(WORKERD, ["serve", "--experimental", config], { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (/** @type {string} */ text) => (this.printed += text));
    }
    process.once("exit", () => child.kill("SIGKILL"));
    await until("workerd serves", () => fetch(`http://127.0.0.1:${this.#port}/`).then((answer) => answer.ok, () => false), {
      describe: () => this.printed,
    });
  }

  async down() {
    const child = this.#process;
    if (child && child.exitCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    if (this.#folder) rmSync(this.#folder, { recursive: true });
  }

  /** The runtime's resident memory, bytes. */
  get memory() {
    const status = readFileSync(`/proc/${this.#process?.pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024;
  }

  /** Ends an object in the middle of everything, as the platform may. @param {string} caller */
  async abort(caller) {
    (await this.#connection(caller)).say({ op: "abort" });
    this.#connections.delete(caller);
  }

  /** @param {string} caller */
  #connection(caller) {
    const known = this.#connections.get(caller);
    if (known) return known;
    const made = Connection.to(`ws://127.0.0.1:${this.#port}/${caller}`);
    this.#connections.set(caller, made);
    return made;
  }

  /** @param {string} source @param {Options} [options] @returns {Promise<Running>} */
  async start(source, options = {}) {
    const { args = [], imports = {}, modules = {}, caller = "one", local = false } = options;
    const globals = { ...options.globals, ...(local && { local: () => {} }) };
    return (await this.#connection(caller)).run((running) => ({
      id: options.id ?? crypto.randomUUID(),
      owner: options.owner ?? options.caller ?? "one",
      ancestors: options.ancestors ?? [],
      engine: options.engine ?? engines[0],
      source,
      language: options.language ?? "typescript",
      filename: options.filename ?? "<runCode>",
      fn: options.fn ?? "default",
      modules: Object.entries(modules),
      memoryLimitBytes: options.memory ?? 16 << 20,
      fuel: options.fuel ?? null,
      report: options.report ?? false,
      awaitsCalls: options.awaitsCalls ?? false,
      local,
      values: options.values ?? pack({ args, globals, imports }, running.exported),
      globals: Object.keys(globals),
      imports: Object.entries(imports).map(([specifier, names]) => [specifier, Object.keys(names)]),
    }));
  }

  /** Runs to the end; functions of the result are gone then. @param {string} source @param {Options & { withinMs?: number }} [options] */
  async run(source, { withinMs = 30_000, ...options } = {}) {
    const running = await this.start(source, options);
    try {
      return await within(`the outcome of ${source.slice(0, 200)}`, withinMs, running.result);
    } finally {
      running.forget();
    }
  }

  /** The longest that the process kept anybody waiting while this was done, ms. @param {Promise<unknown>} work */
  async longestGap(work) {
    let [longest, over] = [0, false];
    const done = work.finally(() => (over = true));
    while (!over) {
      const asked = performance.now();
      await (await fetch(`http://127.0.0.1:${this.#port}/`)).text();
      longest = Math.max(longest, performance.now() - asked);
    }
    await done;
    return longest;
  }

  /** The value of code that succeeds. @param {string} source @param {Options} [options] */
  async value(source, options) {
    const result = await this.run(source, options);
    assert.equal(result.status, "success", JSON.stringify(result.error));
    return result.value;
  }
}

/** @param {number} port @param {boolean} loader */
const configuration = (port, loader) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "caller", worker = .caller), (name = "isolate", worker = .isolate)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "caller")],
);
const caller :Workerd.Worker = (
  modules = [(name = "caller.js", esModule = embed "caller.js")],
  compatibilityDate = "2026-10-01",
  compatibilityFlags = ["nodejs_compat"],
  durableObjectNamespaces = [(className = "Caller", uniqueKey = "caller")],
  durableObjectStorage = (inMemory = void),
  bindings = [
    (name = "CALLERS", durableObjectNamespace = "Caller"),
    (name = "ISOLATE", service = (name = "isolate", entrypoint = "Isolate")),
  ],
);
const isolate :Workerd.Worker = (
  modules = [
    (name = "index.js", esModule = embed "index.js"),
    (name = "quickjs.wasm", wasm = embed "quickjs.wasm"),
    (name = "compiler.wasm", wasm = embed "compiler.wasm"),
  ],
  compatibilityDate = "2026-10-01",
  bindings = [${loader ? '(name = "LOADER", workerLoader = ())' : ""}],
);
`;

/** A server that is up while the tests of this file run. */
export function isolateServer() {
  const server = new IsolateServer();
  before(() => server.up());
  after(() => server.down());
  return server;
}

/** @param {string} engine @param {Need} need */
export const lacks = (engine, need) => LACKS[engine]?.includes(need) ?? false;

/**
 * A test of the contract: on every engine that has what it needs.
 *
 * @param {string} name
 * @param {(engine: string) => Promise<void>} body
 * @param {Need[]} [needs]
 */
export function contract(name, body, needs = []) {
  for (const engine of engines) {
    if (needs.some((need) => lacks(engine, need))) continue;
    test(`${engine}: ${name}`, { timeout: 120_000 }, () => body(engine));
  }
}
