// A running server of a project: workerd on its own folder, .bobbin/run/<port>, behind our front server.

import { mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "../compiler/project.mjs";
import { line } from "../compiler/compile.mjs";
import { withoutFilesBucket } from "../lib/files-bucket.mjs";
import { pageOf } from "../lib/page.mjs";
import { builtFile, workerdOf } from "../lib/resolve.mjs";
import { bundleWorker, link, place } from "./bundle.mjs";
import { startFront } from "./front.mjs";
import { modelsThatLack } from "./model-keys.mjs";
import { BY_SYSTEM, thatEndsWithParent } from "./parent.mjs";
import { claimPort } from "./ports.mjs";
import { takeStateFolder } from "./state-folder.mjs";
import { startWorkerd } from "./workerd.mjs";

/** The files of the isolate Worker. */
const ISOLATE = ["index.js", "compiler.wasm", "quickjs.wasm"];

/**
 * @typedef {object} ServerOptions
 * @property {import("../lib/project.mjs").Project} project
 * @property {string} host
 * @property {number} port                                    0 picks a free port
 * @property {string} persist                                 the folder of the threads
 * @property {(project: import("../lib/project.mjs").Project) => Promise<Record<string, string>>} vars   the Worker's variables
 * @property {(request: import("./front.mjs").Answered) => void} [answered]   called after each request
 * @property {boolean} [production]                           not a development server; a proxy may terminate TLS
 * @property {(line: string) => void} log                     called for each line of output after the start
 * @property {(code: number) => void} ended                   called if the server exits by itself
 */

/**
 * @typedef {object} Server
 * @property {string} url
 * @property {() => string[]} agents            agents that clients may use
 * @property {() => string[]} lacking           a line for each model that lacks a variable
 * @property {() => string[]} warnings          a line for each warning about the definitions
 * @property {() => Promise<void>} reload       loads changes; rejects with a Complaint and changes nothing if they are invalid
 * @property {(ms?: number) => Promise<number>} stop   waits so long for requests; returns how many are left
 */

/** @param {ServerOptions} options @returns {Promise<Server>} */
export async function startServer({ project, host, persist, log, ended, answered, production = false, ...options }) {
  const port = await claimPort(options.port, host);
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const home = join(project.root, ".bobbin/run", String(port));
  const folder = await takeStateFolder(persist, url);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  // In production the operator sets the public URL.
  const given = await options.vars(project);
  /** @type {Record<string, string>} */
  const vars = production ? given : { BOBBIN_PUBLIC_URL: url, ...given };
  const compiled = async () => {
    const { catalog, findings } = await build(project);
    return { definitions: JSON.parse(catalog), warnings: findings.map((finding) => line(project.agents, finding)) };
  };
  let { definitions, warnings } = await compiled();
  const worker = join(home, "worker");
  await bundleWorker(project, worker, project.catalog);
  const made = () => [project.catalog, join(worker, "index.js")].map((path) => readFileSync(path, "utf8")).join("\n");
  let served = made();
  place(builtFile("dist/isolate"), join(home, "isolate"), ISOLATE);
  const runtime = await startWorkerd({
    home,
    main: { config: withoutFilesBucket(project.config), folder: "worker" },
    instead: "remove it there, or serve the project with `npx wrangler dev -c wrangler.jsonc -c wrangler.isolate.jsonc`",
    isolate: { config: project.isolate, folder: "isolate" },
    persist,
    vars,
    workerd: thatEndsWithParent(await workerdOf(project.root), home),
    kept: BY_SYSTEM,
    proxied: production,
    spawned: folder.add,
  });
  runtime.onLine((text) => log(withoutAddresses(text)));
  runtime.onEnd(ended);
  let front;
  try {
    front = await startFront(port, runtime.port, { host, ...(answered && { answered }) });
  } catch (error) {
    await runtime.stop();
    throw error;
  }
  return {
    url,
    agents: () => Object.entries(definitions.agents).flatMap(([name, { expose = true }]) => (expose ? [name] : [])),
    lacking: () => modelsThatLack(definitions, (name) => Boolean(vars[name]?.trim())),
    warnings: () => warnings,
    reload: async () => {
      const next = await compiled();
      if (pageOf(project.root)) {
        // Bundle next to the served Worker. If bundling fails, the served one stays.
        const bundled = join(home, "worker.next");
        await bundleWorker(project, bundled, project.catalog);
        rmSync(worker, { recursive: true });
        renameSync(bundled, worker);
      }
      ({ definitions, warnings } = next);
      if (made() === served) return;
      served = made();
      link(project.catalog, join(worker, "catalog.json"));
      if (runtime.reload) await front.pause(runtime.reload);
    },
    stop: async (ms = 0) => {
      const left = await front.drain(ms);
      front.stop();
      await runtime.stop();
      rmSync(home, { recursive: true, force: true });
      return left;
    },
  };
}

/** Returns the variables of wrangler.jsonc. @param {import("../lib/project.mjs").Project} project @returns {Record<string, string>} */
export const configuredVars = ({ config }) =>
  Object.fromEntries(Object.entries(config.vars ?? {}).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]));

/** Removes addresses of machine code from an error of the runtime. @param {string} line */
const withoutAddresses = (line) => line.replace(/;? *stack: (\S*[0-9a-f]{6,}\s*)+$/, "");
