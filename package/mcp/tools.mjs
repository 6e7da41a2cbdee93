// Validates a server's tools before a model may see them, and writes the pinned list.

import { isObject } from "./definitions.mjs";

/**
 * A tool as pinned in the list. `McpTools` in src/spec reads it.
 *
 * @typedef {object} Tool
 * @property {string} name
 * @property {string} [title]
 * @property {string} description
 * @property {Record<string, any>} inputSchema
 * @property {Record<string, any>} [outputSchema]
 * @property {Record<string, boolean | string>} [annotations]
 *
 * @typedef {{ tool: string, reason: string }} Refused
 * @typedef {{ protocol: string, server: { name: string, version: string }, tools: Tool[] }} Pinned
 */

/** The maximum size of a tool and of its arguments' schema, in bytes of JSON. The same limits as in crates/definitions/src/limits.rs. */
const TOOL_BYTES = 128 * 1024;
const SCHEMA_BYTES = 64 * 1024;
const DEEPEST = 40;
/** Keywords whose values are not schemas. */
const VALUES = ["default", "const", "enum", "examples"];
const MISPLACED = "x-mcp-header is only allowed on an argument";
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/** Characters that are invisible or shown elsewhere: controls, text direction marks, and tag characters. */
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;

/**
 * Separates the tools that may be pinned from the rejected ones, with the reasons.
 *
 * @param {unknown[]} listed
 * @param {Map<string, string>} values   values of variables, which no list may contain
 * @returns {{ tools: Tool[], refused: Refused[] }}
 */
export function sifted(listed, values) {
  /** @type {Map<string, Tool>} */
  const tools = new Map();
  /** @type {Refused[]} */
  const refused = [];
  const twice = new Set();
  for (const one of listed) {
    const named = isObject(one) && typeof one["name"] === "string" ? one["name"] : "";
    const reason = twice.has(named) ? undefined : wrongWith(one, values);
    if (tools.has(named)) {
      tools.delete(named);
      twice.add(named);
      refused.push({ tool: named, reason: "two tools have this name" });
    } else if (reason !== undefined) refused.push({ tool: named, reason });
    else if (!twice.has(named)) tools.set(named, kept(/** @type {any} */ (one)));
  }
  const byName = (/** @type {string} */ a, /** @type {string} */ b) => (a < b ? -1 : a > b ? 1 : 0);
  return { tools: [...tools.values()].sort((a, b) => byName(a.name, b.name)), refused: refused.sort((a, b) => byName(a.tool, b.tool)) };
}

/** Returns why a tool cannot be pinned. @param {unknown} tool @param {Map<string, string>} values @returns {string | undefined} */
function wrongWith(tool, values) {
  if (!isObject(tool) || typeof tool["name"] !== "string") return "it has no name";
  const { name, title, description, inputSchema, outputSchema, annotations, execution } = tool;
  // ASCII only, because people cannot distinguish look-alike letters.
  if (!/^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/.test(name)) return "its name must have 1 to 128 ASCII characters";
  for (const [field, value] of Object.entries({ title, description })) if (value !== undefined && typeof value !== "string") return `its ${field} is not a string`;
  if (!isObject(inputSchema) || String(inputSchema["type"] ?? "object") !== "object") return "its inputSchema does not describe an object";
  if (outputSchema !== undefined && !isObject(outputSchema)) return "its outputSchema is not a schema";
  if (isObject(execution) && execution["taskSupport"] === "required") return "it requires tasks of 2025-11-25, which Bobbin does not support";
  if (annotations !== undefined && !isObject(annotations)) return "its annotations are not an object";
  const whole = kept(/** @type {any} */ (tool));
  const deep = inside(whole, "", DEEPEST);
  if (deep !== undefined) return deep;
  const text = JSON.stringify(whole);
  if (Buffer.byteLength(JSON.stringify(inputSchema)) > SCHEMA_BYTES) return `its inputSchema is larger than ${SCHEMA_BYTES / 1024} KB`;
  if (Buffer.byteLength(text) > TOOL_BYTES) return `it is larger than ${TOOL_BYTES / 1024} KB`;
  for (const [variable, value] of values) if (value.length >= 8 && text.includes(JSON.stringify(value).slice(1, -1))) return `it contains the value of ${variable}`;
  return wrongMarks(inputSchema);
}

/**
 * Searches a value for hidden characters and references to external schemas. Returns the first problem.
 *
 * @param {unknown} value
 * @param {string} key
 * @param {number} left   how many more levels may be nested
 * @param {boolean} data  whether it is a value, not a schema
 * @returns {string | undefined}
 */
function inside(value, key, left, data = false) {
  if (left === 0) return "it is nested too deeply";
  if (typeof value === "string") {
    const [found] = HIDDEN.exec(value) ?? [];
    if (found !== undefined) return `it contains an invisible character: U+${found.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}`;
    if (!data && ["$ref", "$dynamicRef", "$recursiveRef"].includes(key) && !value.startsWith("#")) return "its schema refers to another document";
  }
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, one] of Object.entries(value)) {
    const wrong = inside(name, "", left) ?? inside(one, Array.isArray(value) ? key : name, left - 1, data || VALUES.includes(name));
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/** Returns what is wrong with the `x-mcp-header` annotations. @param {Record<string, any>} schema @returns {string | undefined} */
function wrongMarks(schema) {
  const names = new Set();
  /** @param {any} one @param {boolean} reached   through properties only @returns {string | undefined} */
  const look = (one, reached) => {
    if (Array.isArray(one)) return first(one, (each) => look(each, false));
    if (!isObject(one)) return undefined;
    if ("x-mcp-header" in one && !reached) return MISPLACED;
    const wrong = "x-mcp-header" in one ? wrongMark(one, names) : undefined;
    if (wrong !== undefined) return wrong;
    return first(Object.entries(one), ([key, value]) =>
      key === "properties" && isObject(value) ? first(Object.values(value), (each) => look(each, reached)) : look(value, false),
    );
  };
  if ("x-mcp-header" in schema) return MISPLACED;
  return look(schema, true);
}

/** @param {Record<string, any>} property @param {Set<string>} names */
function wrongMark({ type, "x-mcp-header": header }, names) {
  if (typeof header !== "string" || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(header)) return "an x-mcp-header is not a valid header name";
  if (!["string", "integer", "boolean"].includes(type)) return `the x-mcp-header ${header} marks an argument that is not a string, an integer or a boolean`;
  if (names.has(header.toLowerCase())) return `the x-mcp-header ${header} is used twice`;
  names.add(header.toLowerCase());
  return undefined;
}

/** @template T @template R @param {T[]} all @param {(one: T) => R | undefined} look @returns {R | undefined} */
function first(all, look) {
  for (const one of all) {
    const found = look(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the fields of a tool that are kept. @param {any} tool @returns {Tool} */
function kept({ name, title, description, inputSchema, outputSchema, annotations = {} }) {
  const hints = Object.entries(annotations).filter(([hint, value]) => (HINTS.includes(hint) && typeof value === "boolean") || (hint === "title" && typeof value === "string"));
  hints.sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    name,
    ...(title !== undefined && { title }),
    description: description ?? "",
    inputSchema,
    ...(outputSchema !== undefined && { outputSchema }),
    ...(hints.length > 0 && { annotations: Object.fromEntries(hints) }),
  };
}

/**
 * Returns the text of a list. An unchanged tool keeps its previous text, because servers may reorder fields.
 *
 * @param {Pinned} pinned
 * @param {Tool[]} before
 */
export function written({ protocol, server, tools }, before) {
  const was = new Map(before.map((tool) => [tool.name, tool]));
  const same = (/** @type {Tool} */ tool) => {
    const old = was.get(tool.name);
    return old !== undefined && ordered(old) === ordered(tool) ? old : tool;
  };
  return `${JSON.stringify({ protocol, server, tools: tools.map(same) }, null, 2)}\n`;
}

/** Returns JSON with sorted fields. @param {unknown} value */
export const ordered = (value) =>
  JSON.stringify(value, (_, one) => (isObject(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one));
