// Makes a full disk visible in the terminal. For each failed transaction the runtime prints several lines with
// addresses of machine code, and the Worker only learns that an object was lost.

/** The minimum interval between two messages, in milliseconds. */
const EVERY_MS = 60_000;

/** The messages of SQLite and of the operating system. */
const FULL = /SQLITE_FULL|No space left on device/;

/** The line with the stack, which follows the error. */
const STACK = /^stack: /;

/**
 * Returns a function that forwards the runtime's lines. It replaces lines about a full disk by one line per minute.
 *
 * @param {string} folder  the folder of the threads
 * @param {(line: string) => void} pass
 * @param {() => number} [now]  milliseconds
 * @returns {(line: string) => void}
 */
export function namingFullDisk(folder, pass, now = Date.now) {
  let saidAt = -Infinity;
  let follows = false;
  return (line) => {
    const full = FULL.test(line);
    const part = full || (follows && STACK.test(line));
    follows = full;
    if (!part) return pass(line);
    if (!full || now() - saidAt < EVERY_MS) return;
    saidAt = now();
    pass(`error: the disk of ${folder} is full. Until there is space, requests that write fail with 503. Confirmed data is not lost.`);
  };
}
