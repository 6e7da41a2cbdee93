// `npm test`: sets up, then runs every check and every test despite failures, and ends with the line `N passed, N failed`. A check
// counts as one. The groups are the scripts `check:…` and `test:…` of package.json. wireit runs them, two at a time, and skips those
// that passed before with the same inputs.

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { delimiter, dirname } from "node:path";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { setUpBrowser } from "./browser.mjs";
import { inCheckout, readIfThere, root } from "./files.mjs";
import { forgetResults, result } from "./results.mjs";
import { Complaint, main, print, run, seconds } from "./run.mjs";
import { setUp } from "./setup.mjs";
import { testsOf } from "./test-names.mjs";

/** What a run from a fresh clone writes, mainly compiled code. A full disk fails with misleading errors. */
const DISK_GB = 5;

/** Environment variables that change what is tested. */
const VARIABLES = ["BOBBIN_BUILD", "BOBBIN_SERVER", "RUSTFLAGS"];

const HELP = `npm test -- [NAME] [flags]

  NAME           only tests with this text in their name or their file's path
  --deployed     also the release build under wrangler, and the npm packages: the tests in which these can make a difference
  --full         also every failure of the engine at every point, and again what has passed before
  --again        also what has passed before with the same inputs
  --help         this text

npm run test:core, and so on, runs one group; package.json lists them. BOBBIN_SAMPLE=N chooses the failures that the engine is tried
with; by default it follows from the commit.`;

await main(async () => {
  const started = performance.now();
  const flags = readFlags(process.argv.slice(2));
  if (!flags) return console.log(HELP);
  const free = freeGb();
  if (free < DISK_GB) print(`only ${free.toFixed(1)} GB of the disk are free: a run from a fresh clone needs about ${DISK_GB}`);
  // On failure, the test that needs a browser says what is missing. Awaited in any case: half an installation is worse than none.
  const browser = setUpBrowser().catch((error) => print(error instanceof Complaint ? error.message : String(error.stack)));
  const { node } = await setUp();
  await browser;
  forgetResults();
  if (flags.name !== undefined) return report(await runByName(node, flags.name), 0);
  await noteOutside(node);
  // What wireit remembers, and its copies of the results.
  if (flags.again || flags.full || process.env.BOBBIN_SAMPLE !== undefined) rmSync(inCheckout(".wireit"), { recursive: true, force: true });
  const script = flags.full ? "test:full" : flags.deployed ? "test:everything" : "test:all";
  const env = { WIREIT_FAILURES: "continue", WIREIT_PARALLEL: "2", ...(flags.full && { BOBBIN_SAMPLE: "all" }) };
  const status = await runChild("npm", ["run", "--silent", script], { ...env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` });
  print(`${seconds(started)} s`);
  report(groupsOf(script), status);
});

/** Prints the sum of the results as the last line. @param {string[]} groups @param {number} status  of wireit */
function report(groups, status) {
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const group of groups) {
    // A group that did not end has failed.
    const counts = result(group) ?? { passed: 0, failed: 1, skipped: 0 };
    if (counts.failed > 0) print(`${group}: ${counts.passed} passed, ${counts.failed} failed`);
    if (counts.unsteady !== undefined) print(`${group}: failed beside others, passed alone: ${counts.unsteady.join(", ")}`);
    for (const what of /** @type {const} */ (["passed", "failed", "skipped"])) total[what] += counts[what];
  }
  if (status !== 0 && total.failed === 0) {
    print("wireit failed");
    total.failed = 1;
  }
  if (total.skipped > 0) print(`${total.skipped} skipped`);
  print(`${total.passed} passed, ${total.failed} failed`);
  if (total.failed > 0) process.exitCode = 1;
}

/** The groups that a script of package.json runs. @param {string} script @returns {string[]} */
function groupsOf(script) {
  /** @type {{ wireit: Record<string, { command?: string, dependencies?: string[] }> }} */
  const { wireit } = JSON.parse(readFileSync(inCheckout("package.json"), "utf8"));
  const { command, dependencies = [] } = wireit[script] ?? {};
  return command === undefined ? dependencies.flatMap(groupsOf) : [script];
}

/** Runs the tests with a text in their names. @param {string} node @param {string} name @returns {Promise<string[]>} the groups of their results */
async function runByName(node, name) {
  const { packages, files, titled } = testsOf(name);
  const script = (/** @type {string} */ file, /** @type {string[]} */ args) => runChild(node, [inCheckout(`scripts/${file}.mjs`), ...args]);
  /** @type {string[]} */
  const groups = [];
  const group = (/** @type {string} */ title) => ["--group", groups[groups.push(title) - 1] ?? title];
  if (packages.length > 0) await script("cargo-tests", [...group("rust"), "--", ...packages.flatMap((of) => ["--package", of]), name]);
  if (files.length + titled.length > 0) {
    // A build that fails is a failed test.
    if ((await script("build", ["--development"])) !== 0) return [...groups, "build"];
    if (files.length > 0) await script("node-tests", [...group("files"), ...files]);
    if (titled.length > 0) await script("node-tests", [...group("titles"), "--name", name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), ...titled]);
  }
  if (groups.length === 0) throw new Complaint(`No test has “${name}” in its name or in the path of its file.`);
  return groups;
}

/** Runs a program that shares this one's output. @param {string} command @param {string[]} args @param {NodeJS.ProcessEnv} [env] @returns {Promise<number>} its exit code */
function runChild(command, args, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env }, stdio: "inherit" });
    const end = () => child.kill("SIGTERM");
    process.once("SIGTERM", end);
    child.on("error", (error) => reject(new Complaint(`${command} cannot be run: ${error.message}`)));
    child.on("close", (code) => {
      process.off("SIGTERM", end);
      resolve(code ?? 1);
    });
  });
}

/** Writes down the inputs of every group that are not in the checkout: tool chains and variables. @param {string} node */
async function noteOutside(node) {
  const variables = VARIABLES.map((name) => `${name}=${process.env[name] ?? ""}\n`).join("");
  const text = `${await run("rustc", ["-vV"])}node ${await run(node, ["--version"])}${variables}`;
  const file = inCheckout(".bobbin/outside.txt");
  if (readIfThere(file) === text) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** The free space on the checkout's disk, in gigabytes. */
function freeGb() {
  const { bavail, bsize } = statfsSync(root);
  return (bavail * bsize) / 1e9;
}

/** @param {string[]} args */
function readFlags(args) {
  const no = /** @type {const} */ ({ type: "boolean", default: false });
  const options = /** @type {const} */ ({ full: no, deployed: no, again: no, help: no });
  try {
    const { values, positionals } = parseArgs({ args, strict: true, allowPositionals: true, options });
    if (positionals.length > 1) throw new Complaint(`One name at a time, not ${positionals.join(", ")}. Quote a name with blanks.`);
    const [name] = positionals;
    if (name !== undefined && (values.full || values.deployed)) throw new Complaint("A name goes with neither --full nor --deployed.");
    return values.help ? undefined : { ...values, name };
  } catch (error) {
    throw new Complaint(`${/** @type {Error} */ (error).message}\n${HELP}`);
  }
}
