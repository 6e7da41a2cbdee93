// One running server of a project: workerd over a folder of its own, .bobbin/run/<port>, behind our front.

import { mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "../compiler/project.mjs";
import { line } from "../compiler/compile.mjs";
import { withoutFilesBucket } from "../lib/files-bucket.mjs";
import { pageOf } from "../lib/page.mjs";
import { part, workerdOf } from "../lib/parts.mjs";
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
 * @property {number} port                                    0 picks a free one
 * @property {string} persist                                 where threads are kept
 * @property {(project: import("../lib/project.mjs").Project) => Promise<Record<string, string>>} vars   those of the Worker
 * @property {(request: import("./front.mjs").Answered) => void} [answered]   of each request
 * @property {boolean} [production]                           no development server: a proxy before it may speak TLS
 * @property {(line: string) => void} log                     a line of the server's output once it is up
 * @property {(code: number) => void} ended                   the server ended by itself
 */

/**
 * @typedef {object} Server
 * @property {string} url
 * @property {() => string[]} agents            those that anybody may talk to
 * @property {() => string[]} lacking           a line for each model that lacks a variable
 * @property {() => string[]} warnings          a line for each warning about the definitions
 * @property {() => Promise<void>} reload       takes up changes; rejects with a Complaint when something is invalid, and changes nothing
 * @property {(ms?: number) => Promise<number>} stop   lets requests end for so long; how many did not
 */

/** @param {ServerOptions} options @returns {Promise<Server>} */
export async function startServer({ project, host, persist, log, ended, answered, production = false, ...options }) {
  const port = await claimPort(options.port, host);
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const home = join(project.root, ".bobbin/run", String(port));
  const folder = await takeStateFolder(persist, url);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  // In production it is somebody's own to say under which address people reach it.
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
  place(part("dist/isolate"), join(home, "isolate"), ISOLATE);
  const runtime = await startWorkerd({
    home,
    main: { config: withoutFilesBucket(project.config), folder: "worker" },
    instead: "take it out there, or serve the project with `npx wrangler dev -c wrangler.jsonc -c wrangler.isolate.jsonc`",
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
        // Beside the one that is served, which stays where this one cannot be made.
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

/** The variables of wrangler.jsonc. @param {import("../lib/project.mjs").Project} project @returns {Record<string, string>} */
export const configuredVars = ({ config }) =>
  Object.fromEntries(Object.entries(config.vars ?? {}).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]));

/** An error of the runtime without the addresses of its machine code. @param {string} line */
const withoutAddresses = (line) => line.replace(/;? *stack: (\S*[0-9a-f]{6,}\s*)+$/, "");
