// `bobbin dev`: serves a project's definitions on this machine and reloads them after each change.

import { join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { parseEnv } from "node:util";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { noteDevServer } from "../lib/dev-file.mjs";
import { readIfThere, shown } from "../lib/files.mjs";
import { pageOf } from "../lib/page.mjs";
import { openProject } from "../lib/project.mjs";
import { VERSION } from "../lib/version.mjs";
import { localKeys } from "../server/local-key.mjs";
import { startOutbound } from "../server/outbound.mjs";
import { configuredVars, startServer } from "../server/server.mjs";
import { watchFolder } from "../server/watch.mjs";

const HOST = "127.0.0.1";

/** Variables of a development server. The project's variables override them. */
const DEVELOPMENT_VARS = { BOBBIN_DEV: "1", BOBBIN_ALLOW_PRIVATE_HOSTS: "localhost,127.0.0.1,[::1]", BOBBIN_LOG_BODIES: "1" };

/** Delay before a reload, because editors save a file in several steps. */
const SETTLED_MS = 100;

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "dev [--port N] [--persist DIR] [--var NAME=VALUE]…",
  help: `  --port N            the port on 127.0.0.1 (default 8787; 0 for any free port)
  --persist DIR       the folder of the threads (default .bobbin/state); they survive restarts
  --var NAME=VALUE    a variable of the Worker; can be repeated

While it runs, it serves changes of agents/ and of your page without a restart. Put keys and secrets into the file .dev.vars,
one NAME=VALUE per line. Without a key, the built-in model \`demo\` answers.`,
  options: {
    port: { type: "string", default: "8787" },
    persist: { type: "string" },
    var: { type: "string", multiple: true, default: [] },
  },
  run: async (values) => {
    const started = performance.now();
    const project = openProject();
    const persist = resolve(project.root, values["persist"] ?? ".bobbin/state");
    const outbound = await startOutbound();
    /** @type {import("../server/server.mjs").Server | undefined} */
    let server;
    const stop = async () => {
      await server?.stop();
      process.exit(0);
    };
    for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) process.once(signal, () => void stop());
    const asked = varsOf(values["var"]);
    server = await startServer({
      project,
      host: HOST,
      port: portOf(values["port"]),
      persist,
      vars: async (project) => {
        const secrets = parseEnv(readIfThere(join(project.root, ".dev.vars")) ?? "");
        /** @type {Record<string, string>} */
        const known = { ...DEVELOPMENT_VARS, ...configuredVars(project), ...secrets, ...asked, BOBBIN_DEV_OUTBOUND: outbound.url };
        return "BOBBIN_ENCRYPTION_KEYS" in known ? known : { ...known, BOBBIN_ENCRYPTION_KEYS: localKeys(project.root, persist) };
      },
      log: (line) => console.log(line),
      ended: (code) => {
        console.error(`The server ended (${code}).`);
        process.exit(1);
      },
    });
    noteDevServer(project.root, { url: server.url, version: VERSION });
    watch(project, server);
    greet(project, server, performance.now() - started);
  },
};

/** @param {string} text */
export function portOf(text) {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65535) throw new Complaint(`--port is a number up to 65535, not “${text}”.`, EXIT.usage);
  return port;
}

/** @param {string[]} entries @returns {Record<string, string>} */
export function varsOf(entries) {
  return Object.fromEntries(entries.map((entry) => {
    const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(entry) ?? [];
    if (name === undefined || value === undefined) throw new Complaint(`--var takes NAME=VALUE, not “${entry}”.`, EXIT.usage);
    return [name, value];
  }));
}

/**
 * Reloads the definitions after a change. If they are invalid, it prints the errors and keeps the previous ones.
 * @param {import("../lib/project.mjs").Project} project @param {import("../server/server.mjs").Server} server
 */
function watch(project, server) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  let running = Promise.resolve();
  const reload = async () => {
    try {
      await server.reload();
      for (const line of server.warnings()) console.log(line);
      console.log("The changes are live.");
    } catch (error) {
      if (!(error instanceof Complaint)) throw error;
      console.error(`${error.message}\nThe server keeps the last valid version.`);
    }
  };
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (running = running.then(reload)), SETTLED_MS);
  };
  const page = pageOf(project.root);
  for (const folder of [project.agents, ...(page ? [page.folder] : [])]) watchFolder(folder, changed);
}

/** @param {import("../lib/project.mjs").Project} project @param {import("../server/server.mjs").Server} server @param {number} tookMs */
function greet(project, server, tookMs) {
  for (const line of [...server.warnings(), ...server.lacking()]) console.log(`Warning: ${line.replace(/: warning(?=:| in )/, "")}`);
  const { url } = server;
  const page = pageOf(project.root);
  console.log(`Ready on ${url} (${(tookMs / 1000).toFixed(1)} s)
${page ? `\n  Your page:    ${url}/` : ""}
  Look inside:  ${url}/inspector
  Ask:          curl ${url}/v1/chat/completions -H 'content-type: application/json' \\
                  -d '{"model": "${server.agents()[0] ?? "AGENT"}", "messages": [{"role": "user", "content": "Hello!"}]}'

Changes in ${[join(project.root, "agents"), ...(page ? [page.folder] : [])].map(shown).join(" and ")} are served without a restart. Ctrl-C stops the server; threads are kept.`);
}
