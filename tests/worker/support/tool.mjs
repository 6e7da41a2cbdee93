// A server of http tools and endpoints: verifies the form and signature of every call, records it, and responds as the
// test says.

import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { http } from "../../../package/lib/node-http.mjs";
import { wholeBody } from "./http.mjs";
import { until } from "./poll.mjs";

/** The deployment's signing secret. */
export const SIGNING_SECRET = "signing-secret-of-the-tests";

/**
 * @typedef {object} Received
 * @property {number} n                 1 for the first call of this tool
 * @property {Record<string, any>} args
 * @property {string} key               the idempotency key
 * @property {Record<string, any>} body
 * @property {import("node:http").IncomingHttpHeaders} headers
 * @property {number} at                time of arrival, ms since 1970
 * @property {Promise<void>} closed     resolves when either side closes the connection
 *
 * @typedef {object} Answer
 * @property {number} [status]                     by default 200
 * @property {string | Buffer | object} [body]      an object is sent as JSON
 * @property {Record<string, string>} [headers]
 *
 * @typedef {(received: Received) => Answer | string | Promise<Answer | string>} Answering  a string is the body of a 200
 */

/** A tool of the server, with its answers and its record. */
export class Tool {
  /** @param {string} name @param {Answering} answer */
  constructor(name, answer) {
    this.name = name;
    this.answer = answer;
    /** @type {Received[]} */
    this.received = [];
  }

  /** Waits until it has `count` calls, and returns the last of them. @param {number} count @param {number} [withinMs] */
  async call(count, withinMs) {
    await until(`tool ${this.name} is called ${count} times`, () => this.received.length >= count, { withinMs });
    return /** @type {Received} */ (this.received[count - 1]);
  }
}

/** Returns a thread's calls of a tool. @param {Tool} tool @param {{ id: string }} thread */
export const callsOf = (tool, thread) => tool.received.filter(({ body }) => body.threadId === thread.id);

export class ToolServer {
  constructor() {
    /** @type {Map<string, Tool>} */
    this.tools = new Map();
    /** Calls that violate the documentation. A test that leaves any here fails. @type {string[]} */
    this.refused = [];
    this.server = http.createServer((request, response) => {
      this.serve(request, response).catch((error) => {
        this.refused.push(`the tool failed: ${error.stack}`);
        response.destroy();
      });
    });
  }

  async listen() {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
  }

  get base() {
    return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (this.server.address()).port}`;
  }

  /** @param {string} name @param {Answering} answer */
  tool(name, answer) {
    const tool = new Tool(name, answer);
    this.tools.set(name, tool);
    return tool;
  }

  /** Returns the definition file of a tool of this server. @param {string} name @param {object} [more] */
  definition(name, more = {}) {
    return {
      description: `The test tool ${name}.`,
      args: { type: "object", properties: { word: { type: "string" } } },
      run: { http: { url: `${this.base}/${name}` } },
      ...more,
    };
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async serve(request, response) {
    response.on("error", () => {});
    const at = Date.now();
    const closed = once(response, "close").then(() => {});
    const text = await wholeBody(request);
    if (text === undefined) return;
    const name = (request.url ?? "").slice(1);
    const tool = this.tools.get(name);
    const { headers } = request;
    const wrong = callProblems(request, text, at);
    if (!tool) wrong.push(`there is no tool ${name}`);
    if (!tool || wrong.length > 0) {
      this.refused.push(`tool ${name}: ${wrong.join("; ")}\n${JSON.stringify(headers)}\n${text.slice(0, 1000)}`);
      response.writeHead(400).end(wrong.join("; "));
      return;
    }
    const body = JSON.parse(text);
    const key = String(headers["idempotency-key"]);
    const received = { n: tool.received.length + 1, args: body.args, key, body, headers, at, closed };
    tool.received.push(received);
    const answer = await tool.answer(received);
    if (!response.writable) return;
    const { status = 200, body: out = "", headers: extra = {} } = typeof answer === "string" ? { body: answer } : answer;
    const json = typeof out !== "string" && !Buffer.isBuffer(out);
    response.writeHead(status, { "content-type": json ? "application/json" : "text/plain", ...extra });
    response.end(json ? JSON.stringify(out) : out);
  }

  async close() {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }
}

const TOOL_CALL = { texts: ["callId"], objects: ["args", "options"] };
const EFFECT_CALL = { texts: ["effectId"], objects: ["args"] };
const HOOK_CALL = { texts: ["hook", "hookCallId"], objects: ["args"] };
const ENDPOINT_CALL = { texts: ["requestId", "method", "path"], objects: ["params", "query", "headers"] };

/**
 * Returns the mistakes in the form of a call.
 *
 * @param {import("node:http").IncomingMessage} request
 * @param {string} text  its body
 * @param {number} now   ms since 1970
 * @returns {string[]}
 */
function callProblems(request, text, now) {
  const { headers } = request;
  const wrong = [];
  if (request.method !== "POST") wrong.push(`the method is ${request.method}`);
  if (!headers["content-type"]?.startsWith("application/json")) wrong.push("the content type is not JSON");
  if (!/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(String(headers.traceparent))) {
    wrong.push(`traceparent is ${headers.traceparent}`);
  }
  const signature = signatureProblem(String(headers["x-bobbin-signature"] ?? ""), text, now);
  if (signature) wrong.push(signature);
  try {
    const body = JSON.parse(text);
    const of = "method" in body ? ENDPOINT_CALL : "effectId" in body ? EFFECT_CALL : TOOL_CALL;
    const { texts, objects } = "hook" in body ? HOOK_CALL : of;
    const key = "hook" in body ? "hookCallId" : "idempotencyKey";
    for (const field of ["threadId", "agentId", ...("hook" in body ? [] : ["name"]), key, ...texts]) {
      if (typeof body[field] !== "string" || body[field] === "") wrong.push(`${field} is no text`);
    }
    if ("effectId" in body && !(body.attempt >= 1 && body.scheduledAt > 0)) wrong.push("attempt or scheduledAt is no number");
    for (const field of objects) {
      if (typeof body[field] !== "object" || body[field] === null) wrong.push(`${field} is no object`);
    }
    if (headers["idempotency-key"] !== body[key]) wrong.push("the header's idempotency key is another one");
    if (!String(body[key]).startsWith(`${body.threadId}/`)) wrong.push("the key does not name the thread");
  } catch (error) {
    wrong.push(`the body is not JSON: ${error}`);
  }
  return wrong;
}

/** @param {string} header @param {string} body @param {number} now @returns {string | undefined} */
function signatureProblem(header, body, now) {
  const parts = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header);
  if (!parts) return `x-bobbin-signature is ${JSON.stringify(header)}`;
  const [, time = "", given = ""] = parts;
  if (Math.abs(now / 1000 - Number(time)) > 300) return `signed at ${time}, more than 5 minutes away`;
  const right = createHmac("sha256", SIGNING_SECRET).update(`${time}.${body}`).digest();
  return timingSafeEqual(right, Buffer.from(given, "hex")) ? undefined : "the signature does not match the body";
}
