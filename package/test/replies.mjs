// Formats a model's reply for the API of the request.

import { chatReply, usageOf } from "./reply.mjs";

/** @typedef {import("./reply.mjs").Reply} Reply */
/** @typedef {import("./outside.mjs").Answer} Answer */

/** @param {any} request   the body of a request, of any of the three APIs @param {Reply} reply @returns {Answer} */
export function replyTo(request, reply) {
  if (request.input !== undefined) return responsesReply(request, reply);
  return "max_tokens" in request && !request.messages.some((/** @type {any} */ one) => one.role === "system") && isAnthropic(request)
    ? messagesReply(request, reply)
    : chatReply(request, reply);
}

/** Anthropic's requests have the system prompt and the tools' schemas in their own fields. @param {any} request */
const isAnthropic = ({ system, tools = [], messages }) =>
  system !== undefined || tools.some((/** @type {any} */ tool) => "input_schema" in tool) || messages.some((/** @type {any} */ one) => Array.isArray(one.content));

/** @param {any} request @param {Reply} reply @returns {Answer} */
function responsesReply(request, reply) {
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = usageOf({ messages: request.input, tools: request.tools }, reply);
  const usage = {
    input_tokens: input,
    output_tokens: output,
    total_tokens: total,
    input_tokens_details: { cached_tokens: reply.usage.cached ?? 0 },
    output_tokens_details: { reasoning_tokens: reply.usage.reasoning ?? 0 },
  };
  const message = { type: "message", id: "msg_0", role: "assistant", status: "completed", content: [{ type: "output_text", text: reply.text, annotations: [] }] };
  const calls = reply.calls.map(({ id, tool, arguments: args }, at) => ({ type: "function_call", id: `fc_${at}`, call_id: id, name: tool, arguments: args, status: "completed" }));
  const items = [...(reply.text === "" ? [] : [message]), ...calls];
  const response = { id: "resp_0", object: "response", model: request.model, status: "completed", output: items, usage };
  if (request.stream !== true) return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(response) };
  const events = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [], usage: null } },
    ...items.flatMap((item, index) => [
      { type: "response.output_item.added", output_index: index, item: item.type === "message" ? { ...item, content: [] } : { ...item, arguments: "" } },
      item.type === "message"
        ? { type: "response.output_text.delta", item_id: item.id, output_index: index, content_index: 0, delta: reply.text }
        : { type: "response.function_call_arguments.delta", item_id: item.id, output_index: index, delta: /** @type {any} */ (item).arguments },
      { type: "response.output_item.done", output_index: index, item },
    ]),
    { type: "response.completed", response },
  ];
  return streamed(events);
}

/** @param {any} request @param {Reply} reply @returns {Answer} */
function messagesReply(request, reply) {
  const { prompt_tokens: input, completion_tokens: output } = usageOf(request, reply);
  const cached = reply.usage.cached ?? 0;
  const blocks = [
    ...(reply.text === "" ? [] : [{ start: { type: "text", text: "" }, delta: { type: "text_delta", text: reply.text }, whole: { type: "text", text: reply.text } }]),
    ...reply.calls.map(({ id, tool, arguments: args }) => ({
      start: { type: "tool_use", id, name: tool, input: {} },
      delta: { type: "input_json_delta", partial_json: args },
      whole: { type: "tool_use", id, name: tool, input: parsed(args) },
    })),
  ];
  const stop = reply.calls.length > 0 ? "tool_use" : "end_turn";
  const message = { id: "msg_0", type: "message", role: "assistant", model: request.model, usage: { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: output } };
  if (request.stream !== true) {
    const body = { ...message, content: blocks.map(({ whole }) => whole), stop_reason: stop };
    return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  }
  return streamed([
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    ...blocks.flatMap(({ start, delta }, index) => /** @type {any[]} */ ([
      { type: "content_block_start", index, content_block: start },
      { type: "content_block_delta", index, delta },
      { type: "content_block_stop", index },
    ])),
    { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: output } },
    { type: "message_stop" },
  ]);
}

/** @param {{ type: string, [field: string]: unknown }[]} events @returns {Answer} */
const streamed = (events) => ({
  status: 200,
  headers: { "content-type": "text/event-stream" },
  body: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
});

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
