// setTimeout, setInterval, what clears them, and queueMicrotask, for code in the sandbox. An interval ends with its call:
// nothing here keeps a call from ending.
//
// The engine has no clock that calls back: the host sleeps. One sleep serves all timers that are due after it, so a
// timer that was cleared leaves nothing behind that counts.

/** Timers that may wait at the same time. */
const WAITING = 256;
/** The longest, in milliseconds; the host waits no longer either. */
const LONGEST_MS = 600_000;
/** The shortest time between two rings of an interval: each is a crossing to the host. */
const SHORTEST_MS = 4;

/** @typedef {{ id: number, due: number, run: () => void, every?: number }} Timer */

/** @type {Map<number, Timer>} */
const timers = new Map();
/** When the host's sleeps end. @type {Set<number>} */
const sleeps = new Set();
let last = 0;

/** @param {(...args: any[]) => void} callback @param {number} [delay] milliseconds @param {any[]} args */
export function setTimeout(callback, delay = 0, ...args) {
  return added("setTimeout", callback, wanted("setTimeout", delay), args);
}

/** @param {(...args: any[]) => void} callback @param {number} [delay] milliseconds @param {any[]} args */
export function setInterval(callback, delay = 0, ...args) {
  const every = Math.max(SHORTEST_MS, wanted("setInterval", delay));
  return added("setInterval", callback, every, args, every);
}

/** @param {number} [id] */
export function clearTimeout(id) {
  timers.delete(Number(id));
}

/** The same as `clearTimeout`: numbers are given once. */
export const clearInterval = clearTimeout;

/** @param {string} name @param {unknown} delay */
function wanted(name, delay) {
  const ms = Math.max(0, Math.trunc(Number(delay)) || 0);
  if (ms > LONGEST_MS) throw new RangeError(`${name}: a timer waits ${LONGEST_MS} ms at most`);
  return ms;
}

/**
 * @param {string} name
 * @param {(...args: any[]) => void} callback
 * @param {number} ms
 * @param {any[]} args
 * @param {number} [every]
 */
function added(name, callback, ms, args, every) {
  if (typeof callback !== "function") throw new TypeError(`${name}: a function is expected`);
  if (timers.size >= WAITING) throw new RangeError(`${name}: ${WAITING} timers wait already, the limit`);
  const id = ++last;
  timers.set(id, { id, due: Date.now() + ms, run: () => callback(...args), ...(every !== undefined && { every }) });
  wake();
  return id;
}

/** @param {() => void} callback */
export function queueMicrotask(callback) {
  if (typeof callback !== "function") throw new TypeError("queueMicrotask: a function is expected");
  Promise.resolve().then(() => guarded(callback));
}

/** Sees to it that the host wakes us when the first timer is due. */
function wake() {
  const first = Math.min(...[...timers.values()].map(({ due }) => due));
  if (first === Infinity || [...sleeps].some((end) => end <= first)) return;
  sleeps.add(first);
  // A sleep that fails ends with its run.
  host.sleep(Math.max(0, first - Date.now())).then(
    () => {
      sleeps.delete(first);
      ring(first);
    },
    (error) => console.error("a timer:", error),
  );
}

/** Runs what is due by then, in order. @param {number} until */
function ring(until) {
  const now = Math.max(until, Date.now());
  const due = [...timers.values()].filter((timer) => timer.due <= now).sort((a, b) => a.due - b.due || a.id - b.id);
  for (const timer of due) {
    // One may clear the next.
    if (!timers.has(timer.id)) continue;
    // Rings that were missed are left out.
    if (timer.every !== undefined) timer.due = Math.max(timer.due, now) + timer.every;
    else timers.delete(timer.id);
    guarded(timer.run);
  }
  wake();
}

/** Nobody waits for what a callback throws. @param {() => void} run */
function guarded(run) {
  try {
    run();
  } catch (error) {
    console.error("Uncaught:", error);
  }
}
