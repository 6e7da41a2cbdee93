// Programs in Python, with the packages that a folder's `requirements.txt` names.

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** How long a program may take. */
const TIMEOUT_MS = 10 * 60_000;

/** Why there is no Python here; false where there is one. In CI there has to be. */
export const missing = spawnSync("python3", ["--version"]).status === 0 || process.env.CI ? false : "there is no python3";

/** The interpreter of a folder, with its packages. @param {string} folder */
export async function install(folder) {
  const inside = join(folder, ".venv");
  const program = join(inside, "bin", "python");
  if (!existsSync(join(inside, "ready"))) {
    await run("python3", ["-m", "venv", inside]);
    await run(program, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", join(folder, "requirements.txt")]);
    await run("touch", [join(inside, "ready")]);
  }
  return program;
}

/** What a program of the folder prints. @param {string} folder @param {...string} args */
export async function python(folder, ...args) {
  const program = await install(folder);
  try {
    return (await run(program, args, { cwd: folder, timeout: TIMEOUT_MS })).stdout;
  } catch (error) {
    const { stdout, stderr } = /** @type {{ stdout: string, stderr: string }} */ (error);
    return assert.fail(`${stdout}\n${stderr}`);
  }
}
