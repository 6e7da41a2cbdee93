// Extracts the lines of the application's own files from a bundle's source map, to locate errors.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/**
 * Returns runs of consecutive lines: the first line in the bundle, the file, and the first line in that file. The file
 * name is empty for packages and for code that the bundler added.
 *
 * @param {string} map  JSON
 * @returns {[line: number, file: string, first: number][]}
 */
export function linesOf(map) {
  /** @type {{ sources: string[], mappings: string }} */
  const { sources, mappings } = JSON.parse(map);
  const own = (/** @type {string} */ file) => !file.includes("node_modules/") && !file.startsWith("..") && !file.includes(":");
  /** @type {[number, string, number][]} */
  const runs = [];
  // Each number is relative to the previous one, across all lines.
  let [source, from] = [0, 0];
  for (const [at, line] of mappings.split(";").entries()) {
    let first = true;
    for (const segment of line.split(",")) {
      const [, files = 0, lines = 0] = numbers(segment);
      if (segment === "") continue;
      [source, from] = [source + files, from + lines];
      if (!first) continue;
      first = false;
      const file = sources[source] ?? "";
      const run = /** @type {[number, string, number]} */ (own(file) ? [at + 1, file, from + 1] : [at + 1, "", 0]);
      if (!follows(runs.at(-1), run)) runs.push(run);
    }
  }
  return runs;
}

/**
 * Returns whether a line continues the previous run.
 * @param {[number, string, number] | undefined} run @param {[number, string, number]} line
 */
function follows(run, line) {
  return run !== undefined && run[1] === line[1] && (line[1] === "" || line[2] - run[2] === line[0] - run[0]);
}

/** Decodes a segment: signed base-64 numbers, lowest five bits first (VLQ). @param {string} segment */
function numbers(segment) {
  /** @type {number[]} */
  const found = [];
  let [value, bits] = [0, 0];
  for (const char of segment) {
    const digit = DIGITS.indexOf(char);
    value += (digit & 31) * 2 ** bits;
    bits += 5;
    if (digit & 32) continue;
    found.push(value % 2 === 1 ? -Math.floor(value / 2) : value / 2);
    [value, bits] = [0, 0];
  }
  return found;
}
