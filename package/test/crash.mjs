// Crash tests of a case. The case is played again for each durable write of its threads, and its object is dropped
// there, with everything that was not durable yet. Effects outside the object have happened by then. The expectations
// must hold each time, and no tool may act twice.

import { isDeepStrictEqual } from "node:util";
import { play } from "./play.mjs";
import { said } from "./report.mjs";
import { shown } from "./schema.mjs";

/** @typedef {import("./play.mjs").Played} Played */
/** @typedef {import("./answers.mjs").Sent} Sent */

/**
 * @typedef {object} Sweep
 * @property {number} points       the number of durable writes at which the object was dropped
 * @property {Finding[]} findings  the first of each kind
 */

/** @typedef {{ write: number, did: string, what: string }} Finding */

/**
 * @param {import("./cases.mjs").Case} case_
 * @param {import("./play.mjs").Stage} stage
 * @param {import("./suite.mjs").Hold} hold
 * @returns {Promise<Sweep>}
 */
export async function sweep(case_, stage, hold) {
  // Two runs without a crash. Differences between them are not caused by crashes.
  const plain = () => hold(() => play(case_, stage, { whole: true }));
  const [calm, again] = await Promise.all([plain(), plain()]);
  /** @type {Finding[]} */
  const found = [];
  const points = calm.writes.length;
  await Promise.all(
    calm.writes.map(async (write, at) => {
      const played = await hold(() => play(case_, stage, { dropAt: at + 1, whole: true }));
      // This run may have fewer writes, because updates for lists are sent when there is time.
      const place = { write: at + 1, did: inWords(played.drop ? { object: played.drop.object, did: [played.drop.did, ...write.did] } : write) };
      const where = `killed at write ${place.write} of ${points} (${place.did})`;
      const failures = played.failures.filter(({ soft }) => !soft).map((failure) => `${where}: ${said(failure)}`);
      const twice = [...sentTwice(calm, played, stage.reads), ...leftOtherwise(calm, again, played, stage.reads)].map((text) => text.replace("{when}", `when ${where}`));
      found.push(...[...twice, ...failures].map((what) => ({ ...place, what })));
    }),
  );
  return { points, findings: firstOfEach(found) };
}

/** Describes a write. @param {{ object: string, did: string[] }} write */
function inWords({ object, did }) {
  const [kind] = object.split(" ");
  const tables = [...new Set(did.filter((one) => one !== ""))];
  const some = tables.length > 6 ? [...tables.slice(0, 6), "…"] : tables;
  return `${kind}: ${some.join(", ")}`;
}

/**
 * Returns the requests that were sent more often than without a crash, unless the receiver can recognize the
 * repetition.
 * @param {Played} calm @param {Played} played @param {(tool: string) => boolean} reads
 */
function sentTwice(calm, played, reads) {
  const writing = played.sent.filter(({ method, who }) => !["GET", "HEAD"].includes(method) && !reads(who));
  const signatures = [...new Set(writing.map(signature))];
  const same = signatures.map((signed) => /** @type {const} */ ([signed, writing.filter((one) => signature(one) === signed)]));
  return same.flatMap(([signed, sent]) => {
    const once = calm.sent.filter((one) => signature(one) === signed).length;
    const [first] = sent;
    if (first === undefined || once === 0 || sent.length <= once || first.repeatable) return [];
    const keys = new Set(sent.map(({ key }) => key));
    if (!first.call && !keys.has(undefined) && keys.size <= once) return [];
    const advice = first.call
      ? 'it is declared idempotent, so its service must store the idempotency key (if it does, set "repeatable": true in the stub)'
      : `it repeated ${first.method} ${first.url}: send an idempotency key`;
    return [`“${first.who}” ran ${often(sent.length, once)} {when}; ${advice}`];
  });
}

/** @param {number} times @param {number} once */
const often = (times, once) => (times === 2 && once === 1 ? "twice" : `${times} times instead of ${once}`);

/** Identifies a request across its attempts. @param {Sent} sent */
function signature({ who, method, url, body, call }) {
  if (!call) return JSON.stringify([who, method, url, body]);
  const { name, args } = JSON.parse(body);
  return JSON.stringify([who, url, name, args]);
}

/**
 * Returns tools that ran again and left another state than without a crash.
 * @param {Played} calm @param {Played} again @param {Played} played @param {(tool: string) => boolean} reads
 */
function leftOtherwise(calm, again, played, reads) {
  const twice = played.calls.filter(({ runs, tool }) => runs > 1 && !reads(tool) && !played.sent.some(({ who, call }) => call && who === tool));
  if (twice.length === 0) return [];
  const changed = differences(calm.left, played.left).filter((one) => !differences(calm.left, again.left).some((own) => own.name === one.name));
  const [first] = changed;
  if (first === undefined) return [];
  return twice.map(
    ({ tool, runs }) =>
      `“${tool}” ran ${often(runs, 1)} {when}; ${first.name} is ${shown(first.now)} instead of ${shown(first.was)}; it is declared idempotent, so ` +
      "a second run with the same arguments must not change the result",
  );
}

/** @param {Played["left"]} was @param {Played["left"]} now @returns {{ name: string, was: unknown, now: unknown }[]} */
function differences(was, now) {
  const keys = new Set([...Object.keys(was.values), ...Object.keys(now.values)]);
  const values = [...keys].map((key) => ({ name: `the value “${key}”`, was: was.values[key], now: now.values[key] }));
  const files = { name: "the list of files", was: was.files, now: now.files };
  return [...values, files].filter((one) => !isDeepStrictEqual(one.was, one.now));
}

/** @param {Finding[]} findings */
function firstOfEach(findings) {
  const kind = (/** @type {Finding} */ { what }) => what.replaceAll(/killed at write \d+ of \d+ \([^)]*\)|\d+/g, "");
  const sorted = findings.sort((a, b) => a.write - b.write);
  return sorted.filter((one, at) => sorted.findIndex((other) => kind(other) === kind(one)) === at);
}
