// Addresses and keys of real models on this machine, from the environment and .dev.vars.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

/** The variables of each provider. @type {Record<string, { url: string, key: string }>} */
const USUAL = { openai: { url: "OPENAI_BASE_URL", key: "OPENAI_API_KEY" }, anthropic: { url: "ANTHROPIC_BASE_URL", key: "ANTHROPIC_API_KEY" } };

/** A placeholder for keys that are never sent. */
const NO_KEY = "a-key-of-tests";

/** @typedef {{ vars: Record<string, string>, keys: string[] }} Present   addresses, and the names of keys */

/** Returns the names of the variables that models need. @param {any} catalog */
function namesOf(catalog) {
  const models = /** @type {any[]} */ (Object.values(catalog.models)).filter(({ kind }) => kind !== "embedding");
  const addresses = models.flatMap(({ baseUrl = "" }) => [...baseUrl.matchAll(/\{\{\s*env\s+([A-Za-z_]\w*)\s*\}\}/g)].map(([, name]) => name ?? ""));
  const keys = models.map(({ apiKeyEnv, provider }) => apiKeyEnv ?? USUAL[provider]?.key ?? "");
  const unique = (/** @type {string[]} */ names) => [...new Set(names.filter((name) => name !== ""))].sort();
  return { addresses: unique(addresses), keys: unique(keys) };
}

/**
 * Returns the variables that are set on this machine, and the values of the keys.
 *
 * @param {any} catalog
 * @param {string} project
 * @returns {Present & { secrets: Record<string, string> }}
 */
export function present(catalog, project) {
  const file = join(project, ".dev.vars");
  const set = { ...(existsSync(file) ? parseEnv(readFileSync(file, "utf8")) : {}), ...process.env };
  const { addresses, keys } = namesOf(catalog);
  const among = (/** @type {string[]} */ names) => names.flatMap((name) => (set[name]?.trim() ? [[name, String(set[name])]] : []));
  const secrets = Object.fromEntries(among(keys));
  return { vars: Object.fromEntries(among(addresses)), keys: Object.keys(secrets), secrets };
}

/**
 * Returns the variables of a Worker that sends no requests: the recorded addresses, and placeholders for keys.
 *
 * @param {{ vars: Record<string, string>, keys?: string[] }} recorded   without keys: all that the definitions name
 * @param {any} catalog
 * @returns {Record<string, string>}
 */
export function pretended({ vars, keys }, catalog) {
  const names = keys ?? namesOf(catalog).keys;
  return { ...vars, ...Object.fromEntries(names.map((name) => [name, NO_KEY])) };
}
