// Runs other programs. Their output is shown only when they fail; while they run, the terminal shows the steps and their
// duration. Programs still running when this process ends are ended with it.

import { spawn } from "node:child_process";
import { availableParallelism, constants, setPriority } from "node:os";
import { performance } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { Complaint } from "../package/lib/complaint.mjs";
import { signalGroup } from "../package/lib/processes.mjs";

export { Complaint, signalGroup };

const live = process.stdout.isTTY === true;

/** @param {number} since from performance.now() */
export const seconds = (since) => ((performance.now() - since) / 1000).toFixed(1);

/** The current steps, several at once, as one line each. @type {Set<() => string>} */
const steps = new Set();
/** @type {NodeJS.Timeout | undefined} */
let timer;

/** On a terminal, all steps share one line that is overwritten. */
function showSteps() {
  if (!live) for (const line of steps) process.stdout.write(`${line()}\n`);
  // A line that wraps cannot be replaced by the next one.
  else process.stdout.write(`\r\x1b[K${[...steps].map((line) => line()).join(" |").slice(0, (process.stdout.columns || 80) - 1)}`);
}

/**
 * Shows `title` with the elapsed seconds while `work` runs. A step under a second leaves no line.
 *
 * @template T
 * @param {string} title
 * @param {(note: (text: string) => void) => Promise<T>} work  its notes are shown beside the seconds
 * @param {{ closing?: boolean, usual?: number }} [options]    without closing, no line is left at all; `usual`: the seconds that
 *   it takes on a machine with two processors
 * @returns {Promise<T>}
 */
export async function step(title, work, { closing = true, usual } = {}) {
  const start = performance.now();
  let note = "";
  const expected = usual === undefined ? "" : ` of about ${Math.ceil((2 * usual) / Math.min(availableParallelism(), 8))}`;
  const line = () => `  ${title} … ${Math.round((performance.now() - start) / 1000)}${expected} s${note && `: ${note}`}`;
  steps.add(line);
  timer ??= setInterval(showSteps, live ? 1000 : 15_000);
  try {
    return await work((text) => (note = text));
  } finally {
    steps.delete(line);
    if (steps.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    if (live) process.stdout.write("\r\x1b[K");
    if (closing && performance.now() - start > 1000) process.stdout.write(`  ${title}: ${seconds(start)} s\n`);
  }
}

/** Prints a line while a step is shown. @param {string} text */
export const print = (text) => process.stdout.write(`${live ? "\r\x1b[K" : ""}${text}\n`);

/**
 * @typedef {object} RunOptions
 * @property {string} [cwd]
 * @property {NodeJS.ProcessEnv} [env]          added to the own environment
 * @property {number} [timeoutMs]
 * @property {(line: string) => void} [onLine]  each line of stdout and stderr, as it comes
 * @property {number} [niceness]                how far it yields to other programs: 0 to 19
 */

/**
 * @typedef {object} Ended
 * @property {number | NodeJS.Signals} status   exit code, or the signal that ended it
 * @property {boolean} late                     ended by us after timeoutMs
 * @property {string} stdout
 * @property {string} all                       stdout and stderr
 */

/** Leaders of the process groups that are running. @type {Set<number>} */
const groups = new Set();

/** Ends all programs that this process is running. */
export function stopPrograms() {
  for (const group of groups) signalGroup(group, "SIGKILL");
}

process.on("exit", stopPrograms);
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
  process.on(signal, () => {
    // Another listener ends its work in order and decides when to exit.
    if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
  });
}

/**
 * Runs a program to its end, whatever the result.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<Ended>}
 */
export function outcome(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
      // A process group of its own, so that its children can be ended with it.
      detached: true,
    });
    const { pid } = child;
    if (pid !== undefined) groups.add(pid);
    if (pid !== undefined && options.niceness !== undefined) setPriority(pid, options.niceness);
    let stdout = "";
    let all = "";
    let late = false;
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text;
      all += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text) => (all += text));
    const { onLine } = options;
    if (onLine) {
      for (const input of [child.stdout, child.stderr]) createInterface({ input }).on("line", onLine);
    }
    /** @type {NodeJS.Timeout[]} */
    const timers = [];
    if (options.timeoutMs !== undefined) {
      timers.push(
        setTimeout(() => {
          late = true;
          signalGroup(pid, "SIGTERM");
          // Give it time to end children outside its group.
          timers.push(setTimeout(() => signalGroup(pid, "SIGKILL"), 5000));
        }, options.timeoutMs),
      );
    }
    const done = () => {
      for (const timer of timers) clearTimeout(timer);
      if (pid !== undefined) groups.delete(pid);
    };
    child.on("error", (error) => {
      done();
      reject(new Complaint(`${command} cannot be run: ${error.message}`));
    });
    child.on("close", (code, signal) => {
      done();
      resolve({ status: code ?? signal ?? 1, late, stdout, all });
    });
  });
}

/**
 * Runs a program that must succeed. Returns its stdout.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<string>}
 */
export async function run(command, args, options) {
  const { status, late, stdout, all } = await outcome(command, args, options);
  if (status === 0) return stdout;
  const why = late ? "did not end in time" : `failed (${status})`;
  // Without what a terminal would have overwritten.
  const printed = all.replace(/[^\n]*\r(?!\n)/g, "").trimEnd();
  throw new Complaint(`${printed}\n${[command, ...args].join(" ")} ${why}`.trimStart());
}

/** Makes cargo report its progress though nobody looks at a terminal. */
const CARGO_PROGRESS = { CARGO_TERM_PROGRESS_WHEN: "always", CARGO_TERM_PROGRESS_WIDTH: "160" };

/**
 * Runs cargo, and passes its progress to a step's note.
 *
 * @param {string[]} args
 * @param {(text: string) => void} note
 * @param {RunOptions} [options]
 */
export function cargo(args, note, options = {}) {
  const onLine = (/** @type {string} */ line) => {
    const [, done, all, crates] = /^ *Building \[[=> ]*\] (\d+)\/(\d+): (.*)/.exec(line) ?? [];
    if (done) return note(`${done} of ${all} parts, ${crates?.trim()}`);
    const [, doing] = /^ *((?:Updating|Locking|Downloading|Downloaded|Blocking|Running) .*)/.exec(line) ?? [];
    if (doing) note(doing);
  };
  return run("cargo", args, { ...options, env: { ...options.env, ...CARGO_PROGRESS }, onLine });
}

/**
 * Runs the body of a command. A Complaint ends the process with only its message.
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
