// Stubs: the responses of tools in a case.

import { isDeepStrictEqual } from "node:util";
import { fits, isObject } from "./schema.mjs";

/** @typedef {{ response?: unknown, throw?: string, delayMs?: number, crash?: true }} Outcome */
/**
 * @typedef {object} Stub
 * @property {string} [tool]
 * @property {string} [url]
 * @property {string} [method]
 * @property {Record<string, unknown>} [match]
 * @property {Outcome} [outcome]
 * @property {Outcome[]} [outcomes]
 * @property {number} [status]
 * @property {number} [times]
 * @property {number} [delayMs]
 * @property {true} [crash]
 * @property {boolean} [repeatable]
 */

/** The call that a stub receives. @typedef {{ args: unknown, key: string | undefined }} Call */
/** @typedef {{ stub: Stub, outcome: Outcome, delayMs: number, crash: boolean }} Answered */

/** The stubs of one run, with the calls they have received. */
export class Stubs {
  #stubs;
  /** @type {Map<Stub, number>} */
  #asked = new Map();
  /** First responses, by idempotency key. @type {Map<string, Answered>} */
  #given = new Map();
  /** @type {Set<Stub>} */
  #crashed = new Set();

  /** @param {Stub[]} stubs */
  constructor(stubs) {
    this.#stubs = stubs;
  }

  /** @param {string} tool @param {Call} call @returns {Answered | undefined} */
  ofTool(tool, call) {
    return this.#take((stub) => stub.tool === tool, call);
  }

  /** @param {string} method @param {string} url @param {Call} call @returns {Answered | undefined} */
  ofAddress(method, url, call) {
    return this.#take((stub) => stub.url !== undefined && globbed(stub.url, url) && (stub.method ?? method) === method, call);
  }

  /** @param {(stub: Stub) => boolean} of @param {Call} call */
  #take(of, { args, key }) {
    const known = key === undefined ? undefined : this.#given.get(key);
    if (known) return { ...known, delayMs: 0, crash: false };
    const fitting = (/** @type {Stub} */ stub) => of(stub) && matches(stub.match ?? {}, args) && (this.#asked.get(stub) ?? 0) < (stub.times ?? Infinity);
    const stub = this.#stubs.find(fitting);
    if (stub === undefined) return undefined;
    const asked = this.#asked.get(stub) ?? 0;
    this.#asked.set(stub, asked + 1);
    const outcomes = stub.outcomes ?? [stub.outcome ?? {}];
    const outcome = outcomes[Math.min(asked, outcomes.length - 1)] ?? {};
    const crash = (stub.crash ?? outcome.crash ?? false) && !this.#crashed.has(stub);
    if (crash) this.#crashed.add(stub);
    const answered = { stub, outcome, delayMs: outcome.delayMs ?? stub.delayMs ?? 0, crash };
    if (stub.repeatable && key !== undefined) this.#given.set(key, answered);
    return answered;
  }
}

/** Returns whether the arguments match a stub. @param {Record<string, unknown>} match @param {unknown} args */
export function matches(match, args) {
  const given = isObject(args) ? args : {};
  return Object.entries(match).every(([name, wanted]) => {
    if (!isObject(wanted)) return isDeepStrictEqual(wanted, given[name]);
    return Object.hasOwn(given, name) ? fits(wanted, given[name]) : "not" in wanted;
  });
}

/** @param {string} pattern @param {string} text */
function globbed(pattern, text) {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(text);
}
