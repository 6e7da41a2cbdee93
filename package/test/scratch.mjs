// Temporary folders for configurations and databases, which are removed with the process. Databases are best kept in
// memory: they are not needed after a crash of the machine, and waiting for a disk would take most of the time.

import { mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { alive } from "../lib/files.mjs";

const NAME = "bobbin-test-";
/** The folder in memory on Linux. */
const MEMORY = "/dev/shm";
/** The free bytes in memory below which the disk is used. A run needs 200 KB, and a sweep has hundreds of runs. */
const ENOUGH = 512 << 20;

/** @param {string} folder */
const scratchIn = (folder) => mkdtempSync(join(folder, `${NAME}${process.pid}-`));

/** @returns {{ config: string, objects: string, remove: () => void }} */
export function scratch() {
  const place = memory() ?? tmpdir();
  for (const folder of new Set([tmpdir(), place])) sweep(folder);
  const [config, objects] = [scratchIn(tmpdir()), scratchIn(place)];
  return { config, objects, remove: () => [config, objects].forEach(remove) };
}

/** @returns {string | undefined} */
function memory() {
  if (process.platform !== "linux") return undefined;
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ENOUGH ? MEMORY : undefined;
  } catch {
    return undefined;
  }
}

/** Removes the folders of killed processes. @param {string} folder */
function sweep(folder) {
  for (const name of readdirSync(folder)) {
    const [, pid] = /^bobbin-test-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !alive(Number(pid))) remove(join(folder, name));
  }
}

/** @param {string} path */
function remove(path) {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  } catch {
    // The folder belongs to another process, or a process that is ending still holds it. The next process removes it.
  }
}
