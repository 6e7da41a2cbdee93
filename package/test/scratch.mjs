// Folders that are gone with the process: those of configurations, and those of databases, which are best kept in memory, as
// nobody needs them after a crash of the machine, and waiting for a disk would take most of the time.

import { mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { alive } from "../lib/files.mjs";

const NAME = "bobbin-test-";
/** Where Linux keeps files in memory. */
const MEMORY = "/dev/shm";
/** Free bytes there without which the disk is taken: a run has 200 KB, and a sweep has hundreds. */
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

/** Removes what processes left that were killed. @param {string} folder */
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
    // Another process's, or still held by one that ends: the next one removes it.
  }
}
