// The server that this page came from. A key, where one is needed, is kept for as long as the tab is open.

import { Connection } from "bobbin-client/connection.ts";
import { BobbinError } from "bobbin-client/errors.ts";

const KEPT = "bobbin-key";

/** What is told when a key is needed, or another one. @type {Set<(refused: boolean) => void>} */
const asking = new Set();

/** @returns {string | undefined} */
export const key = () => sessionStorage.getItem(KEPT) ?? undefined;

/** @param {string | undefined} text */
export function setKey(text) {
  everyOwner = true;
  if (text === undefined) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, text);
}

/** Calls `listener` when the server wants a key, with whether it has refused one. @param {(refused: boolean) => void} listener */
export function onKeyWanted(listener) {
  asking.add(listener);
  return () => void asking.delete(listener);
}

/** What is looked at now and then is looked at soon. */
export const told = () => void dispatchEvent(new Event(CHANGED));
export const CHANGED = "bobbin-changed";

/** Requests of the whole page. */
export const connection = new Connection({
  fetch: async (input, init = {}) => {
    const given = key();
    const headers = new Headers(init.headers);
    if (given !== undefined) headers.set("authorization", `Bearer ${given}`);
    const response = await fetch(input, { ...init, headers });
    // An answer that comes late may be about the key of before.
    if (response.status === 401 && given === key()) for (const listener of asking) listener(given !== undefined);
    return response;
  },
});

/**
 * The JSON that a path below `/api` answers.
 *
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function get(path, signal) {
  const response = await connection.send(`/api${path}`, {}, { attempts: 4, ...(signal && { signal }) });
  return response.json();
}

/** Whether the key may see what all owners have, as far as it is known. */
let everyOwner = true;

/** A list over all owners, as it is asked for: of administrators alone. @param {string} path with a query */
export const ofEveryOwner = (path) => (everyOwner ? `${path}&user_id=*` : path);

/**
 * A list over all owners; for a key that may not see them, over what it may see.
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
 * Changes something. What has a key of its own is sent again where the answer was lost.
 *
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {{ once?: boolean }} [how]   once: it takes an idempotency key
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

/** What went wrong, for people. @param {unknown} error */
export function said(error) {
  if (error instanceof BobbinError) return error.hint ? `${error.message} ${error.hint}` : error.message;
  return error instanceof Error ? error.message : String(error);
}

/** Whether it is the refusal of what is not there, or not for whoever asks. @param {unknown} error @param {...string} codes */
export const isRefusal = (error, ...codes) => error instanceof BobbinError && codes.includes(error.code);

/** A path of a thread. @param {string} id @param {string} [below] */
export const ofThread = (id, below = "") => `/threads/${encodeURIComponent(id)}${below}`;

/** The same request for a terminal. The key is not in it, but the name of a variable. @param {string} path @param {{ method?: string, body?: unknown }} [request] */
export function asCurl(path, { method = "GET", body } = {}) {
  const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl -s"];
  if (method !== "GET") parts.push(`-X ${method}`);
  if (key() !== undefined) parts.push('-H "authorization: Bearer $BOBBIN_KEY"');
  if (body !== undefined) parts.push(`-H 'content-type: application/json' -d ${quoted(JSON.stringify(body))}`);
  return [...parts, quoted(`${connection.url}/api${path}`)].join(" ");
}
