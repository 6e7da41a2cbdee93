// `npm test`: sets up, then runs every check and every test despite failures, and ends with the line `N passed, N failed`. A
// check counts as one. Sections that passed before with the same inputs are skipped.

import { statfsSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { setUpBrowser } from "./browser.mjs";
import { root } from "./files.mjs";
import { Passed } from "./passed.mjs";
import { Complaint, main, outcome, print, seconds, step } from "./run.mjs";
import { schedule } from "./schedule.mjs";
import { GROUPS, sections } from "./sections.mjs";
import { setUp, setUpRustComponents } from "./setup.mjs";

/** @typedef {import("./suites.mjs").Counts} Counts */
/** @typedef {import("./sections.mjs").Section} Section */

/** What a run from a fresh clone writes, mainly compiled code. A full disk fails with misleading errors. */
const DISK_GB = 5;
/** Sections at a time: a waiting test and a compiler use two processors together. */
const LANES = 2;

const HELP = `npm test -- [flags]

  --only GROUPS    of ${GROUPS.join(", ")}: those, separated by commas
  --full           every failure at every point, and the Worker as it is deployed; again, whatever passed before
  --deployed       the release build under wrangler, and the npm packages: the tests in which these can make a difference
  --again          runs what has passed before with the same inputs, too
  --help           this text

BOBBIN_SAMPLE=N chooses the failures that the engine is tried with; it is printed, and follows from the commit.`;

await main(async () => {
  const started = performance.now();
  const flags = readFlags(process.argv.slice(2));
  if (!flags) return console.log(HELP);
  const { only, full, deployed } = flags;
  const asDeployed = full || deployed;
  print("set-up");
  const free = freeGb();
  if (free < DISK_GB) print(`only ${free.toFixed(1)} GB of the disk are free: a run from a fresh clone needs about ${DISK_GB}`);
  const told = (/** @type {any} */ error) => void print(error instanceof Complaint ? error.message : String(error.stack));
  // On failure, the test that needs it says what is missing. Awaited in any case: half an installation is worse than none.
  const browser = only.includes("worker") ? setUpBrowser().catch(told) : undefined;
  const tools = await setUp().catch(told);
  await browser;
  if (tools === undefined) throw new Complaint("0 passed, 1 failed");
  if (only.includes("fmt") || only.includes("clippy")) await setUpRustComponents();

  // Servers started by tests must use the same build as the tests.
  process.env.BOBBIN_BUILD ??= asDeployed ? "release" : "quick";
  // A run has about 190 starts: each takes 4.4 s of processor time with wrangler and 0.4 s with workerd.
  process.env.BOBBIN_SERVER ??= asDeployed ? "wrangler" : "workerd";
  const passed = await Passed.read(tools);
  const sample = full ? undefined : (process.env.BOBBIN_SAMPLE ?? (await seedOfCommit()));
  if (only.includes("core") && !deployed) print(full ? "failures of the engine: all" : `failures of the engine: sample ${sample}; again: BOBBIN_SAMPLE=${sample} npm test`);

  const total = { passed: 0, failed: 0, skipped: 0 };
  /** @type {string[]} */
  const failures = [];
  /** Files that passed only when they were run again. @type {string[]} */
  const unsteady = [];
  /** Titles with seconds. @type {[string, number][]} */
  const times = [];
  const count = (/** @type {Section} */ { title }, /** @type {Counts} */ counts) => {
    if (counts.failed > 0) failures.push(title);
    for (const name of /** @type {const} */ (["passed", "failed", "skipped"])) total[name] += counts[name];
  };

  const all = sections(tools, sample);
  const wanted = all.filter(({ group }) => (deployed ? group === "deployed" : only.includes(group)));
  /** @type {Section[]} */
  const left = [];
  for (const section of wanted) {
    const counts = asDeployed || flags.again ? undefined : passed.before(section.title, section.unread);
    if (counts === undefined) left.push(section);
    else {
      print(`  ${section.title}: unchanged, ${counts.passed} passed before`);
      count(section, counts);
    }
  }
  // Only the builds that the remaining sections need.
  const jobs = withBuilds(left, all).map((what) => ({ what, id: what.title, needs: what.needs ?? [] }));
  await schedule(jobs, LANES, async (section, ready) => {
    const start = performance.now();
    const counts = await runSection(section, ready);
    times.push([section.title, Number(seconds(start))]);
    if (section.group !== "build" || counts.failed > 0) count(section, counts);
    unsteady.push(...(counts.unsteady ?? []));
    // Unsteady sections run again next time.
    if (counts.failed === 0 && !counts.unsteady?.length && section.group !== "build") {
      await passed.note(section.title, section.unread, counts, tools);
    }
    return counts.failed === 0;
  });

  // A run without any test says nothing about the product.
  if (total.passed + total.failed === 0) throw new Complaint("Nothing ran.");
  // Two run at a time, so the sum exceeds the total.
  const longest = times.filter(([, took]) => took >= 1).toSorted(([, a], [, b]) => b - a);
  if (longest.length > 0) print("seconds, two things at a time:");
  for (const [title, took] of longest) print(`${took.toFixed(0).padStart(6)}  ${title}`);
  if (unsteady.length > 0) print(`Failed beside others, passed alone: ${unsteady.join(", ")}`);
  if (failures.length > 0) print(`Failed: ${failures.join(", ")}`);
  if (total.skipped > 0) print(`${total.skipped} skipped`);
  print(`${seconds(started)} s`);
  print(`${total.passed} passed, ${total.failed} failed`);
  if (total.failed > 0) process.exitCode = 1;
});

/** The free space on the checkout's disk, in gigabytes. */
function freeGb() {
  const { bavail, bsize } = statfsSync(root);
  return (bavail * bsize) / 1e9;
}

/** The seed of a commit, so that its tests always use the same failures. */
async function seedOfCommit() {
  const { stdout } = await outcome("git", ["rev-parse", "HEAD"], { cwd: root });
  return String(Number.parseInt(stdout.slice(0, 8), 16) || 1);
}

/**
 * These sections and all builds that they need, in the order of the whole list.
 *
 * @param {Section[]} left @param {Section[]} all
 */
function withBuilds(left, all) {
  const taken = new Set(left);
  for (const section of taken) {
    for (const other of all) if (section.needs?.includes(other.title) && other.group === "build") taken.add(other);
  }
  return all.filter((section) => taken.has(section));
}

/** @param {Section} section @param {boolean} ready  whether its needs were built @returns {Promise<Counts>} */
async function runSection({ title, run }, ready) {
  const start = performance.now();
  /** @type {Counts} */
  let counts;
  try {
    if (!ready) throw new Complaint("   not run: what it needs was not built");
    counts = (await step(title, run, { closing: false })) ?? { passed: 1, failed: 0, skipped: 0 };
  } catch (error) {
    // Also for a fault of these scripts: the other sections still run.
    print(error instanceof Complaint ? error.message : String(error instanceof Error ? error.stack : error));
    counts = { passed: 0, failed: 1, skipped: 0 };
  }
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
  print(`  ${title}: ${counts.passed} passed, ${counts.failed} failed${skipped} (${seconds(start)} s)`);
  return counts;
}

/** @param {string[]} args */
function readFlags(args) {
  const no = /** @type {const} */ ({ type: "boolean", default: false });
  const options = /** @type {const} */ ({ only: { type: "string" }, full: no, deployed: no, again: no, help: no });
  /** @type {{ only?: string, full: boolean, deployed: boolean, again: boolean, help: boolean }} */
  let values;
  try {
    ({ values } = parseArgs({ args, strict: true, allowPositionals: false, options }));
  } catch (error) {
    throw new Complaint(`${/** @type {Error} */ (error).message}\n${HELP}`);
  }
  if (values.help) return undefined;
  const only = values.only?.split(",") ?? GROUPS;
  const unknown = only.filter((name) => !GROUPS.includes(name));
  if (values.deployed && (values.full || values.only !== undefined)) throw new Complaint("--deployed goes with neither --full nor --only.");
  if (unknown.length > 0) throw new Complaint(`--only knows ${GROUPS.join(", ")}, not “${unknown.join(", ")}”.`);
  return { ...values, only };
}
