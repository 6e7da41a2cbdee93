// What is asked in all threads that whoever looks may see.

import { get, isRefusal } from "./api.js";
import { useLoaded } from "./hooks.js";

const EVERY_MS = 4_000;
/** Of more owners, the first ones. */
const OWNERS = 30;

/**
 * @typedef {object} OpenWaits
 * @property {any[]} all
 * @property {Set<string>} threads   the threads that wait
 * @property {unknown} error
 * @property {boolean} loaded
 * @property {() => void} again
 */

/** @returns {OpenWaits} */
export function useOpenWaits() {
  const { data, error, again } = useLoaded(load, [], { everyMs: EVERY_MS });
  const all = data ?? NONE;
  return { all, threads: new Set(all.map((/** @type {any} */ { threadId }) => threadId)), error, again, loaded: data !== undefined };
}

/** @type {any[]} */
const NONE = [];

/** Those of whoever asks; an administrator's are those of threads without an owner and of all owners. @param {AbortSignal} signal */
async function load(signal) {
  const [own, owners] = await Promise.all([of("/waits?limit=200", signal), ownersOf(signal)]);
  const others = await Promise.all(owners.map((owner) => of(`/waits?limit=200&user_id=${encodeURIComponent(owner)}`, signal)));
  return [...own, ...others.flat()].sort((a, b) => a.createdAt - b.createdAt);
}

/** Whoever may see one thread alone has no list. @param {string} path @param {AbortSignal} signal @returns {Promise<any[]>} */
async function of(path, signal) {
  try {
    return (await get(path, signal)).waits;
  } catch (error) {
    if (isRefusal(error, "forbidden", "thread_not_found")) return NONE;
    throw error;
  }
}

/** @param {AbortSignal} signal @returns {Promise<string[]>} */
async function ownersOf(signal) {
  try {
    const { owners } = await get(`/threads/owners?limit=${OWNERS}`, signal);
    return owners.flatMap((/** @type {any} */ { user_id }) => user_id ?? []);
  } catch (error) {
    if (isRefusal(error, "forbidden", "thread_not_found")) return [];
    throw error;
  }
}
