// A request to a model in any provider's format: the system prompt, the tools, the messages, and the other parameters.

/**
 * @typedef {{ name: string, args: unknown }} Called
 * @typedef {object} Said
 * @property {string} role
 * @property {string} text
 * @property {Called[]} calls
 * @property {string} [answers]    for a result: the id of its call
 * @property {number} images
 *
 * @typedef {{ name: string, description: string, schema: unknown }} Offered
 * @typedef {{ system: string, tools: Offered[], messages: Said[], rest: Record<string, unknown> }} Request
 */

/** Keys that are shown separately. */
const APART = new Set(["system", "instructions", "tools", "messages", "input"]);

/** @param {any} body @returns {Request} */
export function requestOf(body) {
  const rest = Object.fromEntries(Object.entries(body ?? {}).filter(([name]) => !APART.has(name)));
  const tools = (Array.isArray(body?.tools) ? body.tools : []).map(toolOf);
  const said = (Array.isArray(body?.input) ? body.input : Array.isArray(body?.messages) ? body.messages : []).flatMap(saidOf);
  const own = body?.instructions ?? body?.system;
  if (own !== undefined) return { system: textOf(own), tools, messages: said, rest };
  const [first, ...others] = said;
  const isSystem = first?.role === "system" || first?.role === "developer";
  return { system: isSystem ? (first?.text ?? "") : "", tools, messages: isSystem ? others : said, rest };
}

/** @param {any} tool @returns {Offered} */
function toolOf(tool) {
  const of = tool?.function ?? tool;
  return { name: String(of?.name ?? of?.type ?? "?"), description: String(of?.description ?? ""), schema: of?.parameters ?? of?.input_schema ?? null };
}

/** @param {any} item @returns {Said[]} */
function saidOf(item) {
  if (item?.type === "function_call") return [{ role: "assistant", text: "", calls: [{ name: item.name, args: item.arguments }], images: 0 }];
  if (item?.type === "function_call_output") return [{ role: "tool", text: textOf(item.output), calls: [], answers: item.call_id, images: 0 }];
  if (item?.type === "reasoning") return [{ role: "reasoning", text: textOf(item.summary), calls: [], images: 0 }];
  const blocks = Array.isArray(item?.content) ? item.content : [];
  const results = blocks.filter((/** @type {any} */ block) => block.type === "tool_result");
  const made = blocks.filter((/** @type {any} */ block) => block.type === "tool_use").map((/** @type {any} */ block) => ({ name: block.name, args: block.input }));
  const calls = [...(item?.tool_calls ?? []).map((/** @type {any} */ call) => ({ name: call.function?.name, args: call.function?.arguments })), ...made];
  const text = textOf(item?.content);
  const images = blocks.filter((/** @type {any} */ block) => /image/.test(block.type)).length;
  const plain = { role: String(item?.role ?? "?"), text, calls, images, ...(item?.tool_call_id && { answers: item.tool_call_id }) };
  const answers = results.map((/** @type {any} */ block) => ({ role: "tool", text: textOf(block.content), calls: [], answers: block.tool_use_id, images: 0 }));
  return results.length > 0 && text === "" && calls.length === 0 ? answers : [...answers, plain];
}

/** The text of a content, in one of its forms. @param {any} content @returns {string} */
function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? "" : JSON.stringify(content);
  return content.map((block) => block?.text ?? "").filter(Boolean).join("\n");
}

const encoder = new TextEncoder();
/** Bytes of a value as JSON. @param {unknown} value */
export const bytesOf = (value) => encoder.encode(JSON.stringify(value) ?? "").length;

/**
 * The differences between a request and the one before it.
 *
 * @param {Request} before
 * @param {Request} now
 */
export function difference(before, now) {
  const same = (/** @type {unknown} */ a, /** @type {unknown} */ b) => JSON.stringify(a) === JSON.stringify(b);
  let kept = 0;
  while (kept < before.messages.length && kept < now.messages.length && same(before.messages[kept], now.messages[kept])) kept++;
  const named = (/** @type {Offered[]} */ tools) => new Map(tools.map((tool) => [tool.name, tool]));
  const [then, today] = [named(before.tools), named(now.tools)];
  return {
    system: before.system !== now.system,
    kept,
    gone: before.messages.length - kept,
    come: now.messages.length - kept,
    added: [...today.keys()].filter((name) => !then.has(name)),
    removed: [...then.keys()].filter((name) => !today.has(name)),
    changed: [...today.keys()].filter((name) => then.has(name) && !same(then.get(name), today.get(name))),
    rest: !same({ ...before.rest, user: 0 }, { ...now.rest, user: 0 }),
  };
}
