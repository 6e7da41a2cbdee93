// The two test runners, run and counted: cargo's for the core and Node's for the built Worker. A runner that
// crashed, hung or ran nothing never counts as success.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";
import { TARGET_DIR } from "./build.mjs";
import { inCheckout, readIfThere } from "./files.mjs";
import { cargoProgress, outcome, print } from "./run.mjs";

const MINUTE = 60_000;
/** Files of tests at once. Each has a server with two processes of its own, which mostly wait. */
const AT_ONCE = Math.max(3, Math.floor(availableParallelism() / 2));

/**
 * @typedef {object} Counts
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 */

/**
 * @typedef {object} SuiteOptions
 * @property {(text: string) => void} note
 * @property {NodeJS.ProcessEnv} [env]
 * @property {number} [minutes]            how long it may take
 */

/**
 * `cargo test` with `args` after it.
 *
 * @param {string[]} args
 * @param {SuiteOptions} options
 * @returns {Promise<Counts>}
 */
export async function cargoTest(args, { note, env, minutes = 30 }) {
  const [forCargo, forTests] = args.includes("--")
    ? [args.slice(0, args.indexOf("--")), args.slice(args.indexOf("--"))]
    : [args, []];
  const run = {
    cwd: inCheckout("."),
    env: { ...env, CARGO_TERM_COLOR: "never" },
    timeoutMs: minutes * MINUTE,
  };
  // Compiled first, so that the time of the tests is their own.
  const build = await outcome("cargo", ["test", "--no-run", ...TARGET_DIR, ...forCargo], { ...run, onLine: cargoProgress(note) });
  if (build.status !== 0) {
    print(build.all.trimEnd());
    print(build.late ? `   cargo did not end within ${minutes} minutes` : `   cargo test --no-run failed (${build.status})`);
    return { passed: 0, failed: 1, skipped: 0 };
  }

  const counts = { passed: 0, failed: 0, skipped: 0 };
  let targets = 0;
  let results = 0;
  let seen = 0;
  const ended = await outcome("cargo", ["test", "--no-fail-fast", ...TARGET_DIR, ...forCargo, ...forTests], {
    ...run,
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
 * The files of tests in a folder, all or those whose name holds one of `names`.
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

/**
 * Node's tests in files.
 *
 * @param {string} node
 * @param {string[]} files
 * @param {SuiteOptions} options
 * @returns {Promise<Counts>}
 */
export async function nodeTest(node, files, { note, env, minutes = 30 }) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  /** Files that have not ended in order yet. */
  const open = new Set(files);
  /** What each file has printed since its last test. @type {Map<string, string>} */
  const printed = new Map();
  const ended = await outcome(
    node,
    [inCheckout("scripts/node-tests.mjs"), String(AT_ONCE), ...longestFirst(files)],
    {
      cwd: inCheckout("."),
      env: { ...env },
      timeoutMs: minutes * MINUTE,
      onLine: (line) => {
        const event = parse(line);
        if (event === undefined) {
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
          counts[event.type === "pass" ? "passed" : event.type === "fail" ? "failed" : "skipped"]++;
          const name = `${file}: ${event.name}`;
          note(`${counts.passed} passed, ${counts.failed} failed; ${name}`);
          if (event.type === "fail") {
            // The file itself failed, which says it all.
            if (event.name === event.file) open.delete(event.file);
            print(`   FAILED ${name}`);
            print(`${event.text}\n${printed.get(file) ?? ""}`.trimEnd());
          }
          printed.delete(file);
        }
      },
    },
  );
  /** @type {string[]} */
  const problems = [];
  if (ended.late) problems.push(`the tests did not end within ${minutes} minutes`);
  for (const file of open) problems.push(`${basename(file)} ended without having run its tests`);
  if (ended.status !== 0 && counts.failed === 0 && problems.length === 0) problems.push(`node --test failed (${ended.status})`);
  for (const problem of problems) print(`   ${problem}`);
  counts.failed += problems.length;
  return counts;
}

/** How long each file took when it last ran, in ms. */
const TIMES = inCheckout(".bobbin/test-times.json");

/** @returns {Record<string, number>} */
const times = () => JSON.parse(readIfThere(TIMES) ?? "{}");

/** @param {string} file @param {number} ms */
function noteTime(file, ms) {
  mkdirSync(dirname(TIMES), { recursive: true });
  writeFileSync(TIMES, JSON.stringify({ ...times(), [basename(file)]: Math.round(ms) }));
}

/** As far as it is known, or can be told from the name. @param {string[]} files */
function longestFirst(files) {
  const known = times();
  const ms = (/** @type {string} */ file) => known[basename(file)] ?? (/kill|end|own-crate/.test(file) ? Infinity : MINUTE / 4);
  return files.toSorted((a, b) => (ms(a) === ms(b) ? 0 : ms(b) - ms(a)));
}

/**
 * @param {string} line
 * @returns {import("./test-reporter.mjs").Line | undefined} nothing when the runner itself printed the line
 */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
