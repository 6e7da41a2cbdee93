// MCP servers in a case. No request reaches them: the handshake is answered here, and the stubs of the tools answer
// calls.

import { isObject } from "./schema.mjs";

/** @typedef {import("./outside.mjs").Asked} Asked @typedef {import("./outside.mjs").Answer} Answer */
/** @typedef {{ id: unknown, method: string, params: Record<string, any> }} Rpc   an MCP request; without an id it is a notification */
/**
 * @typedef {{ name: string, tool: string, url: string }} McpTool   its names in the catalog and at its server, and the
 * server's URL, which may contain variables
 */

/** Returns the catalog's tools of MCP servers. @param {any} catalog @returns {McpTool[]} */
export const mcpTools = (catalog) =>
  Object.entries(catalog.tools ?? {}).flatMap(([name, { run }]) => (run?.mcp ? [{ name, tool: run.mcp.tool, url: catalog.mcp?.[run.mcp.server]?.url ?? "" }] : []));

/** Returns the MCP request in an HTTP request. @param {Asked} asked @returns {Rpc | undefined} */
export function rpcOf({ method, headers, body }) {
  if (method !== "POST" || !headers["content-type"]?.startsWith("application/json")) return undefined;
  const message = parsed(body);
  if (!isObject(message) || message["jsonrpc"] !== "2.0" || typeof message["method"] !== "string") return undefined;
  return { id: message["id"], method: message["method"], params: isObject(message["params"]) ? message["params"] : {} };
}

/**
 * Returns the called tool by its name in the catalog, with its arguments and the key of the call.
 * @param {Rpc} rpc @param {URL} url @param {McpTool[]} tools
 */
export function mcpCall({ method, params }, url, tools) {
  if (method !== "tools/call") return undefined;
  const named = tools.filter(({ tool }) => tool === params["name"]);
  const { name } = named.find((one) => one.url === url.href) ?? named[0] ?? { name: String(params["name"]) };
  return { name, args: params["arguments"] ?? {}, key: /** @type {string | undefined} */ (params["_meta"]?.["dev.bobbin/call"]) };
}

/** Responds like a server that supports what is requested. @param {Rpc} rpc @returns {Answer} */
export function opening({ id, method, params }) {
  const results = /** @type {Record<string, object>} */ ({
    "server/discover": { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } },
    initialize: { protocolVersion: params["protocolVersion"], capabilities: { tools: {} }, serverInfo: { name: "a case", version: "0" } },
    "tools/list": { tools: [] },
  });
  if (id === undefined) return { status: 202, headers: {}, body: "" };
  return answer(id, results[method] ?? {});
}

/** Returns a stub's outcome as an MCP response. @param {unknown} id @param {import("./stubs.mjs").Outcome} outcome @returns {Answer} */
export function called(id, { response = "", throw: thrown }) {
  const text = (/** @type {unknown} */ value) => [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }];
  if (thrown !== undefined) return answer(id, { content: text(thrown), isError: true });
  if (isObject(response) && Array.isArray(response["content"])) return answer(id, response);
  return answer(id, { content: text(response), ...(isObject(response) && { structuredContent: response }) });
}

/** Returns a recorded response, with the id of this request. @param {unknown} id @param {Answer} recorded @returns {Answer} */
export function replayed(id, { status, headers, body }) {
  if (typeof body !== "string") return { status, headers, body };
  const lines = [body, ...body.split(/\r?\n/).flatMap((line) => (line.startsWith("data:") ? [line.slice(5)] : []))];
  const message = lines.map(parsed).find((one) => isObject(one) && one["jsonrpc"] === "2.0" && ("result" in one || "error" in one));
  if (message === undefined) return { status, headers, body };
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify({ .../** @type {object} */ (message), id }) };
}

/** @param {unknown} id @param {object} result @returns {Answer} */
const answer = (id, result) => ({ status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify({ jsonrpc: "2.0", id, result: { resultType: "complete", ...result } }) });

/** @param {string} text @returns {unknown} */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
