// Running other programs: what they print is kept back and shown only when they fail; while they run, the
// terminal says what is happening and for how long.

import { spawn } from "node:child_process";
import { performance } from "node:perf_hooks";

/** A problem the person at the terminal can act on: printed as it stands, without a stack. */
export class Complaint extends Error {}

const live = process.stdout.isTTY === true;

/** @param {number} since from performance.now() */
export const seconds = (since) => ((performance.now() - since) / 1000).toFixed(1);

/**
 * Shows `title` with the seconds gone while `work` runs; a step under a second leaves no line.
 *
 * @template T
 * @param {string} title
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(title, work) {
  const start = performance.now();
  const line = () => `  ${title} … ${Math.round((performance.now() - start) / 1000)} s`;
  const show = live
    ? () => process.stdout.write(`\r\x1b[K${line()}`)
    : () => process.stdout.write(`${line()}\n`);
  const timer = setInterval(show, live ? 1000 : 15_000);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    if (live) process.stdout.write("\r\x1b[K");
    if (performance.now() - start > 1000) process.stdout.write(`  ${title}: ${seconds(start)} s\n`);
  }
}

/**
 * Runs a program to its end and returns what it printed on stdout.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, timeoutMs?: number }} [options] `env` is added to ours
 * @returns {Promise<string>}
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: options.timeoutMs,
      killSignal: "SIGKILL",
    });
    let stdout = "";
    let all = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text;
      all += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text) => (all += text));
    child.on("error", (error) => reject(new Complaint(`${command} cannot be run: ${error.message}`)));
    child.on("close", (code, signal) => {
      if (code === 0) resolve(stdout);
      else reject(new Complaint(`${all.trimEnd()}\n${[command, ...args].join(" ")} failed (${signal ?? code})`));
    });
  });
}

/**
 * Runs the body of a command; a complaint ends the process with its text alone.
 *
 * @param {() => Promise<void>} body
 */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof Complaint)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
