// A provider with Anthropic's Messages API: a real HTTP server that follows a script. It rejects what the real provider
// rejects, including changed or missing thinking.

import { once } from "node:events";
import { http } from "../../../package/lib/node-http.mjs";
import { wholeBody } from "./http.mjs";

/** @typedef {Record<string, any>} Json */

/** The key of every request. */
export const ANTHROPIC_KEY = "sk-ant-key-of-the-tests";

/**
 * A block of a reply. `raw` blocks (thinking) are sent unchanged and must be returned unchanged.
 *
 * @typedef {{ text: string } | { thinking: string, signature: string } | { redacted: string }
 *   | { call: string, id: string, args: object }} Block
 *
 * @typedef {object} Asked  a valid request
 * @property {number} n     1 for the first
 * @property {Json} body
 * @property {string} text  the body as it was sent
 * @property {import("node:http").IncomingHttpHeaders} headers
 * @property {number} at    the time of arrival, ms since 1970
 *
 * @typedef {{ blocks: Block[] } | { status: number, type: string, message: string, headers?: Record<string, string> }
 *   | { blocks: Block[], breaks: string }} Reply  `breaks`: an error of that type, in the middle of the stream
 */

const FIELDS = [
  "model", "max_tokens", "tools", "tool_choice", "system", "messages", "stream", "metadata", "thinking", "output_config",
  "stop_sequences", "temperature", "top_k", "top_p", "service_tier",
];
/** Fields of each kind of block. @type {Record<string, string[]>} */
const BLOCKS = {
  text: ["text"],
  image: ["source"],
  tool_use: ["id", "name", "input"],
  tool_result: ["tool_use_id", "content", "is_error"],
  thinking: ["thinking", "signature"],
  redacted_thinking: ["data"],
};

/** Returns a block as it appears in a response. Thinking is given with JSON escapes. @param {Block} block */
export function raw(block) {
  if ("thinking" in block) return `{"type":"thinking","thinking":"${block.thinking}","signature":"${block.signature}"}`;
  if ("redacted" in block) return `{"type":"redacted_thinking","data":"${block.redacted}"}`;
  if ("call" in block) return JSON.stringify({ type: "tool_use", id: block.id, name: block.call, input: block.args });
  return JSON.stringify({ type: "text", text: block.text });
}

/**
 * Returns what the real provider would reject. `sent`: by the id of a call, the thinking of the reply that made it.
 *
 * @param {Json} body @param {string} text  the body as it was sent @param {Map<string, string[]>} [sent]
 * @returns {string[]}
 */
export function anthropicProblems(body, text, sent = new Map()) {
  /** @type {string[]} */
  const found = [];
  for (const key of Object.keys(body)) if (!FIELDS.includes(key)) found.push(`${key}: Extra inputs are not permitted`);
  if (typeof body.model !== "string" || body.model === "") found.push("model: Field required");
  if (!Number.isInteger(body.max_tokens) || body.max_tokens < 1) found.push("max_tokens: Field required");
  if ((text.match(/"cache_control":/g) ?? []).length > 4) found.push("more than 4 blocks with cache_control");
  const tools = body.tools ?? [];
  for (const tool of tools) {
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(tool.name ?? "")) found.push(`tools: name ${tool.name}`);
    if (tool.input_schema?.type !== "object") found.push(`tools: input_schema of ${tool.name} is no object`);
  }
  if (body.tool_choice && tools.length === 0) found.push("tool_choice may only be specified while providing tools");
  const messages = Array.isArray(body.messages) ? body.messages : [];
  if (messages.length === 0) found.push("messages: at least one message is required");
  found.push(...turnProblems(messages, tools.length > 0));
  if (body.thinking?.type === "enabled") found.push(...thinkingProblems(body, messages, text, sent));
  return found;
}

/** @param {Json[]} messages @param {boolean} tools @returns {string[]} */
function turnProblems(messages, tools) {
  /** @type {string[]} */
  const found = [];
  const seen = new Set();
  /** @type {string[]} */
  let open = [];
  messages.forEach(({ role, content }, at) => {
    const where = `messages.${at}`;
    if (role !== (at % 2 === 0 ? "user" : "assistant")) found.push(`${where}: roles must alternate, ${role}`);
    const blocks = Array.isArray(content) ? content : [];
    if (blocks.length === 0) found.push(`${where}: no content`);
    for (const { type, cache_control: mark, ...rest } of blocks) {
      const known = BLOCKS[type];
      if (!known) found.push(`${where}: the block ${type} is not known`);
      for (const key of Object.keys(rest)) {
        if (!known?.includes(key)) found.push(`${where}.${type}.${key}: Extra inputs are not permitted`);
      }
      if (mark && (mark.type !== "ephemeral" || /thinking/.test(type))) found.push(`${where}: cache_control on ${type}`);
      if (type === "text" && !rest.text?.trim()) found.push(`${where}: text content blocks must be non-empty`);
      if (type === "image" && rest.source?.type !== "base64") found.push(`${where}: source of an image`);
      const input = rest.input;
      if (type === "tool_use" && (typeof input !== "object" || input === null || Array.isArray(input))) {
        found.push(`${where}: input should be a valid dictionary`);
      }
    }
    const results = blocks.filter(({ type }) => type === "tool_result").map((block) => block.tool_use_id);
    for (const { type, is_error, content } of blocks) if (type === "tool_result" && is_error && !content?.length) found.push(`${where}: content cannot be empty if is_error is true`);
    for (const id of open) if (!results.includes(id)) found.push(`${where}: tool_use ${id} without tool_result after it`);
    for (const id of results) if (!open.includes(id)) found.push(`${where}: unexpected tool_use_id ${id}`);
    if (blocks.slice(0, results.length).some(({ type }) => type !== "tool_result")) found.push(`${where}: results come first`);
    open = blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id);
    if (open.length > 0 && (role !== "assistant" || !tools)) found.push(`${where}: tool_use of ${role}, tools ${tools}`);
    for (const id of open) {
      if (!/^[a-zA-Z0-9_-]+$/.test(id) || seen.has(id)) found.push(`${where}: tool_use id ${id}`);
      seen.add(id);
    }
  });
  if (messages.at(-1)?.role === "assistant") found.push("the last message is the assistant's");
  return found;
}

/** @param {Json} body @param {Json[]} messages @param {string} text @param {Map<string, string[]>} sent @returns {string[]} */
function thinkingProblems(body, messages, text, sent) {
  /** @type {string[]} */
  const found = [];
  const budget = body.thinking.budget_tokens;
  if (!(budget >= 1024)) found.push("thinking.budget_tokens: should be greater than or equal to 1024");
  if (!(budget < body.max_tokens)) found.push("max_tokens must be greater than thinking.budget_tokens");
  for (const key of ["temperature", "top_k", "top_p"]) {
    if (body[key] !== undefined) found.push(`${key} may not be set when thinking is enabled`);
  }
  if (["any", "tool"].includes(body.tool_choice?.type)) found.push("thinking may not be enabled when tool_choice forces tool use");
  // In the current exchange of calls, all thinking must be present and unchanged.
  const has = (/** @type {Json | undefined} */ message, /** @type {RegExp} */ type) =>
    message?.content?.some?.((/** @type {Json} */ block) => type.test(block.type));
  let at = messages.findLastIndex(({ role }) => role === "assistant");
  if (at < 0 || !has(messages[at], /^tool_use$/)) return found;
  for (;;) {
    for (const { type, id } of messages[at]?.content ?? []) {
      for (const block of (type === "tool_use" && sent.get(id)) || []) {
        if (!text.includes(block)) found.push(`messages.${at}: thinking blocks cannot be modified or left out: ${block}`);
      }
    }
    if (at < 2 || !has(messages[at - 1], /^tool_result$/) || has(messages[at - 1], /^text$/)) break;
    at -= 2;
  }
  if (!/thinking$/.test(messages[at]?.content?.[0]?.type)) {
    found.push(`messages.${at}: expected thinking; a final assistant message must start with a thinking block`);
  }
  return found;
}

export class AnthropicServer {
  /** @param {(asked: Asked) => Reply} script */
  constructor(script) {
    this.script = script;
    /** @type {Asked[]} */
    this.asked = [];
    /** @type {string[]} */
    this.refused = [];
    /** @type {Map<string, string[]>} */
    this.sent = new Map();
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
    return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (this.server.address()).port}`;
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async serve(request, response) {
    response.on("error", () => {});
    const at = Date.now();
    const text = await wholeBody(request);
    if (text === undefined) return;
    const { headers } = request;
    const wrong = [];
    if (request.method !== "POST" || request.url !== "/v1/messages") wrong.push(`${request.method} ${request.url}`);
    if (headers["x-api-key"] !== ANTHROPIC_KEY || headers.authorization) wrong.push("invalid x-api-key");
    if (headers["anthropic-version"] !== "2023-06-01") wrong.push("anthropic-version: header is required");
    /** @type {Json} */
    let body = {};
    try {
      body = JSON.parse(text);
      wrong.push(...anthropicProblems(body, text, this.sent));
    } catch (error) {
      wrong.push(`the body is not JSON: ${error}`);
    }
    if (wrong.length > 0) {
      this.refused.push(`${wrong.join("; ")}\n${text.slice(0, 4000)}`);
      this.refuse(response, 400, "invalid_request_error", wrong.join("; "), {});
      return;
    }
    const asked = { n: this.asked.length + 1, body, text, headers, at };
    this.asked.push(asked);
    const reply = this.script(asked);
    if ("status" in reply) {
      this.refuse(response, reply.status, reply.type, reply.message, reply.headers ?? {});
      return;
    }
    const thinking = reply.blocks.map(raw).filter((block) => /^{"type":"(redacted_)?thinking"/.test(block));
    for (const block of reply.blocks) if ("call" in block) this.sent.set(block.id, thinking);
    if (body.stream === true) this.stream(response, reply);
    else this.whole(response, reply.blocks);
  }

  /** @param {import("node:http").ServerResponse} response @param {number} status @param {string} type @param {string} message @param {Record<string, string>} headers */
  refuse(response, status, type, message, headers) {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ type: "error", error: { type, message }, request_id: "req_1" }));
  }

  /** @param {import("node:http").ServerResponse} response @param {Block[]} blocks */
  whole(response, blocks) {
    const reason = blocks.some((block) => "call" in block) ? "tool_use" : "end_turn";
    response.writeHead(200, { "content-type": "application/json" });
    response.end(
      `{"id":"msg_1","type":"message","role":"assistant","content":[${blocks.map(raw).join(",")}],` +
        `"stop_reason":"${reason}","usage":{"input_tokens":20,"output_tokens":10}}`,
    );
  }

  /** @param {import("node:http").ServerResponse} response @param {{ blocks: Block[], breaks?: string }} reply */
  stream(response, { blocks, breaks }) {
    const event = (/** @type {string} */ type, rest = "") =>
      response.write(`event: ${type}\ndata: {"type":"${type}"${rest}}\n\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const usage = `{"input_tokens":20,"cache_creation_input_tokens":30,"cache_read_input_tokens":50,"output_tokens":1}`;
    event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":${usage}}`);
    event("ping");
    blocks.forEach((block, index) => {
      const [start, deltas] = pieces(block);
      event("content_block_start", `,"index":${index},"content_block":${start}`);
      for (const delta of deltas) event("content_block_delta", `,"index":${index},"delta":${delta}`);
      event("content_block_stop", `,"index":${index}`);
    });
    if (breaks) {
      event("error", `,"error":{"type":"${breaks}","message":"scripted ${breaks}"}`);
    } else {
      const reason = blocks.some((block) => "call" in block) ? "tool_use" : "end_turn";
      event("message_delta", `,"delta":{"stop_reason":"${reason}","stop_sequence":null},"usage":{"output_tokens":10}`);
      event("message_stop");
    }
    response.end();
  }

  async close() {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }
}

/** Returns how a block is streamed: its start and its deltas. @param {Block} block @returns {[string, string[]]} */
function pieces(block) {
  if ("thinking" in block) {
    const { thinking, signature } = block;
    return [
      `{"type":"thinking","thinking":"","signature":""}`,
      [`{"type":"thinking_delta","thinking":"${thinking}"}`, `{"type":"signature_delta","signature":"${signature}"}`],
    ];
  }
  if ("redacted" in block) return [raw(block), []];
  if ("call" in block) {
    const args = JSON.stringify(block.args);
    const half = Math.ceil(args.length / 2);
    const delta = (/** @type {string} */ text) => JSON.stringify({ type: "input_json_delta", partial_json: text });
    const start = JSON.stringify({ type: "tool_use", id: block.id, name: block.call, input: {} });
    return [start, [delta(""), delta(args.slice(0, half)), delta(args.slice(half))]];
  }
  return [`{"type":"text","text":""}`, [...block.text].map((letter) => JSON.stringify({ type: "text_delta", text: letter }))];
}
