// Waits that do not depend on timing: a condition is polled until a deadline that is far longer than it should take.
// Also repeatable random numbers.

import { setTimeout as sleep } from "node:timers/promises";

export { sleep };

/**
 * The number of repetitions of a random test. A sample (docs/testing.md) has fewer than a whole run.
 *
 * @param {number} whole
 * @param {number} part
 */
export const sampled = (whole, part) => (process.env.BOBBIN_SAMPLE === undefined ? whole : part);

/**
 * Returns the first truthy value of `probe`, which is polled every 20 ms by default.
 *
 * @template T
 * @param {string} what                                      for the error, such as "the model was asked twice"
 * @param {() => T | Promise<T>} probe
 * @param {{ withinMs?: number | undefined, everyMs?: number, describe?: (() => unknown) | undefined }} [options]  by default 10 s; `describe` adds the last state to the error
 * @returns {Promise<NonNullable<T>>}
 */
export async function until(what, probe, options = {}) {
  const { withinMs = 10_000, everyMs = 20, describe } = options;
  const start = Date.now();
  for (;;) {
    const value = await probe();
    if (value) return value;
    if (Date.now() - start > withinMs) {
      const state = describe ? `; last seen: ${JSON.stringify(describe())}` : "";
      throw new Error(`not within ${withinMs} ms: ${what}${state}`);
    }
    await sleep(everyMs);
  }
}

/**
 * Rejects if `work` takes longer.
 *
 * @template T
 * @param {string} what
 * @param {number} withinMs
 * @param {Promise<T>} work
 * @returns {Promise<T>}
 */
export async function within(what, withinMs, work) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${withinMs} ms: ${what}`)), withinMs);
  });
  try {
    return await /** @type {Promise<T>} */ (Promise.race([work, late]));
  } finally {
    clearTimeout(timer);
  }
}

/** The seed of this run: `BOBBIN_SEED`, or a random one. Every failure prints it. */
export const seed = Number(process.env.BOBBIN_SEED ?? Math.floor(Math.random() * 2 ** 31));

/**
 * Random numbers from a seed (mulberry32).
 *
 * @param {string} purpose  makes the numbers of two tests with one seed different
 * @param {number} [from]
 */
export function chance(purpose, from = seed) {
  let state = from >>> 0;
  for (const char of purpose) state = Math.imul(state ^ char.charCodeAt(0), 0x01000193) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    /** Returns an integer, including both ends. @param {number} low @param {number} high */
    between: (low, high) => low + Math.floor(next() * (high - low + 1)),
    /** Returns one of the items. @template T @param {readonly T[]} items @returns {T} */
    pick: (items) => /** @type {T} */ (items[Math.floor(next() * items.length)]),
  };
}

/** A gate that a test opens. `passed` resolves then. */
export function gate() {
  /** @type {() => void} */
  let open = () => {};
  /** @type {Promise<void>} */
  const passed = new Promise((resolve) => {
    open = resolve;
  });
  return { open, passed };
}
