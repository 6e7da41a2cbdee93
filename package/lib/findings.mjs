// The checks of `bobbin doctor`. Each returns findings with a remedy.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { version as nodeVersion, versions } from "node:process";
import { BobbinError } from "bobbin/client";
import { oneLine } from "./output.mjs";
import { VERSION } from "./version.mjs";

/**
 * @typedef {{ level: "ok" | "info" | "warning" | "error", what: string, message: string, advice?: string }} Finding
 * @typedef {import("./target.mjs").Target} Target
 */

/** The Node that current wrangler needs, and the oldest supported wrangler. */
const WRANGLER_NODE = [22, 12];
const OLDEST_WRANGLER = [4, 155];
/** The largest tolerated clock difference. Beyond it, tokens expire too early or stay valid too long. */
const SKEW_S = 5;

/** Returns the nearest folder with definitions, at or above `from`. @param {string} from */
export function projectOf(from) {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    if (existsSync(join(folder, "agents"))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** Checks this machine. @param {string | undefined} project @returns {Finding[]} */
export function machine(project) {
  const node = versions.node.split(".").map(Number);
  const found = /** @type {Finding[]} */ ([{ level: "ok", what: "Node", message: nodeVersion }]);
  if (project === undefined) return found;
  const wrangler = wranglerOf(project);
  if (wrangler === undefined) {
    return [...found, { level: "info", what: "wrangler", message: "not installed here", advice: "Run `npm install --save-dev wrangler` in the project. Deploying needs it." }];
  }
  if (!atLeast(wrangler.split(".").map(Number), OLDEST_WRANGLER)) {
    return [...found, { level: "error", what: "wrangler", message: wrangler, advice: `Run \`npm install --save-dev wrangler@latest\`. Bobbin needs ${OLDEST_WRANGLER.join(".")} or newer.` }];
  }
  if (!atLeast(node, WRANGLER_NODE)) {
    return [...found, { level: "warning", what: "wrangler", message: `${wrangler} on Node ${versions.node}`, advice: `Current versions of wrangler need Node ${WRANGLER_NODE.join(".")}. Install it from https://nodejs.org.` }];
  }
  return [...found, { level: "ok", what: "wrangler", message: wrangler }];
}

/** @param {string} project */
function wranglerOf(project) {
  for (let folder = project; ; folder = dirname(folder)) {
    try {
      return String(JSON.parse(readFileSync(join(folder, "node_modules/wrangler/package.json"), "utf8")).version);
    } catch {
      if (dirname(folder) === folder) return undefined;
    }
  }
}

/** @param {number[]} version @param {number[]} wanted */
function atLeast([major = 0, minor = 0], [least = 0, then = 0]) {
  return major > least || (major === least && minor >= then);
}

/**
 * Checks the server: its version, its clock, the key's scope and the enabled protocols.
 * @param {Target} target @returns {Promise<Finding[]>}
 */
export async function server({ url, from, client, keyed, health }) {
  const found = /** @type {Finding[]} */ ([{ level: "ok", what: "server", message: `${url} (${from}), version ${oneLine(health.version)}, ${health.agents} agents` }]);
  if (health.version !== VERSION) {
    found.push({ level: "warning", what: "version", message: `This is bobbin ${VERSION}, the server ${oneLine(health.version)}.`, advice: "Update the older one, so that both have the same version." });
  }
  if ((health.warnings ?? 0) > 0) {
    found.push({ level: "warning", what: "definitions", message: `${health.warnings} ${health.warnings === 1 ? "warning" : "warnings"} during compilation`, advice: "Run `bobbin check` in their project to see them." });
  }
  const before = Date.now();
  const { response } = await client.GET("/healthz");
  const skew = skewOf(response.headers.get("date"), (before + Date.now()) / 2);
  if (Math.abs(skew) > SKEW_S) {
    found.push({ level: "warning", what: "clock", message: `This machine's clock is ${Math.abs(skew)} s ${skew > 0 ? "ahead of" : "behind"} the server's.`, advice: "Set this machine's clock. Tokens and schedules depend on it." });
  }
  found.push(await scope(client, keyed), await surfaces(client));
  return found;
}

/** Returns how many seconds this machine's clock is ahead. @param {string | null} date @param {number} now */
function skewOf(date, now) {
  const at = Date.parse(date ?? "");
  // The Date header has a resolution of one second.
  return Number.isNaN(at) ? 0 : Math.round((now - at - 500) / 1000);
}

/** @param {Target["client"]} client @param {boolean} keyed @returns {Promise<Finding>} */
async function scope(client, keyed) {
  const what = "key";
  const refusal = await refusalOf(() => client.GET("/api/envs/instance"));
  if (refusal === undefined) return { level: "ok", what, message: keyed ? "an administrator's" : "not required" };
  if (refusal.code === "forbidden") return { level: "ok", what, message: "an owner's, or a thread's" };
  if (refusal.code === "unauthenticated") {
    return keyed
      ? { level: "error", what, message: "The server does not know this key.", advice: "BOBBIN_KEY, or the variable of --key-env, must be one of the deployment's BOBBIN_API_KEYS." }
      : { level: "error", what, message: "The server requires a key.", advice: "Put the key into BOBBIN_KEY." };
  }
  return { level: "info", what, message: oneLine(refusal.message) };
}

/**
 * One request per protocol whose response shows whether the protocol is enabled.
 * @type {Record<string, (client: Target["client"]) => Promise<unknown>>}
 */
const PROBES = {
  chat: (client) => client.GET("/api/chat/{chatId}", { params: { path: { chatId: "doctor" }, query: {} } }),
  openai: (client) => client.GET("/v1/models"),
  "ag-ui": (client) => client.GET("/api/agents/{name}/ag-ui", { params: { path: { name: "doctor" }, query: { threadId: "doctor" } } }),
};

/** @param {Target["client"]} client @returns {Promise<Finding>} */
async function surfaces(client) {
  const on = [];
  for (const [name, probe] of Object.entries(PROBES)) {
    const refusal = await refusalOf(() => probe(client));
    if (refusal === undefined || !["not_found", "http_404", "unauthenticated"].includes(refusal.code)) on.push(name);
  }
  return { level: "info", what: "surfaces", message: on.join(", ") || "none for this key", advice: "The deployment's variable BOBBIN_SURFACES selects them." };
}

/** Returns the error of the request, if the server rejects it. @param {() => Promise<unknown>} ask */
async function refusalOf(ask) {
  try {
    await ask();
    return undefined;
  } catch (error) {
    if (error instanceof BobbinError) return error;
    throw error;
  }
}

/** Checks what the agents lack. @param {Target["client"]} client @returns {Promise<Finding[]>} */
export async function agents(client) {
  const { data } = await client.GET("/api/agents");
  /** Keyed by message, because many agents share a model. @type {Map<string, Finding>} */
  const found = new Map();
  for (const { name } of data?.agents ?? []) {
    const { data: explained } = await client.GET("/api/agents/{name}/explain", { params: { path: { name } } });
    for (const { code, message } of explained?.missing ?? []) {
      const level = code === "model.unusable" ? "warning" : "error";
      found.set(message, { level, what: code, message: oneLine(message), advice: advice(code, message) });
    }
    for (const variable of explained?.variables ?? []) {
      if (!variable.required || variable.set) continue;
      const message = `“${oneLine(variable.name)}” of the agent “${oneLine(name)}” has no value.`;
      found.set(message, { level: "warning", what: "variable.missing", message, advice: "Set it for the deployment, the owner, or each thread (`env`)." });
    }
  }
  return found.size > 0 ? [...found.values()] : [{ level: "ok", what: "agents", message: `${data?.agents.length ?? 0}, nothing is missing` }];
}

/** @param {string} code @param {string} message */
function advice(code, message) {
  const [, variable] = /([A-Z][A-Z0-9_]+) is not set/.exec(message) ?? [];
  if (code === "model.unusable" && variable !== undefined) {
    return `Put ${variable}=… into .dev.vars on this machine, or set it for the deployment: \`npx wrangler secret put ${variable}\`.`;
  }
  return code === "tool.missing" ? "This deployment does not have this native function. Build it with the crate that registers the function." : "Correct the definition, or provide what it needs.";
}

/**
 * Reports models of the project that are retired, or will be soon.
 *
 * @param {string} project
 * @param {Date} today
 * @returns {Finding[]}
 */
export function retired(project, today) {
  const known = knownModels();
  if (known === undefined) return [];
  const folder = join(project, "agents", "models");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((name) => name.endsWith(".json")).flatMap((name) => {
    const model = modelOf(join(folder, name));
    const fits = known.filter(({ provider, id }) => provider === model?.provider && isOf(id, model.id));
    const entry = fits.sort((a, b) => b.id.length - a.id.length)[0];
    if (entry?.ends === undefined) return [];
    const days = Math.ceil((Date.parse(entry.ends) - today.getTime()) / 86_400_000);
    const when = days <= 0 ? `ended on ${entry.ends}` : `ends on ${entry.ends}, in ${days} days`;
    const instead = entry.replacedBy === undefined ? "Choose another model." : `Its provider recommends ${entry.replacedBy}.`;
    /** @type {Finding["level"]} */
    const level = days <= 0 ? "error" : "warning";
    return [{ level, what: "model.retired", message: `agents/models/${name}: ${oneLine(model?.id ?? "")} ${when}.`, advice: instead }];
  });
}

/** Returns whether a model is the id itself or a snapshot of it (the id followed by a date). @param {string} id @param {string} model */
const isOf = (id, model) => model.startsWith(id) && /^(-latest|-[\d-]{8,})?$/.test(model.slice(id.length));

/**
 * Returns a definition's model if it uses the provider's own address.
 * @param {string} file @returns {{ provider: string, id: string } | undefined}
 */
function modelOf(file) {
  try {
    const { provider, model, baseUrl = "{{" } = JSON.parse(readFileSync(file, "utf8"));
    return typeof model === "string" && String(baseUrl).includes("{{") ? { provider: String(provider), id: model.trim() } : undefined;
  } catch {
    // `bobbin check` reports the mistake.
    return undefined;
  }
}

/**
 * Reads the package's list of models, or in Bobbin's own checkout the source's.
 * @returns {{ provider: string, id: string, ends?: string, replacedBy?: string }[] | undefined}
 */
function knownModels() {
  for (const place of ["../schemas/known-models.json", "../../crates/definitions/src/validate/known.json"]) {
    const path = new URL(place, import.meta.url);
    if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8"));
  }
  return undefined;
}
