// Watching a folder of definitions.

import { readdirSync, statSync, watch } from "node:fs";
import { join } from "node:path";

/**
 * Calls `changed` after every change in the folder and in the folders below it, but for those of packages: there are
 * thousands of these, and what is installed is named in `package.json`.
 *
 * @param {string} folder
 * @param {() => void} changed
 * @returns {() => void} ends it
 */
export function watchFolder(folder, changed) {
  /** Folders of it, with what they are on the disk: one may be replaced by another of the same name. @type {Map<string, { inode: number, watcher: import("node:fs").FSWatcher }>} */
  const below = new Map();
  const scan = () => {
    const found = folders(folder);
    for (const [name, { inode, watcher }] of below) {
      if (found.get(name) === inode) continue;
      watcher.close();
      below.delete(name);
    }
    for (const [name, inode] of found) {
      const watcher = below.has(name) ? undefined : ifThere(() => watch(join(folder, name), { recursive: true }, changed));
      if (watcher) below.set(name, { inode, watcher: quiet(watcher) });
    }
  };
  const top = quiet(
    watch(folder, () => {
      scan();
      changed();
    }),
  );
  scan();
  return () => {
    for (const { watcher } of [...below.values(), { watcher: top }]) watcher.close();
  };
}

/** The folders that are watched: by name, what they are on the disk. @param {string} folder @returns {Map<string, number>} */
function folders(folder) {
  const names = (ifThere(() => readdirSync(folder)) ?? []).filter((name) => !name.startsWith(".") && name !== "node_modules");
  return new Map(
    names.flatMap((name) => {
      const stat = statSync(join(folder, name), { throwIfNoEntry: false });
      return stat?.isDirectory() ? [[name, stat.ino]] : [];
    }),
  );
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

/** A folder that goes away is seen from above. @param {import("node:fs").FSWatcher} watcher */
const quiet = (watcher) => watcher.on("error", () => {});
