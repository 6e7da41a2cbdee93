// Compares the expectations of a turn with its result. Each comparison returns nothing or a failure that describes the
// actual result.

import { isDeepStrictEqual } from "node:util";
import { findings, isObject, shown } from "./schema.mjs";

/** @typedef {import("./cases.mjs").Expectation} Expectation */

/**
 * A call of a tool.
 *
 * @typedef {object} Called
 * @property {string} tool
 * @property {unknown} args
 * @property {string} state     such as `succeeded`, `failed`, `waiting`
 * @property {number} runs      how often it ran
 * @property {string} tier
 * @property {string | null} result
 */

/**
 * The state after a turn. Parts that need requests are fetched on demand.
 *
 * @typedef {object} Seen
 * @property {{ outcome: string, reason: string | null, message: { content: string } | null, error: { message: string } | null, usage: { steps: number } } | undefined} run
 * @property {() => Promise<Called[]>} calls                        the calls of the case so far
 * @property {() => Promise<{ kind: string, tool: string }[]>} waits
 * @property {() => Promise<number>} cost                           USD
 * @property {() => Promise<Record<string, unknown>>} values
 * @property {(path: string) => Promise<string | undefined>} file
 * @property {(question: string, model: string | undefined) => Promise<import("./judges.mjs").Verdict | undefined>} judge   undefined: no judge
 */

/** A failed expectation; soft: it is only shown. @typedef {{ what: string, soft: boolean }} Miss */

/** @param {Expectation} expected @param {Seen} seen @returns {Promise<Miss | undefined>} */
export async function held(expected, seen) {
  const about = Object.keys(EXPECTATIONS).find((name) => name in expected);
  const what = await EXPECTATIONS[/** @type {string} */ (about)]?.(expected, seen);
  return what ? { what, soft: about === "judge" && expected["hard"] !== true } : undefined;
}

/** @type {Record<string, (expected: any, seen: Seen) => Promise<string | undefined | false>>} */
const EXPECTATIONS = {
  async called({ called, with: args, times, result }, seen) {
    const all = await seen.calls();
    const ofTool = all.filter(({ tool }) => tool === called);
    const fitting = ofTool.filter((call) => (args === undefined || within(args, call.args)) && (result === undefined || mismatch(result, call.result ?? "") === undefined));
    const wanted = times ?? { min: 1 };
    if (outside(wanted, fitting.length) === undefined) return undefined;
    const how = [args !== undefined && `with ${shown(args)}`, result !== undefined && `with a result matching ${shown(result)}`].filter(Boolean).join(" and ");
    const instead = ofTool.length === 0 ? `calls were: ${list(all)}` : `its calls were: ${ofTool.map(described).join("; ")}`;
    return `“${called}” ${how === "" ? "" : `${how} `}was called ${times_(fitting.length)}, not ${range(wanted)} times; ${instead}`;
  },
  async notCalled({ notCalled }, seen) {
    const calls = (await seen.calls()).filter(({ tool }) => tool === notCalled);
    return calls.length > 0 && `“${notCalled}” was called: ${calls.map(described).join("; ")}`;
  },
  async toolOrder({ toolOrder }, seen) {
    const calls = await seen.calls();
    let at = 0;
    for (const { tool } of calls) if (tool === toolOrder[at]) at++;
    return at < toolOrder.length && `tools were not called in the order ${toolOrder.join(", ")}: “${toolOrder[at]}” is missing; calls were: ${list(calls)}`;
  },
  async toolCalls({ toolCalls }, seen) {
    const calls = await seen.calls();
    return outside(toolCalls, calls.length) && `tools were called ${times_(calls.length)}, not ${range(toolCalls)} times: ${list(calls)}`;
  },
  async reply({ reply }, { run }) {
    const wrong = mismatch(reply, run?.message?.content ?? "");
    return wrong && `the reply ${wrong}`;
  },
  async outcome({ outcome, reason }, { run }) {
    if (run === undefined) return `the outcome should be ${outcome}, but nothing has run`;
    const why = [run.reason, run.error?.message].filter(Boolean).join(": ");
    if (run.outcome !== outcome) return `the outcome is ${run.outcome}${why ? ` (${why})` : ""}, not ${outcome}`;
    return reason !== undefined && run.reason !== reason && `the reason is ${run.reason}, not ${reason}`;
  },
  async steps({ steps }, { run }) {
    const taken = run?.usage.steps ?? 0;
    return outside(steps, taken) && `the run took ${taken} steps, not ${range(steps)}`;
  },
  async cost({ cost }, seen) {
    const spent = await seen.cost();
    return outside(cost, spent) && `the case cost ${spent} USD, not ${range(cost)}`;
  },
  async parked({ parked }, seen) {
    const waits = await seen.waits();
    const are = waits.length === 0 ? "nothing waits" : `open waits are ${waits.map(({ kind, tool }) => `${kind}${tool ? ` of “${tool}”` : ""}`).join(", ")}`;
    if (parked === false) return waits.length > 0 && `nothing should wait, but ${are}`;
    const fits = waits.some(({ kind, tool }) => parked === true || parked === kind || parked === tool);
    return !fits && (parked === true ? "the run should wait for a person, but nothing waits" : `“${parked}” should wait, but ${are}`);
  },
  async values({ values }, seen) {
    const there = await seen.values();
    const wrong = Object.entries(values).flatMap(([key, wanted]) => {
      if (wanted === null) return key in there ? [`the value “${key}” is ${shown(there[key])}, but should not exist`] : [];
      if (!(key in there)) return [`there is no value “${key}”; values are: ${Object.keys(there).join(", ") || "none"}`];
      const found = isMatcher(wanted) ? mismatch(wanted, there[key]) : isDeepStrictEqual(wanted, there[key]) ? undefined : `is ${shown(there[key])}, not ${shown(wanted)}`;
      return found === undefined ? [] : [`the value “${key}” ${found}`];
    });
    return wrong.length > 0 && wrong.join("; ");
  },
  async files({ files }, seen) {
    for (const [path, wanted] of Object.entries(files)) {
      const content = await seen.file(path);
      if (wanted === false) {
        if (content !== undefined) return `the file ${path} exists, but should not`;
      } else if (content === undefined) return `there is no file ${path}`;
      else if (wanted !== true) {
        const wrong = mismatch(wanted, content);
        if (wrong) return `the file ${path} ${wrong}`;
      }
    }
    return undefined;
  },
  async judge({ judge, model, min = 0.5 }, seen) {
    const verdict = await seen.judge(judge, model);
    return verdict !== undefined && verdict.score < min && `the judge gives ${verdict.score}, below ${min}, to “${judge}”: ${verdict.why}`;
  },
};

const MATCHERS = ["includes", "excludes", "equals", "matches", "schema"];

/** @param {unknown} value */
const isMatcher = (value) => isObject(value) && Object.keys(value).length > 0 && Object.keys(value).every((name) => MATCHERS.includes(name));

/**
 * Returns how a value differs from a matcher. A string is short for `includes`.
 * @param {any} matcher @param {any} value @returns {string | undefined}
 */
export function mismatch(matcher, value) {
  if (typeof matcher === "string") return mismatch({ includes: matcher }, value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const { includes = [], excludes = [], equals, matches, schema } = matcher;
  const lacking = [includes].flat().find((part) => !text.includes(part));
  if (lacking !== undefined) return `does not include ${quoted(lacking)}: it is ${quoted(text)}`;
  const unwanted = [excludes].flat().find((part) => text.includes(part));
  if (unwanted !== undefined) return `includes ${quoted(unwanted)}: it is ${quoted(text)}`;
  if (equals !== undefined && !isDeepStrictEqual(equals, value)) return `is ${quoted(text)}, not ${quoted(typeof equals === "string" ? equals : JSON.stringify(equals))}`;
  if (matches !== undefined && !new RegExp(matches, "u").test(text)) return `does not match ${matches}: it is ${quoted(text)}`;
  if (schema === undefined) return undefined;
  const [wrong] = typeof value === "string" ? ofText(schema, value) : findings(schema, value);
  return wrong && `does not fit the schema: ${wrong.at === "" ? "it" : wrong.at} ${wrong.message}`;
}

/** Validates the JSON in a text. @param {any} schema @param {string} text @returns {import("./schema.mjs").Finding[]} */
function ofText(schema, text) {
  try {
    return findings(schema, JSON.parse(text));
  } catch {
    return [{ at: "", message: `is not JSON: ${quoted(text)}` }];
  }
}

/** Returns whether the arguments contain all of these. @param {any} wanted @param {any} args @returns {boolean} */
export function within(wanted, args) {
  if (!isObject(wanted)) return isDeepStrictEqual(wanted, args);
  return isObject(args) && Object.entries(wanted).every(([name, value]) => Object.hasOwn(args, name) && within(value, args[name]));
}

/** @param {number | { min?: number, max?: number }} wanted @param {number} value */
function outside(wanted, value) {
  const { min = -Infinity, max = Infinity } = typeof wanted === "number" ? { min: wanted, max: wanted } : wanted;
  return value < min || value > max ? "outside" : undefined;
}

/** @param {number | { min?: number, max?: number }} wanted */
function range(wanted) {
  if (typeof wanted === "number") return String(wanted);
  const { min, max } = wanted;
  if (max === undefined) return `${min} or more`;
  return min === undefined ? `at most ${max}` : `${min} to ${max}`;
}

/** @param {number} count */
const times_ = (count) => (count === 0 ? "never" : count === 1 ? "once" : count === 2 ? "twice" : `${count} times`);

/** @param {Called[]} calls */
const list = (calls) => (calls.length === 0 ? "none" : calls.map(({ tool }) => tool).join(", "));

/** @param {Called} call */
const described = ({ args, state }) => `${shown(args)} (${state})`;

/** @param {string} text */
const quoted = (text) => `“${text.length > 300 ? `${text.slice(0, 299)}…` : text}”`;
