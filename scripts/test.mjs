// `npm test`: sets up, then runs every check and every test, whatever failed before, and ends with the line
// `N passed, N failed`. A check counts as one.

import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { buildTool, buildWorker, compileCatalog } from "./build.mjs";
import { buildIsolate } from "./isolate.mjs";
import { clippy, formatted, NATIVE, portable, schemas, types, workerClippy } from "./checks.mjs";
import { inCheckout } from "./files.mjs";
import { Complaint, main, print, seconds, step } from "./run.mjs";
import { setUp, setUpRustComponents } from "./setup.mjs";
import { cargoTest, nodeTest, testFiles } from "./suites.mjs";

/** @typedef {import("./suites.mjs").Counts} Counts */
/** @typedef {(text: string) => void} Note */

/**
 * @typedef {object} Section
 * @property {string} group                                    what --only calls it
 * @property {string} title
 * @property {(note: Note) => Promise<Counts | void>} run      throws when it failed; without counts it is one check
 */

const GROUPS = ["fmt", "clippy", "types", "core", "isolate", "worker"];

const HELP = `npm test -- [flags]

  --only GROUPS    of ${GROUPS.join(", ")}: those, separated by commas
  --help           this text`;

await main(async () => {
  const started = performance.now();
  const only = readFlags(process.argv.slice(2));
  if (!only) return console.log(HELP);
  print("set-up");
  const tools = await setUp().catch((error) => {
    print(error instanceof Complaint ? error.message : String(error.stack));
    throw new Complaint("0 passed, 1 failed");
  });
  if (only.includes("fmt") || only.includes("clippy")) await setUpRustComponents();

  const total = { passed: 0, failed: 0, skipped: 0 };
  /** @type {string[]} */
  const failures = [];
  for (const section of sections(tools)) {
    if (!only.includes(section.group)) continue;
    const counts = await runSection(section);
    if (counts.failed > 0) failures.push(section.title);
    for (const name of /** @type {const} */ (["passed", "failed", "skipped"])) total[name] += counts[name];
  }

  // A run that found nothing to do says nothing about the product.
  if (total.passed + total.failed === 0) throw new Complaint("Nothing ran.");
  print("");
  if (failures.length > 0) print(`Failed: ${failures.join(", ")}`);
  if (total.skipped > 0) print(`${total.skipped} skipped`);
  print(`${seconds(started)} s`);
  print(`${total.passed} passed, ${total.failed} failed`);
  if (total.failed > 0) process.exitCode = 1;
});

/** @param {Section} section @returns {Promise<Counts>} */
async function runSection({ title, run }) {
  const start = performance.now();
  print(`\n${title}`);
  /** @type {Counts} */
  let counts;
  try {
    counts = (await step(title, run, { closing: false })) ?? { passed: 1, failed: 0, skipped: 0 };
  } catch (error) {
    // A fault of these scripts too: the other sections still run.
    print(error instanceof Complaint ? error.message : String(error instanceof Error ? error.stack : error));
    counts = { passed: 0, failed: 1, skipped: 0 };
  }
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
  print(`  ${title}: ${counts.passed} passed, ${counts.failed} failed${skipped} (${seconds(start)} s)`);
  return counts;
}

/** In the order in which a person wants to hear of mistakes. @param {import("./setup.mjs").Tools} tools @returns {Section[]} */
function sections(tools) {
  const { compiler, node } = tools;
  return [
    { group: "fmt", title: "rustfmt", run: formatted },
    { group: "fmt", title: "no traces of a machine", run: portable },
    { group: "types", title: "types of the scripts and tests", run: () => types("tsconfig.json") },
    { group: "types", title: "types of the shim", run: () => types("worker/tsconfig.json") },
    { group: "types", title: "types of the isolate Worker", run: () => types("isolate/tsconfig.json") },
    { group: "types", title: "types of what runs in its engine", run: () => types("isolate/web/tsconfig.json") },
    { group: "clippy", title: "clippy: core", run: (note) => clippy(["--package", "bobbin"], note) },
    { group: "clippy", title: "clippy: core with schemas, build tool", run: (note) => clippy([...NATIVE, "--features", "bobbin/schema"], note) },
    { group: "clippy", title: "clippy: Worker", run: (note) => workerClippy(compiler, note) },
    { group: "core", title: "cargo test", run: (note) => cargoTest(NATIVE, { note }) },
    {
      group: "core",
      title: "schemas of the definition files",
      run: async () => {
        await buildTool();
        await schemas();
      },
    },
    { group: "isolate", title: "build of the isolate", run: async () => void (await buildIsolate(tools)) },
    {
      group: "isolate",
      title: "tests of the isolate",
      run: async (note) => nodeTest(node, testFiles("tests/isolate"), { note }),
    },
    {
      group: "worker",
      title: "build of the Worker",
      run: async () => compileCatalog(inCheckout("agents"), join(await buildWorker(tools), "catalog.json")),
    },
    { group: "worker", title: "build of the isolate Worker", run: async () => void (await buildIsolate(tools)) },
    {
      group: "worker",
      title: "tests of the Worker and of npm start",
      run: async (note) => {
        const files = [...testFiles("tests/worker"), ...testFiles("tests/scripts")];
        return files.length > 0 ? nodeTest(node, files, { note }) : { passed: 0, failed: 0, skipped: 0 };
      },
    },
  ];
}

/** @param {string[]} args */
function readFlags(args) {
  const options = /** @type {const} */ ({ only: { type: "string" }, help: { type: "boolean", default: false } });
  /** @type {{ only?: string, help: boolean }} */
  let values;
  try {
    ({ values } = parseArgs({ args, strict: true, allowPositionals: false, options }));
  } catch (error) {
    throw new Complaint(`${/** @type {Error} */ (error).message}\n${HELP}`);
  }
  if (values.help) return undefined;
  const only = values.only?.split(",") ?? GROUPS;
  const unknown = only.filter((name) => !GROUPS.includes(name));
  if (unknown.length > 0) throw new Complaint(`--only knows ${GROUPS.join(", ")}, not “${unknown.join(", ")}”.`);
  return only;
}
