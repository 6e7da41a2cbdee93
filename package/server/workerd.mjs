// Plain workerd, without wrangler's development server. It needs a fifth of the processor time to start, and only our
// front server stands between clients and the Workers. The configurations of both Workers define the bindings. Threads
// are stored in wrangler's folders, so that both servers can use the same data. Bindings that workerd lacks, such as
// key-value stores, are rejected by name, and so are buckets without miniflare (buckets.mjs).

import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Complaint } from "../lib/complaint.mjs";
import { GROUPS, signalGroup } from "../lib/processes.mjs";
import { bucketBindings, bucketParts, text } from "./buckets.mjs";
import { namingFullDisk } from "./full-disk.mjs";

/** @typedef {import("../lib/project.mjs").Config} Config */

/**
 * A Worker to serve.
 *
 * @typedef {object} Served
 * @property {Config} config
 * @property {string} folder    the folder of its modules, relative to `home`
 */

/**
 * A process that serves Workers behind our front server.
 *
 * @typedef {object} Runtime
 * @property {number} port
 * @property {(listener: (line: string) => void) => void} onLine   called for each line of output after the start
 * @property {(listener: (code: number) => void) => void} onEnd    called if it exits by itself
 * @property {() => Promise<void>} [reload]                        to call after modules were replaced; absent if it notices that itself
 * @property {() => Promise<void>} stop
 */

/**
 * @typedef {object} WorkerdOptions
 * @property {string} home                      a folder with the modules of both Workers
 * @property {Served} main
 * @property {Served} isolate
 * @property {string} persist
 * @property {Record<string, string>} vars
 * @property {string} workerd                   the path of the program
 * @property {string} [miniflare]               the folder of its package; without it buckets cannot be bound
 * @property {number | undefined} [inspectorPort]   the port of the inspector for Chrome's developer tools
 * @property {string[] | undefined} [v8Flags]   flags for V8
 * @property {boolean} [proxied]                whether a proxy reports the protocol of a request
 * @property {boolean} [kept]                   whether the program itself ends with this process
 * @property {string} instead                   what to do if a binding is unsupported
 * @property {(pid: number) => void} spawned    called for each process that uses `persist`
 */

const HOST = "127.0.0.1";
/** The host and port of a stand-in for Workers AI. workerd provides the binding `AI` and sends its requests there. */
const AI_ADDRESS = "BOBBIN_AI_ADDRESS";
const KNOWN = new Set([
  ...["name", "compatibility_date", "compatibility_flags", "durable_objects", "services", "worker_loaders", "vars"],
  // Ignored: the locations of files, and settings of deployments.
  ...["$schema", "main", "no_bundle", "find_additional_modules", "base_dir", "rules", "alias", "build", "migrations", "minify", "upload_source_maps"],
  ...["account_id", "workers_dev", "preview_urls", "route", "routes", "observability", "logpush", "placement", "limits", "keep_vars", "send_metrics", "dev"],
]);

/** Supported only if miniflare is given. */
const BUCKETS = "r2_buckets";

/** The module type by file extension. @type {Record<string, string>} */
const KINDS = { ".js": "esModule", ".wasm": "wasm", ".json": "text" };

/** @param {WorkerdOptions} options @returns {Promise<Runtime>} */
export async function startWorkerd({ home, main, isolate, persist, vars, workerd, miniflare, inspectorPort, v8Flags = [], kept = false, proxied = false, instead, spawned }) {
  const objects = join(persist, "v3/do");
  mkdirSync(objects, { recursive: true });
  const path = join(home, "workerd.capnp");
  writeFileSync(path, configuration({ home, main, isolate, persist, miniflare, v8Flags, proxied, instead, objects, vars: Object.keys(vars), ai: vars[AI_ADDRESS] }));

  /** @type {(code: number) => void} */
  let onEnd = () => {};
  /** @type {(line: string) => void} */
  let onLine = () => {};
  const print = namingFullDisk(persist, (line) => onLine(line));
  /** Chosen at the first start and kept for later ones. */
  let port = 0;
  const launch = async () => {
    const args = ["serve", path, "--experimental", "--socket-addr", `http=${HOST}:${port}`, "--control-fd", "3"];
    if (inspectorPort !== undefined) args.push("--inspector-addr", `${HOST}:${inspectorPort}`);
    const keeper = fileURLToPath(new URL("keeper.mjs", import.meta.url));
    const child = spawn(kept ? workerd : process.execPath, kept ? args : [keeper, workerd, ...args], {
      cwd: home,
      // A separate process group, so that Ctrl-C reaches only this process, which then stops workerd in order.
      detached: GROUPS,
      windowsHide: true,
      stdio: [kept ? "ignore" : "pipe", "pipe", "pipe", "pipe"],
      // Read by `fromEnvironment`, so that the values appear in no file and no process list.
      env: vars,
    });
    if (child.pid !== undefined) spawned(child.pid);
    for (const stream of [child.stdout, child.stderr]) if (stream) createInterface({ input: stream }).on("line", print);
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
    // Work in progress stops with the process and continues in the next one.
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

/** Returns the port that the process listens on. @param {import("node:child_process").ChildProcess} child @returns {Promise<number>} */
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
    child.once("exit", (code) => reject(new Complaint(`${printed}\nworkerd exited before it was ready (${code}).`)));
  }).finally(() => child.stderr?.off("data", collect));
}

/**
 * Returns the whole configuration, in Cap'n Proto's text form.
 *
 * @param {Pick<WorkerdOptions, "home" | "main" | "isolate" | "persist" | "proxied" | "instead"> & { miniflare: string | undefined, v8Flags: string[], objects: string, vars: string[], ai: string | undefined }} options
 *   objects: the folder of the objects' databases; vars: names of the variables; ai: where a stand-in for Workers AI is
 */
function configuration({ home, main, isolate, persist, miniflare, v8Flags, proxied, instead, objects, vars, ai }) {
  for (const { config } of [main, isolate]) {
    const unknown = Object.keys(config).find((key) => !KNOWN.has(key) && !(key === BUCKETS && miniflare !== undefined));
    if (unknown !== undefined) throw new Complaint(`workerd does not support \`${unknown}\` in the configuration of ${config.name}: ${instead}.`);
  }
  const bound = [main, isolate].map(({ config }) => bucketBindings(config, instead));
  const buckets = miniflare !== undefined && bound.flat().length > 0 ? bucketParts(miniflare, home, persist) : { services: [], extensions: [] };
  const services = [
    ...[worker(main, home, vars, ai !== undefined, bound[0]), worker(isolate, home, [], false, bound[1])],
    ...(ai === undefined ? [] : [`(name = "workers-ai", external = (address = ${text(ai)}, http = ()))`]),
    ...buckets.services,
    `(name = "objects", disk = (path = ${text(objects)}, writable = true))`,
    '(name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true)))',
  ];
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ${services.join(",\n    ")},
  ],
  sockets = [(name = "http", address = "${HOST}:0", http = (${proxied ? 'forwardedProtoHeader = "X-Forwarded-Proto"' : ""}), service = ${text(main.config.name)})],
  v8Flags = [${v8Flags.map(text).join(", ")}],
  extensions = [${buckets.extensions.join(", ")}],
);
`;
}

/**
 * @param {Served} served
 * @param {string} home
 * @param {string[]} vars
 * @param {boolean} ai         whether it has a binding to a stand-in for Workers AI
 * @param {string[]} [buckets] its bindings to buckets
 */
function worker({ config, folder }, home, vars, ai, buckets = []) {
  const files = readdirSync(join(home, folder)).filter((file) => extname(file) in KINDS);
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
    ...buckets,
    ...(ai ? ['(name = "AI", wrapped = (moduleName = "cloudflare-internal:ai-api", innerBindings = [(name = "fetcher", service = "workers-ai")]))'] : []),
  ];
  return `(name = ${text(config.name)}, worker = (
      compatibilityDate = ${text(config.compatibility_date)},
      compatibilityFlags = [${(config.compatibility_flags ?? []).map(text).join(", ")}],
      modules = [${modules.map((file) => `(name = ${text(file)}, ${KINDS[extname(file)]} = embed ${text(`${folder}/${file}`)})`).join(", ")}],
      bindings = [
        ${bindings.join(",\n        ")}
      ],
      durableObjectNamespaces = [${classes.map(({ class_name }) => `(className = ${text(class_name)}, uniqueKey = ${text(`${config.name}-${class_name}`)}, enableSql = true)`).join(", ")}],
      ${classes.length > 0 ? 'durableObjectStorage = (localDisk = "objects"),' : ""}
    ))`;
}
