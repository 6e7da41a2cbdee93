// Plays all cases in parallel and collects their results.

import { resolve } from "node:path";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { CHANCE, compile } from "./catalog.mjs";
import { Cassette } from "./cassette.mjs";
import { sweep } from "./crash.mjs";
import { present } from "./environment.mjs";
import { judgeOf } from "./judges.mjs";
import { startMachine } from "./machine.mjs";
import { mcpTools } from "./mcp.mjs";
import { byCassette, byScript, byThemselves } from "./models.mjs";
import { startOutside } from "./outside.mjs";
import { workerd } from "./places.mjs";
import { play } from "./play.mjs";
import { ScriptedModel } from "./script.mjs";
import { toolsKnown, variantOf } from "./variants.mjs";

/** @typedef {import("./cases.mjs").Case} Case */
/** @typedef {import("./play.mjs").Stage} Stage */

/**
 * @typedef {object} Result
 * @property {Case} case
 * @property {"passed" | "failed" | "skipped"} state
 * @property {import("./play.mjs").Failure[]} failures    of the run without a crash
 * @property {import("./crash.mjs").Sweep} [crash]
 * @property {string} [why]                               why it was skipped
 * @property {number} ms
 * @property {number} cost                                USD
 */

/**
 * @typedef {object} Options
 * @property {string} agents                  the folder of the definitions
 * @property {string} project
 * @property {boolean} [crash]
 * @property {boolean} [live]                 also plays cases with real models
 * @property {"all" | "missing"} [record]     which cassettes to record
 * @property {(result: Result) => void} [done]
 */

/** The number of concurrent runs. */
const SIDE_BY_SIDE = 8;

/** @param {Case[]} cases @param {Options} options @returns {Promise<Result[]>} */
export async function runCases(cases, { agents, project, crash = false, live = false, record, done = () => {} }) {
  const catalog = await compile(agents, project);
  const here = present(catalog, project);
  const cassettes = cassettesOf(cases, record ?? "replay", here);
  const { variants, of } = variantsOf(cases, (case_) => variantOf(case_, catalog, { cassette: cassettes(case_), present: here }));
  const outside = await startOutside();
  try {
    const machine = await startMachine({ variants, outside: outside.port, workerd: workerd(project) });
    const hold = places(SIDE_BY_SIDE);
    const played = async (/** @type {Case} */ case_) => {
      const url = /** @type {string} */ (machine.urls[of(case_)]);
      const stage = stageOf(case_, catalog, { url, outside, cassette: cassettes(case_) });
      const result = "live" in case_.model && !live ? skipped(case_) : await resultOf(case_, stage, { crash, hold });
      done(result);
      return result;
    };
    return await Promise.all(cases.map(played)).finally(machine.stop);
  } finally {
    cassettes.save(Object.values(here.secrets));
    await outside.stop();
  }
}

/** @param {Case} case_ @param {string} [why] @returns {Result} */
const skipped = (case_, why = "it uses real models; run it with --live") => ({ case: case_, state: "skipped", failures: [], why, ms: 0, cost: 0 });

/**
 * Plays cases with real models on a deployment, through its API.
 *
 * @param {Case[]} cases
 * @param {{ url: string, key: string | undefined, done?: (result: Result) => void }} at
 * @returns {Promise<Result[]>}
 */
export async function runDeployed(cases, { url, key, done = () => {} }) {
  const hold = places(SIDE_BY_SIDE);
  return Promise.all(
    cases.map(async (case_) => {
      const why = notDeployed(case_);
      /** @type {Stage} */
      const stage = { url, outside: undefined, deployed: { key }, cassette: undefined, mcp: [], model: byThemselves, judge: undefined, stubbed: {}, reads: () => false };
      const result = why === undefined ? await resultOf(case_, stage, { crash: false, hold }) : skipped(case_, why);
      done(result);
      return result;
    }),
  );
}

/** Returns why a case cannot be played on a deployment. @param {Case} case_ */
function notDeployed({ model, stubs, vars, turns }) {
  if (!("live" in model)) return "its models are scripted, and those of a deployment are real";
  if (stubs.length > 0 || Object.keys(vars).length > 0) return "it has stubs or its own variables of a deployment";
  if (turns.some((turn) => "advance" in turn)) return "it advances time, which a deployment cannot";
  return undefined;
}

/**
 * Returns the cassettes by case.
 * @param {Case[]} cases @param {import("./cassette.mjs").Mode} mode @param {import("./environment.mjs").Present} here
 */
function cassettesOf(cases, mode, { vars, keys }) {
  /** @type {Map<string, Cassette>} */
  const all = new Map();
  const pathOf = (/** @type {Case} */ { model, folder }) => ("cassette" in model ? resolve(folder, model.cassette) : "");
  for (const case_ of cases) {
    const path = pathOf(case_);
    if (path === "") continue;
    if (all.has(path)) throw new Complaint(`${case_.file}: another case uses the cassette ${path}. Each case needs its own.`, EXIT.usage);
    all.set(path, new Cassette(path, mode, { vars, keys }));
  }
  const of = (/** @type {Case} */ case_) => all.get(pathOf(case_));
  return Object.assign(of, { save: (/** @type {string[]} */ secrets) => all.forEach((cassette) => cassette.save(secrets)) });
}

/**
 * Returns the required Workers, and the Worker of each case.
 * @param {Case[]} cases @param {(case_: Case) => import("./machine.mjs").Variant} variantOf
 */
function variantsOf(cases, variantOf) {
  /** @type {Map<string, import("./machine.mjs").Variant>} */
  const variants = new Map();
  const keys = new Map(
    cases.map((case_) => {
      const variant = variantOf(case_);
      const key = JSON.stringify(variant);
      variants.set(key, variant);
      return [case_, key];
    }),
  );
  const order = [...variants.keys()];
  return { variants: [...variants.values()], of: (/** @type {Case} */ case_) => order.indexOf(keys.get(case_) ?? "") };
}

/** @param {Case} case_ @param {any} catalog @param {{ url: string, outside: import("./outside.mjs").Outside, cassette: Cassette | undefined }} at @returns {Stage} */
export function stageOf(case_, catalog, { url, outside, cassette }) {
  const { model } = case_;
  const own = catalog.prompts[catalog.agents[case_.agent]?.sideA?.prompt]?.model ?? "";
  return {
    url,
    outside,
    cassette,
    mcp: mcpTools(catalog),
    model(play) {
      const problem = (/** @type {string} */ text) => play.problem(text);
      if (cassette !== undefined) return byCassette(cassette, problem);
      return "script" in model ? byScript(new ScriptedModel(model.script, case_.history, problem)) : byThemselves();
    },
    judge: "script" in model ? undefined : (of = own) => judgeOf(of),
    ...toolsKnown(case_, catalog, cassette !== undefined),
  };
}

/**
 * @param {Case} case_
 * @param {Stage} stage
 * @param {{ crash: boolean, hold: Hold }} options
 * @returns {Promise<Result>}
 */
async function resultOf(case_, stage, { crash, hold }) {
  const { cassette } = stage;
  const records = cassette?.records ?? false;
  if (cassette?.empty && !records) {
    const what = "its cassette is empty; --record sends requests to the models, and records the responses";
    return { case: case_, state: "failed", failures: [{ turn: 1, about: "", what, soft: false }], ms: 0, cost: 0 };
  }
  let ms = 0;
  const { failures, cost, calls } = await hold(async () => {
    const began = performance.now();
    const played = await play(case_, stage, { whole: records });
    ms = performance.now() - began;
    return played;
  });
  if (records) {
    const chance = calls.filter(({ tool, state }) => CHANCE.includes(tool) && state === "succeeded");
    cassette?.keep(chance.map(({ tool, args, result }) => ({ tool, args, result: { status: "success", result } })));
    if (cassette?.empty) failures.push({ turn: 1, about: "", what: "nothing was recorded, because no request to a model was sent. Check that a model has its key", soft: false });
  }
  const fails = failures.some(({ soft }) => !soft);
  /** @type {Result} */
  const result = { case: case_, state: fails ? "failed" : "passed", failures, ms, cost };
  // A case that fails without crashes is not played with them.
  if (!crash || !case_.crash || fails) return result;
  const swept = await sweep(case_, stage, hold);
  return { ...result, crash: swept, state: swept.findings.length > 0 ? "failed" : "passed" };
}

/** Runs the work when a slot is free. @typedef {<T>(work: () => Promise<T>) => Promise<T>} Hold */

/** Returns a function that limits concurrent work. Waiting work starts in order. @param {number} free @returns {Hold} */
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
