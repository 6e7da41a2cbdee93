// `npm run soak`: the crash sweeps of the engine, then the kill tests of the Worker, for a given time and with a new seed
// each time. A failure prints its seed; --seed repeats it.

import { randomInt } from "node:crypto";
import { readdirSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { cargoTests } from "./cargo-tests.mjs";
import { inCheckout } from "./files.mjs";
import { nodeTests } from "./node-tests.mjs";
import { Complaint, main, print, seconds } from "./run.mjs";

const HELP = `npm run soak -- [flags]

  --minutes N    how long, half of it for the engine and half for the Worker (default 60)
  --seed N       where chance starts (default: somewhere else each time)
  --help         this text`;

/** How long a thread that must stay quiet is watched. */
const QUIET_SECONDS = "60";

await main(async () => {
  const flags = readFlags(process.argv.slice(2));
  if (!flags) return console.log(HELP);
  const { minutes, seed } = flags;
  const started = performance.now();
  print(`seed ${seed}; again: npm run soak -- --seed ${seed} --minutes ${minutes}`);
  // The servers of the tests must use the same build.
  process.env.BOBBIN_BUILD ??= "release";
  await build();
  const half = String(Math.round(minutes * 30));
  // Allows for builds, the ordinary cases and the quiet minutes besides the soaking itself.
  const limit = minutes / 2 + 45;

  print("engine: failures at every point");
  const engine = await cargoTests(["--package", "bobbin-tests", "--test", "engine"], {
    env: { BOBBIN_SOAK_SECONDS: half, BOBBIN_SOAK_SEED: String(seed) },
    minutes: limit,
  });
  const files = readdirSync(inCheckout("tests/worker")).filter((name) => /(kill|endings).*\.test\.mjs$/.test(name));
  if (files.length === 0) throw new Complaint("There are no kill tests in tests/worker.");
  print("Worker: kills at every moment");
  const worker = await nodeTests(files.map((name) => inCheckout(`tests/worker/${name}`)), {
    env: { BOBBIN_SOAK_SECONDS: half, BOBBIN_SEED: String(seed), BOBBIN_QUIET_SECONDS: QUIET_SECONDS },
    minutes: limit,
  });

  const failed = engine.failed + worker.failed;
  print(`\nseed ${seed}, ${seconds(started)} s`);
  print(`${engine.passed + worker.passed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
});

/** @param {string[]} args */
function readFlags(args) {
  const options = /** @type {const} */ ({
    minutes: { type: "string", default: "60" },
    seed: { type: "string" },
    help: { type: "boolean", default: false },
  });
  /** @type {{ minutes: string, seed?: string, help: boolean }} */
  let values;
  try {
    ({ values } = parseArgs({ args, strict: true, allowPositionals: false, options }));
  } catch (error) {
    throw new Complaint(`${/** @type {Error} */ (error).message}\n${HELP}`);
  }
  if (values.help) return undefined;
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new Complaint(`--minutes is a number above 0, not “${values.minutes}”.`);
  if (values.seed !== undefined && !/^\d{1,9}$/.test(values.seed)) {
    throw new Complaint(`--seed is a number of up to 9 digits, not “${values.seed}”.`);
  }
  return { minutes, seed: Number(values.seed ?? randomInt(1e9)) };
}
