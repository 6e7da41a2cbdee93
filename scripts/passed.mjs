// What has passed with exactly these inputs: `npm test` does not run it again, and says so.
//
// The inputs of a section are all files of the checkout that git knows or would take, but for those that it says it
// does not read, and with them what comes from outside: the tool chains, the installed packages, .dev.vars, and the
// variables of the environment that are ours. A section that failed, or was stopped, has passed with nothing.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hash, inCheckout, readIfThere, root } from "./files.mjs";
import { run } from "./run.mjs";

/** @typedef {import("./suites.mjs").Counts} Counts */

const FOLDER = inCheckout(".bobbin/passed");

/** The scripts that run a section are read by each. */
const RUNNERS = /^(package\.json|scripts\/(build|checks|files|node-tests|passed|run|rust|schedule|sections|setup|suites|test|test-reporter)\.mjs)$/;

/** Variables of the environment that change what compilers and Node do. */
const OURS = /^(RUST|(BOBBIN|CARGO|NODE|CC|CXX|AR|MINIFLARE|WRANGLER|CLOUDFLARE)(_|$))|FLAGS$/;

/** Where things are kept makes no difference to what they are. */
const PLACES = ["BOBBIN_CACHE", "CARGO_HOME", "RUSTUP_HOME"];

export class Passed {
  /** @param {Map<string, string>} files  hash by path @param {string} outside  hash of what is not in the checkout */
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
      // Not the version of what runs this: in a fresh clone that is another Node than later, when npm finds the installed one.
      await run(node, ["--version"]),
      await run("rustc", ["-vV"]),
      ...[compiler.rustc, compiler.sysroot, node],
      readIfThere(inCheckout("node_modules/.package-lock.json")) ?? "",
      readIfThere(inCheckout(".dev.vars")) ?? "",
      ...ours.map((entry) => entry.join("=")).sort(),
    );
    return new Passed(files, outside);
  }

  /** @param {RegExp | undefined} unread  paths that make no difference, unless they are those of what runs every section */
  inputs(unread) {
    const read = [...this.files].filter(([name]) => RUNNERS.test(name) || !unread?.test(name));
    return hash(this.outside, ...read.map((entry) => entry.join(" ")));
  }

  /**
   * What came of it when it passed with these inputs, if it did.
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
   * Notes that it has passed, unless a file was changed meanwhile: then nobody knows what was read.
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

/** Nothing for what is no file, or is gone by now: another process may be at work. @param {string} path */
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
