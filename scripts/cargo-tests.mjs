// Runs `cargo test` and counts its tests. A run that crashed, hung or ran nothing never counts as a success.
//
//   node scripts/cargo-tests.mjs [--group GROUP] [-- ARGUMENT OF CARGO…]     by default the tests of all crates that compile natively

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { NATIVE, TARGET_DIR } from "./compile.mjs";
import { inCheckout } from "./files.mjs";
import { record, sample } from "./results.mjs";
import { main, outcome, print } from "./run.mjs";

const MINUTE = 60_000;

/**
 * Prints what fails, and how many tests each program ran.
 *
 * @param {string[]} args
 * @param {{ env?: NodeJS.ProcessEnv, minutes?: number }} [options]  `minutes`: the time limit
 * @returns {Promise<import("./results.mjs").Counts>}
 */
export async function cargoTests(args, { env, minutes = 90 } = {}) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  let targets = 0;
  let results = 0;
  const ended = await outcome("cargo", ["test", "--no-fail-fast", ...TARGET_DIR, ...args], {
    cwd: inCheckout("."),
    env: { CARGO_TERM_COLOR: "never", ...env },
    timeoutMs: minutes * MINUTE,
    onLine: (line) => {
      if (!/^test .* \.\.\. ok$/.test(line) && line !== "") print(line);
      if (/^ +(Running (unittests )?\S+ \(|Doc-tests )/.test(line)) targets++;
      const [, passed, failed, ignored] = /^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored;/.exec(line) ?? [];
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
  for (const problem of problems) print(problem);
  return { ...counts, failed: counts.failed + problems.length };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { group: { type: "string" } } });
    record(values.group, await cargoTests(positionals.length > 0 ? positionals : NATIVE, { env: await sample() }));
  });
}
