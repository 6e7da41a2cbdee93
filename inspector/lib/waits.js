// What is asked in all threads that whoever looks may see.

import { get, isRefusal } from "./api.js";
import { useLoaded } from "./hooks.js";

const EVERY_MS = 5_000;

/**
 * @typedef {object} OpenWaits
 * @property {any[]} all
 * @property {Set<string>} threads   the threads that wait
 * @property {unknown} error
 * @property {() => void} again
 */

/** @returns {OpenWaits} */
export function useOpenWaits() {
  const { data, error, again } = useLoaded(load, [], { everyMs: EVERY_MS });
  const all = data ?? NONE;
  return { all, threads: new Set(all.map((/** @type {any} */ { threadId }) => threadId)), error, again };
}

/** @type {any[]} */
const NONE = [];

/** Whoever may see one thread alone has no list. @param {AbortSignal} signal */
async function load(signal) {
  try {
    return (await get("/waits?limit=200", signal)).waits;
  } catch (error) {
    if (isRefusal(error, "forbidden", "thread_not_found")) return NONE;
    throw error;
  }
}
