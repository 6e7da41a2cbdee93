// One running server: `wrangler dev` over a folder of its own, .bobbin/run/<port>, with the same layout as the
// checkout (wrangler.toml, dist/), so that the checkout's wrangler.toml holds for it word for word; the bindings of an
// application's own crate are added to it, and a bucket when it is asked for.

import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { compileCatalog } from "./build.mjs";
import { modelsThatLack, withLocalModel } from "./model-keys.mjs";
import { inCheckout, readIfThere, shown } from "./files.mjs";
import { startFront } from "./front.mjs";
import { localKeys } from "./local-key.mjs";
import { startOutbound } from "./outbound.mjs";
import { Complaint } from "./run.mjs";
import { takeStateFolder } from "./state-folder.mjs";
import { startWorkerd } from "./workerd.mjs";
import { startWrangler } from "./wrangler.mjs";

const HOST = "127.0.0.1";

/** What a development server lets through beyond a deployed one; `.dev.vars` and --var may say otherwise. */
const DEVELOPMENT_VARS = { BOBBIN_DEV: "1", BOBBIN_ALLOW_PRIVATE_HOSTS: "localhost,127.0.0.1,[::1]" };

/** The keys that values of variables are encrypted with. */
const KEYS = "BOBBIN_ENCRYPTION_KEYS";

/**
 * @typedef {object} ServerOptions
 * @property {import("./setup.mjs").Tools} tools
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
 * @property {(pid: number) => void} spawned    of each process that uses `persist`
 */

/**
 * What serves the laid out folder, behind our front.
 *
 * @typedef {object} Runtime
 * @property {number} port
 * @property {(listener: (line: string) => void) => void} onLine   what it prints once it is up
 * @property {(listener: (code: number) => void) => void} onEnd    it ended by itself
 * @property {() => Promise<void>} [reload]                        the catalog was replaced; without, it sees to that itself
 * @property {() => Promise<void>} stop
 */

/** @param {ServerOptions} options @returns {Promise<Server>} */
export async function startServer(options) {
  const port = await claimPort(options.port);
  const home = inCheckout(`.bobbin/run/${port}`);
  const dist = join(home, "dist");
  const folder = await takeStateFolder(options.persist, `http://${HOST}:${port}`);
  prepare(home, options);
  /** @type {string[]} */
  let lacking = [];
  /** @type {Runtime | undefined} */
  let runtime;
  /** @type {import("./front.mjs").Front | undefined} */
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
  const keys = KEYS in options.vars || inDevVars(KEYS) ? {} : { [KEYS]: localKeys(options.persist) };
  const outbound = await startOutbound();
  const vars = { ...Object.fromEntries(defaults), ...keys, ...options.vars, BOBBIN_DEV_OUTBOUND: outbound.url };
  const workerd = process.env.MINIFLARE_WORKERD_PATH ?? workerdThatEndsWithParent(home);
  runtime = options.bare
    ? await startWorkerd({ home, persist: options.persist, vars, workerd, spawned: folder.add })
    : await startWrangler({ home, persist: options.persist, vars, workerd, spawned: folder.add, node: options.tools.node });
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

/**
 * The runtime's program. On Linux it dies with its parent, even when that is killed with SIGKILL: else it would go on
 * holding the port and the database.
 *
 * @param {string} home
 */
function workerdThatEndsWithParent(home) {
  const workerd = inCheckout("node_modules/workerd/bin/workerd");
  if (process.platform !== "linux") return workerd;
  const wrapper = join(home, "workerd");
  writeFileSync(
    wrapper,
    `#!/bin/sh\ncommand -v setpriv >/dev/null && exec setpriv --pdeathsig KILL '${workerd}' "$@"\nexec '${workerd}' "$@"\n`,
  );
  chmodSync(wrapper, 0o755);
  return wrapper;
}


/**
 * @param {number} port  0 for any
 * @returns {Promise<number>} a port that is free
 */
async function claimPort(port) {
  if (port === 0) return freePort();
  // A server that was killed a moment ago is still letting go of it.
  for (let waited = 0; await isTaken(port); waited += 100) {
    if (waited > 3000) throw new Complaint(`Port ${port} is taken: choose another with \`npm start -- --port N\`.`);
    await sleep(100);
  }
  return port;
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, HOST, () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/** @param {number} port @returns {Promise<boolean>} */
function isTaken(port) {
  return new Promise((resolve) => {
    const probe = connect(port, HOST);
    probe.once("error", () => resolve(false));
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
  });
}
