// Runs jobs with dependencies, two at a time: a compiler uses the processors while tests wait.

/**
 * @template T
 * @typedef {object} Job
 * @property {T} what
 * @property {string} id
 * @property {string[]} needs     ids; those that are not in the list are already done
 */

/**
 * Runs the first job of the list whose needs have ended, `lanes` at a time, until none is left. `work` does not throw. It
 * receives whether all needs of the job succeeded, and returns whether the job itself did.
 *
 * @template T
 * @param {Job<T>[]} jobs
 * @param {number} lanes
 * @param {(what: T, ready: boolean) => Promise<boolean>} work
 */
export async function schedule(jobs, lanes, work) {
  const left = [...jobs];
  const ids = new Set(jobs.map(({ id }) => id));
  /** Whether each ended job succeeded. @type {Map<string, boolean>} */
  const ended = new Map();
  /** @type {Set<Promise<void>>} */
  const running = new Set();
  while (left.length > 0 || running.size > 0) {
    const at = left.findIndex(({ needs }) => needs.every((need) => !ids.has(need) || ended.has(need)));
    const next = at >= 0 && running.size < lanes ? left.splice(at, 1)[0] : undefined;
    if (next === undefined) {
      if (running.size === 0) throw new Error(`These need each other: ${left.map(({ id }) => id).join(", ")}`);
      await Promise.race(running);
      continue;
    }
    const ready = next.needs.every((need) => ended.get(need) ?? true);
    const run = work(next.what, ready).then((well) => {
      ended.set(next.id, well);
      running.delete(run);
    });
    running.add(run);
  }
}
