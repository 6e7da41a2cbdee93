// One running server: `wrangler dev` over a folder of its own, .bobbin/run/<port>, with the same layout as the
// checkout (wrangler.toml, dist/), so that the checkout's wrangler.toml holds for it word for word; the bindings of an
// application's own crate are added to it, and a bucket when it is asked for.

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { compileCatalog } from "./build.mjs";
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

/** How a development server differs from a deployed one; `.dev.vars` and --var may say otherwise. */
const DEVELOPMENT_VARS = { BOBBIN_DEV: "1", BOBBIN_ALLOW_PRIVATE_HOSTS: "localhost,127.0.0.1,[::1]", BOBBIN_LOG_BODIES: "1" };

/** The keys that values of variables are encrypted with. */
const KEYS = "BOBBIN_ENCRYPTION_KEYS";

/**
 * @typedef {object} ServerOptions
 * @property {string} node                     one that wrangler runs on
 * @property {string} dist                     the built Worker
 * @property {string} isolate                  the built isolate Worker
 * @property {number} port                     0 picks a free one
 * @property {string} agents
 * @property {string} persist
 * @property {Record<string, string>} vars
 * @property {string | undefined} [crate]      the folder of a crate that registers natives of its own, perhaps with bindings
 * @property {boolean} [filesBucket]           binds a bucket for large files, unless wrangler.toml does
 * @property {boolean} [workerLoader]          binds a Worker Loader to the isolate, unless its wrangler.toml does
 * @property {boolean} [bare]                  workerd by itself instead of `wrangler dev`
 * @property {number | undefined} [inspectorPort]   where Chrome's developer tools look into the Worker
 * @property {string} [modelName]             what models go by that follow OPENAI_BASE_URL
 * @property {(line: string) => void} log      a line of the server's output once it is up
 * @property {(code: number) => void} ended    the server ended by itself
 */

/**
 * @typedef {object} Server
 * @property {string} url
 * @property {() => string[]} lacking              a line for each model that lacks a variable
 * @property {() => Promise<void>} reloadCatalog   rejects with a Complaint when the definitions are invalid, and changes nothing
 * @property {() => Promise<void>} stop
 */

/**
 * @typedef {object} RuntimeOptions
 * @property {string} home                      a folder as `prepare` lays it out
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
    // Renamed into place: the server watches this file and must never see half of it.
    await compileCatalog(options.agents, join(home, "catalog.json"), { ownNatives: options.crate !== undefined });
    // Its process would stay for as long as the server does. Not at the head: on a fresh machine set-up installs it first.
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
  // Where people reach it who sign in to MCP servers.
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
  return { url: `http://${HOST}:${port}`, reloadCatalog, lacking: () => lacking, stop };
}

/** Both Workers of a laid out folder. @param {string} home */
async function served(home) {
  // Not at the head: on a fresh machine set-up installs it first.
  const { parse } = await import("smol-toml");
  const read = (/** @type {string} */ path) =>
    /** @type {import("../package/lib/project.mjs").Config} */ (/** @type {unknown} */ (parse(readFileSync(join(home, path), "utf8"))));
  return { main: { config: read("wrangler.toml"), folder: "dist" }, isolate: { config: read("isolate/wrangler.toml"), folder: "dist-isolate" } };
}

/** A bucket for large files, as wrangler.toml would bind it. */
const FILES_BUCKET = `
[[r2_buckets]]
binding = "FILES"
bucket_name = "bobbin-files"
`;

/** What makes Workers on the spot, as isolate/wrangler.toml would bind it. */
const WORKER_LOADER = `
[[worker_loaders]]
binding = "LOADER"
`;

/**
 * Lays out a folder as the checkout is: configurations, and the built Workers beside them.
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
  link(isolate, join(home, "dist-isolate"), ["index.js", "compiler.wasm", "quickjs.wasm"]);
  rmSync(join(home, ".dev.vars"), { force: true });
  symlinkSync(inCheckout(".dev.vars"), join(home, ".dev.vars"));
}

/** A configuration with a binding more, if it has none of that name. @param {string} config @param {string} name @param {string} more */
function bound(config, name, more) {
  return new RegExp(`^\\s*binding\\s*=\\s*"${name}"`, "m").test(config) ? config : config + more;
}

/**
 * The Worker's configuration with the tables of another file, those of what is bound to a crate of somebody's own.
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

/** A later build replaces its files, so these stay as they are under a running server. @param {string} from @param {string} to @param {string[]} names */
function link(from, to, names) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  for (const name of names) linkSync(join(from, name), join(to, name));
}

/** An error of the runtime without the addresses of its machine code. @param {string} line */
const withoutAddresses = (line) => line.replace(/;? *stack: (\S*[0-9a-f]{6,}\s*)+$/, "");
