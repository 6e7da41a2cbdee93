// Whose work something is: whatever an object does, it does in the scope of its run of a case, so that many runs share one
// isolate, each with a clock of its own. Evaluated before the Worker, which finds the clock and `fetch` as they are here.

import { AsyncLocalStorage } from "node:async_hooks";

/**
 * One run of a case, from its first request to its end.
 *
 * @typedef {object} Run
 * @property {string} id
 * @property {number} ahead      milliseconds that its clock is ahead of the real one
 * @property {number} dropAt     the durable write at which its object is dropped, from 1; 0 for none
 * @property {Record<string, string>} stubbed   tools that are code and have stubs, by their files
 * @property {Write[]} writes    what became durable
 * @property {Drop | undefined} drop   where an object was dropped
 * @property {Map<string, number>} alarms   of its objects, by their names: milliseconds of its clock
 * @property {Set<string>} objects
 * @property {string[]} log      what the Worker printed
 * @property {boolean} over      nothing of it counts any more
 */

/** What became durable at once. @typedef {{ object: string, did: string[] }} Write */
/** `at`: milliseconds of the real clock. @typedef {{ object: string, write: number, did: string, at: number }} Drop */

/**
 * An object, from its construction until it is dropped, or a request to the Worker.
 *
 * @typedef {object} Scope
 * @property {Run} run
 * @property {string} object           kind and name
 * @property {string | undefined} by   the file of code that asks, if one does
 * @property {{ dead: boolean }} life  dead: it was dropped, and nothing that it does counts any more
 */

/** @type {AsyncLocalStorage<Scope>} */
export const scopes = new AsyncLocalStorage();

/** What a dropped object is told. */
export const DROPPED = "the object was dropped by the test";

const RealDate = Date;
const realNow = RealDate.now.bind(RealDate);
const realFetch = globalThis.fetch.bind(globalThis);
const realLog = console.log.bind(console);

/** @param {Run} run */
export const nowOf = (run) => realNow() + run.ahead;

const now = () => realNow() + (scopes.getStore()?.run.ahead ?? 0);

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [now()] : args, made),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});

/** Lines that a run's log keeps. */
const LINES = 200;

console.log = (/** @type {unknown[]} */ ...what) => {
  const log = scopes.getStore()?.run.log;
  if (log === undefined) realLog(...what);
  else if (log.length < LINES) log.push(what.map(String).join(" "));
};

/** Whose request it is; the runner takes these away again. */
export const RUN = "x-bobbin-test-run";
const OBJECT = "x-bobbin-test-object";
const BY = "x-bobbin-test-by";

globalThis.fetch = (/** @type {any} */ input, /** @type {any} */ init) => {
  const scope = scopes.getStore();
  if (scope === undefined) return realFetch(input, init);
  if (scope.life.dead) return Promise.reject(new Error(DROPPED));
  const request = new Request(input, init);
  request.headers.set(RUN, scope.run.id);
  request.headers.set(OBJECT, scope.object);
  if (scope.by !== undefined) request.headers.set(BY, encodeURIComponent(scope.by));
  return realFetch(request);
};
