// `bobbin serve`: serves a project in production on one machine, with workerd and no development server.

import { resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { openProject } from "../lib/project.mjs";
import { VERSION } from "../lib/version.mjs";
import { localKeys } from "../server/local-key.mjs";
import { startOutbound } from "../server/outbound.mjs";
import { configuredVars, startServer } from "../server/server.mjs";
import { neededVars } from "../server/needed-vars.mjs";
import { portOf, varsOf } from "./dev.mjs";

/** Required secrets. Without them the server rejects every client or loses data. @type {Record<string, string>} */
const KEYS = {
  BOBBIN_API_KEYS: "the keys of the API, such as KEY=admin",
  BOBBIN_TOKEN_SECRET: "signs tokens of browsers and links to files",
  BOBBIN_ENCRYPTION_KEYS: "encrypts values of variables, such as k1=<32 random bytes in base64>",
};

/** Variables that only a development server may have. */
const DEVELOPMENT = ["BOBBIN_DEV", "BOBBIN_DEV_OUTBOUND"];

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "serve [--host H] [--port N] [--persist DIR] [--drain SECONDS] [--requests] [--without-keys] [--var NAME=VALUE]…",
  help: `  --host H            the address to listen on (default 127.0.0.1; 0.0.0.0 for all)
  --port N            the port (default: PORT, then 8787)
  --persist DIR       the folder of the threads (default .bobbin/production)
  --drain SECONDS     how long to wait for requests in progress at the end (default 20)
  --requests          logs each request: method, path, status, time
  --without-keys      starts without ${Object.keys(KEYS).join(", ")}: clients on this
                      machine may then do everything, and all others nothing
  --var NAME=VALUE    a variable of the Worker; can be repeated

Variables come from wrangler.jsonc and the environment: those that begin with BOBBIN_, those that the definitions name, and
the keys of model providers. .dev.vars is not read. Logs are JSON, one object per line. SIGTERM stops the server in order.
Health checks use /healthz.`,
  options: {
    host: { type: "string", default: "127.0.0.1" },
    port: { type: "string" },
    persist: { type: "string", default: ".bobbin/production" },
    drain: { type: "string", default: "20" },
    requests: { type: "boolean", default: false },
    "without-keys": { type: "boolean", default: false },
    var: { type: "string", multiple: true, default: [] },
  },
  run: async (values) => {
    const started = performance.now();
    const project = openProject();
    const persist = resolve(project.root, values["persist"]);
    const drainMs = secondsOf(values["drain"]) * 1000;
    const given = varsOf(values["var"]);
    const outbound = await startOutbound();
    /** @type {import("../server/server.mjs").Server | undefined} */
    let server;
    let ending = false;
    const stop = async (/** @type {string} */ signal) => {
      // A second signal exits at once.
      if (ending) process.exit(1);
      ending = true;
      log("info", "ending", { signal });
      const left = (await server?.stop(drainMs)) ?? 0;
      log(left > 0 ? "warn" : "info", "ended", { left });
      process.exit(0);
    };
    for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) process.on(signal, () => void stop(signal));
    server = await startServer({
      project,
      host: values["host"],
      port: portOf(values["port"] ?? process.env.PORT ?? "8787"),
      persist,
      production: true,
      vars: async () => {
        const vars = { ...configuredVars(project), ...neededVars(project, process.env), ...given };
        return { ...withKeys(vars, values["without-keys"], project.root, persist), BOBBIN_DEV_OUTBOUND: outbound.url };
      },
      ...(values["requests"] && { answered: (request) => log("info", "request", request) }),
      log: (text) => log(/error|exception/i.test(text) ? "error" : "info", text),
      ended: (code) => {
        log("error", "the runtime exited", { code });
        process.exit(1);
      },
    });
    for (const text of [...server.warnings(), ...server.lacking()]) log("warn", text);
    log("info", "ready", { url: server.url, version: VERSION, ms: Math.round(performance.now() - started) });
  },
};

/** @param {"info" | "warn" | "error"} level @param {string} message @param {object} [more] */
function log(level, message, more = {}) {
  console.log(JSON.stringify({ time: new Date().toISOString(), level, message, ...more }));
}

/** @param {string} text */
function secondsOf(text) {
  const seconds = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || seconds > 3600) throw new Complaint(`--drain is a number of seconds up to 3600, not “${text}”.`, EXIT.usage);
  return seconds;
}

/**
 * Checks that the required keys are set, unless `--without-keys` is given, and returns the variables.
 *
 * @param {Record<string, string>} vars
 * @param {boolean} open
 * @param {string} root
 * @param {string} persist
 * @returns {Record<string, string>}
 */
function withKeys(vars, open, root, persist) {
  const developing = DEVELOPMENT.find((name) => name in vars);
  if (developing !== undefined) throw new Complaint(`${developing} is only for development servers. Unset it.`, EXIT.usage);
  const missing = Object.keys(KEYS).filter((name) => !vars[name]?.trim());
  if (missing.length === 0) return vars;
  if (!open) {
    const lines = missing.map((name) => `  ${name}: ${KEYS[name]}`);
    throw new Complaint(`These variables are not set:\n${lines.join("\n")}\nSet them, or use --without-keys: clients on this machine may then do everything, and all others nothing.`, EXIT.usage);
  }
  // Without API keys the server accepts only this machine's own host names, like a development server.
  const opened = vars["BOBBIN_API_KEYS"]?.trim() ? vars : { ...vars, BOBBIN_DEV: "1" };
  return vars["BOBBIN_ENCRYPTION_KEYS"]?.trim() ? opened : { ...opened, BOBBIN_ENCRYPTION_KEYS: localKeys(root, persist) };
}
