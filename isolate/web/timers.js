// setTimeout, setInterval, their clear functions and queueMicrotask, for code in the sandbox. Timers do not keep a call
// alive: an interval ends with its call.
//
// The engine cannot call back after a time, so the host sleeps. A sleep serves all timers that are due at its end or later,
// so cleared timers do not pile up sleeps.

/** The limit on pending timers. */
const WAITING = 256;
/** The longest delay in milliseconds, which is also the host's limit. */
const LONGEST_MS = 600_000;
/** The shortest interval, because each round is a call to the host. */
const SHORTEST_MS = 4;

/** @typedef {{ id: number, due: number, run: () => void, every?: number }} Timer */

/** @type {Map<number, Timer>} */
const timers = new Map();
/** When the host's pending sleeps end. @type {Set<number>} */
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

/** Same as `clearTimeout`, because ids are unique across both. */
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

/** Makes the host wake this module when the first timer is due. */
function wake() {
  const first = Math.min(...[...timers.values()].map(({ due }) => due));
  if (first === Infinity || [...sleeps].some((end) => end <= first)) return;
  sleeps.add(first);
  // A failed sleep means that the run ends.
  host.sleep(Math.max(0, first - Date.now())).then(
    () => {
      sleeps.delete(first);
      ring(first);
    },
    (error) => console.error("a timer:", error),
  );
}

/** Runs the timers that are due at `until`, in order. @param {number} until */
function ring(until) {
  const now = Math.max(until, Date.now());
  const due = [...timers.values()].filter((timer) => timer.due <= now).sort((a, b) => a.due - b.due || a.id - b.id);
  for (const timer of due) {
    // A timer may clear the next one.
    if (!timers.has(timer.id)) continue;
    // Missed rounds are skipped.
    if (timer.every !== undefined) timer.due = Math.max(timer.due, now) + timer.every;
    else timers.delete(timer.id);
    guarded(timer.run);
  }
  wake();
}

/** Runs a callback and logs what it throws. @param {() => void} run */
function guarded(run) {
  try {
    run();
  } catch (error) {
    console.error("Uncaught:", error);
  }
}
