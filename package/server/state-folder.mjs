// One server for one folder of threads. Two would each take the other's running work for lost, do it again, and write
// over each other's rows: SQLite keeps the files whole, not the promises of a thread.

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { locked, readIfThere, shown } from "../lib/files.mjs";
import { Complaint } from "../lib/complaint.mjs";

/**
 * Who uses a folder.
 *
 * @typedef {object} Holder
 * @property {string} url            where it answers
 * @property {string[]} processes    each as `identity` gives it; it is in use while one of them runs
 */

/** A server that was killed a moment ago needs a moment to be gone. */
const PATIENCE_MS = 3000;

/**
 * Takes the folder for the server at `url`, until this process has ended and all that were added.
 *
 * @param {string} folder
 * @param {string} url
 * @returns {Promise<{ add: (pid: number) => void }>}
 */
export async function takeStateFolder(folder, url) {
  makeFolder(folder);
  const path = join(folder, "server.json");
  /** @type {Holder} */
  const holder = { url, processes: [identity(process.pid) ?? String(process.pid)] };
  for (let waited = 0; ; waited += 100) {
    const other = await locked(join(folder, "server.lock"), async () => claim(path, holder));
    if (other === undefined) break;
    if (waited >= PATIENCE_MS) {
      throw new Complaint(
        `The threads in ${shown(folder)} are served by another server, ${other.url} (process ${Number.parseInt(other.processes[0] ?? "")}). ` +
          "End that one, or give this one a folder of its own: `--port N --persist DIR`.",
      );
    }
    await sleep(100);
  }
  process.once("exit", () => {
    if (holderOf(path)?.processes[0] === holder.processes[0]) rmSync(path, { force: true });
  });
  return {
    add: (pid) => {
      holder.processes.push(identity(pid) ?? String(pid));
      writeFileSync(path, JSON.stringify(holder));
    },
  };
}

/** @param {string} folder */
function makeFolder(folder) {
  try {
    mkdirSync(folder, { recursive: true });
    if (statSync(folder).isDirectory()) return;
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code !== "EEXIST" && code !== "ENOTDIR") throw new Complaint(`Threads cannot be kept in ${shown(folder)}: ${message}`);
  }
  throw new Complaint(`Threads cannot be kept in ${shown(folder)}: it is a file. Name a folder with \`--persist DIR\`.`);
}

/** @param {string} path @param {Holder} holder @returns {Holder | undefined} who has it, unless it is taken now */
function claim(path, holder) {
  const other = holderOf(path);
  if (other?.processes.some(runs)) return other;
  writeFileSync(path, JSON.stringify(holder));
  return undefined;
}

/** @param {string} path @returns {Holder | undefined} */
function holderOf(path) {
  try {
    const holder = JSON.parse(readFileSync(path, "utf8"));
    return Array.isArray(holder.processes) ? holder : undefined;
  } catch {
    // Nobody's, or its writer died while it wrote.
    return undefined;
  }
}

/**
 * A process by its number and, where the system tells it, the moment when it began: numbers are used again.
 *
 * @param {number} pid
 * @returns {string | undefined} nothing when it does not run
 */
function identity(pid) {
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat !== undefined) {
    // The name before these fields may hold blanks.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, began] = [fields[0], fields[19]];
    return state === "Z" || state === "X" ? undefined : `${pid} ${began}`;
  }
  try {
    process.kill(pid, 0);
    return String(pid);
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EPERM" ? String(pid) : undefined;
  }
}

/** @param {string} process as `identity` gave it */
const runs = (process) => identity(Number(process.split(" ")[0])) === process;
