// Associates all work of an object with its run, so that many runs share one isolate and each has its own clock. This
// module is evaluated before the Worker, which then uses the clock and the `fetch` from here.

import { AsyncLocalStorage } from "node:async_hooks";

/**
 * One run of a case, from its first request to its end.
 *
 * @typedef {object} Run
 * @property {string} id
 * @property {number} ahead      milliseconds that its clock is ahead of the real one
 * @property {number} dropAt     the durable write at which its object is dropped, from 1; 0 for none
 * @property {Record<string, string>} stubbed   stubbed tools that run code, by file
 * @property {Write[]} writes    the durable writes
 * @property {Drop | undefined} drop   the point at which an object was dropped
 * @property {Map<string, number>} alarms   by object: milliseconds of its clock
 * @property {Set<string>} objects
 * @property {string[]} log      the Worker's output
 * @property {boolean} over      whether its results are ignored from now on
 */

/** A durable write: all that became durable together. @typedef {{ object: string, did: string[] }} Write */
/** `at`: milliseconds of the real clock. @typedef {{ object: string, write: number, did: string, at: number }} Drop */

/**
 * An object, from its construction until it is dropped, or a request to the Worker.
 *
 * @typedef {object} Scope
 * @property {Run} run
 * @property {string} object           kind and name
 * @property {string | undefined} by   the file of code that sends a request, if any
 * @property {{ dead: boolean }} life  dead: it was dropped, and its further work is ignored
 */

/** @type {AsyncLocalStorage<Scope>} */
export const scopes = new AsyncLocalStorage();

/** The error that a dropped object receives. */
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

/** The number of lines that a run's log keeps. */
const LINES = 200;

console.log = (/** @type {unknown[]} */ ...what) => {
  const log = scopes.getStore()?.run.log;
  if (log === undefined) realLog(...what);
  else if (log.length < LINES) log.push(what.map(String).join(" "));
};

/** The run that a request belongs to. The runner removes these headers. */
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
