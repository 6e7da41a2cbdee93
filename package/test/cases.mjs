// Finds, reads and validates the files of cases.

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { readMarkdown } from "./markdown.mjs";
import { findings, isObject, schemaProblem } from "./schema.mjs";

/**
 * @typedef {object} Case
 * @property {string} name
 * @property {string} file      the path as shown to people
 * @property {string} folder    the folder of its cassette
 * @property {string} agent
 * @property {{ script: import("./script.mjs").Script } | { cassette: string } | { live: true }} model
 * @property {import("./stubs.mjs").Stub[]} stubs
 * @property {"closed" | "real"} tools
 * @property {Record<string, string>} env
 * @property {Record<string, string>} vars
 * @property {object[]} history
 * @property {Record<string, unknown>} values
 * @property {Record<string, string>} files
 * @property {boolean} crash    whether it takes part in `--crash`
 * @property {number} withinMs
 * @property {Turn[]} turns
 */

/** @typedef {{ [name: string]: any, expect: Expectation[] }} Turn */
/** @typedef {{ [name: string]: any }} Expectation */

const SCHEMA = JSON.parse(readFileSync(fileURLToPath(new URL("case.schema.json", import.meta.url)), "utf8"));
const ENDING = /\.test\.(json|md)$/;
const WITHIN_MS = 30_000;
/** Actions of a turn. A turn has at most one. Without one it only checks its expectations. */
const ACTS = ["send", "approve", "deny", "answer", "result", "advance", "stop", "continue"];
/** Subjects of an expectation. An expectation has exactly one. */
const ABOUT = ["called", "notCalled", "toolOrder", "toolCalls", "reply", "outcome", "steps", "cost", "parked", "values", "files", "judge"];
/** Fields that qualify another field. @type {Record<string, string[]>} */
const WITH = { with: ["called"], times: ["called"], result: ["called"], reason: ["outcome"], model: ["judge"], min: ["judge"], hard: ["judge"] };

/** Returns the files of cases in these files and folders. @param {string[]} paths @param {string} from */
export function findCases(paths, from) {
  return paths.flatMap((path) => {
    const whole = resolve(from, path);
    if (!existsSync(whole)) throw new Complaint(`${path} does not exist.`, EXIT.usage);
    if (!statSync(whole).isDirectory()) return [whole];
    return readdirSync(whole, { recursive: true, encoding: "utf8" })
      .filter((name) => ENDING.test(name) && !/(^|[\\/])(node_modules|\.[^\\/]+)[\\/]/.test(name))
      .sort()
      .map((name) => join(whole, name));
  });
}

/** @param {string} path @param {string} from @returns {Case} */
export function readCase(path, from) {
  const file = relative(from, path).replaceAll("\\", "/") || path;
  const text = readFileSync(path, "utf8");
  let written;
  try {
    written = path.endsWith(".md") ? readMarkdown(text) : JSON.parse(text);
  } catch (error) {
    throw new Complaint(`${file}: ${/** @type {Error} */ (error).message}`, EXIT.usage);
  }
  return checkedCase(written, { file, folder: resolve(path, ".."), name: basename(path).replace(ENDING, "") });
}

/** @param {any} given @param {{ file: string, folder: string, name: string }} place @returns {Case} */
export function checkedCase(given, { file, folder, name }) {
  // Convert to JSON first, because a program's object may have undefined fields.
  const written = JSON.parse(JSON.stringify(given));
  const misshapen = findings(SCHEMA, written);
  const wrong = misshapen.length > 0 ? misshapen : meaning(written);
  if (wrong.length > 0) {
    const lines = wrong.slice(0, 10).map(({ at, message }) => `${file}: ${at === "" ? "the case" : `\`${at}\``} ${message}`);
    throw new Complaint(lines.join("\n"), EXIT.usage);
  }
  return {
    name: written.name ?? name,
    file,
    folder,
    agent: written.agent,
    model: written.model === "live" ? { live: true } : (written.model ?? { script: [] }),
    stubs: written.stubs ?? [],
    tools: written.tools ?? "closed",
    env: written.env ?? {},
    vars: written.vars ?? {},
    history: written.history ?? [],
    values: written.values ?? {},
    files: written.files ?? {},
    crash: written.crash ?? true,
    withinMs: written.within === undefined ? WITHIN_MS : milliseconds(written.within),
    turns: written.turns.map((/** @type {any} */ turn) => ({ ...turn, expect: turn.expect ?? [] })),
  };
}

/** Checks what a schema cannot express. @param {any} written @returns {import("./schema.mjs").Finding[]} */
function meaning({ stubs = [], turns }) {
  return [
    ...stubs.flatMap((/** @type {any} */ stub, /** @type {number} */ at) => ofStub(stub, `stubs[${at}]`)),
    ...turns.flatMap((/** @type {any} */ turn, /** @type {number} */ at) => ofTurn(turn, `turns[${at}]`)),
  ];
}

/** @param {any} stub @param {string} at */
function ofStub(stub, at) {
  const found = [];
  if ((stub.tool === undefined) === (stub.url === undefined)) found.push({ at, message: "needs a `tool` or a `url`" });
  if ((stub.outcome === undefined) === (stub.outcomes === undefined)) found.push({ at, message: "needs an `outcome` or `outcomes`" });
  for (const [name, schema] of Object.entries(stub.match ?? {})) {
    const problem = isObject(schema) ? schemaProblem(schema) : undefined;
    if (problem !== undefined) found.push({ at: `${at}.match.${name}`, message: `is not a valid schema (${problem}); to match a value, write { "const": … }` });
  }
  return found;
}

/** @param {any} turn @param {string} at */
function ofTurn(turn, at) {
  const acts = ACTS.filter((act) => act in turn);
  const found = [];
  if (acts.length > 1) found.push({ at, message: `has two actions, \`${acts[0]}\` and \`${acts[1]}\`: split it into two turns` });
  if (acts.length === 0 && turn.expect === undefined) found.push({ at, message: `has no action; actions are ${ACTS.join(", ")} and expect` });
  const expectations = turn.expect ?? [];
  expectations.forEach((/** @type {any} */ one, /** @type {number} */ number) => {
    const place = `${at}.expect[${number}]`;
    const about = ABOUT.filter((name) => name in one);
    if (about.length !== 1) found.push({ at: place, message: `needs exactly one of ${ABOUT.join(", ")}` });
    for (const [name, of] of Object.entries(WITH)) {
      if (name in one && !of.some((other) => other in one)) found.push({ at: `${place}.${name}`, message: `is only allowed with \`${of[0]}\`` });
    }
    for (const [name, matcher] of Object.entries({ result: one.result, reply: one.reply, ...one.files, ...one.values })) {
      const problem = isObject(matcher) && isObject(matcher["schema"]) ? schemaProblem(matcher["schema"]) : undefined;
      if (problem !== undefined) found.push({ at: place, message: `has an invalid schema for \`${name}\`: ${problem}` });
    }
  });
  return found;
}

/** @type {Record<string, number>} */
const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** @param {string} duration   such as `3d` */
export function milliseconds(duration) {
  const [, count, unit = "ms"] = /^([0-9.]+)(\w+)$/.exec(duration) ?? [];
  return Number(count) * (UNITS[unit] ?? 1);
}
