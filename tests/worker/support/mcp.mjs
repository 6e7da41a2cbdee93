// MCP requests as sent on the wire, in both protocol versions, without a package.

import { exchange } from "./http.mjs";

export const MODERN = "2026-07-28";
export const TASKS = "io.modelcontextprotocol/tasks";

/** Returns the last message of a response, and the notifications before it. @param {import("./http.mjs").Answer} answer */
export function read(answer) {
  const isStream = String(answer.headers["content-type"]).startsWith("text/event-stream");
  const messages = isStream ? [...answer.text.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json ?? "")) : [answer.json];
  const last = messages.at(-1);
  return { ...answer, isStream, notes: messages.slice(0, -1), message: last, result: last?.result, error: last?.error };
}

export class Mcp {
  #ids = 0;

  /** @param {string} base @param {{ key?: string | undefined, capabilities?: object, legacy?: boolean }} [options] */
  constructor(base, { key, capabilities = {}, legacy = false } = {}) {
    this.base = base;
    this.capabilities = capabilities;
    this.legacy = legacy;
    /** @type {Record<string, string>} */
    this.credentials = key === undefined ? {} : { authorization: `Bearer ${key}` };
  }

  /** @param {string} method @param {any} params @param {Record<string, any>} [meta] */
  message(method, params = {}, meta = {}) {
    const modern = {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientInfo": { name: "tests", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": this.capabilities,
    };
    const _meta = { ...(this.legacy ? {} : modern), ...meta };
    return { jsonrpc: "2.0", id: (this.#ids += 1), method, params: { ...params, ...(Object.keys(_meta).length === 0 ? {} : { _meta }) } };
  }

  /** @param {{ method: string, params?: any }} message @returns {Record<string, string>} */
  headers({ method, params }) {
    const name = params?.name ?? params?.uri ?? params?.taskId;
    return this.legacy
      ? { "mcp-protocol-version": "2025-11-25" }
      : { "mcp-protocol-version": MODERN, "mcp-method": method, ...(name === undefined ? {} : { "mcp-name": name }) };
  }

  /** Sends a body unchanged. @param {unknown} body @param {Record<string, string | undefined>} headers @param {object} [options] */
  async raw(body, headers, options = {}) {
    const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...this.credentials, ...headers };
    const given = /** @type {Record<string, string>} */ (Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)));
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return read(await exchange(this.base, "POST", "/mcp", { headers: given, body: text, ...options }));
  }

  /**
   * @param {string} method @param {any} [params]
   * @param {{ meta?: Record<string, any>, headers?: Record<string, string | undefined>, options?: object }} [more]
   */
  async send(method, params = {}, { meta, headers = {}, options } = {}) {
    const message = this.message(method, params, meta);
    const answer = await this.raw(message, { ...this.headers(message), ...headers }, options);
    return { ...answer, id: message.id };
  }

  /** Calls a tool. @param {string} name @param {object} [args] @param {object} [more]  further parameters @param {object} [rest] */
  call(name, args = {}, more = {}, rest = {}) {
    return this.send("tools/call", { name, arguments: args, ...more }, rest);
  }
}
