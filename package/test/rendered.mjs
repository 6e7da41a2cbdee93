// The meaning of a request to a model, independent of the API. Requests are compared in this form, so that random or
// version-dependent differences are ignored and others can be located.

import { createHash } from "node:crypto";

/** A named part of a request. @typedef {{ name: string, text: string }} Part */
/** @typedef {{ model: string, parts: Part[] }} Rendered */

/** Fields about transport and origin, which do not change the meaning of a request. */
const CARRIAGE = new Set([
  ...["model", "messages", "input", "instructions", "system", "tools", "bobbin_prompt"],
  ...["stream", "stream_options", "user", "prompt_cache_key", "store", "include", "background", "parallel_tool_calls", "service_tier", "metadata"],
]);

/** @param {any} body   of chat completions, the Responses API, or Anthropic's messages @returns {Rendered} */
export function rendered(body) {
  const named = naming();
  const messages = body.messages ?? inputOf(body.input);
  const first = messages.findIndex((/** @type {any} */ message) => message.role !== "system" && message.role !== "developer");
  const leading = body.messages && !body.system ? messages.slice(0, first < 0 ? messages.length : first) : [];
  const system = [body.instructions, textOf(body.system), ...leading.map((/** @type {any} */ one) => textOf(one.content))].filter(Boolean).join("\n");
  const rest = messages.slice(leading.length);
  const options = Object.entries(body).filter(([name]) => !CARRIAGE.has(name));
  const parts = [
    { name: "system prompt", text: system },
    ...rest.map((/** @type {any} */ message, /** @type {number} */ at) => ({ name: `message ${at + 1} (${roleOf(message)})`, text: said(message) })),
    ...(body.tools ?? []).map(toolOf),
    ...options.map(([name, value]) => ({ name: `option ${name}`, text: sorted(value) })),
  ];
  return { model: String(body.model), parts: parts.map(({ name, text }) => ({ name, text: named(text) })) };
}

/** Returns the key of a request: a SHA-256 hash. @param {Rendered} request */
export function keyOf({ model, parts }) {
  return createHash("sha256").update(JSON.stringify([model, parts.map(({ name, text }) => [name, text])])).digest("hex");
}

/**
 * Describes the first difference between two requests. Returns undefined if there is none.
 * @param {Rendered} was @param {Rendered} now @returns {string | undefined}
 */
export function difference(was, now) {
  if (was.model !== now.model) return `the model was “${was.model}”, and is now “${now.model}”`;
  const names = [...new Set([...now.parts, ...was.parts].map(({ name }) => name))];
  const textIn = (/** @type {Rendered} */ of, /** @type {string} */ name) => of.parts.find((part) => part.name === name)?.text;
  for (const name of names) {
    const [before, after] = [textIn(was, name), textIn(now, name)];
    if (before === after) continue;
    if (before === undefined) return `${name} is new: “${short(after ?? "")}”`;
    if (after === undefined) return `${name} is missing: it was “${short(before)}”`;
    const [old, fresh] = [before.split("\n"), after.split("\n")];
    const at = fresh.findIndex((line, place) => line !== old[place]);
    const line = at < 0 ? fresh.length : at;
    return `${name}, line ${line + 1}: it was ${quoted(old[line])}, and is now ${quoted(fresh[line])}`;
  }
  return undefined;
}

/** Returns how much two requests have in common. @param {Rendered} a @param {Rendered} b */
export function nearness(a, b) {
  const texts = new Set(a.parts.map(({ name, text }) => `${name}\n${text}`));
  const same = b.parts.filter(({ name, text }) => texts.has(`${name}\n${text}`)).length;
  return same - Math.abs(a.parts.length - b.parts.length);
}

/** @param {string | undefined} line */
const quoted = (line) => (line === undefined ? "not there" : `“${short(line)}”`);

/** @param {string} text */
const short = (text) => (text.length > 160 ? `${text.slice(0, 159)}…` : text);

/** @param {any} input   the input of the Responses API */
const inputOf = (input) => (typeof input === "string" ? [{ role: "user", content: input }] : (input ?? []));

/** @param {any} message */
const roleOf = (message) => message.role ?? message.type;

/** @param {any} content @returns {string} */
function textOf(content) {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return sorted(content);
  return content.map((part) => part.text ?? sorted(without(part, ["cache_control"]))).join("\n");
}

/** @param {any} message */
function said(message) {
  const { role: _role, content, ...rest } = message;
  const more = without(rest, ["cache_control", "status", "id"]);
  return [textOf(content), Object.keys(more).length > 0 ? sorted(more) : ""].filter((text) => text !== "").join("\n");
}

/** @param {any} tool @returns {Part} */
function toolOf(tool) {
  const { name, description = "", parameters, input_schema: schema } = tool.function ?? tool;
  return { name: `tool ${name ?? tool.type}`, text: `${description}\n${sorted(parameters ?? schema ?? {})}` };
}

/** @param {any} of @param {string[]} names */
const without = (of, names) => Object.fromEntries(Object.entries(of).filter(([name]) => !names.includes(name)));

/** Returns JSON with sorted keys. @param {unknown} value */
export function sorted(value) {
  const order = (/** @type {any} */ one) =>
    typeof one === "object" && one !== null && !Array.isArray(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one;
  return JSON.stringify(value, (_, one) => order(one)) ?? "";
}

const UUID = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;
/** Ids of a thread's messages, waits, effects, attachments and other rows. */
const ROW = /\b([a-z]{1,2})_[0-9a-f]{8}_(\d+)\b/g;
const TIME = /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?(?! ?\w)/g;
const ATTACHMENT = /\/attachments\/\d+-[0-9a-f]+/g;

/** Returns a function that replaces ids and times by stable names. */
function naming() {
  /** @type {Map<string, string>} */
  const names = new Map();
  return (/** @type {string} */ text) =>
    text
      .replaceAll(UUID, (id) => {
        if (!names.has(id)) names.set(id, `<id ${names.size + 1}>`);
        return names.get(id) ?? "";
      })
      .replaceAll(ROW, "$1_<thread>_$2")
      .replaceAll(ATTACHMENT, "/attachments/<file>")
      .replaceAll(TIME, "<time>");
}
