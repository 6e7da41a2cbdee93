// The open waits of all threads that the key may see.

import { getOfEveryOwner, isRefusal } from "./api.js";
import { useLoaded } from "./hooks.js";

const EVERY_MS = 4_000;

/** The path of the list, also for the curl command. */
export const WAITS = "/waits?limit=200";

/**
 * @typedef {object} OpenWaits
 * @property {any[]} all           the oldest first
 * @property {Map<string, any>} threads   the waiting threads, each with its oldest wait
 * @property {number} leftOut      owners whose waits are missing from the list
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

/**
 * Loads the list. A key for one thread has none.
 *
 * @param {AbortSignal} signal @returns {Promise<{ waits: any[], ownersLeftOut?: number }>}
 */
async function load(signal) {
  try {
    const found = await getOfEveryOwner(WAITS, signal);
    return { ...found, waits: found.waits.reverse() };
  } catch (error) {
    if (isRefusal(error, "forbidden", "thread_not_found")) return { waits: NONE };
    throw error;
  }
}
