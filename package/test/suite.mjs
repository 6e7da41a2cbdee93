// All cases: made ready, played side by side, and what came of each.

import { randomBytes } from "node:crypto";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { played } from "./answers.mjs";
import { compile, files, natives, readsOnly, scripted, withStubs } from "./catalog.mjs";
import { sweep } from "./crash.mjs";
import { startMachine } from "./machine.mjs";
import { startOutside } from "./outside.mjs";
import { workerd } from "./places.mjs";
import { play } from "./play.mjs";
import { ScriptedModel } from "./script.mjs";

/** @typedef {import("./cases.mjs").Case} Case */

/**
 * @typedef {object} Result
 * @property {Case} case
 * @property {"passed" | "failed"} state
 * @property {import("./play.mjs").Failure[]} failures    of the first run that did not hold
 * @property {import("./crash.mjs").Sweep} [crash]
 * @property {number} ms
 * @property {number} cost                                USD
 */

/** Runs that are under way at the same time. */
const SIDE_BY_SIDE = 8;

/**
 * @param {Case[]} cases
 * @param {{ agents: string, project: string, crash?: boolean, done?: (result: Result) => void }} options
 * @returns {Promise<Result[]>}
 */
export async function runCases(cases, { agents, project, crash = false, done = () => {} }) {
  const catalog = await compile(agents, project);
  const { variants, of } = variantsOf(cases, catalog);
  const outside = await startOutside();
  try {
    const machine = await startMachine({ variants, outside: outside.port, workerd: workerd(project) });
    const hold = places(SIDE_BY_SIDE);
    const reads = (/** @type {string} */ name) => readsOnly(catalog, name);
    const played = async (/** @type {Case} */ case_) => {
      const stage = { url: /** @type {string} */ (machine.urls[of(case_)]), outside, model: modelOf, stubbed: files(catalog, toolsOf(case_)), reads };
      const result = await resultOf(case_, stage, { crash, hold });
      done(result);
      return result;
    };
    return await Promise.all(cases.map(played)).finally(machine.stop);
  } finally {
    await outside.stop();
  }
}

/**
 * The Workers that the cases need, and which is whose: cases share one if the same tools are stubbed and the same variables set.
 *
 * @param {Case[]} cases
 * @param {any} catalog
 */
function variantsOf(cases, catalog) {
  const models = scripted(catalog);
  /** @type {Map<string, import("./machine.mjs").Variant>} */
  const variants = new Map();
  const places = new Map(
    cases.map((case_) => {
      const names = toolsOf(case_);
      checkStubs(case_, names, catalog);
      const stubbed = natives(catalog, names);
      const key = JSON.stringify([stubbed, case_.vars]);
      if (!variants.has(key)) variants.set(key, { catalog: JSON.stringify(withStubs(models, stubbed)), vars: { ...VARS, ...case_.vars } });
      return [case_, [...variants.keys()].indexOf(key)];
    }),
  );
  return { variants: [...variants.values()], of: (/** @type {Case} */ case_) => places.get(case_) ?? 0 };
}

/** Tools that a case has stubs for. @param {Case} case_ */
const toolsOf = ({ stubs }) => stubs.flatMap(({ tool }) => (tool === undefined ? [] : [tool]));

/** @param {Case} case_ @param {string[]} names @param {any} catalog */
function checkStubs({ file }, names, catalog) {
  const wrong = names.find((name) => catalog.tools[name] === undefined || catalog.tools[name].run.client !== undefined);
  if (wrong === undefined) return;
  const kind = wrong in catalog.tools ? "is a tool of the client, which a turn answers" : wrong in catalog.prompts || wrong in catalog.agents ? "is no tool: script what its model answers" : `is not there; tools are ${Object.keys(catalog.tools).join(", ")}`;
  throw new Complaint(`${file}: a stub is for “${wrong}”, which ${kind}.`, EXIT.usage);
}

/** What the Workers are given. */
const VARS = {
  BOBBIN_DEV: "1",
  BOBBIN_ALLOW_PRIVATE_HOSTS: "localhost,127.0.0.1,[::1],models.bobbin.test,tools.bobbin.test",
  BOBBIN_TOKEN_SECRET: "tokens of tests are nobody's secret",
  BOBBIN_ENCRYPTION_KEYS: `tests=${randomBytes(32).toString("base64")}`,
};

/** @param {Case} case_ @param {import("./play.mjs").Play} play */
function modelOf(case_, play) {
  return played(new ScriptedModel(case_.model.script, (text) => play.fail(text)));
}

/**
 * @param {Case} case_
 * @param {import("./play.mjs").Stage} stage
 * @param {{ crash: boolean, hold: Hold }} options
 * @returns {Promise<Result>}
 */
async function resultOf(case_, stage, { crash, hold }) {
  let ms = 0;
  const { failures, cost } = await hold(async () => {
    const began = performance.now();
    const played = await play(case_, stage);
    ms = performance.now() - began;
    return played;
  });
  const fails = failures.length > 0;
  /** @type {Result} */
  const result = { case: case_, state: fails ? "failed" : "passed", failures, ms, cost };
  // What fails by itself says nothing under crashes.
  if (!crash || fails) return result;
  const swept = await sweep(case_, stage, hold);
  return { ...result, crash: swept, state: swept.findings.length > 0 ? "failed" : "passed" };
}

/** Waits for a place, and does the work. @typedef {<T>(work: () => Promise<T>) => Promise<T>} Hold */

/** So many places, taken in the order in which they are asked for. @param {number} free @returns {Hold} */
function places(free) {
  /** @type {(() => void)[]} */
  const waiting = [];
  return async (work) => {
    if (free > 0) free--;
    else await new Promise((resolve) => waiting.push(() => resolve(undefined)));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}
