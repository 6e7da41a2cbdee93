// An object's storage, as its run watches it: durable writes are counted, alarms go by the run's clock, and at the write that
// the run names the object is dropped, with everything that is not durable by then.

import { DROPPED } from "./scope.js";

/** @typedef {import("./scope.js").Scope} Scope */

const CHANGE = /^\s*(INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP)\b(?:\s+(?:OR\s+\w+|INTO|FROM|TABLE|INDEX|VIRTUAL|UNIQUE|TRIGGER|IF|NOT|EXISTS)\b)*\s+"?(\w+)?/i;

/** What statements do, by their texts: there are few texts, and each is used often. @type {Map<string, string | undefined>} */
const changes = new Map();

/** What a statement does to a table, such as `insert messages`, or undefined if it only reads. @param {string} query */
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
 * @param {any} ctx      the object's
 * @param {Scope} scope
 * @returns {{ rearm: () => Promise<void> }}   `rearm`: the run's clock was set ahead
 */
export function watch(ctx, scope) {
  const { storage } = ctx;
  const { run, object, life } = scope;
  /** What is not durable yet. @type {import("./scope.js").Write | undefined} */
  let open;
  const closed = () => (open = undefined);

  /** @param {string} did */
  const write = (did) => {
    if (life.dead) throw new Error(DROPPED);
    // What is in lists of threads is a copy, told when there is time.
    if (object.startsWith("directory")) return;
    if (open === undefined) {
      if (run.writes.length + 1 === run.dropAt && run.drop === undefined) {
        run.drop = { object, write: run.dropAt, did, at: Date.now() - run.ahead };
        drop(ctx, scope);
        throw new Error(DROPPED);
      }
      open = { object, did: [] };
      run.writes.push(open);
      // What is written until then becomes durable with it, or not at all.
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

/** Drops an object: what it does from here on counts for nothing, and the next event makes it anew. @param {any} ctx @param {Scope} scope */
export function drop(ctx, scope) {
  scope.life.dead = true;
  // Later, when nothing of the Worker is on the stack: all objects share its memory.
  setTimeout(() => ctx.abort(DROPPED), 0);
}
