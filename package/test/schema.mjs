// Validates values against the JSON Schemas of cases, stubs and expectations, and describes the mistakes.
//
// The compiler's validator (crates/definitions/src/definitions/schema/) checks arguments of tools. It knows only their
// closed list of keywords, and in a checkout there is no wasm.

import { Ajv2020 } from "ajv/dist/2020.js";

/** @typedef {{ at: string, message: string }} Finding   `at`: a path, such as `turns[0].send`; empty for the whole value */

// Strict about keywords, because a misspelt one would check nothing. Schemas may name any `$schema`, so none is looked up.
const ajv = new Ajv2020({
  ...{ allErrors: true, verbose: true, validateFormats: false, addUsedSchema: false, meta: false, validateSchema: false },
  ...{ strictTypes: false, strictTuples: false, strictRequired: false, multipleOfPrecision: 9 },
});

/** Returns why a schema cannot be used, if so. @param {any} schema @returns {string | undefined} */
export function schemaProblem(schema) {
  try {
    ajv.compile(schema);
    return undefined;
  } catch (error) {
    return /** @type {Error} */ (error).message.replace("strict mode: ", "");
  }
}

/** Returns the mistakes of a value, or an empty list if it is valid. @param {any} schema @param {unknown} value @returns {Finding[]} */
export function findings(schema, value) {
  const validate = ajv.compile(schema);
  if (validate(value)) return [];
  const errors = validate.errors ?? [];
  // The error of a choice replaces those of its alternatives.
  const choices = errors.filter(({ keyword }) => keyword === "anyOf" || keyword === "oneOf");
  const within = (/** @type {string} */ path) => choices.some(({ instancePath }) => `${path}/`.startsWith(`${instancePath}/`));
  return errors.filter((error) => error.keyword !== "if" && (choices.includes(error) || !within(error.instancePath))).map(finding);
}

/** @param {any} schema @param {unknown} value */
export const fits = (schema, value) => ajv.compile(schema)(value);

/** @param {import("ajv").ErrorObject} error @returns {Finding} */
function finding({ keyword, instancePath, params, message, parentSchema, data }) {
  switch (keyword) {
    case "required":
      return { at: pathOf(`${instancePath}/${params["missingProperty"]}`), message: "is missing" };
    case "additionalProperties": {
      const known = Object.keys(parentSchema?.["properties"] ?? {}).filter((name) => name !== "$schema");
      return { at: pathOf(`${instancePath}/${params["additionalProperty"]}`), message: `is unknown; known fields are ${known.join(", ")}` };
    }
    case "type":
      return { at: pathOf(instancePath), message: `must be ${[params["type"]].flat().join(" or ")}, not ${shown(data)}` };
    case "enum":
      return { at: pathOf(instancePath), message: `must be one of ${params["allowedValues"].map(shown).join(", ")}, not ${shown(data)}` };
    case "const":
      return { at: pathOf(instancePath), message: `must be ${shown(params["allowedValue"])}, not ${shown(data)}` };
    default:
      return { at: pathOf(instancePath), message: `${message}, not ${shown(data)}` };
  }
}

/** Converts a JSON pointer: `/turns/0/send` becomes `turns[0].send`. @param {string} pointer */
const pathOf = (pointer) =>
  pointer.replaceAll(/\/(?:(\d+)(?=\/|$)|([^/]*))/g, (_, index, name) => (index === undefined ? `.${name.replaceAll("~1", "/").replaceAll("~0", "~")}` : `[${index}]`)).replace(/^\./, "");

/** @param {unknown} value @returns {value is Record<string, unknown>} */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Formats a value for a message. @param {unknown} value */
export function shown(value) {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
