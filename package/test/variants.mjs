// The Workers that cases need. Cases share a Worker if they have the same kind of models, stubbed tools and variables.

import { randomBytes } from "node:crypto";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { CHANCE, files, marked, natives, readsOnly, scripted, withStubs } from "./catalog.mjs";
import { pretended } from "./environment.mjs";
import { judgesIn, withJudges } from "./judges.mjs";

/** @typedef {import("./cases.mjs").Case} Case */

/** Variables of every Worker. */
const VARS = {
  BOBBIN_DEV: "1",
  BOBBIN_ALLOW_PRIVATE_HOSTS: "localhost,127.0.0.1,[::1],models.bobbin.test,tools.bobbin.test",
  BOBBIN_TOKEN_SECRET: "tokens of tests are no secret",
  BOBBIN_ENCRYPTION_KEYS: `tests=${randomBytes(32).toString("base64")}`,
};

/**
 * Returns the Worker for a case.
 *
 * @param {Case} case_
 * @param {any} catalog
 * @param {{ cassette: import("./cassette.mjs").Cassette | undefined, present: ReturnType<typeof import("./environment.mjs").present> }} with_
 * @returns {import("./machine.mjs").Variant}
 */
export function variantOf(case_, catalog, { cassette, present }) {
  const names = toolsOf(case_);
  check(case_, names, catalog);
  const models = "script" in case_.model ? scripted(catalog) : marked(withJudges(catalog, judgesIn(case_, catalog)));
  // Tools with random results are recorded, too.
  const chance = cassette === undefined ? [] : Object.keys(catalog.tools).filter((name) => CHANCE.includes(catalog.tools[name].run.native));
  return { catalog: JSON.stringify(withStubs(models, natives(catalog, [...names, ...chance]))), vars: { ...VARS, ...varsOf(case_, catalog, cassette, present), ...case_.vars } };
}

/** @param {Case} case_ @param {any} catalog @param {import("./cassette.mjs").Cassette | undefined} cassette @param {ReturnType<typeof import("./environment.mjs").present>} present */
function varsOf(case_, catalog, cassette, present) {
  if ("script" in case_.model) return {};
  if (cassette === undefined || cassette.records) return { ...present.vars, ...present.secrets };
  return pretended(cassette.head, catalog);
}

/**
 * Returns facts about a case's tools that are used while it is played.
 * @param {Case} case_ @param {any} catalog @param {boolean} recorded
 */
export function toolsKnown(case_, catalog, recorded) {
  const chance = recorded ? Object.keys(catalog.tools).filter((name) => CHANCE.includes(catalog.tools[name].run.native)) : [];
  return { stubbed: files(catalog, [...toolsOf(case_), ...chance]), reads: (/** @type {string} */ name) => readsOnly(catalog, name) };
}

/** Returns the tools that a case has stubs for. @param {Case} case_ */
const toolsOf = ({ stubs }) => stubs.flatMap(({ tool }) => (tool === undefined ? [] : [tool]));

/** @param {Case} case_ @param {string[]} names @param {any} catalog */
function check(case_, names, catalog) {
  const { file, agent } = case_;
  const listed = (/** @type {object} */ of) => Object.keys(of).join(", ");
  if (catalog.agents[agent] === undefined) throw new Complaint(`${file}: there is no agent “${agent}”. Agents are ${listed(catalog.agents)}.`, EXIT.usage);
  const judge = judgesIn(case_, catalog).find((model) => catalog.models[model] === undefined);
  if (judge !== undefined) throw new Complaint(`${file}: there is no model “${judge}” for the judge. Models are ${listed(catalog.models)}.`, EXIT.usage);
  const wrong = names.find((name) => catalog.tools[name] === undefined || catalog.tools[name].run.client !== undefined);
  if (wrong === undefined) return;
  const isCalled = wrong in catalog.prompts || wrong in catalog.agents;
  const why = wrong in catalog.tools ? "is a tool of the client; return its result in a turn" : isCalled ? "is not a tool; add the replies of its model to the script" : `does not exist; tools are ${listed(catalog.tools)}`;
  throw new Complaint(`${file}: a stub names “${wrong}”, which ${why}.`, EXIT.usage);
}
