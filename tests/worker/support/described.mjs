// Validates the server's responses against schemas/openapi.json: every response that the tests' client receives, and
// every frame of its sockets and event streams. No field may be missing or unknown.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { writeWhole } from "../../../package/lib/files.mjs";
import { hash } from "../../../scripts/files.mjs";
import { checkout } from "./server.mjs";

/** @typedef {((value: unknown) => boolean) & { errors?: import("ajv").ErrorObject[] | null }} Validator */

const require = createRequire(import.meta.url);
const text = readFileSync(join(checkout, "schemas/openapi.json"), "utf8");
/** @type {{ paths: Record<string, Record<string, any>>, components: { schemas: Record<string, any> } }} */
const document = JSON.parse(text);

/** Schemas that allow further fields. */
const OPEN = new Set(["LogEntry", "ProgressFrame"]);
/** The schema of each type of frame. @type {Record<string, string>} */
const FRAMES = document.components.schemas.Frame?.discriminator.mapping ?? {};

/** Returns the same schema without additional properties. @param {any} schema @returns {any} */
function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (schema === null || typeof schema !== "object") return schema;
  const all = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  if (schema.type === "object" && schema.properties && !("additionalProperties" in schema)) all.additionalProperties = false;
  return all;
}

/** Returns the schema of an operation's response, if it is JSON. @param {any} response */
const schemaOf = (response) => response?.content?.["application/json"]?.schema;

/** Returns the schemas to validate by name: the responses of each operation, errors, and frames. @returns {Record<string, any>} */
function looked() {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  const answers = operations.flatMap(({ operationId, responses = {} }) =>
    Object.entries(responses).flatMap(([status, response]) => (schemaOf(response) ? [[`${operationId} ${status}`, schemaOf(response)]] : [])),
  );
  const frames = Object.entries(FRAMES).map(([type, $ref]) => [`frame ${type}`, { $ref }]);
  return Object.fromEntries([...answers, ["error", { $ref: "#/components/schemas/Error" }], ...frames]);
}

/** Returns the code of a module with a validator for each of them. */
function compiled() {
  const { default: Ajv } = require("ajv/dist/2020.js");
  const { default: standalone } = require("ajv/dist/standalone");
  const ajv = new Ajv({ strict: false, allErrors: false, discriminator: false, validateFormats: false, code: { source: true } });
  const schemas = Object.fromEntries(
    Object.entries(document.components.schemas).map(([name, schema]) => [name, OPEN.has(name) ? schema : closed(schema)]),
  );
  ajv.addSchema({ $id: "openapi", components: { schemas } });
  const all = looked();
  for (const [name, schema] of Object.entries(all)) {
    ajv.addSchema(JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"openapi#/components/')), name);
  }
  return standalone(ajv, Object.fromEntries(Object.keys(all).map((name) => [name, name])));
}

/** Cached by a hash of the inputs: compilation takes longer than many test files, and each file is its own process. */
function validators() {
  const { version } = require("ajv/package.json");
  const of = hash(version, readFileSync(new URL(import.meta.url), "utf8"), text);
  const path = join(checkout, ".bobbin/described", `${of}.cjs`);
  if (!existsSync(path)) writeWhole(path, compiled());
  return require(path);
}

/** @type {Record<string, Validator>} */
const known = validators();

/** @param {string} name */
function validator(name) {
  const found = known[name];
  if (!found) throw new Error(`nothing looks at ${name}`);
  return found;
}

/** Formats the errors of a validator. @param {Validator} validate */
const wrong = ({ errors }) =>
  (errors ?? []).map(({ instancePath, message, params }) => `${instancePath || "/"} ${message} ${JSON.stringify(params)}`).join("; ");

const routes = Object.entries(document.paths).map(([path, methods]) => {
  const parts = path.split("/").map((part) => (part === "{path}" ? ".+" : part.startsWith("{") ? "[^/]+" : part.replace(/[.]/g, "\\.")));
  return { pattern: new RegExp(`^${parts.join("/")}$`), path, methods };
});
// Literal paths take precedence over parameters.
routes.sort((a, b) => Number(a.path.split("{").length) - Number(b.path.split("{").length));

/**
 * Throws if the document does not describe a response.
 *
 * @param {string} method
 * @param {string} target   the path and query
 * @param {{ status: number, headers: import("node:http").IncomingHttpHeaders, json: any }} answer
 */
export function mustBeDescribed(method, target, { status, headers, json }) {
  // Counters of the tests of costs. They exist only in development.
  if (target.endsWith("/diagnostics?counters")) return;
  const path = target.split("?")[0] ?? target;
  const route = routes.find(({ pattern, methods }) => pattern.test(path) && method.toLowerCase() in methods);
  // An endpoint of the application, or no route.
  if (!route) return;
  const operation = route.methods[method.toLowerCase()];
  const refused = status >= 400;
  const response = operation.responses[status];
  if (!response && !refused) throw new Error(`${method} ${target}: schemas/openapi.json knows no answer ${status} of ${operation.operationId}`);
  const isJson = String(headers["content-type"] ?? "").startsWith("application/json");
  // The content of a file may be JSON, too.
  if (!isJson || json === undefined || (!refused && (!schemaOf(response) || "*/*" in response.content))) return;
  const validate = validator(refused ? "error" : `${operation.operationId} ${status}`);
  if (validate(json)) return;
  throw new Error(`${method} ${target}: not as schemas/openapi.json says of ${operation.operationId}: ${wrong(validate)}\n${JSON.stringify(json).slice(0, 1000)}`);
}

/** Throws if the document does not describe a frame. @param {any} frame */
export function mustBeFrame(frame) {
  if (!Object.hasOwn(FRAMES, frame?.type)) throw new Error(`schemas/openapi.json knows no frame of the type ${frame?.type}: ${JSON.stringify(frame).slice(0, 500)}`);
  const validate = validator(`frame ${frame.type}`);
  // A frame on a socket contains its id.
  const { id: _, ...rest } = frame;
  if ([frame, rest].some((one) => validate(one))) return;
  throw new Error(`A frame is not as schemas/openapi.json says of ${frame.type}: ${wrong(validate)}\n${JSON.stringify(frame).slice(0, 1000)}`);
}
