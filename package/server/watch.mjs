// Watches a folder of definitions.

import { readdirSync, statSync, watch } from "node:fs";
import { join } from "node:path";

/** @typedef {{ inode: number, watcher: import("node:fs").FSWatcher }} Watched */

/**
 * Calls `changed` after each change in the folder and its subfolders, except in node_modules, which has
 * thousands of folders. `package.json` names the installed packages.
 *
 * Each folder has its own non-recursive watcher. On Linux, a recursive one follows the files that existed at its start.
 * It misses all changes after a file was replaced (`sed -i`, `git checkout`, most editors).
 *
 * @param {string} folder
 * @param {() => void} changed
 * @returns {() => void} stops watching
 */
export function watchFolder(folder, changed) {
  /** By path, with the inode: a folder may be replaced by another of the same name. @type {Map<string, Watched>} */
  const watched = new Map();
  const scan = () => {
    const found = folders(folder);
    for (const [path, { inode, watcher }] of watched) {
      if (found.get(path) === inode) continue;
      watcher.close();
      watched.delete(path);
    }
    for (const [path, inode] of found) {
      if (watched.has(path)) continue;
      const watcher = ifThere(() => watch(path, noticed));
      // The watcher of the parent folder reports a removed folder.
      if (watcher) watched.set(path, { inode, watcher: watcher.on("error", () => {}) });
    }
  };
  const noticed = () => {
    scan();
    changed();
  };
  scan();
  return () => {
    for (const { watcher } of watched.values()) watcher.close();
  };
}

/**
 * Returns the folders to watch, by path, with their inodes.
 *
 * @param {string} path
 * @param {Map<string, number>} [found]
 * @returns {Map<string, number>}
 */
function folders(path, found = new Map()) {
  const stat = statSync(path, { throwIfNoEntry: false });
  // A link may point to a folder above it.
  if (!stat?.isDirectory() || [...found.values()].includes(stat.ino)) return found;
  found.set(path, stat.ino);
  for (const name of ifThere(() => readdirSync(path)) ?? []) {
    if (!name.startsWith(".") && name !== "node_modules") folders(join(path, name), found);
  }
  return found;
}

/** Returns the result of `work`, or nothing if the folder has been removed. @template T @param {() => T} work @returns {T | undefined} */
function ifThere(work) {
  try {
    return work();
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOENT") throw error;
    return undefined;
  }
}
