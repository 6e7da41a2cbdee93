// Runs test files with Node's test runner and counts their tests. A file that crashed, hung or ran nothing never counts as a
// success. The largest files start first: `node --test` sorts them by name, and a long one at the end would run alone.
//
//   node scripts/node-tests.mjs [--group GROUP] [--at-once N] [--name PATTERN] FILE…

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { performance } from "node:perf_hooks";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { root } from "./files.mjs";
import { record, sample } from "./results.mjs";
import { Complaint, main, print, seconds } from "./run.mjs";

/** @typedef {import("./results.mjs").Counts} Counts */

/**
 * @typedef {object} Options
 * @property {number} [atOnce]
 * @property {string} [name]             a pattern for the names of the tests to run
 * @property {NodeJS.ProcessEnv} [env]   for the tests
 * @property {number} [minutes]          the time limit of a file
 */

/** Each file has a server, and waits for more than half of the time. */
const AT_ONCE = Math.max(4, Math.floor(availableParallelism() / 2));
/** The maximum number of failed files to run again, alone. If more fail, the machine is not the cause. */
const AGAIN_AT_MOST = 3;
/** A test server lives for seconds. V8 recompiles a wasm function only after 150 times the usual work (13 million). */
const V8_FLAGS = "--wasm-tiering-budget=2000000000";

/**
 * Runs test files, some at once, and prints the report of each. Tests run beside a compiler and each other, with real processes
 * and clocks, so a machine that stalls can make one fail. So a failed file runs again, alone. If it then passes, it counts as
 * passed and is reported as `unsteady`, because a rare fault of the product seldom looks the same.
 *
 * @param {string[]} files
 * @param {Options} [options]
 * @returns {Promise<Counts>}
 */
export async function nodeTests(files, { atOnce = AT_ONCE, env = {}, ...how } = {}) {
  // The files run in processes of their own, with this environment.
  Object.assign(process.env, env);
  const first = await runFiles(largestFirst(files), atOnce, how);
  const failed = files.filter((file) => (first.get(file)?.failed ?? 0) > 0);
  /** @type {string[]} */
  const unsteady = [];
  if (failed.length > 0 && failed.length <= AGAIN_AT_MOST) {
    print(`Once more, alone: ${failed.map(shown).join(", ")}`);
    for (const [file, counts] of await runFiles(failed, 1, how)) {
      if (counts.failed > 0) continue;
      first.set(file, counts);
      unsteady.push(shown(file));
    }
  }
  const sum = (/** @type {"passed" | "failed" | "skipped"} */ what) => [...first.values()].reduce((all, one) => all + one[what], 0);
  return { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped"), ...(unsteady.length > 0 && { unsteady }) };
}

/** @param {string[]} files @param {number} atOnce @param {Options} how @returns {Promise<Map<string, Counts>>} */
async function runFiles(files, atOnce, how) {
  const left = [...files];
  /** @type {Map<string, Counts>} */
  const counts = new Map();
  const lane = async () => {
    for (let file = left.shift(); file !== undefined; file = left.shift()) counts.set(file, await runFile(file, how));
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return counts;
}

/** Runs one file. Each has a run of its own, because the runner does not say to which file a test belongs. @param {string} file @param {Options} how */
async function runFile(file, { name, minutes = 30 }) {
  const events = run({ files: [file], timeout: minutes * 60_000, ...(name !== undefined && { testNamePatterns: [name] }) });
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const started = performance.now();
  // A file without tests is reported as a test of its own name. Only a file that ended in order has a summary.
  let inOrder = false;
  events.on("test:summary", ({ file: of, counts: { tests } }) => (inOrder ||= of !== undefined && (tests > 0 || name !== undefined)));
  events.on("test:pass", ({ name: test, skip, todo, details }) => {
    if (details.type !== "suite" && test !== file) counts[skip || todo ? "skipped" : "passed"]++;
  });
  // The parent of a failed test fails, too.
  events.on("test:fail", ({ details: { error } }) => (counts.failed += "failureType" in error && error.failureType === "subtestsFailed" ? 0 : 1));
  let report = "";
  for await (const text of events.compose(spec)) report += text;
  if (!inOrder && counts.failed === 0) {
    counts.failed = 1;
    report += `${shown(file)} ended without having run its tests`;
  }
  if (counts.failed > 0) print(report.trimEnd());
  print(`${shown(file)}: ${counts.passed} passed, ${counts.failed} failed (${seconds(started)} s)`);
  return counts;
}

const shown = (/** @type {string} */ file) => relative(root, file);

/** @param {string[]} files */
function largestFirst(files) {
  const size = new Map(files.map((file) => [file, readFileSync(file, "utf8").length]));
  return files.toSorted((a, b) => (size.get(b) ?? 0) - (size.get(a) ?? 0));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { group: { type: "string" }, "at-once": { type: "string" }, name: { type: "string" } } });
    if (positionals.length === 0) throw new Complaint("Name the files of tests to run.");
    const env = await sample();
    // A test run has about 190 starts of a server: each takes 4.4 s of processor time with wrangler and 0.4 s with workerd.
    process.env.BOBBIN_SERVER ??= "workerd";
    process.env.BOBBIN_BUILD ??= "quick";
    const atOnce = values["at-once"] === undefined ? undefined : Number(values["at-once"]);
    const files = positionals.map((file) => fileURLToPath(new URL(file, `file://${process.cwd()}/`)));
    record(
      values.group,
      await nodeTests(files, {
        ...(atOnce !== undefined && { atOnce }),
        ...(values.name !== undefined && { name: values.name }),
        env: { ...env, BOBBIN_BUILT: "1", ...(env.BOBBIN_SAMPLE !== undefined && { BOBBIN_V8_FLAGS: V8_FLAGS }) },
      }),
    );
  });
}
