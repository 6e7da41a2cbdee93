// Runs the two test runners and counts their tests: cargo's for the core and Node's for the built Worker. A runner that
// crashed, hung or ran nothing never counts as success.

import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";
import { TARGET_DIR } from "./compile.mjs";
import { inCheckout, readIfThere } from "./files.mjs";
import { cargo, outcome, print } from "./run.mjs";

const MINUTE = 60_000;
/**
 * The number of test files to run at once. Each has a server with two processes, and together they wait for more than half
 * of the time. Full sweeps beside them leave less of the processors.
 *
 * @param {NodeJS.ProcessEnv | undefined} env
 */
const atOnce = (env) => Math.max(env?.BOBBIN_SAMPLE === undefined ? 3 : 4, Math.floor(availableParallelism() / 2));

/**
 * @typedef {object} Counts
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {string[]} [unsteady]         files that failed beside others and passed alone
 */

/**
 * @typedef {object} SuiteOptions
 * @property {(text: string) => void} note
 * @property {NodeJS.ProcessEnv} [env]
 * @property {number} [atOnce]             files at once, if they compute more than they wait
 * @property {number} [minutes]            the time limit
 */

/** Options for running cargo. @param {NodeJS.ProcessEnv} [more] */
const forCargo = (more) => ({ cwd: inCheckout("."), env: { CARGO_TERM_COLOR: "never", ...more } });

/**
 * Compiles the tests that `cargo test` would run.
 *
 * @param {string[]} args
 * @param {(text: string) => void} note
 * @returns {Promise<string>} cargo's output
 */
export async function compileTests(args, note) {
  return await cargo(["test", "--no-run", ...TARGET_DIR, ...args], note, { ...forCargo(), timeoutMs: 30 * MINUTE });
}

/**
 * Runs `cargo test` with these arguments.
 *
 * @param {string[]} args
 * @param {SuiteOptions} options
 * @returns {Promise<Counts>}
 */
export async function cargoTest(args, { note, env, minutes = 30 }) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  let targets = 0;
  let results = 0;
  let seen = 0;
  const ended = await outcome("cargo", ["test", "--no-fail-fast", ...TARGET_DIR, ...args], {
    ...forCargo(env),
    timeoutMs: minutes * MINUTE,
    onLine: (line) => {
      if (/^ +(Running (unittests )?\S+ \(|Doc-tests )/.test(line)) {
        targets++;
        note(`${seen} tests;${line.replace(/ \(.*/, "").replace(/ +/g, " ")}`);
      } else if (/^test .* \.\.\. /.test(line)) {
        seen++;
        if (line.endsWith("FAILED")) print(`   ${line}`);
      }
      const [, passed, failed, ignored] =
        /^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored;/.exec(line) ?? [];
      if (passed === undefined) return;
      results++;
      counts.passed += Number(passed);
      counts.failed += Number(failed);
      counts.skipped += Number(ignored);
    },
  });
  /** @type {string[]} */
  const problems = [];
  if (ended.late) problems.push(`cargo test did not end within ${minutes} minutes`);
  if (results < targets) problems.push(`${targets - results} of ${targets} test programs ended without a result`);
  if (counts.passed + counts.failed === 0) problems.push("no test ran");
  if (ended.status !== 0 && counts.failed === 0 && problems.length === 0) problems.push(`cargo test failed (${ended.status})`);
  if (counts.failed > 0 || problems.length > 0) {
    print(ended.all.replace(/^test .* \.\.\. ok\n/gm, "").trimEnd());
    for (const problem of problems) print(`   ${problem}`);
  }
  counts.failed += problems.length;
  return counts;
}

/**
 * The test files of a folder: all, or those whose name contains one of `names`.
 *
 * @param {string} folder
 * @param {string[]} [names]
 */
export function testFiles(folder, names = [""]) {
  const path = inCheckout(folder);
  if (!existsSync(path)) return [];
  return readdirSync(path)
    .filter((name) => name.endsWith(".test.mjs") && names.some((part) => name.includes(part)))
    .sort()
    .map((name) => join(path, name));
}

/** The maximum number of failed files to run again, alone. If more fail, the machine is not the cause. */
const AGAIN_AT_MOST = 3;

/**
 * Runs Node's tests. They run beside a compiler and each other, with real processes and clocks, so a machine that stalls for a
 * while can make one fail. So a failed file runs again, alone. If it then passes, it counts as passed and is reported as
 * `unsteady`, because a rare fault of the product seldom looks the same.
 *
 * @param {string} node
 * @param {string[]} files
 * @param {SuiteOptions} options
 * @returns {Promise<Counts>}
 */
export async function nodeTest(node, files, options) {
  const first = await runFiles(node, files, options.atOnce ?? atOnce(options.env), options);
  const failed = files.filter((file) => (first.get(file)?.failed ?? 0) > 0);
  /** @type {string[]} */
  const unsteady = [];
  if (failed.length > 0 && failed.length <= AGAIN_AT_MOST) {
    print(`   once more, alone: ${failed.map((file) => basename(file)).join(", ")}`);
    for (const [file, counts] of await runFiles(node, failed, 1, options)) {
      if (counts.failed > 0) continue;
      first.set(file, counts);
      unsteady.push(basename(file));
    }
  }
  const counts = { passed: 0, failed: 0, skipped: 0, unsteady };
  for (const { passed, failed, skipped } of first.values()) {
    counts.passed += passed;
    counts.failed += failed;
    counts.skipped += skipped;
  }
  return counts;
}

/**
 * Runs test files and counts the tests of each. Failures are printed.
 *
 * @param {string} node
 * @param {string[]} files
 * @param {number} atOnce
 * @param {SuiteOptions} options
 * @returns {Promise<Map<string, Counts>>}
 */
async function runFiles(node, files, atOnce, { note, env, minutes = 30 }) {
  const counts = new Map(files.map((file) => [file, { passed: 0, failed: 0, skipped: 0 }]));
  const sum = (/** @type {"passed" | "failed"} */ what) => [...counts.values()].reduce((all, one) => all + one[what], 0);
  /** Files that have not ended in order yet. */
  const open = new Set(files);
  /** The output of each file since its last test. @type {Map<string, string>} */
  const printed = new Map();
  const ended = await outcome(
    node,
    [inCheckout("scripts/node-tests.mjs"), String(atOnce), ...longestFirst(files)],
    {
      cwd: inCheckout("."),
      env: { ...env },
      timeoutMs: minutes * MINUTE,
      onLine: (line) => {
        const event = parse(line);
        const of = event && counts.get(event.file);
        if (event === undefined || of === undefined) {
          print(line);
          return;
        }
        const file = basename(event.file);
        if (event.type === "output") {
          printed.set(file, (printed.get(file) ?? "") + event.text);
        } else if (event.type === "end") {
          if (event.tests > 0) open.delete(event.file);
          noteTime(event.file, event.ms);
        } else {
          of[event.type === "pass" ? "passed" : event.type === "fail" ? "failed" : "skipped"]++;
          const name = `${file}: ${event.name}`;
          note(`${sum("passed")} passed, ${sum("failed")} failed; ${name}`);
          if (event.type === "fail") {
            // The file itself failed, so no other report follows.
            if (event.name === event.file) open.delete(event.file);
            print(`   FAILED ${name}`);
            print(`${event.text}\n${printed.get(file) ?? ""}`.trimEnd());
          }
          printed.delete(file);
        }
      },
    },
  );
  const fail = (/** @type {string} */ file, /** @type {string} */ problem) => {
    print(`   ${problem}`);
    const of = counts.get(file);
    if (of) of.failed++;
  };
  for (const file of open) {
    fail(file, `${basename(file)} ended without having run its tests${ended.late ? ` within ${minutes} minutes` : ""}`);
  }
  const [last] = files;
  if (ended.status !== 0 && sum("failed") === 0 && last !== undefined) fail(last, `node --test failed (${ended.status})`);
  return counts;
}

/** The file with the duration of each test file's last run, in ms. */
const TIMES = inCheckout(".bobbin/test-times.json");

/** @returns {Record<string, number>} */
function times() {
  try {
    return JSON.parse(readIfThere(TIMES) ?? "{}");
  } catch {
    // The times only decide the order of the files.
    return {};
  }
}

/** @param {string} file @param {number} ms */
function noteTime(file, ms) {
  mkdirSync(dirname(TIMES), { recursive: true });
  // Renamed into place, because another run may be reading it.
  const writing = `${TIMES}.${process.pid}`;
  writeFileSync(writing, JSON.stringify({ ...times(), [basename(file)]: Math.round(ms) }));
  renameSync(writing, TIMES);
}

/** Sorts by the known duration, or a guess from the name. @param {string[]} files */
function longestFirst(files) {
  const known = times();
  const ms = (/** @type {string} */ file) => known[basename(file)] ?? (/kill|end|own-crate/.test(file) ? Infinity : MINUTE / 4);
  return files.toSorted((a, b) => (ms(a) === ms(b) ? 0 : ms(b) - ms(a)));
}

/**
 * @param {string} line
 * @returns {import("./test-reporter.mjs").Line | undefined} undefined if the runner itself printed the line
 */
function parse(line) {
  try {
    const event = JSON.parse(line);
    return typeof event?.type === "string" && typeof event.file === "string" ? event : undefined;
  } catch {
    return undefined;
  }
}
