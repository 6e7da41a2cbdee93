// The project's MCP servers, from `agents/mcp/<name>.json`. This machine supplies the values of variables.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { Complaint } from "../lib/complaint.mjs";
import { readIfThere, shown } from "../lib/files.mjs";

/**
 * The fields of a definition that are read here. The compiler reports mistakes in the others.
 *
 * @typedef {object} Definition
 * @property {string} name                        the name of its file
 * @property {string} file                        the path as shown to people
 * @property {string} pinned                      the path of its list
 * @property {string} url                         with variables
 * @property {Record<string, string>} headers     with variables
 * @property {"auto" | "2025-11-25" | "2026-07-28"} protocol
 * @property {"pinned" | "live"} list
 * @property {string[] | undefined} allow
 * @property {string[]} block
 * @property {number | undefined} timeoutMs
 *
 * @typedef {object} Address
 * @property {URL} url
 * @property {Record<string, string>} headers
 * @property {Map<string, string>} values         the inserted values of variables, by name
 */

const TOOLS = ".tools.json";

/** Returns the names of all servers. @param {string} agents */
export function serverNames(agents) {
  const folder = join(agents, "mcp");
  const files = existsSync(folder) ? readdirSync(folder) : [];
  return files.filter((file) => file.endsWith(".json") && !file.endsWith(TOOLS) && !file.startsWith(".")).map((file) => file.slice(0, -".json".length)).sort();
}

/** @param {string} agents @param {string} name @returns {Definition} */
export function readDefinition(agents, name) {
  const path = join(agents, "mcp", `${name}.json`);
  const wrong = (/** @type {string} */ what) => new Complaint(`${shown(path)}: ${what}`);
  const text = readIfThere(path);
  if (text === undefined) throw wrong("the file does not exist.");
  /** @type {any} */
  let json;
  try {
    json = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw wrong(`it is not valid JSON: ${/** @type {Error} */ (error).message}`);
  }
  const { url, headers = {}, protocol = "auto", list = "pinned", tools = {}, timeoutMs } = isObject(json) ? json : /** @type {any} */ ({});
  if (typeof url !== "string") throw wrong("`url` is missing.");
  if (!isObject(headers) || !Object.values(headers).every((value) => typeof value === "string")) throw wrong("`headers` must be an object of strings.");
  if (!["auto", "2025-11-25", "2026-07-28"].includes(protocol)) throw wrong("`protocol` must be `auto`, `2025-11-25` or `2026-07-28`.");
  if (!["pinned", "live"].includes(list)) throw wrong("`list` must be `pinned` or `live`.");
  if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs > 0)) throw wrong("`timeoutMs` must be a number of milliseconds.");
  const { allow, block = [] } = isObject(tools) ? tools : /** @type {any} */ ({ block: null });
  if (!(allow === undefined || isNames(allow)) || !isNames(block)) throw wrong("`tools` must have lists of names, `allow` or `block`.");
  return { name, file: shown(path), pinned: join(agents, "mcp", `${name}${TOOLS}`), url, headers, protocol, list, allow, block, timeoutMs };
}

/** Returns whether the definition allows a tool. @param {Definition} definition @param {string} tool */
export const isWanted = ({ allow, block }, tool) => (allow === undefined || allow.includes(tool)) && !block.includes(tool);

/**
 * Returns this machine's variables: the environment and .dev.vars.
 * @param {string} project @returns {Record<string, string | undefined>}
 */
export const variables = (project) => ({ ...parseEnv(readIfThere(join(project, ".dev.vars")) ?? ""), ...process.env });

/**
 * Returns the address with the values of the variables. Values are inserted unchanged in the scheme, host and port, and
 * encoded in the rest of the address. A value in the path or query thus cannot change the request's destination.
 *
 * @param {Definition} definition
 * @param {Record<string, string | undefined>} given
 * @param {string | undefined} bearer   the variable with a token, if the definition has none
 * @returns {Address}
 */
export function addressOf(definition, given, bearer) {
  /** @type {Map<string, string>} */
  const values = new Map();
  const fill = (/** @type {string} */ template, /** @type {(value: string, before: string) => string} */ as) => {
    let [filled, rest] = ["", template];
    for (let open = rest.indexOf("{{"); open >= 0; open = rest.indexOf("{{")) {
      const [piece = "", name] = /^\{\{\s*env\s+([A-Za-z_][A-Za-z0-9_]*)\s*\}\}/.exec(rest.slice(open)) ?? [];
      if (name === undefined) throw new Complaint(`${definition.file}: \`{{\` is only allowed in \`{{env NAME}}\`.`);
      const value = given[name];
      if (value === undefined || value.trim() === "") throw new Complaint(`${definition.file}: ${name} is not set. Put ${name}=… into .dev.vars, or into the environment.`);
      values.set(name, value);
      filled += rest.slice(0, open);
      filled += as(value, filled);
      rest = rest.slice(open + piece.length);
    }
    return filled + rest;
  };
  const address = fill(definition.url, (value, before) => (/^[a-z]+:\/\/[^/?#]*[/?#]/i.test(before) ? encodeURIComponent(value) : value.trim().replace(/\/+$/, "")));
  const templates = { ...definition.headers, ...(bearer !== undefined && { authorization: `Bearer {{env ${bearer}}}` }) };
  const headers = Object.fromEntries(Object.entries(templates).map(([name, value]) => [name.toLowerCase(), fill(value, (filled) => filled)]));
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) || /[^\t\x20-\x7e]/.test(value)) throw new Complaint(`${definition.file}: the header \`${name}\` cannot be sent. A name is one word, and a value has only ASCII characters and no line breaks.`);
    if (OURS.test(name)) throw new Complaint(`${definition.file}: the header \`${name}\` is reserved for the protocol.`);
  }
  return { url: checked(definition, address), headers, values };
}

/** Headers that the protocol sets. */
const OURS = /^(?:mcp-.*|accept|content-type|content-length|host|connection|transfer-encoding|cookie)$/;

/** @param {Definition} definition @param {string} address */
function checked({ file }, address) {
  if (!URL.canParse(address)) throw new Complaint(`${file}: \`url\` is not a valid address.`);
  const url = new URL(address);
  if (url.username !== "" || url.password !== "") throw new Complaint(`${file}: \`url\` contains a password. Put it into a header.`);
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url))) return url;
  throw new Complaint(`${file}: \`url\` must begin with https://. Only servers on this machine may be used without encryption.`);
}

/** @param {URL} url */
const isLoopback = ({ hostname }) => hostname === "localhost" || hostname.endsWith(".localhost") || /^127(?:\.\d+){3}$/.test(hostname) || hostname === "[::1]";

/** @param {unknown} value @returns {value is Record<string, any>} */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {unknown} value */
const isNames = (value) => Array.isArray(value) && value.every((name) => typeof name === "string");
