// Watching a folder of definitions.

import { readdirSync, statSync, watch } from "node:fs";
import { join } from "node:path";

/** @typedef {{ inode: number, watcher: import("node:fs").FSWatcher }} Watched */

/**
 * Calls `changed` after every change in the folder and in the folders below it, but for those of packages: there are
 * thousands of these, and what is installed is named in `package.json`.
 *
 * Each folder has a plain watcher of its own. One that watches recursively follows on Linux the files that were there
 * when it began: of a file that was replaced by another (`sed -i`, `git checkout`, most editors) it hears nothing more.
 *
 * @param {string} folder
 * @param {() => void} changed
 * @returns {() => void} ends it
 */
export function watchFolder(folder, changed) {
  /** By path, with what each is on the disk: a folder may be replaced by another of the same name. @type {Map<string, Watched>} */
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
      // A folder that goes away is seen from above.
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
 * The folders that are watched: by path, what each is on the disk.
 *
 * @param {string} path
 * @param {Map<string, number>} [found]
 * @returns {Map<string, number>}
 */
function folders(path, found = new Map()) {
  const stat = statSync(path, { throwIfNoEntry: false });
  // A link may lead back to a folder above it.
  if (!stat?.isDirectory() || [...found.values()].includes(stat.ino)) return found;
  found.set(path, stat.ino);
  for (const name of ifThere(() => readdirSync(path)) ?? []) {
    if (!name.startsWith(".") && name !== "node_modules") folders(join(path, name), found);
  }
  return found;
}

/** What comes of a folder, unless it has gone meanwhile. @template T @param {() => T} work @returns {T | undefined} */
function ifThere(work) {
  try {
    return work();
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOENT") throw error;
    return undefined;
  }
}
