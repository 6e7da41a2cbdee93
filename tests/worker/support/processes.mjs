// The descendants of a process, found by their parents' ids.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, readlinkSync } from "node:fs";

/** @returns {Map<number, number>} process id → parent's id */
function parents() {
  const found = new Map();
  if (existsSync("/proc/self/stat")) {
    for (const name of readdirSync("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const stat = statOf(Number(name));
      if (stat) found.set(Number(name), Number(stat[1]));
    }
    return found;
  }
  for (const line of execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).split("\n")) {
    const [pid, parent] = line.trim().split(/\s+/).map(Number);
    if (pid) found.set(pid, parent ?? 0);
  }
  return found;
}

/**
 * Returns the fields of /proc/<pid>/stat from the state on: [state, parent, …].
 *
 * @param {number} pid
 */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may contain spaces and parentheses.
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined; // it has exited
  }
}

/**
 * Returns a process and all its descendants, parents first.
 *
 * @param {number} root
 */
export function tree(root) {
  const all = parents();
  const found = [root];
  for (let at = 0; at < found.length; at++) {
    for (const [pid, parent] of all) if (parent === found[at] && !found.includes(pid)) found.push(pid);
  }
  return found;
}

/** @param {number} pid */
export function running(pid) {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const stat = existsSync("/proc/self/stat") ? statOf(pid) : ["R"];
  return stat !== undefined && stat[0] !== "Z";
}

/**
 * Kills processes at once (SIGKILL). Processes that have exited are not an error.
 *
 * @param {number[]} pids
 */
export function killAll(pids) {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ESRCH") throw error;
    }
  }
}

/**
 * Finds the workerd below `root` that has files of `folder` open. It runs the objects; wrangler's proxy does not.
 *
 * @param {number} root
 * @param {string} folder
 */
export function workerdOf(root, folder) {
  return tree(root).find((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("workerd")) return false;
      return readdirSync(`/proc/${pid}/fd`).some((fd) => {
        try {
          return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(folder);
        } catch {
          return false; // it was closed
        }
      });
    } catch {
      return false; // it has exited
    }
  });
}

/** Returns the resident memory of a process, in bytes. @param {number} pid */
export function residentBytes(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

/**
 * Returns the processor time that a process has used so far, in milliseconds.
 *
 * @param {number} pid
 */
export function processorMs(pid) {
  const stat = statOf(pid);
  if (!stat) throw new Error(`process ${pid} is gone`);
  // utime and stime, in ticks of 10 ms (sysconf(_SC_CLK_TCK) is 100 on every Linux that Node runs on).
  return (Number(stat[11]) + Number(stat[12])) * 10;
}
