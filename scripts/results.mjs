// The results of the groups of `npm test`. Each group is a script of package.json, which wireit runs unless it has passed with
// the same inputs. A group writes its counts to a file, which wireit keeps as its output.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { inCheckout, readIfThere } from "./files.mjs";
import { outcome } from "./run.mjs";

/**
 * @typedef {object} Counts
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {string[]} [unsteady]   files that failed beside others and passed alone
 */

const file = (/** @type {string} */ group) => inCheckout(`.bobbin/results/${group.replace(":", "-")}.json`);

/** Writes the counts of a group, and sets the exit code. Without a group, only the exit code. @param {string | undefined} group @param {Counts} counts */
export function record(group, counts) {
  if (counts.failed > 0) process.exitCode = 1;
  if (group === undefined) return;
  mkdirSync(dirname(file(group)), { recursive: true });
  writeFileSync(file(group), JSON.stringify(counts));
}

/** The counts of a group's last run; undefined if it did not end. @param {string} group @returns {Counts | undefined} */
export function result(group) {
  const text = readIfThere(file(group));
  return text === undefined ? undefined : JSON.parse(text);
}

/** Removes all results, so that none of an earlier run is counted. */
export const forgetResults = () => rmSync(dirname(file("")), { recursive: true, force: true });

/**
 * The environment that chooses the failures the engine is tried with: BOBBIN_SAMPLE is a seed, or `all`. By default it follows
 * from the commit, so that the tests of a commit always use the same failures.
 *
 * @returns {Promise<NodeJS.ProcessEnv>}
 */
export async function sample() {
  const { BOBBIN_SAMPLE: wanted } = process.env;
  if (wanted === "all") return { BOBBIN_SAMPLE: undefined };
  if (wanted !== undefined) return { BOBBIN_SAMPLE: wanted };
  const { stdout } = await outcome("git", ["rev-parse", "HEAD"], { cwd: inCheckout(".") });
  return { BOBBIN_SAMPLE: String(Number.parseInt(stdout.slice(0, 8), 16) || 1) };
}
