// One HTTP exchange on keep-alive connections that hides nothing: bodies are sent unchanged, rejected connections are
// errors, and a response before the end of the request's body counts.

import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { http } from "../../../package/lib/node-http.mjs";

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {import("node:http").IncomingHttpHeaders} headers
 * @property {string} text
 * @property {Buffer} bytes  the unchanged body
 * @property {any} json  undefined if the body is not JSON
 */

/**
 * @typedef {object} Exchange
 * @property {Record<string, string>} [headers]
 * @property {string | Buffer} [body]
 * @property {number} [withinMs]      by default 30 s
 * @property {AbortSignal} [signal]   aborts the request
 */

const agent = new http.Agent({ keepAlive: true, maxSockets: 256, scheduling: "lifo" });

/** @param {string} text @returns {any} */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Decodes a body. wrangler compresses bodies for clients that accept it, workerd does not.
 * @param {Buffer} bytes @param {string} [encoding]
 */
function decoded(bytes, encoding) {
  if (bytes.length === 0) return bytes;
  if (encoding === "gzip") return gunzipSync(bytes);
  return encoding === "br" ? brotliDecompressSync(bytes) : bytes;
}

/**
 * @param {string} base      `http://127.0.0.1:8787`
 * @param {string} method
 * @param {string} path      path and query
 * @param {Exchange} [options]
 * @returns {Promise<Answer>}
 */
export function exchange(base, method, path, options = {}) {
  const { headers = {}, body, withinMs = 30_000, signal } = options;
  return new Promise((resolve, reject) => {
    const counted = body !== undefined && headers["transfer-encoding"] === undefined;
    const length = counted ? { "content-length": String(Buffer.byteLength(body)) } : {};
    const request = http.request(new URL(path, base), { method, agent, headers: { ...length, ...headers }, signal });
    const deadline = setTimeout(
      () => request.destroy(new Error(`${method} ${path}: no answer within ${withinMs} ms`)),
      withinMs,
    );
    request.on("error", (error) => {
      clearTimeout(deadline);
      reject(error);
    });
    request.on("response", (response) => {
      /** @type {Buffer[]} */
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", (error) => {
        clearTimeout(deadline);
        reject(error);
      });
      response.on("end", () => {
        clearTimeout(deadline);
        const bytes = Buffer.concat(chunks);
        try {
          const text = decoded(bytes, response.headers["content-encoding"]).toString("utf8");
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, bytes, json: parsed(text) });
        } catch (error) {
          reject(error);
        }
      });
    });
    request.end(body);
  });
}

/**
 * Returns the body of a request to one of the tests' servers, or undefined if the client disconnected during it.
 *
 * @param {import("node:http").IncomingMessage} request
 * @returns {Promise<string | undefined>}
 */
export async function wholeBody(request) {
  /** @type {Buffer[]} */
  const chunks = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString("utf8");
}
