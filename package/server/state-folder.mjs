// Allows one server per folder of threads. Two servers would each take the other's running work for lost, repeat it,
// and overwrite each other's rows. SQLite protects the files, not the guarantees of a thread.

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { locked, readIfThere, shown } from "../lib/files.mjs";
import { Complaint } from "../lib/complaint.mjs";

/**
 * The server that uses a folder.
 *
 * @typedef {object} Holder
 * @property {string} url            the address of the server
 * @property {string[]} processes    as returned by `identity`; the folder is in use while one of them runs
 */

/** How long to wait for a killed server to exit. */
const PATIENCE_MS = 3000;

/**
 * Takes the folder for the server at `url`, until this process and all added processes have ended.
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
        `Another server, ${other.url}, serves the threads in ${shown(folder)} (process ${Number.parseInt(other.processes[0] ?? "")}). ` +
          "Stop it, or use another folder: `--port N --persist DIR`.",
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
    if (code !== "EEXIST" && code !== "ENOTDIR") throw new Complaint(`Threads cannot be stored in ${shown(folder)}: ${message}`);
  }
  throw new Complaint(`Threads cannot be stored in ${shown(folder)}: it is a file. Name a folder with \`--persist DIR\`.`);
}

/** @param {string} path @param {Holder} holder @returns {Holder | undefined} the current holder, or nothing if the folder is now taken */
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
    // The file is missing, or its writer died while it wrote.
    return undefined;
  }
}

/**
 * Identifies a process by its number and, where available, its start time, because numbers are used again.
 *
 * @param {number} pid
 * @returns {string | undefined} nothing if the process is not running
 */
function identity(pid) {
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat !== undefined) {
    // The process name before these fields may contain blanks.
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

/** @param {string} process as returned by `identity` */
const runs = (process) => identity(Number(process.split(" ")[0])) === process;
