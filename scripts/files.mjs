// Paths on disk: the checkout, the cache that all checkouts of a machine share, and the rules for concurrent writes by
// several processes.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { locked as lockedQuietly, readIfThere } from "../package/lib/files.mjs";
import { step } from "./run.mjs";

export { readIfThere };

/** The checkout. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The folder of everything that is slow to build and identical for every checkout. */
export const cache =
  process.env.BOBBIN_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "bobbin");

/** @param {string} name */
export const inCheckout = (name) => join(root, name);

/** The oldest Rust that the workspace builds with, as cargo reads it: major and minor. */
export function oldestRust() {
  const [, major, minor] = /^rust-version = "(\d+)\.(\d+)/m.exec(readFileSync(inCheckout("Cargo.toml"), "utf8")) ?? [];
  if (!major || !minor) throw new Error("Cargo.toml has no line `rust-version = \"1.N\"`.");
  return /** @type {[number, number]} */ ([Number(major), Number(minor)]);
}

/** A path for people: relative within the checkout. @param {string} path */
export function shown(path) {
  const short = relative(root, path);
  return short === "" || short.startsWith("..") || isAbsolute(short) ? path : short;
}

/** @param {string[]} parts */
export const hash = (...parts) => createHash("sha256").update(parts.join("\0")).digest("hex").slice(0, 16);

/**
 * Runs `work` while no other process holds the same lock. The lock of a dead process is taken over.
 *
 * @template T
 * @param {string} path
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export const locked = (path, work) => lockedQuietly(path, work, (wait) => step("waiting for another process that does the same", wait));

/**
 * Creates the folder `path` if it does not exist. It is built under another name and renamed when complete, so a folder of
 * that name is always complete.
 *
 * @param {string} path
 * @param {(building: string) => Promise<void>} build
 */
export async function makeOnce(path, build) {
  if (existsSync(path)) return;
  await locked(`${path}.lock`, async () => {
    if (existsSync(path)) return;
    const building = `${path}.building`;
    rmSync(building, { recursive: true, force: true });
    mkdirSync(building, { recursive: true });
    await build(building);
    renameSync(building, path);
  });
}

/**
 * Hashes of the files that this process has read, with a mark of their change: a start hashes the same sources several times.
 *
 * @type {Map<string, { at: string, hash: string }>}
 */
const read = new Map();

/** @param {string} path @param {import("node:fs").Stats} stat */
function fileHash(path, { ctimeMs, mtimeMs, size }) {
  const at = [ctimeMs, mtimeMs, size].join(" ");
  const known = read.get(path);
  if (known?.at === at) return known.hash;
  const made = createHash("sha256").update(readFileSync(path)).digest("base64");
  read.set(path, { at, hash: made });
  return made;
}

/**
 * A hash of the names and contents of files, and of everything in folders.
 *
 * @param {string[]} paths relative to the checkout
 */
export function contentHash(paths) {
  const sum = createHash("sha256");
  /** @param {string} path */
  const add = (path) => {
    const full = inCheckout(path);
    try {
      const stat = statSync(full);
      if (stat.isDirectory()) for (const name of readdirSync(full).sort()) add(join(path, name));
      else sum.update(`${path}\0${fileHash(full, stat)}\0`);
    } catch (error) {
      // The file is gone: another process may be working on it.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOENT") throw error;
    }
  };
  for (const path of paths) add(path);
  return sum.digest("hex").slice(0, 16);
}
