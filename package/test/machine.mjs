// One workerd with the Workers as they are deployed, each wrapped in the watch of worker/. There is one Worker for each
// set of definitions that the cases need, and one isolate Worker for all. All their outgoing requests go to `outside`.

import { spawn } from "node:child_process";
import { accessSync, constants, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { isolateFolder, watchFolder, workerFolder } from "./places.mjs";
import { scratch } from "./scratch.mjs";

/**
 * A configuration of the Worker.
 *
 * @typedef {object} Variant
 * @property {string} catalog                 JSON
 * @property {Record<string, string>} vars
 */

/**
 * @typedef {object} Machine
 * @property {string[]} urls                the variants' addresses, in order
 * @property {() => string} said            the last lines of its output
 * @property {() => Promise<void>} stop     stops it and removes its files
 */

/**
 * The process runs for seconds, so V8 optimizes a function of the wasm only after 15 times the usual work (13 million).
 * Cases then take an eighth less processor time.
 */
const LATER_OPTIMISED = "--wasm-tiering-budget=200000000";
const HOST = "127.0.0.1";
/** The same as in the Workers' own configurations, wrangler.toml and isolate/wrangler.toml. */
const COMPATIBILITY = 'compatibilityDate = "2026-10-01", compatibilityFlags = ["nodejs_als"]';
const CLASSES = { THREADS: "ThreadObject", DIRECTORY: "DirectoryObject", MEMORY: "MemoryObject" };
const WATCH = { worker: ["index.js", "packed.js", "scope.js", "storage.js"], isolate: ["isolate.js", "scope.js"] };

/**
 * @param {{ variants: Variant[], outside: number, workerd: string, aside?: boolean }} options   outside: the port for outgoing requests;
 *   aside: does not keep this process alive, and ends with it
 * @returns {Promise<Machine>}
 */
export async function startMachine({ variants, outside, workerd, aside = false }) {
  const { config: folder, objects, remove } = scratch();
  try {
    lay(folder, objects, variants, outside);
    const [machine, child] = await launch(folder, variants.length, workerd, remove);
    if (aside) for (const one of [child, ...child.stdio]) /** @type {any} */ (one)?.unref?.();
    return machine;
  } catch (error) {
    remove();
    throw error;
  }
}

/** @param {string} folder @param {number} count @param {string} workerd @param {() => void} remove @returns {Promise<[Machine, import("node:child_process").ChildProcess]>} */
async function launch(folder, count, workerd, remove) {
  const [program, ...args] = endingWithParent([workerd, "serve", join(folder, "config.capnp"), "--experimental", "--control-fd=3"]);
  const child = spawn(/** @type {string} */ (program), args, { cwd: folder, stdio: ["ignore", "pipe", "pipe", "pipe"], windowsHide: true });
  const lines = /** @type {string[]} */ ([]);
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface({ input: stream }).on("line", (line) => void (lines.push(line), lines.length > 50 && lines.shift()));
  }
  const said = () => lines.join("\n");
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const kill = () => void child.kill("SIGKILL");
  const onSignal = () => process.exit(130);
  const onExit = () => (kill(), remove());
  process.once("exit", onExit);
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  const ports = await listening(child, count, said);
  /** @type {Machine} */
  const machine = {
    urls: ports.map((port) => `http://${HOST}:${port}`),
    said,
    async stop() {
      process.off("exit", onExit);
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
      kill();
      await ended;
      remove();
    },
  };
  return [machine, child];
}

/** @param {import("node:child_process").ChildProcess} child @param {number} count @param {() => string} said @returns {Promise<number[]>} */
function listening(child, count, said) {
  return new Promise((resolve, reject) => {
    /** @type {Map<string, number>} */
    const ports = new Map();
    const control = /** @type {import("node:stream").Readable} */ (child.stdio[3]);
    createInterface({ input: control }).on("line", (line) => {
      const { event, socket, port } = JSON.parse(line);
      if (event === "listen") ports.set(socket, port);
      if (ports.size === count) resolve(Array.from({ length: count }, (_, at) => ports.get(`http${at}`) ?? 0));
    });
    child.once("error", (error) => reject(new Complaint(`workerd cannot be started: ${error.message}`, EXIT.usage)));
    child.once("exit", (code) => reject(new Complaint(`${said()}\nworkerd exited before it was ready (${code}).`, EXIT.usage)));
  });
}

/** On Linux the process ends with this one, even if this one is killed. @param {string[]} command */
function endingWithParent(command) {
  if (process.platform !== "linux") return command;
  const setpriv = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, "setpriv")).find(isProgram);
  return setpriv === undefined ? command : [setpriv, "--pdeathsig", "KILL", ...command];
}

/** @param {string} path */
function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Writes all files that workerd reads.
 * @param {string} folder @param {string} objects @param {Variant[]} variants @param {number} outside
 */
function lay(folder, objects, variants, outside) {
  for (const name of ["worker", "isolate"]) mkdirSync(join(folder, name));
  copy(workerFolder(), join(folder, "worker"), ["index_bg.wasm"]);
  // The package's Worker imports its definitions by a name that wrangler replaces.
  const worker = readFileSync(join(workerFolder(), "index.js"), "utf8").replace('from "bobbin:catalog"', 'from "./catalog.json"');
  writeFileSync(join(folder, "worker/worker.js"), worker);
  copy(watchFolder(), join(folder, "worker"), WATCH.worker);
  copy(isolateFolder(), join(folder, "isolate"), ["compiler.wasm", "quickjs.wasm"]);
  copyFileSync(join(isolateFolder(), "index.js"), join(folder, "isolate/worker.js"));
  copy(watchFolder(), join(folder, "isolate"), WATCH.isolate);
  variants.forEach(({ catalog }, at) => writeFileSync(join(folder, `worker/catalog${at}.json`), catalog));
  writeFileSync(join(folder, "config.capnp"), configuration(objects, variants, outside));
}

/** @param {string} from @param {string} to @param {string[]} names */
function copy(from, to, names) {
  for (const name of names) copyFileSync(join(from, name), join(to, name));
}

/** @param {string} objects   the folder of the objects' databases @param {Variant[]} variants @param {number} outside */
function configuration(objects, variants, outside) {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ${variants.map(({ vars }, at) => worker(vars, at)).join(",\n    ")},
    (name = "isolate", worker = (
      ${COMPATIBILITY},
      modules = [${modules("isolate", "isolate.js", ["scope.js", "worker.js", "compiler.wasm", "quickjs.wasm"])}],
      globalOutbound = "outside")),
    (name = "objects", disk = (path = ${text(objects)}, writable = true)),
    (name = "outside", external = (address = "${HOST}:${outside}", http = (style = proxy))),
  ],
  sockets = [${variants.map((_, at) => `(name = "http${at}", address = "${HOST}:0", http = (), service = "worker${at}")`).join(", ")}],
  v8Flags = [${text(LATER_OPTIMISED)}],
);
`;
}

/** @param {Record<string, string>} vars @param {number} at */
function worker(vars, at) {
  const bindings = [
    ...Object.entries(vars).map(([name, value]) => `(name = ${text(name)}, text = ${text(value)})`),
    ...Object.entries(CLASSES).map(([name, of]) => `(name = "${name}", durableObjectNamespace = "${of}")`),
    '(name = "ISOLATE", service = (name = "isolate", entrypoint = "Isolate"))',
  ];
  const classes = Object.values(CLASSES).map((of) => `(className = "${of}", uniqueKey = "${of}${at}", enableSql = true)`);
  return `(name = "worker${at}", worker = (
      ${COMPATIBILITY},
      modules = [${modules("worker", "index.js", ["packed.js", "scope.js", "storage.js", "worker.js", "index_bg.wasm"])},
        (name = "catalog.json", text = embed "worker/catalog${at}.json")],
      bindings = [${bindings.join(",\n        ")}],
      durableObjectNamespaces = [${classes.join(", ")}],
      durableObjectStorage = (localDisk = "objects"),
      globalOutbound = "outside"))`;
}

/** @param {string} of @param {string} main @param {string[]} more */
function modules(of, main, more) {
  const kind = (/** @type {string} */ name) => (name.endsWith(".wasm") ? "wasm" : "esModule");
  return [main, ...more].map((name) => `(name = "${name}", ${kind(name)} = embed "${of}/${name}")`).join(", ");
}

/** Quotes a text for Cap'n Proto. @param {string} value */
const text = (value) => JSON.stringify(value);
