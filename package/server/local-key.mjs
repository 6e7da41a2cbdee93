// The encryption key for variables on a development server. It is generated once and stored outside the folder of the
// threads, so that a copy of that folder reveals no values.

import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative } from "node:path";
import { readIfThere, shown } from "../lib/files.mjs";
import { Complaint } from "../lib/complaint.mjs";

const FILE = ".bobbin/encryption-keys";

/**
 * Returns the value of BOBBIN_ENCRYPTION_KEYS on this machine.
 *
 * @param {string} root     the project's folder
 * @param {string} persist  the folder of the threads
 * @returns {string}
 */
export function localKeys(root, persist) {
  const path = join(root, FILE);
  const within = relative(persist, path);
  if (!within.startsWith("..") && !isAbsolute(within)) {
    throw new Complaint(
      `${shown(path)} would be in the folder of the threads, ${shown(persist)}. Choose another folder, or set BOBBIN_ENCRYPTION_KEYS in .dev.vars.`,
    );
  }
  const known = readIfThere(path);
  if (known !== undefined) return known.trim();
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `local=${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  try {
    // Link into place. If two servers start at the same time, both use the key of the first.
    linkSync(draft, path);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const made = readIfThere(path);
  if (made === undefined) throw new Complaint(`${shown(path)} cannot be read.`);
  return made.trim();
}
