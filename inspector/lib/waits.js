// What is asked in all threads that the key may see.

import { getOfEveryOwner, isRefusal } from "./api.js";
import { useLoaded } from "./hooks.js";

const EVERY_MS = 4_000;

/** The list, for a terminal too. */
export const WAITS = "/waits?limit=200";

/**
 * @typedef {object} OpenWaits
 * @property {any[]} all           the oldest first
 * @property {Map<string, any>} threads   the threads that wait, each with the wait that was opened first
 * @property {number} leftOut      owners whose waits are not among them
 * @property {unknown} error
 * @property {boolean} loaded
 * @property {() => void} again
 */

/** @returns {OpenWaits} */
export function useOpenWaits() {
  const { data, error, again } = useLoaded(load, [], { everyMs: EVERY_MS });
  const all = data?.waits ?? NONE;
  const threads = new Map([...all].reverse().map((/** @type {any} */ wait) => [wait.threadId, wait]));
  return { all, threads, leftOut: data?.ownersLeftOut ?? 0, error, again, loaded: data !== undefined };
}

/** @type {any[]} */
const NONE = [];

/** A key for one thread has no list. @param {AbortSignal} signal @returns {Promise<{ waits: any[], ownersLeftOut?: number }>} */
async function load(signal) {
  try {
    const found = await getOfEveryOwner(WAITS, signal);
    return { ...found, waits: found.waits.reverse() };
  } catch (error) {
    if (isRefusal(error, "forbidden", "thread_not_found")) return { waits: NONE };
    throw error;
  }
}
