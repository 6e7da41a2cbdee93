// The checks of `npm test` besides tests. Each throws a Complaint that says what is wrong.
//
//   node scripts/checks.mjs [--group GROUP] NAME…

import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { NATIVE, TARGET_DIR } from "./compile.mjs";
import { inCheckout, root } from "./files.mjs";
import { complaints, directReads } from "./floors.mjs";
import { record } from "./results.mjs";
import { cargo, Complaint, main, print, run, step } from "./run.mjs";
import { buildStd, TARGET, wasmCompiler, wasmEnv } from "./rust.mjs";
import { setUpRustComponents } from "./setup.mjs";
import { complaints as tooLong, sources } from "./sizes.mjs";

const TIMEOUT = { timeoutMs: 30 * 60_000 };
/** Warnings are errors. */
const STRICT = ["--", "-D", "warnings"];

/** @typedef {(text: string) => void} Note */

/** rustfmt over the workspace. */
async function formatted() {
  await setUpRustComponents();
  await run("cargo", ["fmt", "--all", "--check"], { cwd: inCheckout("."), ...TIMEOUT });
}

/** clippy over all crates with their tests: those that compile natively, then the Worker's crate for wasm. @param {Note} note */
async function clippy(note) {
  await setUpRustComponents();
  await cargo(["clippy", ...NATIVE, "--all-targets", ...TARGET_DIR, ...STRICT], note, { cwd: root, ...TIMEOUT });
  const compiler = await wasmCompiler();
  await buildStd(compiler);
  // The profile of the Workers for development, so that no native build waits for this.
  const args = ["clippy", "--profile", "quick", "--target", TARGET, "--package", "bobbin-worker", ...TARGET_DIR, ...STRICT];
  await cargo(args, note, { cwd: root, env: wasmEnv(compiler), ...TIMEOUT });
}

/** Every tsconfig.json of the checkout's own JavaScript: scripts and tests, the shim, the inspector, the isolate Worker, and what runs in its engine. */
const PROJECTS = ["tsconfig.json", "worker/tsconfig.json", "inspector/tsconfig.json", "isolate/tsconfig.json", "isolate/web/tsconfig.json"];

/** Type-checks the JavaScript. @param {Note} note */
async function types(note) {
  for (const project of PROJECTS) {
    note(project);
    // The native compiler takes a quarter of the time. Uses of the compiler as a library need the previous version.
    const args = [inCheckout("node_modules/typescript-7/bin/tsc"), "--project", inCheckout(project), "--pretty", "false"];
    await run(process.execPath, args, { cwd: root, ...TIMEOUT });
  }
}

/** No module of the core imports a higher one, and no large cycle of files import each other. @returns {Promise<void>} */
async function floors() {
  const said = [...complaints(inCheckout("src")).said, ...directReads(["src", "crates"].map(inCheckout))];
  if (said.length > 0) throw new Complaint(said.join("\n"));
}

/** No file and no function is too long. @returns {Promise<void>} */
async function sizes() {
  const said = await tooLong(await sources());
  if (said.length > 0) throw new Complaint(said.join("\n"));
}

/**
 * No file contains a path of the machine it was written on, or the address of a package registry.
 *
 * @returns {Promise<void>}
 */
async function portable() {
  const listed = await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  const home = homedir();
  const places = [
    // Folders in which checkouts and home directories are.
    /(?<![\w.~})\]/-])\/(?:root|home|Users|workspace|workspaces|work|mnt)\/[\w.-]+/,
    // Servers of package registries. Links in documents use other addresses.
    /registry\.npmjs\.org|static\.crates\.io|index\.crates\.io|files\.pythonhosted\.org|pypi\.org\/simple|proxy\.golang\.org/,
    ...[root, home].filter((place) => place.length > 5).map((place) => new RegExp(place.replace(/[^\w/]/g, "\\$&"))),
  ];
  /** @type {string[]} */
  const found = [];
  for (const name of listed.split("\0")) {
    const path = inCheckout(name);
    if (name === "" || !existsSync(path) || !statSync(path).isFile()) continue;
    const text = readFileSync(path, "utf8");
    if (text.includes("\0")) continue;
    text.split("\n").forEach((line, at) => {
      const place = places.map((pattern) => pattern.exec(line)?.[0]).find((match) => match !== undefined);
      if (place !== undefined) found.push(`${name}:${at + 1}: ${place}`);
    });
  }
  found.push(...lockFileAddresses());
  if (found.length > 0) throw new Complaint(found.join("\n"));
}

/** Package sources in the lock files other than each client's default. */
function lockFileAddresses() {
  /** @type {string[]} */
  const found = [];
  for (const [, source] of readFileSync(inCheckout("Cargo.lock"), "utf8").matchAll(/^source = "(.*)"$/gm)) {
    if (source !== "registry+https://github.com/rust-lang/crates.io-index") found.push(`Cargo.lock: ${source}`);
  }
  const { packages } = JSON.parse(readFileSync(inCheckout("package-lock.json"), "utf8"));
  for (const [name, { resolved }] of Object.entries(packages)) {
    if (resolved !== undefined) found.push(`package-lock.json: ${name}: ${resolved}`);
  }
  return found;
}

const CHECKS = { formatted, portable, floors, sizes, clippy, types };

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { group: { type: "string" } } });
    for (const name of positionals) {
      const check = Object.entries(CHECKS).find(([known]) => known === name)?.[1];
      if (check === undefined) throw new Complaint(`The checks are ${Object.keys(CHECKS).join(", ")}, not “${name}”.`);
      try {
        await step(name, check);
        counts.passed++;
      } catch (error) {
        if (!(error instanceof Complaint)) throw error;
        print(`${error.message}\n${name}: failed`);
        counts.failed++;
      }
    }
    record(values.group, counts);
  });
}
