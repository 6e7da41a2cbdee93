// Converts the flat schemas of MCP elicitations into form fields. The terminal and the approvals page both use it, so
// it depends on neither.

/**
 * @typedef {object} Choice
 * @property {any} value
 * @property {string} label
 *
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {string} hint
 * @property {"text" | "number" | "integer" | "boolean" | "one" | "many"} kind
 * @property {string} format          of a text: "email", "uri", "date", "date-time", or empty
 * @property {boolean} required
 * @property {Choice[]} choices
 * @property {any} initial            the default value
 * @property {any} schema
 */

/** @param {any} schema @returns {Field[]} */
export function fieldsOf(schema) {
  const properties = schema?.properties;
  if (typeof properties !== "object" || properties === null) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(properties).flatMap(([name, field]) => (typeof field === "object" && field !== null ? [fieldOf(name, field, required.includes(name))] : []));
}

/** @param {string} name @param {any} schema @param {boolean} required @returns {Field} */
function fieldOf(name, schema, required) {
  const many = schema.type === "array";
  const choices = choicesOf(many ? (schema.items ?? {}) : schema);
  const kind = many ? "many" : choices.length > 0 ? "one" : schema.type === "number" || schema.type === "integer" || schema.type === "boolean" ? schema.type : "text";
  const text = (/** @type {unknown} */ one) => (typeof one === "string" ? one : "");
  return { name, label: text(schema.title) || name, hint: text(schema.description), kind, format: kind === "text" ? text(schema.format) : "", required, choices, initial: schema.default, schema };
}

/** @param {any} schema @returns {Choice[]} */
function choicesOf({ enum: values, enumNames, oneOf, anyOf }) {
  if (Array.isArray(values)) return values.map((value, at) => ({ value, label: String(enumNames?.[at] ?? value) }));
  const titled = [oneOf, anyOf].find(Array.isArray) ?? [];
  return titled.flatMap((/** @type {any} */ one) => (one && "const" in one ? [{ value: one.const, label: String(one.title ?? one.const) }] : []));
}

/**
 * Converts the entered value to the type of the field. Returns nothing if nothing was entered, and throws if the value
 * is invalid.
 *
 * @param {Field} field
 * @param {string | boolean | any[] | undefined} entered   a list if several choices are allowed
 * @returns {any}
 */
export function valueOf({ label, kind, required, schema }, entered) {
  const missing = entered === undefined || entered === "" || (Array.isArray(entered) && entered.length === 0);
  if (missing && required && kind !== "boolean") throw new Error(`“${label}” is required.`);
  if (missing) return undefined;
  if (kind === "boolean") return entered === true || entered === "true";
  if (kind === "number" || kind === "integer") return numberOf(label, kind, schema, entered);
  if (kind === "text" && typeof entered === "string") {
    const length = [...entered].length;
    if (length < (schema.minLength ?? 0)) throw new Error(`“${label}” needs at least ${schema.minLength} characters.`);
    if (length > (schema.maxLength ?? Infinity)) throw new Error(`“${label}” has at most ${schema.maxLength} characters.`);
  }
  return entered;
}

/** @param {string} label @param {string} kind @param {any} schema @param {unknown} entered */
function numberOf(label, kind, { minimum, maximum }, entered) {
  const value = Number(entered);
  if (!Number.isFinite(value) || (kind === "integer" && !Number.isInteger(value))) throw new Error(`“${label}” must be a ${kind === "integer" ? "whole " : ""}number.`);
  if (value < (minimum ?? -Infinity)) throw new Error(`“${label}” must be at least ${minimum}.`);
  if (value > (maximum ?? Infinity)) throw new Error(`“${label}” must be at most ${maximum}.`);
  return value;
}

/**
 * Returns the URL and its host if a person may open it: https, or http on this machine. Otherwise returns nothing.
 *
 * @param {unknown} url
 * @returns {{ href: string, host: string } | undefined}
 */
export function linkOf(url) {
  if (typeof url !== "string" || !URL.canParse(url)) return undefined;
  const { href, host, hostname, protocol } = new URL(url);
  const local = protocol === "http:" && (hostname === "localhost" || hostname === "127.0.0.1" || hostname === "[::1]");
  return protocol === "https:" || local ? { href, host } : undefined;
}
