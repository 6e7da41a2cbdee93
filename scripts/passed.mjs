// A cache of passed sections: `npm test` does not repeat a section that has passed with the same inputs, and says so.
//
// The inputs are all files of the checkout that git tracks or would add, except those that the section declares as unread.
// They also include the tool chains, the installed packages, .dev.vars, and the environment variables that matter. A
// section that failed or was stopped is not cached.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hash, inCheckout, readIfThere, root } from "./files.mjs";
import { run } from "./run.mjs";

/** @typedef {import("./suites.mjs").Counts} Counts */

const FOLDER = inCheckout(".bobbin/passed");

/** The scripts that run sections are inputs of every section. */
const RUNNERS = /^(package\.json|scripts\/(build|catalog|checks|compile|files|isolate|node-tests|passed|run|rust|schedule|sections|setup|suites|test|test-reporter|worker)\.mjs)$/;

/** Environment variables that affect compilers and Node. */
const OURS = /^(RUST|(BOBBIN|CARGO|NODE|CC|CXX|AR|MINIFLARE|WRANGLER|CLOUDFLARE)(_|$))|FLAGS$/;

/** Locations of caches, which do not affect the results. */
const PLACES = ["BOBBIN_CACHE", "CARGO_HOME", "RUSTUP_HOME"];

export class Passed {
  /** @param {Map<string, string>} files  hash by path @param {string} outside  hash of the inputs outside the checkout */
  constructor(files, outside) {
    this.files = files;
    this.outside = outside;
  }

  /** Reads every file once. @param {import("./setup.mjs").Tools} tools */
  static async read(tools) {
    const listed = await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
    /** @type {Map<string, string>} */
    const files = new Map();
    for (const name of [...new Set(listed.split("\0"))].sort()) {
      const read = name === "" ? undefined : modeAndHash(inCheckout(name));
      if (read !== undefined) files.set(name, read);
    }
    const { compiler, node } = tools;
    const ours = Object.entries(process.env).filter(([name]) => OURS.test(name) && !PLACES.includes(name));
    const outside = hash(
      process.platform + process.arch,
      // Not the version of this process: in a fresh clone, before npm has installed its Node, that is another one.
      await run(node, ["--version"]),
      await run("rustc", ["-vV"]),
      ...[compiler.rustc, compiler.sysroot, node],
      readIfThere(inCheckout("node_modules/.package-lock.json")) ?? "",
      readIfThere(inCheckout(".dev.vars")) ?? "",
      ...ours.map((entry) => entry.join("=")).sort(),
    );
    return new Passed(files, outside);
  }

  /** @param {RegExp | undefined} unread  paths to ignore, unless they belong to the scripts that run sections */
  inputs(unread) {
    const read = [...this.files].filter(([name]) => RUNNERS.test(name) || !unread?.test(name));
    return hash(this.outside, ...read.map((entry) => entry.join(" ")));
  }

  /**
   * The counts of the last pass with these inputs, if there was one.
   *
   * @param {string} title @param {RegExp | undefined} unread @returns {Counts | undefined}
   */
  before(title, unread) {
    const text = readIfThere(stamp(title));
    if (text === undefined) return undefined;
    const { inputs, counts } = JSON.parse(text);
    return inputs === this.inputs(unread) ? counts : undefined;
  }

  /**
   * Records a pass, unless a file has changed meanwhile: then it is unknown which version was read.
   *
   * @param {string} title @param {RegExp | undefined} unread @param {Counts} counts @param {import("./setup.mjs").Tools} tools
   */
  async note(title, unread, counts, tools) {
    const inputs = this.inputs(unread);
    if ((await Passed.read(tools)).inputs(unread) !== inputs) return;
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(stamp(title), JSON.stringify({ title, inputs, counts }));
  }
}

/** Undefined if it is not a file, or is gone: another process may be working on it. @param {string} path */
function modeAndHash(path) {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) return undefined;
    return `${stat.mode & 0o111} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return undefined;
    throw error;
  }
}

/** @param {string} title */
const stamp = (title) => `${FOLDER}/${title.replace(/[^a-z]+/gi, "-")}.json`;
