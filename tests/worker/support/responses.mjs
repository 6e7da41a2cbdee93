// A provider with OpenAI's two APIs: a real HTTP server that follows a script and rejects what the real provider
// rejects: changed or isolated reasoning, calls without results, and functions together with a reasoning effort in chat
// completions.

import { once } from "node:events";
import { http } from "../../../package/lib/node-http.mjs";
import { problems as chatProblems } from "./model-check.mjs";
import { wholeBody } from "./http.mjs";

/** @typedef {Record<string, any>} Json */

/** The bearer token of every request. */
export const OPENAI_KEY = "sk-openai-key-of-the-tests";

/**
 * An item of a reply. `reasoning` is raw JSON, which must be returned unchanged.
 *
 * @typedef {{ reasoning: string, summary?: string } | { text: string, phase?: string } | { call: string, id: string, args: object }} Item
 *
 * @typedef {object} Asked  a valid request
 * @property {number} n     1 for the first
 * @property {string} path
 * @property {Json} body
 * @property {string} text  the body as it was sent
 *
 * @typedef {{ items: Item[], cut?: "max_output_tokens" | "content_filter" } | { status: number, message: string }
 *   | { items: Item[], fails: string }} Reply  `fails`: ends with an error of that code
 */

const FIELDS = [
  "model", "tools", "tool_choice", "parallel_tool_calls", "instructions", "input", "stream", "store", "include",
  "prompt_cache_key", "max_output_tokens", "text", "reasoning", "temperature", "metadata", "background",
];
/** Fields of each kind of item. @type {Record<string, string[]>} */
const ITEMS = {
  message: ["role", "content", "phase"],
  function_call: ["call_id", "name", "arguments"],
  function_call_output: ["call_id", "output"],
  reasoning: ["id", "summary", "encrypted_content", "content", "status"],
};

/**
 * Returns what the real provider would reject.
 * @param {Json} body @param {string} text @param {string[]} sent  raw reasoning @returns {string[]}
 */
export function responsesProblems(body, text, sent = []) {
  /** @type {string[]} */
  const found = [];
  for (const key of Object.keys(body)) if (!FIELDS.includes(key)) found.push(`Unknown parameter: '${key}'.`);
  if (typeof body.model !== "string" || body.model === "") found.push("Missing required parameter: 'model'.");
  if (body.max_output_tokens < 16) found.push("max_output_tokens: expected a value >= 16");
  for (const tool of body.tools ?? []) {
    if (tool.type !== "function" || !/^[a-zA-Z0-9_-]{1,64}$/.test(tool.name ?? "")) found.push(`tools: ${JSON.stringify(tool)}`);
    const { properties = {}, required = [] } = tool.parameters ?? {};
    const optional = Object.keys(properties).filter((name) => !required.includes(name));
    // A function is strict by default.
    if (tool.strict !== false && optional.length > 0) found.push(`Invalid schema for function '${tool.name}': ${optional}`);
  }
  if (body.tool_choice && !body.tools?.length) found.push("tool_choice without tools");
  const input = Array.isArray(body.input) ? body.input : [];
  if (input.length === 0) found.push("Missing required parameter: 'input'.");
  return [...found, ...itemProblems(input, text, sent, body.store === true)];
}

/** @param {Json[]} input @param {string} text @param {string[]} sent @param {boolean} stored @returns {string[]} */
function itemProblems(input, text, sent, stored) {
  /** @type {string[]} */
  const found = [];
  /** @type {Set<string>} */
  const open = new Set();
  const seen = new Set();
  input.forEach((item, at) => {
    const { type = "message", ...rest } = item;
    for (const key of Object.keys(rest)) {
      if (!ITEMS[type]?.includes(key)) found.push(`Unknown parameter: 'input[${at}].${key}' of ${type}.`);
    }
    if (type === "function_call") {
      if (typeof item.arguments !== "string" || !(item.call_id?.length <= 64) || seen.has(item.call_id)) {
        found.push(`input[${at}]: call ${item.call_id}`);
      }
      open.add(item.call_id).size && seen.add(item.call_id);
    } else if (type === "function_call_output") {
      if (!open.delete(item.call_id)) found.push(`No tool call found for function call output with call_id ${item.call_id}.`);
      found.push(...contentProblems(item.output, `input[${at}].output`));
    } else if (type === "reasoning") {
      if (!stored && !item.encrypted_content) found.push(`Item with id '${item.id}' not found.`);
      const raw = sent.find((raw) => JSON.parse(raw).id === item.id);
      if (!raw || !text.includes(raw)) found.push(`The encrypted content for item ${item.id} could not be verified.`);
      const next = input[at + 1];
      if (!next || !(next.role === "assistant" || ["function_call", "reasoning"].includes(next.type))) {
        found.push(`Item '${item.id}' of type 'reasoning' was provided without its required following item.`);
      }
    } else if (type === "message") {
      if (!["user", "assistant", "system", "developer"].includes(item.role)) found.push(`input[${at}]: role ${item.role}`);
      if (item.phase && item.role !== "assistant") found.push(`input[${at}]: phase of ${item.role}`);
      found.push(...contentProblems(item.content, `input[${at}].content`));
    } else {
      found.push(`Invalid value: '${type}'.`);
    }
  });
  for (const id of open) found.push(`No tool output found for function call ${id}.`);
  return found;
}

/** @param {unknown} content @param {string} where @returns {string[]} */
function contentProblems(content, where) {
  if (typeof content === "string") return [];
  if (!Array.isArray(content) || content.length === 0) return [`${where}: neither a text nor a list`];
  return content.flatMap(({ type, text, image_url: url }) => {
    if (type === "input_text" && typeof text === "string") return [];
    if (type === "input_image" && /^data:image\/\w+;base64,[\w+/=]+$/.test(url)) return [];
    return [`${where}: a part of type ${type}`];
  });
}

/**
 * Returns the error of chat completions for functions together with a reasoning effort, with current models.
 * @param {Json} body @returns {string | undefined}
 */
export function refusal(body) {
  // The name of a deployment does not reveal its model.
  const newest = /^gpt-(5\.6|6)|^deployment-/.test(body.model);
  const effort = body.reasoning_effort ?? (newest ? "medium" : "none");
  if (!body.tools?.length || effort === "none") return undefined;
  return (
    `Function tools with reasoning_effort are not supported for ${body.model} in /v1/chat/completions. ` +
    "Please use /v1/responses instead."
  );
}

export class OpenaiServer {
  /** @param {(asked: Asked) => Reply} script */
  constructor(script) {
    this.script = script;
    /** @type {Asked[]} */
    this.asked = [];
    /** Invalid requests. @type {string[]} */
    this.refused = [];
    /** Raw reasoning that was sent. @type {string[]} */
    this.sent = [];
    this.server = http.createServer((request, response) => {
      this.serve(request, response).catch((error) => {
        this.refused.push(`the script failed: ${error.stack}`);
        response.destroy();
      });
    });
  }

  async listen() {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
  }

  get base() {
    return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (this.server.address()).port}/v1`;
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async serve(request, response) {
    response.on("error", () => {});
    const text = await wholeBody(request);
    if (text === undefined) return;
    const path = request.url ?? "";
    const wrong = [];
    if (request.method !== "POST" || !["/v1/responses", "/v1/chat/completions"].includes(path)) wrong.push(path);
    if (request.headers.authorization !== `Bearer ${OPENAI_KEY}`) wrong.push("Incorrect API key provided");
    /** @type {Json} */
    const body = JSON.parse(text);
    wrong.push(...(path === "/v1/responses" ? responsesProblems(body, text, this.sent) : chatProblems(body)));
    if (wrong.length > 0) {
      this.refused.push(`${wrong.join("; ")}\n${text.slice(0, 4000)}`);
      return this.refuse(response, 400, wrong.join("; "));
    }
    const asked = { n: this.asked.length + 1, path, body, text };
    this.asked.push(asked);
    const refused = path === "/v1/chat/completions" ? refusal(body) : undefined;
    if (refused) return this.refuse(response, 400, refused);
    const reply = this.script(asked);
    if ("status" in reply) return this.refuse(response, reply.status, reply.message);
    for (const item of reply.items) if ("reasoning" in item) this.sent.push(item.reasoning);
    if (path === "/v1/chat/completions") chat(response, reply.items);
    else answer(response, body, reply);
  }

  /** @param {import("node:http").ServerResponse} response @param {number} status @param {string} message */
  refuse(response, status, message) {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null } }));
  }

  async close() {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }
}

/** Returns an item as it appears in a response. @param {Item} item @param {number} index */
export function raw(item, index) {
  if ("reasoning" in item) return item.reasoning;
  if ("call" in item) {
    const { call, id, args } = item;
    return JSON.stringify({ id: `fc_${index}`, type: "function_call", status: "completed", call_id: id, name: call, arguments: JSON.stringify(args) });
  }
  const content = [{ type: "output_text", annotations: [], text: item.text }];
  return JSON.stringify({ id: `msg_${index}`, type: "message", status: "completed", role: "assistant", content, phase: item.phase });
}

/**
 * Returns all events of a response as JSON texts, without sequence numbers.
 * @param {Json} body @param {{ items: Item[], cut?: string, fails?: string }} reply
 */
export function events(body, { items, cut, fails }) {
  /** @type {string[]} */
  const out = [];
  const response = (/** @type {string} */ status, /** @type {string} */ rest) =>
    `"response":{"id":"resp_1","object":"response","status":"${status}","model":"${body.model}-2026"${rest}}`;
  out.push(`"type":"response.created",${response("in_progress", "")}`);
  items.forEach((item, index) => {
    const add = (/** @type {string} */ type, /** @type {string} */ rest) => out.push(`"type":"${type}","output_index":${index},${rest}`);
    const quoted = (/** @type {string} */ text) => JSON.stringify(text);
    if ("reasoning" in item) {
      add("response.output_item.added", `"item":{"id":"rs","type":"reasoning","summary":[]}`);
      for (const letter of item.summary ?? "") {
        add("response.reasoning_summary_text.delta", `"summary_index":0,"delta":${quoted(letter)}`);
      }
    } else if ("call" in item) {
      add("response.output_item.added", `"item":${JSON.stringify({ type: "function_call", call_id: item.id, name: item.call, arguments: "" })}`);
      for (const letter of JSON.stringify(item.args)) add("response.function_call_arguments.delta", `"delta":${quoted(letter)}`);
      add("response.function_call_arguments.done", `"arguments":${quoted(JSON.stringify(item.args))}`);
    } else {
      add("response.output_item.added", `"item":${JSON.stringify({ type: "message", role: "assistant", content: [], phase: item.phase })}`);
      for (const letter of item.text) add("response.output_text.delta", `"content_index":0,"delta":${quoted(letter)}`);
      add("response.output_text.done", `"content_index":0,"text":${quoted(item.text)}`);
    }
    add("response.output_item.done", `"item":${raw(item, index)}`);
  });
  const output = `,"output":[${items.map(raw).join(",")}]`;
  const usage = `,"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":50,"cache_write_tokens":30},"output_tokens":10,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":110}`;
  if (fails) out.push(`"type":"response.failed",${response("failed", `,"error":{"code":"${fails}","message":"scripted ${fails}"}`)}`);
  else if (cut) out.push(`"type":"response.incomplete",${response("incomplete", `,"incomplete_details":{"reason":"${cut}"}${output}${usage}`)}`);
  else out.push(`"type":"response.completed",${response("completed", output + usage)}`);
  return out;
}

/** @param {import("node:http").ServerResponse} response @param {Json} body @param {{ items: Item[], cut?: string, fails?: string }} reply */
function answer(response, body, reply) {
  const all = events(body, reply);
  if (body.stream !== true) {
    const last = JSON.parse(`{${all.at(-1)}}`);
    response.writeHead(200, { "content-type": "application/json" });
    // Send the reasoning unchanged, because it must be returned byte for byte.
    const text = all.at(-1)?.replace(/^.*?"response":/, "") ?? "";
    response.end(last.response ? text : "{}");
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  all.forEach((event, at) => {
    const type = /"type":"([^"]+)"/.exec(event)?.[1];
    response.write(`event: ${type}\ndata: {"sequence_number":${at},${event}}\n\n`);
  });
  response.end();
}

/** Sends the same as chat completions, without the reasoning. @param {import("node:http").ServerResponse} response @param {Item[]} items */
function chat(response, items) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const line = (/** @type {object} */ delta, finish = null) =>
    response.write(`data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
  let calls = 0;
  for (const item of items) {
    if ("text" in item) line({ content: item.text });
    if ("call" in item) {
      line({ tool_calls: [{ index: calls++, id: item.id, type: "function", function: { name: item.call, arguments: JSON.stringify(item.args) } }] });
    }
  }
  line({}, /** @type {any} */ (calls > 0 ? "tool_calls" : "stop"));
  response.end("data: [DONE]\n\n");
}
