// What the terminal says of a disk that is full. The runtime prints several lines for each transaction that failed, with addresses of its machine code;
// to the Worker it says no more than that an object was lost.

/** How often it is said, milliseconds. */
const EVERY_MS = 60_000;

/** SQLite's words, and the system's. */
const FULL = /SQLITE_FULL|No space left on device/;

/** Where the error was, behind it. */
const STACK = /^stack: /;

/**
 * Passes lines of the runtime on; those about a full disk become one line, once a minute.
 *
 * @param {string} folder  where threads are kept
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
    pass(`error: the disk of ${folder} is full. What needs room there is answered with 503 until there is some; nothing that was confirmed is lost.`);
  };
}
