// Wraps an object's storage for its run: counts durable writes, applies the run's clock to alarms, and drops the object
// at the write that the run names, with everything that is not durable by then.

import { DROPPED } from "./scope.js";

/** @typedef {import("./scope.js").Scope} Scope */

const CHANGE = /^\s*(INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP)\b(?:\s+(?:OR\s+\w+|INTO|FROM|TABLE|INDEX|VIRTUAL|UNIQUE|TRIGGER|IF|NOT|EXISTS)\b)*\s+"?(\w+)?/i;

/** The effects of statements by their text. There are few texts, and each is used often. @type {Map<string, string | undefined>} */
const changes = new Map();

/** Returns what a statement does to a table, such as `insert messages`, or undefined if it only reads. @param {string} query */
export function change(query) {
  if (!changes.has(query)) {
    const [, verb, table] = CHANGE.exec(query) ?? [];
    changes.set(query, verb && `${verb.toLowerCase()} ${table ?? ""}`.trimEnd());
  }
  return changes.get(query);
}

/**
 * Puts the watch between the object and its storage.
 *
 * @param {any} ctx      the object's context
 * @param {Scope} scope
 * @returns {{ rearm: () => Promise<void> }}   `rearm`: to call when the run's clock was set ahead
 */
export function watch(ctx, scope) {
  const { storage } = ctx;
  const { run, object, life } = scope;
  /** The write that is not durable yet. @type {import("./scope.js").Write | undefined} */
  let open;
  const closed = () => (open = undefined);

  /** @param {string} did */
  const write = (did) => {
    if (life.dead) throw new Error(DROPPED);
    // Lists of threads are copies, which are updated when there is time.
    if (object.startsWith("directory")) return;
    if (open === undefined) {
      if (run.writes.length + 1 === run.dropAt && run.drop === undefined) {
        run.drop = { object, write: run.dropAt, did, at: Date.now() - run.ahead };
        drop(ctx, scope);
        throw new Error(DROPPED);
      }
      open = { object, did: [] };
      run.writes.push(open);
      // Everything written until then becomes durable together, or not at all.
      Promise.resolve().then(() => storage.sync()).then(closed, closed);
    }
    open.did.push(did);
  };

  const { sql } = storage;
  const watched = {
    sql: {
      /** @param {string} query @param {unknown[]} params */
      exec(query, ...params) {
        const did = change(query);
        if (did !== undefined) write(did);
        return sql.exec(query, ...params);
      },
      get databaseSize() {
        return sql.databaseSize;
      },
    },
    transactionSync: (/** @type {() => unknown} */ work) => storage.transactionSync(work),
    setAlarm(/** @type {number} */ at) {
      write("set the alarm");
      run.alarms.set(object, at);
      return storage.setAlarm(at - run.ahead);
    },
    async getAlarm() {
      const at = await storage.getAlarm();
      return at === null ? null : at + run.ahead;
    },
    deleteAlarm() {
      write("delete the alarm");
      run.alarms.delete(object);
      return storage.deleteAlarm();
    },
  };
  Object.defineProperty(ctx, "storage", { value: watched, configurable: true });
  return {
    async rearm() {
      const at = run.alarms.get(object);
      if (at !== undefined) await storage.setAlarm(at - run.ahead);
    },
  };
}

/** Drops an object. Its further work is ignored, and the next event constructs it again. @param {any} ctx @param {Scope} scope */
export function drop(ctx, scope) {
  scope.life.dead = true;
  // Later, when no code of the Worker is on the stack: all objects share its memory.
  setTimeout(() => ctx.abort(DROPPED), 0);
}
