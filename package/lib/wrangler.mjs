// Runs wrangler on a project's configurations, with a Node version that it accepts.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Complaint, EXIT } from "./complaint.mjs";
import { readIfThere } from "./files.mjs";
import { wranglerOf, wranglerVersion } from "./resolve.mjs";

/** The required Node version if wrangler's package does not declare one. */
const OLDEST_NODE = "22.0.0";

/**
 * @typedef {object} Wrangler
 * @property {(args: string[], env?: Record<string, string>) => number} show      runs it in the terminal; returns its exit code
 * @property {(args: string[]) => { code: number, out: string, all: string }} ask  runs it and returns its output
 */

/** @param {string} root  the project's folder @returns {Wrangler} */
export function wranglerIn(root) {
  const { node } = wranglerVersion(root);
  const wanted = /(\d+)\.(\d+)/.exec(node ?? OLDEST_NODE) ?? [];
  if (!isAtLeast(process.versions.node, Number(wanted[1]), Number(wanted[2]))) {
    throw new Complaint(
      `wrangler needs Node ${wanted[1]}.${wanted[2]} or newer, and this is ${process.versions.node}. Deploy with a newer one, such as \`npx --package node@22 bobbin deploy\`. ` +
        "`bobbin dev` and `bobbin serve` work with this one.",
      EXIT.usage,
    );
  }
  const program = wranglerOf(root);
  const run = (/** @type {string[]} */ args, /** @type {import("node:child_process").SpawnSyncOptions} */ options) => {
    const env = { ...process.env, WRANGLER_SEND_METRICS: "false", ...options.env };
    const ended = spawnSync(process.execPath, ["--no-warnings", program, ...args], { cwd: root, ...options, env });
    if (ended.error) throw new Complaint(`wrangler cannot be started: ${ended.error.message}`);
    return ended;
  };
  return {
    show: (args, env = {}) => run(args, { stdio: "inherit", env }).status ?? 1,
    ask: (args) => {
      const { status, stdout, stderr } = run(args, { stdio: ["ignore", "pipe", "pipe"], env: { WRANGLER_HIDE_BANNER: "true" } });
      return { code: status ?? 1, out: String(stdout), all: `${stdout}${stderr}` };
    },
  };
}

/** @param {string} version @param {number} major @param {number} minor */
function isAtLeast(version, major, minor) {
  const [a = 0, b = 0] = version.split(".").map(Number);
  return a > major || (a === major && b >= minor);
}

/**
 * Runs `work` with a private temporary file, and deletes the file afterwards.
 *
 * @template T
 * @param {string} text
 * @param {(path: string) => T} work
 * @returns {T}
 */
export function withSecretFile(text, work) {
  const folder = mkdtempSync(join(tmpdir(), "bobbin-secrets-"));
  try {
    const path = join(folder, "secrets.json");
    writeFileSync(path, text, { mode: 0o600, flag: "wx" });
    return work(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Returns the names of a Worker's secrets, or nothing if the Worker does not exist yet.
 * @param {Wrangler} wrangler @param {string} config @returns {string[] | undefined}
 */
export function secretsOf(wrangler, config) {
  const { code, out, all } = wrangler.ask(["secret", "list", "--config", config, "--format", "json"]);
  if (code === 0) return JSON.parse(out.slice(out.indexOf("["))).map((/** @type {{ name: string }} */ { name }) => name);
  // Code 10007: the Worker does not exist on this account. No other error may count as a Worker without secrets.
  if (/code: 10007|"[^"]*" (?:not found|does not exist)/i.test(all)) return undefined;
  throw new Complaint(`${all.trim()}\nBobbin cannot list the Worker's secrets, so it did not deploy the Worker.`);
}

/** Returns the address of a deployment from wrangler's output file. @param {string} path @returns {string | undefined} */
export function addressIn(path) {
  const lines = (readIfThere(path) ?? "").split("\n").filter(Boolean);
  const deployed = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === "deploy");
  const targets = deployed.flatMap(({ targets = [] }) => targets);
  // Routes contain patterns, which are not addresses.
  const address = targets.find((/** @type {string} */ target) => /^(https?:\/\/[^\s*]+|[a-z0-9.-]+\.[a-z]+)$/i.test(target));
  return address === undefined ? undefined : /^https?:/.test(address) ? address : `https://${address}`;
}

