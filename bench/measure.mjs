// The tools of the benchmark: interleaved samples, medians, the SQL counters of a thread's object, and a progress line.

/**
 * @typedef {import("./sides.mjs").Side} Side
 *
 * @typedef {object} Result  one line of the table
 * @property {string} what
 * @property {number} value
 * @property {string} unit
 * @property {number} [floor]      the value to compare with, in the same unit
 * @property {string} [against]    the name of that value, if it is not the floor
 * @property {number | undefined} budget    for the ratio if there is a floor, otherwise for the value; none: for information
 *
 * @typedef {object} Counters
 * @property {number} statements
 * @property {number} rowsRead
 * @property {number} rowsWritten
 */

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low = NaN, high = NaN] = [sorted[Math.max(0, middle - 1)], sorted[middle]];
  return sorted.length % 2 === 0 ? (low + high) / 2 : high;
}

/** Shows the current step on one line that is overwritten. @param {string} text */
export function progress(text) {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K  ${text}`);
}

/**
 * Takes samples of several kinds in turns, so that other load on the machine affects them alike. The first fifth is only
 * for warming up. Returns the median of each kind.
 *
 * @template {string} Kind
 * @param {string} what
 * @param {number} times                                    samples of each
 * @param {Record<Kind, () => Promise<number>>} samples     each returns one value
 * @returns {Promise<Record<Kind, number>>}
 */
export async function interleaved(what, times, samples) {
  const kinds = /** @type {Kind[]} */ (Object.keys(samples));
  const values = new Map(kinds.map((kind) => [kind, /** @type {number[]} */ ([])]));
  const warmUp = Math.max(1, Math.floor(times / 5));
  for (let n = 0; n < times + warmUp; n++) {
    progress(`${what}: ${n + 1} of ${times + warmUp}`);
    // The order alternates.
    const order = n % 2 === 0 ? kinds : [...kinds].reverse();
    for (const kind of order) {
      const value = await samples[kind]();
      if (n >= warmUp) values.get(kind)?.push(value);
    }
  }
  return /** @type {Record<Kind, number>} */ (Object.fromEntries(kinds.map((kind) => [kind, median(values.get(kind) ?? [])])));
}

/** The milliseconds that `work` takes. @param {() => Promise<unknown>} work */
export async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** One result of a comparison. @param {string} what @param {string} unit @param {{ product: number, floor: number }} values @param {number | undefined} budget @returns {Result} */
export const ratio = (what, unit, { product, floor }, budget) => ({ what, unit, value: product, floor, budget });

/**
 * The SQL counters of a thread's object so far; reading them does not change them.
 *
 * @param {Side} product @param {string} thread @returns {Promise<Counters>}
 */
export const counters = async (product, thread) => (await product.get(`/api/threads/${thread}/diagnostics?counters`)).json;

/**
 * The SQL cost of `work`.
 *
 * @param {Side} product @param {string} thread @param {() => Promise<unknown>} work @returns {Promise<Counters>}
 */
export async function cost(product, thread, work) {
  const before = await counters(product, thread);
  await work();
  const after = await counters(product, thread);
  return {
    statements: after.statements - before.statements,
    rowsRead: after.rowsRead - before.rowsRead,
    rowsWritten: after.rowsWritten - before.rowsWritten,
  };
}

/** Waits for the work that a run leaves for after its answer, which is part of its cost. */
export const settle = () => new Promise((resolve) => setTimeout(resolve, 300));
