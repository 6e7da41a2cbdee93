// One running server: `wrangler dev` over its own folder, .bobbin/run/<port>, with the layout of the checkout
// (wrangler.toml, dist/), so that the checkout's wrangler.toml applies unchanged. The bindings of an application's own
// crate are added to it, and a bucket on request.

import { copyFileSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { compileCatalog } from "./catalog.mjs";
import { modelsThatLack, withLocalModel } from "../package/server/model-keys.mjs";
import { inCheckout, readIfThere, shown } from "./files.mjs";
import { startFront } from "../package/server/front.mjs";
import { localKeys } from "../package/server/local-key.mjs";
import { startOutbound } from "../package/server/outbound.mjs";
import { BY_SYSTEM, thatEndsWithParent } from "../package/server/parent.mjs";
import { claimPort } from "../package/server/ports.mjs";
import { Complaint } from "./run.mjs";
import { takeStateFolder } from "../package/server/state-folder.mjs";
import { startWorkerd } from "../package/server/workerd.mjs";
import { startWrangler } from "./wrangler.mjs";

const HOST = "127.0.0.1";
/** The isolate Worker's folder in a prepared folder. */
const ISOLATE = "dist-isolate";

/** The differences between a development server and a deployed one; `.dev.vars` and --var override them. */
const DEVELOPMENT_VARS = { BOBBIN_DEV: "1", BOBBIN_ALLOW_PRIVATE_HOSTS: "localhost,127.0.0.1,[::1]", BOBBIN_LOG_BODIES: "1" };

/** The variable with the keys that encrypt values of variables. */
const KEYS = "BOBBIN_ENCRYPTION_KEYS";

/**
 * @typedef {object} ServerOptions
 * @property {string} node                     a Node that wrangler runs on
 * @property {string} dist                     the built Worker
 * @property {string | undefined} isolate      the built isolate Worker; undefined: it is not built yet, and joins later
 * @property {number} port                     0 picks a free one
 * @property {string} agents
 * @property {string} persist
 * @property {Record<string, string>} vars
 * @property {string | undefined} [crate]      the folder of a crate with natives of its own, perhaps with bindings
 * @property {boolean} [filesBucket]           binds a bucket for large files, unless wrangler.toml does
 * @property {boolean} [workerLoader]          binds a Worker Loader to the isolate, unless its wrangler.toml does
 * @property {boolean} [bare]                  uses workerd alone instead of `wrangler dev`
 * @property {number | undefined} [inspectorPort]   the port for Chrome's developer tools
 * @property {string} [modelName]             the name for models that follow OPENAI_BASE_URL
 * @property {(line: string) => void} log      receives the server's output once it is up
 * @property {(code: number) => void} ended    called when the server ended by itself
 */

/**
 * @typedef {object} Server
 * @property {string} url
 * @property {() => string[]} lacking              a line for each model that lacks a variable
 * @property {() => Promise<void>} reloadCatalog   rejects with a Complaint when the definitions are invalid, and changes nothing
 * @property {(isolate: string) => Promise<void>} joinIsolate   the built isolate Worker takes the place of its stand-in
 * @property {() => Promise<void>} stop
 */

/**
 * @typedef {object} RuntimeOptions
 * @property {string} home                      a folder with the layout of `prepare`
 * @property {string} persist
 * @property {Record<string, string>} vars
 * @property {string} workerd                   the program
 * @property {number | undefined} inspectorPort
 * @property {(pid: number) => void} spawned    of each process that uses `persist`
 */

/** @param {ServerOptions} options @returns {Promise<Server>} */
export async function startServer(options) {
  const port = await claimPort(options.port, HOST);
  const home = inCheckout(`.bobbin/run/${port}`);
  const dist = join(home, "dist");
  const inspectorPort = options.inspectorPort === undefined ? undefined : await claimPort(options.inspectorPort, HOST, "--inspector-port");
  const folder = await takeStateFolder(options.persist, `http://${HOST}:${port}`);
  prepare(home, options);
  /** @type {string[]} */
  let lacking = [];
  /** @type {import("../package/server/workerd.mjs").Runtime | undefined} */
  let runtime;
  /** @type {import("../package/server/front.mjs").Front | undefined} */
  let front;
  const bindsAi = /^\[ai\]/m.test(readIfThere(inCheckout("wrangler.toml")) ?? "");
  const isSet = (/** @type {string} */ name) =>
    name === "AI" ? bindsAi || "BOBBIN_AI_ADDRESS" in options.vars :
    name in options.vars
      ? Boolean(options.vars[name]?.trim())
      : new RegExp(`^\\s*(export\\s+)?${name}\\s*=[^\\S\\n]*(?!["']{2})\\S`, "m").test(readIfThere(inCheckout(".dev.vars")) ?? "");
  const reloadCatalog = async () => {
    // Renamed into place, because the server watches this file and must never see half of it.
    await compileCatalog(options.agents, join(home, "catalog.json"), { ownNatives: options.crate !== undefined });
    // esbuild's process would stay as long as the server. Imported late: on a fresh machine the set-up installs it first.
    await (await import("esbuild")).stop();
    const compiled = JSON.parse(readFileSync(join(home, "catalog.json"), "utf8"));
    if (options.modelName) {
      writeFileSync(join(home, "catalog.json"), JSON.stringify(withLocalModel(compiled, options.modelName)));
    }
    lacking = modelsThatLack(compiled, isSet);
    renameSync(join(home, "catalog.json"), join(dist, "catalog.json"));
    if (runtime?.reload) await front?.pause(runtime.reload);
  };
  const devVars = readIfThere(inCheckout(".dev.vars")) ?? "";
  const inDevVars = (/** @type {string} */ name) => new RegExp(`^\\s*(export\\s+)?${name}\\s*=`, "m").test(devVars);
  const defaults = Object.entries(DEVELOPMENT_VARS).filter(([name]) => !inDevVars(name));
  await reloadCatalog();
  const keys = KEYS in options.vars || inDevVars(KEYS) ? {} : { [KEYS]: localKeys(inCheckout("."), options.persist) };
  const outbound = await startOutbound();
  // The address for people who sign in to MCP servers.
  const at = inDevVars("BOBBIN_PUBLIC_URL") ? {} : { BOBBIN_PUBLIC_URL: `http://${HOST}:${port}` };
  const vars = { ...Object.fromEntries(defaults), ...at, ...keys, ...options.vars, BOBBIN_DEV_OUTBOUND: outbound.url };
  const workerd = process.env.MINIFLARE_WORKERD_PATH ?? thatEndsWithParent(inCheckout("node_modules/workerd/bin/workerd"), home);
  runtime = options.bare
    ? await startWorkerd({
        ...{ home, ...(await served(home)), persist: options.persist, vars: { ...parseEnv(devVars), ...vars } },
        ...{ v8Flags: process.env.BOBBIN_V8_FLAGS?.split(" "), workerd, kept: BY_SYSTEM, miniflare: inCheckout("node_modules/miniflare"), inspectorPort, instead: "leave out --workerd", spawned: folder.add },
      })
    : await startWrangler({ home, persist: options.persist, vars, workerd, inspectorPort, spawned: folder.add, node: options.node });
  runtime.onLine((line) => options.log(withoutAddresses(line)));
  runtime.onEnd(options.ended);

  const stop = async () => {
    front?.stop();
    outbound.stop();
    await runtime?.stop();
  };
  try {
    front = await startFront(port, runtime.port);
  } catch (error) {
    await stop();
    throw new Complaint(`Port ${port} cannot be served: ${/** @type {Error} */ (error).message}`);
  }
  const joinIsolate = async (/** @type {string} */ isolate) => {
    placeIsolate(isolate, join(home, ISOLATE));
    if (runtime?.reload) await front?.pause(runtime.reload);
  };
  return { url: `http://${HOST}:${port}`, reloadCatalog, lacking: () => lacking, joinIsolate, stop };
}

/** Both Workers of a prepared folder. @param {string} home */
async function served(home) {
  // Imported late: on a fresh machine the set-up installs it first.
  const { parse } = await import("smol-toml");
  const read = (/** @type {string} */ path) =>
    /** @type {import("../package/lib/project.mjs").Config} */ (/** @type {unknown} */ (parse(readFileSync(join(home, path), "utf8"))));
  return { main: { config: read("wrangler.toml"), folder: "dist" }, isolate: { config: read("isolate/wrangler.toml"), folder: ISOLATE } };
}

/** The binding of a bucket for large files, for wrangler.toml. */
const FILES_BUCKET = `
[[r2_buckets]]
binding = "FILES"
bucket_name = "bobbin-files"
`;

/** The binding of a Worker Loader, for isolate/wrangler.toml. */
const WORKER_LOADER = `
[[worker_loaders]]
binding = "LOADER"
`;

/**
 * Prepares a folder with the layout of the checkout: the configurations, and the built Workers beside them.
 *
 * @param {string} home
 * @param {Pick<ServerOptions, "dist" | "isolate" | "crate" | "filesBucket" | "workerLoader">} options
 */
export function prepare(home, { dist, isolate, crate, filesBucket = false, workerLoader = false }) {
  mkdirSync(join(home, "isolate"), { recursive: true });
  const [worker, sandbox] = [readFileSync(inCheckout("wrangler.toml"), "utf8"), readFileSync(inCheckout("isolate/wrangler.toml"), "utf8")];
  const whole = crate === undefined ? worker : withBindings(worker, join(crate, "wrangler.toml"));
  writeFileSync(join(home, "wrangler.toml"), bound(whole, "FILES", filesBucket ? FILES_BUCKET : ""));
  writeFileSync(join(home, "isolate/wrangler.toml"), bound(sandbox, "LOADER", workerLoader ? WORKER_LOADER : ""));
  link(dist, join(home, "dist"), ["index.js", "index_bg.wasm"]);
  rmSync(join(home, ISOLATE), { recursive: true, force: true });
  placeIsolate(isolate, join(home, ISOLATE));
  rmSync(join(home, ".dev.vars"), { force: true });
  symlinkSync(inCheckout(".dev.vars"), join(home, ".dev.vars"));
}

/** Adds a binding to a configuration that has none of that name. @param {string} config @param {string} name @param {string} more */
function bound(config, name, more) {
  return new RegExp(`^\\s*binding\\s*=\\s*"${name}"`, "m").test(config) ? config : config + more;
}

/**
 * Adds the tables of another file, which has the bindings of an application's own crate, to the Worker's configuration.
 *
 * @param {string} config
 * @param {string} path
 */
function withBindings(config, path) {
  const more = readIfThere(path);
  if (more === undefined) return config;
  const first = more.split("\n").find((line) => /^\s*[^\s#]/.test(line));
  if (first !== undefined && !/^\s*\[/.test(first)) {
    throw new Complaint(
      `${shown(path)} adds tables to Bobbin's wrangler.toml, such as [[kv_namespaces]]. “${first.trim()}” is none: fields of the ` +
        "whole Worker belong in Bobbin's, and its name is given by `npm run deploy -- --name NAME`.",
    );
  }
  const tables = (/** @type {string} */ toml) => [...toml.matchAll(/^\s*\[\s*([\w.-]+)\s*\]/gm)].map(([, name]) => name);
  const twice = tables(more).find((name) => tables(config).includes(name));
  if (twice !== undefined) {
    throw new Complaint(`The table [${twice}] is in ${shown(path)} and in Bobbin's wrangler.toml: keep it in one of them.`);
  }
  return `${config}\n${more}`;
}

/**
 * Links files. A later build replaces its files, so these stay unchanged under a running server.
 *
 * @param {string} from @param {string} to @param {string[]} names
 */
function link(from, to, names) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  for (const name of names) linkSync(join(from, name), join(to, name));
}

/** The smallest WebAssembly module. */
const EMPTY_WASM = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

/**
 * Places the isolate Worker, or its stand-in, which has the same modules. Each file is renamed into place, because a running
 * server watches them; the main module comes last.
 *
 * @param {string | undefined} isolate @param {string} to
 */
function placeIsolate(isolate, to) {
  mkdirSync(to, { recursive: true });
  for (const name of ["compiler.wasm", "quickjs.wasm", "index.js"]) {
    const placing = join(to, `${name}.placing`);
    if (isolate !== undefined) linkSync(join(isolate, name), placing);
    else if (name === "index.js") copyFileSync(inCheckout("isolate/absent.js"), placing);
    else writeFileSync(placing, EMPTY_WASM);
    renameSync(placing, join(to, name));
  }
}

/** An error of the runtime, without the addresses in its machine code. @param {string} line */
const withoutAddresses = (line) => line.replace(/;? *stack: (\S*[0-9a-f]{6,}\s*)+$/, "");
