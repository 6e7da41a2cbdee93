// Reads a server's protocol version, its name and all its tools.

import { VERSION } from "../lib/version.mjs";
import { isObject } from "./definitions.mjs";

/** @typedef {import("./http-client.mjs").HttpClient} HttpClient @typedef {import("./http-client.mjs").Answer} Answer */

/**
 * @typedef {"2026-07-28" | "2025-11-25"} Era
 *
 * @typedef {object} Session
 * @property {Era} era
 * @property {{ name: string, version: string }} server
 * @property {(method: string, params: object) => Promise<Answer>} ask
 * @property {() => Promise<void>} leave
 *
 * @typedef {{ tools: unknown[], repeats: boolean }} Pages   `repeats`: the server sent a page twice; the list ends there
 * @typedef {{ protocol: Era, server: { name: string, version: string } } & Pages} Listed
 */

const MODERN = "2026-07-28";
/** Versions with sessions, newest first. */
const LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26"];
/** The errors of the modern protocol: header mismatch, missing capability, unsupported version. */
const MODERN_ERRORS = [-32020, -32021, -32022];
const UNSUPPORTED = -32022;
const NO_METHOD = -32601;

const MOST_PAGES = 100;
/** The same limit as in crates/definitions/src/limits.rs. */
const MOST_TOOLS = 256;
/** The maximum length of a cursor and of a session id. */
const MOST_CHARACTERS = 4096;

const CLIENT = { name: "bobbin", version: VERSION };

/** Lists all tools of a server. @param {HttpClient} client @returns {Promise<Listed>} */
export async function listed(client) {
  const session = await open(client);
  try {
    const list = (await pages(client, session)) ?? (await pages(client, session));
    if (list === undefined) throw client.complaint("its list changed twice during reading.");
    return { protocol: session.era, server: session.server, ...list };
  } finally {
    await session.leave();
  }
}

/** @param {HttpClient} client @returns {Promise<Session>} */
async function open(client) {
  const { protocol } = client.definition;
  if (protocol === "2025-11-25") return legacy(client);
  const discover = () => client.request("server/discover", modernParams({}), modernHeaders("server/discover"));
  let answer = await discover();
  // The server rejected a version that it lists as supported. Another server may have answered at the same address, so
  // ask again.
  if (answer.message?.error?.code === UNSUPPORTED && answer.message.error.data?.supported?.includes?.(MODERN)) answer = await discover();
  const { status, message } = answer;
  const supported = message?.result?.supportedVersions ?? (message?.error?.code === UNSUPPORTED ? message.error.data?.supported : undefined);
  const speaks = Array.isArray(supported) ? supported : [];
  const isModern =
    speaks.includes(MODERN) ||
    (speaks.length === 0 && (isObject(message?.result) || MODERN_ERRORS.includes(message?.error?.code) || (status === 404 && message?.error?.code === NO_METHOD)));
  if (isModern) return modern(client, answer);
  if (protocol === "2026-07-28") throw refused(client, answer, "it does not support 2026-07-28");
  // These rejections have the same meaning in every protocol version.
  if (status === 401 || status === 403 || status >= 500 || status === 429) throw refused(client, answer, "it refuses the request");
  return legacy(client);
}

/** @param {HttpClient} client @param {Answer} discovered @returns {Session} */
function modern(client, discovered) {
  const { error, result } = discovered.message ?? {};
  // A server may lack this method and have all others.
  if (error !== undefined && error.code !== NO_METHOD) throw refused(client, discovered, "it refuses the request");
  return {
    era: MODERN,
    server: named(result?._meta?.["io.modelcontextprotocol/serverInfo"]),
    ask: (method, params) => client.request(method, modernParams(params), modernHeaders(method)),
    leave: async () => {},
  };
}

/** @param {object} params */
const modernParams = (params) => ({
  ...params,
  _meta: {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
  },
});

/** @param {string} method */
const modernHeaders = (method) => ({ "mcp-protocol-version": MODERN, "mcp-method": method });

/** @param {HttpClient} client @returns {Promise<Session>} */
async function legacy(client) {
  const answer = await client.request("initialize", { protocolVersion: LEGACY[0], capabilities: {}, clientInfo: CLIENT }, {});
  const { result } = answer.message ?? {};
  if (!answer.headers || !isObject(result)) throw refused(client, answer, "it supports neither 2026-07-28 nor 2025-11-25");
  const version = result["protocolVersion"];
  if (!LEGACY.includes(version)) throw client.complaint(`it uses the unknown version ${JSON.stringify(version)}.`);
  const id = answer.headers.get("mcp-session-id");
  if (id !== null && !/^[\x21-\x7e]{1,4096}$/.test(id)) throw client.complaint("the id of its session contains invalid characters.");
  const headers = { "mcp-protocol-version": version, ...(id !== null && { "mcp-session-id": id }) };
  const { status } = await client.notify("notifications/initialized", headers);
  if (status >= 400) throw client.complaint(`it responds to notifications/initialized with ${status}.`);
  return {
    era: "2025-11-25",
    server: named(result["serverInfo"]),
    ask: (method, params) => client.request(method, params, headers),
    leave: async () => void (id !== null && (await client.leave(headers))),
  };
}

/** @param {any} info */
const named = (info) => ({ name: short(info?.name), version: short(info?.version) });

/** @param {unknown} text */
const short = (text) => (typeof text === "string" ? text.slice(0, 200) : "");

/**
 * Reads the tools of all pages. Returns nothing if the list changed during the read: a tool is on two pages, a cursor
 * is unknown, or the first page has changed. A server that ignores cursors sends the same page again, and the list
 * ends there.
 *
 * @param {HttpClient} client
 * @param {Session} session
 * @returns {Promise<Pages | undefined>}
 */
async function pages(client, session) {
  const first = await page(client, session, undefined);
  if (first === undefined) throw client.complaint("its list of tools is unreadable.");
  const tools = [...first.tools];
  /** @type {Set<unknown>} */
  const cursors = new Set();
  const names = new Set(first.tools.map(nameOf));
  let repeats = false;
  for (let { next: cursor, tools: before } = first; cursor !== undefined; ) {
    if (cursors.has(cursor)) throw client.complaint("its list is endless: it sent a cursor twice.");
    cursors.add(cursor);
    if (cursors.size >= MOST_PAGES) throw client.complaint(`its list has more than ${MOST_PAGES} pages.`);
    const next = await page(client, session, cursor);
    repeats = before.length > 0 && JSON.stringify(next?.tools) === JSON.stringify(before);
    if (repeats) break;
    if (next === undefined || next.tools.some((tool) => names.has(nameOf(tool)))) return undefined;
    tools.push(...next.tools);
    for (const tool of next.tools) names.add(nameOf(tool));
    if (tools.length > MOST_TOOLS) throw client.complaint(`it has more than ${MOST_TOOLS} tools.`);
    ({ next: cursor, tools: before } = next);
  }
  if (tools.length > MOST_TOOLS) throw client.complaint(`it has more than ${MOST_TOOLS} tools.`);
  if (cursors.size === 0) return { tools, repeats };
  const again = await page(client, session, undefined);
  return JSON.stringify(again?.tools) === JSON.stringify(first.tools) ? { tools, repeats } : undefined;
}

/** @param {unknown} tool */
const nameOf = (tool) => /** @type {any} */ (tool)?.name;

/** @param {HttpClient} client @param {Session} session @param {string | undefined} cursor */
async function page(client, session, cursor) {
  const answer = await session.ask("tools/list", cursor === undefined ? {} : { cursor });
  const { result, error } = answer.message ?? {};
  if (error !== undefined && cursor !== undefined && answer.status < 500) return undefined;
  if (!isObject(result) || !Array.isArray(result["tools"])) throw refused(client, answer, "its tools cannot be listed");
  const next = result["nextCursor"] ?? undefined;
  if (next !== undefined && (typeof next !== "string" || next.length > MOST_CHARACTERS)) throw client.complaint("a cursor of its list is not a string, or too long.");
  // In the older revisions some servers send an empty cursor on the last page.
  return { tools: /** @type {unknown[]} */ (result["tools"]), next: next === "" && session.era !== MODERN ? undefined : next };
}

/** @param {HttpClient} client @param {Answer} answer @param {string} what */
function refused(client, { status, headers, message, text }, what) {
  if (status === 401) {
    const challenge = headers.get("www-authenticate");
    return client.complaint(`it requires a key (401). Put one into \`headers\`, such as "authorization": "Bearer {{env NAME}}".${challenge ? ` Its response: ${challenge}` : ""}`);
  }
  if (status === 403) return client.complaint(`the credentials are not sufficient (403)${message?.error?.message ? `: ${message.error.message}` : "."}`);
  const error = message?.error;
  const said = error ? `${error.code}: ${error.message}` : message ? "a response without a list" : text.trim() || "nothing";
  return client.complaint(`${what} (${status}). Its response: ${said}`);
}
