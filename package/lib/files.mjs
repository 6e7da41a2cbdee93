// Paths as commands show them, atomic writes, and locks between processes.

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Returns a path relative to the working directory if it is below it, otherwise unchanged. @param {string} path */
export function shown(path) {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") || isAbsolute(short) ? path : short;
}

/** @param {string} path */
export function readIfThere(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Writes a temporary file and renames it, so that no reader sees a partial file. @param {string} path @param {string} text */
export function writeWhole(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

/** Returns whether a process is running. It may belong to another user. @param {number} pid */
export function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EPERM";
  }
}

/** Takes a lock if it is free. Returns whether it did. @param {string} path */
function claim(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EEXIST") throw error;
    return false;
  }
}

/**
 * Removes the lock of a dead process. If another process has taken the lock in the meantime, restores it.
 * @param {string} path @param {number} holder
 */
function bury(path, holder) {
  const grave = `${path}.${process.pid}`;
  try {
    renameSync(path, grave);
    if (Number(readIfThere(grave)) !== holder) linkSync(grave, path);
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code !== "ENOENT" && code !== "EEXIST") throw error;
  }
  rmSync(grave, { force: true });
}

/**
 * Runs `work` while no other process holds the lock. A lock whose process has died is taken over.
 *
 * @template T
 * @param {string} path
 * @param {() => Promise<T>} work
 * @param {(wait: (note: (text: string) => void) => Promise<void>) => Promise<void>} [waiting]   shows that the process is waiting
 * @returns {Promise<T>}
 */
export async function locked(path, work, waiting = (wait) => wait(() => {})) {
  mkdirSync(dirname(path), { recursive: true });
  if (!claim(path)) {
    await waiting(async (note) => {
      for (let waited = 0; !claim(path); waited++) {
        const holder = Number(readIfThere(path));
        note(`${holder} holds ${path}`);
        // An empty lock file is between its creation and its first write. Give its process a second.
        if (holder > 0 ? !alive(holder) : waited > 10) bury(path, holder);
        else await sleep(100);
      }
    });
  }
  const release = () => rmSync(path, { force: true });
  process.once("exit", release);
  try {
    return await work();
  } finally {
    process.off("exit", release);
    release();
  }
}
