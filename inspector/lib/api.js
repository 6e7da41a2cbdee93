// The API of the server that served this page. The key, if one is needed, is kept while the tab is open.

import { Connection } from "bobbin-client/connection.ts";
import { BobbinError } from "bobbin-client/errors.ts";

const KEPT = "bobbin-key";

/** Listeners for a missing or rejected key. @type {Set<(refused: boolean) => void>} */
const asking = new Set();

/** @returns {string | undefined} */
export const key = () => sessionStorage.getItem(KEPT) ?? undefined;

/** @param {string | undefined} text */
export function setKey(text) {
  everyOwner = true;
  if (text === undefined) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, text);
}

/** Calls `listener` when the server requires a key, and passes whether it rejected one. @param {(refused: boolean) => void} listener */
export function onKeyWanted(listener) {
  asking.add(listener);
  return () => void asking.delete(listener);
}

/** Makes polled data reload soon. */
export const told = () => void dispatchEvent(new Event(CHANGED));
export const CHANGED = "bobbin-changed";

/** The connection for all requests of the page. */
export const connection = new Connection({
  fetch: async (input, init = {}) => {
    const given = key();
    const headers = new Headers(init.headers);
    if (given !== undefined) headers.set("authorization", `Bearer ${given}`);
    const response = await fetch(input, { ...init, headers });
    // A late response may be about the previous key.
    if (response.status === 401 && given === key()) for (const listener of asking) listener(given !== undefined);
    return response;
  },
});

/**
 * Gets the JSON of a path below `/api`.
 *
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function get(path, signal) {
  const response = await connection.send(`/api${path}`, {}, { attempts: 4, ...(signal && { signal }) });
  return response.json();
}

/** Whether the key may list the data of all owners, as far as is known. */
let everyOwner = true;

/** The path of a list over all owners, for administrators. @param {string} path with a query */
export const ofEveryOwner = (path) => (everyOwner ? `${path}&user_id=*` : path);

/**
 * Gets a list over all owners, or over what the key may see.
 *
 * @param {string} path with a query
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getOfEveryOwner(path, signal) {
  if (everyOwner) {
    try {
      return await get(ofEveryOwner(path), signal);
    } catch (error) {
      if (!isRefusal(error, "forbidden", "thread_not_found")) throw error;
      everyOwner = false;
    }
  }
  return get(path, signal);
}

/**
 * Sends a change. With an idempotency key it is repeated if the response is lost.
 *
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {{ once?: boolean }} [how]   once: send an idempotency key
 * @returns {Promise<any>}
 */
export async function send(method, path, body, { once = false } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (once) headers["idempotency-key"] = crypto.randomUUID();
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const response = await connection.send(`/api${path}`, init, { attempts: once ? 6 : 1 });
  const text = await response.text();
  told();
  return text === "" ? null : JSON.parse(text);
}

/** The message of an error. @param {unknown} error */
export function said(error) {
  if (error instanceof BobbinError) return error.hint ? `${error.message} ${error.hint}` : error.message;
  return error instanceof Error ? error.message : String(error);
}

/** Whether the error is a refusal with one of these codes. @param {unknown} error @param {...string} codes */
export const isRefusal = (error, ...codes) => error instanceof BobbinError && codes.includes(error.code);

/** The path of a thread, or below it. @param {string} id @param {string} [below] */
export const ofThread = (id, below = "") => `/threads/${encodeURIComponent(id)}${below}`;

/**
 * The request as a curl command, with the name of a variable instead of the key.
 *
 * @param {string} path @param {{ method?: string, body?: unknown }} [request]
 */
export function asCurl(path, { method = "GET", body } = {}) {
  const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl -s"];
  if (method !== "GET") parts.push(`-X ${method}`);
  if (key() !== undefined) parts.push('-H "authorization: Bearer $BOBBIN_KEY"');
  if (body !== undefined) parts.push(`-H 'content-type: application/json' -d ${quoted(JSON.stringify(body))}`);
  return [...parts, quoted(`${connection.url}/api${path}`)].join(" ");
}
