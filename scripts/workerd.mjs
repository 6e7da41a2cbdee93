// workerd by itself, without wrangler's development server: it starts in a fifth of the processor time, and nothing stands
// between a client and the Workers but our own front. What is bound is what wrangler.toml and isolate/wrangler.toml bind,
// and threads lie where wrangler has them, so that one server goes on with what the other began. What workerd does not
// have by itself, buckets and key-value stores above all, is refused by name.

import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { parseEnv } from "node:util";
import { readIfThere } from "./files.mjs";
import { Complaint, signalGroup } from "./run.mjs";

/** @typedef {import("./server.mjs").Runtime} Runtime */

/**
 * What is read of a configuration; the rest of its fields is wrangler's own business.
 *
 * @typedef {object} Config
 * @property {string} name
 * @property {string} compatibility_date
 * @property {string[]} [compatibility_flags]
 * @property {{ bindings: { name: string, class_name: string }[] }} [durable_objects]
 * @property {{ binding: string, service: string, entrypoint?: string }[]} [services]
 * @property {{ binding: string }[]} [worker_loaders]
 */

const HOST = "127.0.0.1";
/** Where a stand-in for Workers AI listens, host and port: the binding `AI` is workerd's own, and its requests go there. */
const AI_ADDRESS = "BOBBIN_AI_ADDRESS";
const KNOWN = new Set([
  ...["name", "compatibility_date", "compatibility_flags", "durable_objects", "services", "worker_loaders"],
  // Where its files are, which is known, and what deployments need.
  ...["main", "no_bundle", "find_additional_modules", "base_dir", "rules", "migrations"],
]);

/** How a module is loaded, by the ending of its file. @type {Record<string, string>} */
const KINDS = { ".js": "esModule", ".wasm": "wasm", ".json": "text" };

/** @param {import("./server.mjs").RuntimeOptions} options @returns {Promise<Runtime>} */
export async function startWorkerd({ home, persist, vars: given, workerd, spawned }) {
  const vars = { ...parseEnv(readIfThere(join(home, ".dev.vars")) ?? ""), ...given };
  const objects = join(persist, "v3/do");
  mkdirSync(objects, { recursive: true });
  const path = join(home, "workerd.capnp");
  writeFileSync(path, await configuration(home, objects, Object.keys(vars), vars[AI_ADDRESS]));

  /** @type {(code: number) => void} */
  let onEnd = () => {};
  /** @type {(line: string) => void} */
  let onLine = () => {};
  /** Chosen by the first start, kept by those after it. */
  let port = 0;
  const launch = async () => {
    const child = spawn(workerd, ["serve", path, "--experimental", "--socket-addr", `http=${HOST}:${port}`, "--control-fd", "3"], {
      cwd: home,
      // A group of its own: Ctrl-C reaches us alone, and we end it in order.
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      // Read by `fromEnvironment`: no file holds their values, and no list of processes shows them.
      env: vars,
    });
    if (child.pid !== undefined) spawned(child.pid);
    for (const stream of [child.stdout, child.stderr]) if (stream) createInterface({ input: stream }).on("line", (line) => onLine(line));
    port = await listening(child);
    child.once("exit", (code) => current === child && onEnd(code ?? 1));
    return child;
  };
  /** @type {import("node:child_process").ChildProcess | undefined} */
  let current = await launch();
  const end = async (/** @type {NodeJS.Signals} */ signal) => {
    const child = current;
    current = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    const timer = setTimeout(() => signalGroup(child.pid, "SIGKILL"), 5000);
    await exited;
    clearTimeout(timer);
  };
  return {
    port,
    onEnd: (listener) => void (onEnd = listener),
    onLine: (listener) => void (onLine = listener),
    // What is still under way is lost with the process, and goes on in the next one.
    reload: async () => {
      await end("SIGKILL");
      try {
        current = await launch();
      } catch (error) {
        onLine(/** @type {Error} */ (error).message);
        onEnd(1);
      }
    },
    stop: () => end("SIGTERM"),
  };
}

/** The port that it listens on. @param {import("node:child_process").ChildProcess} child @returns {Promise<number>} */
function listening(child) {
  let printed = "";
  const collect = (/** @type {Buffer} */ text) => (printed += text);
  child.stderr?.on("data", collect);
  return new Promise((/** @type {(port: number) => void} */ resolve, reject) => {
    const control = /** @type {import("node:stream").Readable} */ (child.stdio[3]);
    createInterface({ input: control }).on("line", (line) => {
      const { event, port } = JSON.parse(line);
      if (event === "listen") resolve(port);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Complaint(`${printed}\nworkerd ended before it was ready (${code}).`)));
  }).finally(() => child.stderr?.off("data", collect));
}

/**
 * The whole configuration, in the text form of Cap'n Proto.
 *
 * @param {string} home
 * @param {string} objects   where the databases of the objects lie
 * @param {string[]} vars    names of the variables
 * @param {string} [ai]      where a stand-in for Workers AI is
 */
async function configuration(home, objects, vars, ai) {
  const main = await readConfig(join(home, "wrangler.toml"));
  const isolate = await readConfig(join(home, "isolate/wrangler.toml"));
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ${worker(main, home, "dist", vars, ai !== undefined)},
    ${worker(isolate, home, "dist-isolate", [], false)},${ai === undefined ? "" : `\n    (name = "workers-ai", external = (address = ${text(ai)}, http = ())),`}
    (name = "objects", disk = (path = ${text(objects)}, writable = true)),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", address = "${HOST}:0", http = (), service = ${text(main.name)})],
);
`;
}

/** @param {string} path @returns {Promise<Config>} */
async function readConfig(path) {
  // Not at the head: on a fresh machine set-up installs it first.
  const { parse } = await import("smol-toml");
  const config = parse(readFileSync(path, "utf8"));
  const unknown = Object.keys(config).find((key) => !KNOWN.has(key));
  if (unknown !== undefined) {
    throw new Complaint(`workerd by itself has no \`${unknown}\`, which wrangler.toml binds: leave out --workerd.`);
  }
  return /** @type {Config} */ (/** @type {unknown} */ (config));
}

/**
 * @param {Config} config
 * @param {string} home
 * @param {string} dist   folder of its modules
 * @param {string[]} vars
 * @param {boolean} ai   whether it is bound to a stand-in for Workers AI
 */
function worker(config, home, dist, vars, ai) {
  const files = readdirSync(join(home, dist)).filter((file) => extname(file) in KINDS);
  const modules = files.sort((a, b) => Number(b === "index.js") - Number(a === "index.js"));
  const classes = config.durable_objects?.bindings ?? [];
  const bindings = [
    ...vars.map((name) => `(name = ${text(name)}, fromEnvironment = ${text(name)})`),
    ...classes.map(({ name, class_name }) => `(name = ${text(name)}, durableObjectNamespace = ${text(class_name)})`),
    ...(config.services ?? []).map(
      ({ binding, service, entrypoint }) =>
        `(name = ${text(binding)}, service = (name = ${text(service)}${entrypoint === undefined ? "" : `, entrypoint = ${text(entrypoint)}`}))`,
    ),
    ...(config.worker_loaders ?? []).map(({ binding }) => `(name = ${text(binding)}, workerLoader = (id = ${text(binding)}))`),
    ...(ai ? ['(name = "AI", wrapped = (moduleName = "cloudflare-internal:ai-api", innerBindings = [(name = "fetcher", service = "workers-ai")]))'] : []),
  ];
  return `(name = ${text(config.name)}, worker = (
      compatibilityDate = ${text(config.compatibility_date)},
      compatibilityFlags = [${(config.compatibility_flags ?? []).map(text).join(", ")}],
      modules = [${modules.map((file) => `(name = ${text(file)}, ${KINDS[extname(file)]} = embed ${text(`${dist}/${file}`)})`).join(", ")}],
      bindings = [
        ${bindings.join(",\n        ")}
      ],
      durableObjectNamespaces = [${classes.map(({ class_name }) => `(className = ${text(class_name)}, uniqueKey = ${text(`${config.name}-${class_name}`)}, enableSql = true)`).join(", ")}],
      ${classes.length > 0 ? 'durableObjectStorage = (localDisk = "objects"),' : ""}
    ))`;
}

/** @param {string} value */
const text = (value) => JSON.stringify(value);
