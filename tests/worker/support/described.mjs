// Whether what the server answers is what schemas/openapi.json says of it. Every answer that the tests' client gets, and every frame of
// its sockets and its events, is held against it, so that the document cannot say anything else than the server does: no field may be missing, and none be unknown.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv/dist/2020.js";
import { checkout } from "./server.mjs";

/** @type {{ paths: Record<string, Record<string, any>>, components: { schemas: Record<string, any> } }} */
const document = JSON.parse(readFileSync(join(checkout, "schemas/openapi.json"), "utf8"));

/** What may have further fields, as its description says. */
const OPEN = new Set(["LogEntry", "ProgressFrame"]);

/** The same schema, of which nothing else may be there. @param {any} schema @returns {any} */
function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (schema === null || typeof schema !== "object") return schema;
  const all = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  if (schema.type === "object" && schema.properties && !("additionalProperties" in schema)) all.additionalProperties = false;
  return all;
}

const schemas = Object.fromEntries(
  Object.entries(document.components.schemas).map(([name, schema]) => [name, OPEN.has(name) ? schema : closed(schema)]),
);
const ajv = new Ajv.default({ strict: false, allErrors: false, discriminator: false, validateFormats: false });
ajv.addSchema({ $id: "openapi", components: { schemas } });

/** @type {Map<string, import("ajv").ValidateFunction>} */
const known = new Map();

/** @param {string} name @param {any} schema */
function validator(name, schema) {
  let found = known.get(name);
  if (!found) {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"openapi#/components/');
    found = ajv.compile(JSON.parse(text));
    known.set(name, found);
  }
  return found;
}

/** What a validator has found. @param {import("ajv").ValidateFunction} validate */
const wrong = ({ errors }) =>
  (errors ?? []).map(({ instancePath, message, params }) => `${instancePath || "/"} ${message} ${JSON.stringify(params)}`).join("; ");

const routes = Object.entries(document.paths).map(([path, methods]) => {
  const parts = path.split("/").map((part) => (part === "{path}" ? ".+" : part.startsWith("{") ? "[^/]+" : part.replace(/[.]/g, "\\.")));
  return { pattern: new RegExp(`^${parts.join("/")}$`), path, methods };
});
// What is written out is meant before what fits anything.
routes.sort((a, b) => Number(a.path.split("{").length) - Number(b.path.split("{").length));

/**
 * Complains of an answer that the document does not know.
 *
 * @param {string} method
 * @param {string} target   with its query
 * @param {{ status: number, headers: import("node:http").IncomingHttpHeaders, json: any }} answer
 */
export function mustBeDescribed(method, target, { status, headers, json }) {
  // What the tests of costs count, in development alone.
  if (target.endsWith("/diagnostics?counters")) return;
  const path = target.split("?")[0] ?? target;
  const route = routes.find(({ pattern, methods }) => pattern.test(path) && method.toLowerCase() in methods);
  // An endpoint of the application's, or no route.
  if (!route) return;
  const operation = route.methods[method.toLowerCase()];
  const refused = status >= 400;
  const response = operation.responses[status];
  if (!response && !refused) throw new Error(`${method} ${target}: schemas/openapi.json knows no answer ${status} of ${operation.operationId}`);
  const content = refused ? { "application/json": { schema: { $ref: "#/components/schemas/Error" } } } : response.content ?? {};
  const schema = content["application/json"]?.schema;
  const isJson = String(headers["content-type"] ?? "").startsWith("application/json");
  // A file's content may be JSON, too.
  if (!schema || !isJson || json === undefined || "*/*" in content) return;
  const validate = validator(`${operation.operationId} ${refused ? "error" : status}`, schema);
  if (validate(json)) return;
  throw new Error(`${method} ${target}: not as schemas/openapi.json says of ${operation.operationId}: ${wrong(validate)}\n${JSON.stringify(json).slice(0, 1000)}`);
}

/** Complains of a frame that the document does not know. @param {any} frame */
export function mustBeFrame(frame) {
  const name = frameOf.get(frame?.type);
  if (name === undefined) throw new Error(`schemas/openapi.json knows no frame of the type ${frame?.type}: ${JSON.stringify(frame).slice(0, 500)}`);
  const validate = validator(`frame ${frame.type}`, name);
  // On a socket a frame has its place with it.
  const { id: _, ...rest } = frame;
  if ([frame, rest].some((one) => validate(one))) return;
  throw new Error(`A frame is not as schemas/openapi.json says of ${frame.type}: ${wrong(validate)}\n${JSON.stringify(frame).slice(0, 1000)}`);
}

/** The schema of each type of frame. @type {Map<string, any>} */
const frameOf = new Map(
  Object.entries(schemas.Frame?.discriminator.mapping ?? {}).map(([type, reference]) => [type, { $ref: reference }]),
);
