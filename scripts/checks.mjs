// The checks of `npm test` besides tests. Each throws a Complaint that says what is wrong.

import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { BUILD_TOOL, saidOfWorker, TARGET_DIR } from "./build.mjs";
import { inCheckout, root } from "./files.mjs";
import { complaints, directReads } from "./floors.mjs";
import { cargoProgress, Complaint, run } from "./run.mjs";
import { clippyEnv, lintedNative, TARGET, wasmEnv } from "./rust.mjs";
import { complaints as tooLong, sources } from "./sizes.mjs";
import { compileTests } from "./suites.mjs";

const TIMEOUT = { timeoutMs: 30 * 60_000 };

/** @typedef {(text: string) => void} Note */

/** rustfmt over the workspace. */
export async function formatted() {
  await run("cargo", ["fmt", "--all", "--check"], { cwd: inCheckout("."), ...TIMEOUT });
}

/**
 * clippy over the crates that compile natively. It checked them during compilation, and cargo replays its messages.
 *
 * @param {string[][]} builds  arguments of `cargo test`
 * @param {Note} note
 */
export async function clippy(builds, note) {
  if (lintedNative().RUSTC_WORKSPACE_WRAPPER === undefined) throw new Complaint("clippy is missing: run `rustup component add clippy`.");
  const said = [];
  for (const args of builds) said.push(await compileTests([...args, "--message-format", "json"], note));
  quiet(said.join("\n"));
}

/** Complains about warnings. @param {string} messages  of cargo, a line of JSON each */
function quiet(messages) {
  const said = new Set();
  for (const line of messages.split("\n")) {
    if (!line.startsWith("{")) continue;
    const { reason, message } = JSON.parse(line);
    if (reason === "compiler-message" && ["warning", "error"].includes(message.level)) said.add(message.rendered.trimEnd());
  }
  if (said.size > 0) throw new Complaint([...said].join("\n\n"));
}

/**
 * clippy over the Worker's crate, for wasm, with the compiler that builds it. A release build compiles without clippy, so it
 * is checked separately.
 *
 * @param {import("./setup.mjs").Tools} tools
 * @param {Note} note
 */
export async function workerClippy(tools, note) {
  const said = await saidOfWorker(tools, note);
  if (said !== undefined) return quiet(said);
  const { compiler } = tools;
  await run("cargo", ["check", "--target", TARGET, "-p", "bobbin-worker", ...TARGET_DIR], {
    cwd: inCheckout("."),
    env: { ...wasmEnv(compiler), ...clippyEnv(compiler) },
    onLine: cargoProgress(note),
    ...TIMEOUT,
  });
}

/** Type-checks the JavaScript of one tsconfig.json. @param {string} project */
export async function types(project) {
  // The native compiler takes a quarter of the time. Uses of the compiler as a library need the previous version.
  const args = [inCheckout("node_modules/typescript-7/bin/tsc"), "--project", inCheckout(project), "--pretty", "false"];
  await run(process.execPath, args, { cwd: inCheckout("."), ...TIMEOUT });
}

/** No module of the core imports a higher one, and no large cycle of files import each other. @returns {Promise<void>} */
export async function floors() {
  const said = [...complaints(inCheckout("src")).said, ...directReads(["src", "crates"].map(inCheckout))];
  if (said.length > 0) throw new Complaint(said.join("\n"));
}

/** No file and no function is too long. @returns {Promise<void>} */
export async function sizes() {
  const said = await tooLong(await sources());
  if (said.length > 0) throw new Complaint(said.join("\n"));
}

/** The committed JSON Schemas of the definition files are those of the types. `schemas/openapi.json` has a test in scripts/openapi. */
export async function schemas() {
  await run(BUILD_TOOL, ["schemas", "--check"], { cwd: inCheckout("."), ...TIMEOUT });
}

/**
 * No file contains a path of the machine it was written on, or the address of a package registry.
 *
 * @returns {Promise<void>}
 */
export async function portable() {
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
