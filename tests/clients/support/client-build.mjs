// The client of client/, as it is published.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { checkout } from "../../worker/support/server.mjs";

/** @type {Promise<{ root: string, dist: string, modules: string }> | undefined} */
let built;

/** Builds it, once in a process: its folder, its `dist`, and its packages. */
export function buildClient() {
  built ??= (async () => {
    const root = join(checkout, "client");
    const modules = join(root, "node_modules");
    const npm = (/** @type {string[]} */ ...args) => promisify(execFile)("npm", args, { cwd: root });
    if (!existsSync(modules)) await npm("ci", "--ignore-scripts");
    await npm("run", "build");
    return { root, dist: join(root, "dist"), modules };
  })();
  return built;
}
