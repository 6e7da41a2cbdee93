// How the benchmark measures: interleaved samples, medians, and a line of progress.

/** @typedef {import("./sides.mjs").Side} Side */

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low = NaN, high = NaN] = [sorted[Math.max(0, middle - 1)], sorted[middle]];
  return sorted.length % 2 === 0 ? (low + high) / 2 : high;
}

/** What is going on, on one line that is overwritten. @param {string} text */
export function progress(text) {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K  ${text}`);
}

/**
 * Takes samples of several kinds in turns, so that whatever else the machine does hits them alike; the first fifth
 * only warms up. Returns the median of each.
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
    // Who comes first alternates.
    const order = n % 2 === 0 ? kinds : [...kinds].reverse();
    for (const kind of order) {
      const value = await samples[kind]();
      if (n >= warmUp) values.get(kind)?.push(value);
    }
  }
  return /** @type {Record<Kind, number>} */ (Object.fromEntries(kinds.map((kind) => [kind, median(values.get(kind) ?? [])])));
}

/** Milliseconds that `work` takes. @param {() => Promise<unknown>} work */
export async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
