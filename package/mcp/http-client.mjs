// HTTP requests to one MCP server: one at a time, limited in bytes and time, and only to the configured address.

import { setTimeout as sleep } from "node:timers/promises";
import { Complaint } from "../lib/complaint.mjs";
import { oneLine } from "../lib/output.mjs";
import { eventsOf } from "./events.mjs";

/** The limits of one server's check in total: time and response bytes. */
export const MOST_MS = 60_000;
export const MOST_BYTES = 16 * 1024 * 1024;
/** The limits of one response. */
const ANSWER_BYTES = 4 * 1024 * 1024;
const ANSWER_MS = 20_000;
/** The number of characters of a server's text that are shown. */
const SHOWN = 300;

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Headers} headers
 * @property {any} [message]   the JSON-RPC response, if any
 * @property {string} text     the body if there was none
 */

/** A client for the server of one definition. */
export class HttpClient {
  /** @param {import("./definitions.mjs").Definition} definition @param {import("./definitions.mjs").Address} address */
  constructor(definition, address) {
    this.definition = definition;
    this.address = address;
    this.left = MOST_BYTES;
    this.until = Date.now() + MOST_MS;
    this.ids = 0;
  }

  /** @param {string} what */
  complaint(what) {
    return new Complaint(`${this.definition.name} (${this.address.url.origin}): ${this.hidden(what)}`);
  }

  /** Removes the values of variables from a server's text. @param {string} said */
  hidden(said) {
    let text = oneLine(said);
    for (const [name, value] of this.address.values) {
      for (const form of [value, encodeURIComponent(value)]) if (form.length >= 4) text = text.replaceAll(form, `<${name}>`);
    }
    return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  }

  /** @param {string} method @param {object} params @param {Record<string, string>} headers @returns {Promise<Answer>} */
  request(method, params, headers) {
    const id = ++this.ids;
    return this.#post({ jsonrpc: "2.0", id, method, params }, headers, id);
  }

  /** @param {string} method @param {Record<string, string>} headers @returns {Promise<Answer>} */
  notify(method, headers) {
    return this.#post({ jsonrpc: "2.0", method }, headers, undefined);
  }

  /** Ends a session, if the server supports that. @param {Record<string, string>} headers */
  async leave(headers) {
    const gone = fetch(this.address.url.href, { method: "DELETE", headers: { ...this.address.headers, ...headers }, redirect: "manual", signal: AbortSignal.timeout(2000) });
    // A failure here does not affect the results.
    await gone.then((response) => response.body?.cancel()).catch(() => {});
  }

  /** @param {object} message @param {Record<string, string>} headers @param {number | undefined} id @returns {Promise<Answer>} */
  async #post(message, headers, id) {
    const ms = Math.min(this.definition.timeoutMs ?? ANSWER_MS, ANSWER_MS, this.until - Date.now());
    if (ms <= 0) throw this.complaint(`the whole check took more than ${MOST_MS / 1000} s.`);
    const ended = new AbortController();
    const timer = sleep(ms, undefined, { signal: ended.signal, ref: false }).then(() => ended.abort(new Error("late")), () => {});
    try {
      const response = await this.#open(JSON.stringify(message), headers, ended.signal);
      return await this.#read(response, id);
    } catch (error) {
      if (error instanceof Complaint) throw error;
      if (ended.signal.aborted) throw this.complaint(`the response was not complete within ${ms / 1000} s.`);
      const { cause, message: said } = /** @type {Error & { cause?: { code?: string, message?: string } }} */ (error);
      throw this.complaint(`it cannot be reached: ${cause?.code ?? cause?.message ?? said}.`);
    } finally {
      ended.abort();
      await timer;
    }
  }

  /**
   * Sends a request and follows no redirect, as in a run. The definition determines the address.
   * @param {string} body @param {Record<string, string>} headers @param {AbortSignal} signal
   */
  async #open(body, headers, signal) {
    const { url } = this.address;
    const response = await fetch(url.href, {
      method: "POST",
      headers: { ...this.address.headers, ...headers, accept: "application/json, text/event-stream", "content-type": "application/json" },
      body,
      redirect: "manual",
      signal,
    });
    if (response.status < 300 || response.status > 399) return response;
    await response.body?.cancel();
    const to = response.headers.get("location") ?? "";
    const next = URL.canParse(to, url.href) ? new URL(to, url) : undefined;
    if (next === undefined) throw this.complaint(`it redirects (${response.status}) without an address.`);
    throw this.complaint(`it redirects to ${next.origin === url.origin ? next.pathname : next.origin}. Bobbin follows no redirects. If that is the right server, put its address into \`url\`.`);
  }

  /** @param {Response} response @param {number | undefined} id @returns {Promise<Answer>} */
  async #read(response, id) {
    const { status, headers } = response;
    const type = (headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
    const chunks = this.#chunks(response);
    if (id === undefined) {
      await chunks.return(undefined);
      return { status, headers, text: "" };
    }
    if (type === "text/event-stream" && response.ok) {
      for await (const data of eventsOf(chunks)) {
        const message = parsed(data);
        if (isAnswer(message, id)) return { status, headers, message, text: "" };
      }
      throw this.complaint("its stream ended without a response.");
    }
    /** @type {Uint8Array[]} */
    const all = [];
    for await (const chunk of chunks) all.push(chunk);
    const text = Buffer.concat(all).toString("utf8");
    const message = parsed(text);
    // An error about an unreadable request has no id.
    const ours = isAnswer(message, id) || (!response.ok && isAnswer(message, null));
    return ours ? { status, headers, message, text } : { status, headers, text };
  }

  /** @param {Response} response */
  async *#chunks(response) {
    let left = Math.min(ANSWER_BYTES, this.left);
    const reader = response.body?.getReader();
    try {
      for (let read = await reader?.read(); read !== undefined && !read.done; read = await reader?.read()) {
        left -= read.value.length;
        this.left -= read.value.length;
        if (left < 0) throw this.complaint(`its response is too large. The limits are ${ANSWER_BYTES / 1024 / 1024} MB for one response and ${MOST_BYTES / 1024 / 1024} MB for all.`);
        yield read.value;
      }
    } finally {
      await reader?.cancel().catch(() => {});
    }
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns whether the message is the response to this request. @param {any} message @param {number | null} id */
const isAnswer = (message, id) =>
  typeof message === "object" && message !== null && message.jsonrpc === "2.0" && (message.id ?? null) === id && ("result" in message || "error" in message);
