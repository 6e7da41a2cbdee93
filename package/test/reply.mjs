// Formats a model's reply as chat completions, streamed or whole.

/**
 * @typedef {object} Reply
 * @property {string} text
 * @property {string} reasoning
 * @property {{ id: string, tool: string, arguments: string }[]} calls
 * @property {{ input?: number, output?: number, cached?: number, reasoning?: number }} usage
 */

/** @param {any} request   of chat completions @param {Reply} reply @returns {import("./outside.mjs").Answer} */
export function chatReply(request, reply) {
  const usage = usageOf(request, reply);
  const finish = reply.calls.length > 0 ? "tool_calls" : "stop";
  const calls = reply.calls.map(({ id, tool, arguments: args }, index) => ({ index, id, type: "function", function: { name: tool, arguments: args } }));
  if (request.stream !== true) {
    const message = { role: "assistant", content: reply.text || null, ...(calls.length > 0 && { tool_calls: calls }) };
    const body = { object: "chat.completion", model: request.model, choices: [{ index: 0, message, finish_reason: finish }], usage };
    return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  }
  const deltas = [
    ...(reply.reasoning ? [{ reasoning_content: reply.reasoning }] : []),
    ...pieces(reply.text).map((content) => ({ content })),
    ...calls.map((call) => ({ tool_calls: [call] })),
  ];
  const chunks = [
    ...deltas.map((delta) => ({ choices: [{ index: 0, delta }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: finish }], usage },
  ];
  const body = chunks.map((chunk) => `data: ${JSON.stringify({ object: "chat.completion.chunk", model: request.model, ...chunk })}\n\n`).join("");
  return { status: 200, headers: { "content-type": "text/event-stream" }, body: `${body}data: [DONE]\n\n` };
}

/** Splits a text into two pieces, so that streaming is exercised. @param {string} text */
function pieces(text) {
  const middle = text.indexOf(" ", text.length / 2) + 1;
  return [text.slice(0, middle), text.slice(middle)].filter((piece) => piece !== "");
}

/** Approximate bytes per token. */
const TOKEN_BYTES = 4;

/** @param {any} request @param {Reply} reply */
export function usageOf(request, { text, reasoning, calls, usage }) {
  const estimate = (/** @type {unknown} */ of) => Math.ceil(JSON.stringify(of).length / TOKEN_BYTES);
  const input = usage.input ?? estimate([request.messages, request.tools ?? []]);
  const output = usage.output ?? estimate([text, reasoning, calls]);
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
  };
}
