// Responses to the outgoing requests of one run of a case. The case's script or cassette answers for models, and its
// stubs answer for tools. No other request leaves unless the case allows it.

import { setTimeout as sleep } from "node:timers/promises";
import { TOOLS } from "./catalog.mjs";
import { called, mcpCall, opening, replayed, rpcOf } from "./mcp.mjs";
import { refusal } from "./outside.mjs";
import { isObject, shown } from "./schema.mjs";
import { Stubs } from "./stubs.mjs";

/** @typedef {import("./outside.mjs").Asked} Asked */
/** @typedef {import("./outside.mjs").Answer} Answer */

/** Answers for the models. @typedef {{ answer: (asked: Asked) => Answer | Promise<Answer>, asks: (asked: Asked) => boolean }} Model */

/**
 * A request of a tool or of code.
 *
 * @typedef {object} Sent
 * @property {string} who       the tool or the file of code
 * @property {boolean} call      a call of a tool, which declares whether it is idempotent; otherwise a request of code
 * @property {string} method
 * @property {string} url
 * @property {string} body
 * @property {string | undefined} key    the idempotency key
 * @property {boolean} repeatable    whether the stub declares that the receiver stores the key
 * @property {number} at        milliseconds since 1970
 */

export class Answers {
  /** @type {Sent[]} */
  sent = [];
  #case;
  #stubs;
  #by;
  /** @type {Map<string, number>} */
  #times = new Map();

  /**
   * @param {import("./cases.mjs").Case} case_
   * @param {{ model: Model, cassette: import("./cassette.mjs").Cassette | undefined, mcp: import("./mcp.mjs").McpTool[], problem: (text: string) => void, drop: (object: string) => Promise<unknown> }} by
   */
  constructor(case_, by) {
    this.#case = case_;
    this.#by = by;
    this.#stubs = new Stubs(case_.stubs);
  }

  /** @param {Asked} asked @returns {Promise<Answer>} */
  async answer(asked) {
    if (this.#by.model.asks(asked)) return this.#by.model.answer(asked);
    const rpc = rpcOf(asked);
    return rpc === undefined ? this.#outside(asked) : this.#server(asked, rpc);
  }

  /** @param {Asked} asked @returns {Promise<Answer>} */
  async #outside(asked) {
    const { method, url, headers, body } = asked;
    const call = toolCall(asked);
    const key = headers["idempotency-key"];
    const args = call?.args ?? parsed(body);
    const inPlace = url.origin === TOOLS;
    const answered = call ? this.#stubs.ofTool(call.name, { args, key }) : this.#stubs.ofAddress(method, url.href, { args, key });
    const who = call?.name ?? asked.by ?? url.host;
    if (answered === undefined && inPlace) return json({ result: this.#by.cassette?.result(who, args, this.#time(who, args)) });
    this.sent.push({ who, call: call !== undefined, method, url: url.href, body, key, repeatable: answered?.stub.repeatable ?? false, at: Date.now() });
    if (answered === undefined) return this.#unstubbed(asked, who, args);
    if (answered.crash) await this.#by.drop(asked.object);
    if (answered.delayMs > 0) await sleep(answered.delayMs);
    const { outcome, stub } = answered;
    const result = outcome.throw === undefined ? { status: "success", result: outcome.response ?? "" } : { status: "error", error: outcome.throw };
    if (inPlace) return json({ result });
    if (call) return json(result);
    if (outcome.throw !== undefined) return json({ error: outcome.throw }, stub.status ?? 500);
    if (typeof outcome.response === "string") return { status: stub.status ?? 200, headers: { "content-type": "text/plain" }, body: outcome.response };
    return json(outcome.response ?? null, stub.status);
  }

  /** Answers a request to an MCP server. @param {Asked} asked @param {import("./mcp.mjs").Rpc} rpc @returns {Promise<Answer>} */
  async #server(asked, rpc) {
    const { method, url, body } = asked;
    const call = mcpCall(rpc, url, this.#by.mcp);
    if (call === undefined) {
      if (this.#case.tools === "real") return passedOn(asked);
      const { _meta: _, ...params } = rpc.params;
      const recorded = await this.#by.cassette?.tool(url.host, { method: rpc.method, params }, () => passedOn(asked));
      return recorded === undefined ? opening(rpc) : replayed(rpc.id, recorded);
    }
    const { name: who, args, key } = call;
    const answered = this.#stubs.ofTool(who, { args, key });
    this.sent.push({ who, call: true, method, url: url.href, body, key, repeatable: answered?.stub.repeatable ?? false, at: Date.now() });
    if (answered === undefined) return this.#unstubbed(asked, who, args).then((answer) => replayed(rpc.id, answer));
    if (answered.crash) await this.#by.drop(asked.object);
    if (answered.delayMs > 0) await sleep(answered.delayMs);
    return called(rpc.id, answered.outcome);
  }

  /** Returns how often this call was made before. @param {string} who @param {unknown} args */
  #time(who, args) {
    const call = JSON.stringify([who, args]);
    const times = this.#times.get(call) ?? 0;
    this.#times.set(call, times + 1);
    return times;
  }

  /** @param {Asked} asked @param {string} who @param {unknown} args @returns {Promise<Answer>} */
  async #unstubbed(asked, who, args) {
    const { method, url, body } = asked;
    if (this.#case.tools === "real") return passedOn(asked);
    const what = toolCall(asked) || rpcOf(asked) ? args : { method, url: url.href, body };
    const recorded = await this.#by.cassette?.tool(who, what, () => passedOn(asked));
    if (recorded !== undefined) return recorded;
    const text = `“${who}” sends ${method} ${url.origin}${url.pathname} with ${shown(args)}, and no stub matches. Add one, or allow real requests with "tools": "real"`;
    this.#by.problem(text);
    return refusal(text);
  }
}

/** Returns the tool call that a request contains. @param {Asked} asked */
function toolCall({ method, url, body, headers }) {
  if (method !== "POST" || !headers["content-type"]?.startsWith("application/json")) return undefined;
  const call = parsed(body);
  if (!isObject(call) || typeof call["name"] !== "string" || (url.origin !== TOOLS && !("idempotencyKey" in call))) return undefined;
  return { name: call["name"], args: call["args"] };
}

/** Headers of a single connection. */
const HOPS = ["connection", "host", "content-length", "transfer-encoding", "keep-alive", "accept-encoding"];

/** @param {Asked} asked @returns {Promise<Answer>} */
export async function passedOn({ method, url, headers, body }) {
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !HOPS.includes(name)));
  const init = { method, headers: kept, redirect: /** @type {const} */ ("manual"), ...(body !== "" && { body }) };
  try {
    const answer = await fetch(url, init);
    const of = Object.fromEntries([...answer.headers].filter(([name]) => !HOPS.includes(name) && name !== "content-encoding"));
    return { status: answer.status, headers: of, body: answer.body ?? "" };
  } catch (error) {
    const cause = /** @type {{ cause?: Error }} */ (error).cause;
    return refusal(`${url.host} cannot be reached: ${cause?.message ?? error}`, 502);
  }
}

/** @param {unknown} value @param {number} [status] @returns {Answer} */
const json = (value, status = 200) => ({ status, headers: { "content-type": "application/json" }, body: JSON.stringify(value) });

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
