// Validates values against the JSON Schemas of cases, stubs and expectations, and describes the mistakes.
//
// The compiler's validator (crates/definitions/src/definitions/schema/) cannot do this. It is for arguments of tools and
// knows only their closed list of keywords, without `$ref`, `pattern`, `not`, `allOf`, `contains` and others that
// case.schema.json and cases use. A stub is also chosen in the middle of a request, so validation must be synchronous, and
// in a checkout there is no wasm.

/** @typedef {{ [keyword: string]: any }} Schema */
/** @typedef {{ at: string, message: string }} Finding   `at`: a path, such as `turns[0].send`; empty for the whole value */

const KNOWN = new Set([
  ...["type", "const", "enum", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "prefixItems"],
  ...["minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"],
  ...["allOf", "anyOf", "oneOf", "not", "$ref", "$defs", "contains", "minProperties", "maxProperties"],
  ...["$schema", "$id", "title", "description", "default", "examples", "format", "$comment", "deprecated"],
]);

/** Returns the first keyword of a schema that is not supported, if any. @param {any} schema @returns {string | undefined} */
export function unknownKeyword(schema) {
  if (typeof schema !== "object" || schema === null) return undefined;
  const own = Object.keys(schema).find((keyword) => !KNOWN.has(keyword));
  if (own !== undefined) return own;
  const maps = [schema.properties, schema.$defs].flatMap((map) => Object.values(map ?? {}));
  const lists = [schema.allOf, schema.anyOf, schema.oneOf, schema.prefixItems].flatMap((list) => list ?? []);
  return [...maps, ...lists, schema.items, schema.not, schema.contains, schema.additionalProperties]
    .map(unknownKeyword)
    .find((keyword) => keyword !== undefined);
}

/**
 * Returns the mistakes of a value, or an empty list if it is valid.
 * @param {any} schema @param {unknown} value @param {string} [at] @param {any} [root] @returns {Finding[]}
 */
export function findings(schema, value, at = "", root = schema) {
  if (schema === true) return [];
  if (schema === false) return [{ at, message: "is not allowed" }];
  if (schema.$ref !== undefined) return findings(definition(root, schema.$ref), value, at, root);
  const wrong = (/** @type {string} */ message) => [{ at, message }];
  if (schema.type !== undefined && ![schema.type].flat().some((/** @type {string} */ type) => isOf(type, value))) {
    return wrong(`must be ${[schema.type].flat().map((type) => ARTICLES[type] ?? type).join(" or ")}, not ${shown(value)}`);
  }
  if ("const" in schema && !equal(schema.const, value)) return wrong(`must be ${shown(schema.const)}, not ${shown(value)}`);
  if (schema.enum && !schema.enum.some((/** @type {unknown} */ one) => equal(one, value))) {
    return wrong(`must be one of ${schema.enum.map(shown).join(", ")}, not ${shown(value)}`);
  }
  return [
    ...(typeof value === "string" ? ofText(schema, value, at) : []),
    ...(typeof value === "number" ? ofNumber(schema, value, at) : []),
    ...(Array.isArray(value) ? ofList(schema, value, at, root) : []),
    ...(isObject(value) ? ofObject(schema, value, at, root) : []),
    ...combined(schema, value, at, root),
  ];
}

/** @param {any} schema @param {unknown} value */
export const fits = (schema, value) => findings(schema, value).length === 0;

/** @type {Record<string, string>} */
const ARTICLES = { string: "a string", number: "a number", integer: "an integer", boolean: "true or false", object: "an object", array: "a list", null: "null" };

/** @param {string} type @param {unknown} value */
function isOf(type, value) {
  switch (type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "null":
      return value === null;
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {Schema} schema @param {string} value @param {string} at @returns {Finding[]} */
function ofText(schema, value, at) {
  const length = [...value].length;
  if (length < (schema["minLength"] ?? 0)) return [{ at, message: `must have at least ${schema["minLength"]} characters` }];
  if (length > (schema["maxLength"] ?? Infinity)) return [{ at, message: `must have at most ${schema["maxLength"]} characters` }];
  if (schema["pattern"] !== undefined && !new RegExp(schema["pattern"], "u").test(value)) {
    return [{ at, message: `must match ${schema["pattern"]}, unlike ${shown(value)}` }];
  }
  return [];
}

/** @param {Schema} schema @param {number} value @param {string} at @returns {Finding[]} */
function ofNumber(schema, value, at) {
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity, multipleOf } = schema;
  if (value < minimum) return [{ at, message: `must be at least ${minimum}, not ${value}` }];
  if (value > maximum) return [{ at, message: `must be at most ${maximum}, not ${value}` }];
  if (value <= exclusiveMinimum) return [{ at, message: `must be above ${exclusiveMinimum}, not ${value}` }];
  if (value >= exclusiveMaximum) return [{ at, message: `must be below ${exclusiveMaximum}, not ${value}` }];
  const times = value / (multipleOf ?? value);
  if (multipleOf !== undefined && Math.abs(times - Math.round(times)) > 1e-9) return [{ at, message: `must be a multiple of ${multipleOf}, not ${value}` }];
  return [];
}

/** @param {Schema} schema @param {unknown[]} value @param {string} at @param {any} root @returns {Finding[]} */
function ofList(schema, value, at, root) {
  const { minItems = 0, maxItems = Infinity, uniqueItems = false, prefixItems = [], items, contains } = schema;
  if (value.length < minItems) return [{ at, message: `must have at least ${minItems} entries` }];
  if (value.length > maxItems) return [{ at, message: `must have at most ${maxItems} entries` }];
  if (uniqueItems && value.some((one, place) => value.slice(0, place).some((other) => equal(one, other)))) {
    return [{ at, message: "must not contain an entry twice" }];
  }
  if (contains !== undefined && !value.some((one) => findings(contains, one, at, root).length === 0)) {
    return [{ at, message: "does not contain a required entry" }];
  }
  return value.flatMap((one, place) => findings(prefixItems[place] ?? items ?? true, one, `${at}[${place}]`, root));
}

/** @param {Schema} schema @param {Record<string, unknown>} value @param {string} at @param {any} root @returns {Finding[]} */
function ofObject(schema, value, at, root) {
  const { properties = {}, required = [], additionalProperties = true, minProperties = 0, maxProperties = Infinity } = schema;
  const path = (/** @type {string} */ name) => (at === "" ? name : `${at}.${name}`);
  const missing = required.filter((/** @type {string} */ name) => !(name in value));
  const count = Object.keys(value).length;
  return [
    ...missing.map((/** @type {string} */ name) => ({ at: path(name), message: "is missing" })),
    ...(count < minProperties ? [{ at, message: `must have at least ${minProperties} fields` }] : []),
    ...(count > maxProperties ? [{ at, message: `must have at most ${maxProperties} fields` }] : []),
    ...Object.entries(value).flatMap(([name, one]) => {
      if (Object.hasOwn(properties, name)) return findings(properties[name], one, path(name), root);
      if (additionalProperties !== false) return findings(additionalProperties, one, path(name), root);
      return [{ at: path(name), message: `is unknown; known fields are ${Object.keys(properties).filter((known) => known !== "$schema").join(", ")}` }];
    }),
  ];
}

/** @param {Schema} schema @param {unknown} value @param {string} at @param {any} root @returns {Finding[]} */
function combined(schema, value, at, root) {
  const of = (/** @type {any} */ one) => findings(one, value, at, root);
  const { allOf = [], anyOf, oneOf, not } = schema;
  const all = allOf.flatMap(of);
  if (not !== undefined && of(not).length === 0) return [...all, { at, message: `must not be ${shown(value)}` }];
  const some = anyOf ?? oneOf;
  if (some === undefined) return all;
  /** @type {Finding[][]} */
  const tried = some.map(of);
  const fitting = tried.filter((found) => found.length === 0).length;
  if (oneOf !== undefined && fitting > 1) return [...all, { at, message: "matches more than one alternative" }];
  if (fitting > 0) return all;
  // Report the nearest alternative: the one with the deepest mistake and the fewest mistakes.
  const depth = (/** @type {Finding[]} */ found) => Math.max(...found.map((one) => one.at.length));
  const [nearest = []] = tried.sort((a, b) => depth(b) - depth(a) || a.length - b.length);
  return [...all, ...nearest];
}

/** @param {any} root @param {string} ref   such as `#/$defs/turn` */
function definition(root, ref) {
  return ref.split("/").slice(1).reduce((at, name) => at[name], root);
}

/** Returns whether two JSON values are equal. @param {unknown} a @param {unknown} b @returns {boolean} */
export function equal(a, b) {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, at) => equal(one, b[at]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]));
}

/** Formats a value for a message. @param {unknown} value */
export function shown(value) {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
