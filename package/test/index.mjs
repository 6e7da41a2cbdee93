// `bobbin/test`: cases in code, for node:test and vitest.

import { join, resolve } from "node:path";
import { checkedCase } from "./cases.mjs";
import { compile } from "./catalog.mjs";
import { present } from "./environment.mjs";
import { startMachine } from "./machine.mjs";
import { startOutside } from "./outside.mjs";
import { workerd } from "./places.mjs";
import { begin } from "./play.mjs";
import { said } from "./report.mjs";
import { stageOf } from "./suite.mjs";
import { variantOf } from "./variants.mjs";

/** @typedef {import("./cases.mjs").Expectation} Expectation */

/**
 * The fields of a case's file except its turns, and the folder of the definitions.
 *
 * @typedef {object} Settings
 * @property {import("./script.mjs").Script} [script]      the models' responses
 * @property {"live"} [model]                              real models
 * @property {import("./stubs.mjs").Stub[]} [stubs]
 * @property {"closed" | "real"} [tools]
 * @property {Record<string, string>} [env]
 * @property {Record<string, string>} [vars]
 * @property {object[]} [history]
 * @property {Record<string, unknown>} [values]
 * @property {Record<string, string>} [files]
 * @property {string} [within]
 * @property {string} [agents]                             the folder of definitions; by default `agents` in the working directory
 */

/**
 * The state after a turn.
 *
 * @typedef {object} Looked
 * @property {string} reply
 * @property {string | undefined} outcome
 * @property {string | null | undefined} reason
 * @property {import("./expect.mjs").Called[]} calls       of the whole conversation
 * @property {{ kind: string, tool: string }[]} waits
 * @property {Record<string, unknown>} values
 * @property {number} cost                                 USD, of the whole conversation
 */

/** An expectation failed, or something could not be played. */
export class CaseFailed extends Error {
  name = "CaseFailed";
}

/** The `test` function of the runner that runs this. @type {(name: string, body: () => void | Promise<void>) => unknown} */
const register = process.env["VITEST"] === undefined ? (await import("node:test")).test : await vitest();

/** vitest can be imported if it runs this. */
async function vitest() {
  const name = "vitest";
  return (await import(name)).test;
}

/** Registers a test with vitest or node:test. @param {string} name @param {() => void | Promise<void>} body */
export function test(name, body) {
  register(name, body);
}

/** Starts a conversation with an agent, in its own thread. @param {string} name @param {Settings} [settings] */
export const agent = (name, settings = {}) => new Conversation(name, settings);

export class Conversation {
  #name;
  #settings;
  /** @type {Promise<import("./play.mjs").Play> | undefined} */
  #play;

  /** @param {string} name @param {Settings} settings */
  constructor(name, settings) {
    this.#name = name;
    this.#settings = settings;
  }

  /** @param {string} text @param {{ attachments?: object[], metadata?: object }} [more] */
  send(text, more = {}) {
    return this.turn({ send: text, ...more });
  }
  /** @param {string} tool @param {Record<string, unknown>} [args]   the changed ones */
  approve(tool, args) {
    return this.turn({ approve: tool, ...(args && { args }) });
  }
  /** @param {string} tool @param {string} [reason] */
  deny(tool, reason) {
    return this.turn({ deny: tool, ...(reason !== undefined && { reason }) });
  }
  /** @param {string} text */
  answer(text) {
    return this.turn({ answer: text });
  }
  /** @param {string} tool   a tool of the client @param {unknown} result */
  result(tool, result) {
    return this.turn({ tool, result });
  }
  /** @param {string} duration   such as `3d` */
  advance(duration) {
    return this.turn({ advance: duration });
  }
  stop() {
    return this.turn({ stop: true });
  }
  continue() {
    return this.turn({ continue: true });
  }
  /** Rejects if an expectation fails. @param {Expectation[]} expected */
  expect(...expected) {
    return this.turn({ expect: expected });
  }

  /**
   * Plays a turn as written in a file. Rejects if an expectation fails.
   * @param {{ [field: string]: unknown }} turn @returns {Promise<Looked>}
   */
  async turn(turn) {
    const [checked] = caseOf(this.#name, this.#settings, [turn]).turns;
    const play = await (this.#play ??= started(this.#name, this.#settings));
    const before = play.failures.length;
    await play.turn(/** @type {import("./cases.mjs").Turn} */ (checked));
    const failures = play.failures.slice(before).filter(({ soft }) => !soft);
    if (failures.length > 0) throw new CaseFailed(failures.map(said).join("\n"));
    return looked(play);
  }
}

/** @param {import("./play.mjs").Play} play @returns {Promise<Looked>} */
async function looked({ family }) {
  const [run, calls, waits, left, cost] = await Promise.all([family.run(), family.calls(), family.waits(), family.left(), family.cost()]);
  return { reply: run?.message?.content ?? "", outcome: run?.outcome, reason: run?.reason, calls, waits, values: left.values, cost };
}

/** @param {string} name @param {Settings} settings @param {object[]} turns */
function caseOf(name, { agents: _, script, model, ...settings }, turns) {
  return checkedCase({ agent: name, model: model ?? { script: script ?? [] }, ...settings, turns }, { file: "the test", folder: process.cwd(), name });
}

/** @typedef {{ catalog: any, here: ReturnType<typeof present>, outside: import("./outside.mjs").Outside }} Ground */

/** The shared state of all conversations with the same definitions. @type {Map<string, Promise<Ground>>} */
const grounds = new Map();
/** @type {Map<string, Promise<import("./machine.mjs").Machine>>} */
const machines = new Map();

/** @param {string} name @param {Settings} settings */
async function started(name, settings) {
  const project = process.cwd();
  const folder = resolve(settings.agents ?? join(project, "agents"));
  const case_ = caseOf(name, settings, [{ expect: [] }]);
  const ground = shared(grounds, folder, async () => {
    const catalog = await compile(folder, project);
    return { catalog, here: present(catalog, project), outside: await startOutside({ aside: true }) };
  });
  const { catalog, here, outside } = await ground;
  const variant = variantOf(case_, catalog, { cassette: undefined, present: here });
  const machine = await shared(machines, folder + JSON.stringify(variant), () => startMachine({ variants: [variant], outside: outside.port, workerd: workerd(project), aside: true }));
  return begin(case_, stageOf(case_, catalog, { url: /** @type {string} */ (machine.urls[0]), outside, cassette: undefined }));
}

/** @template T @param {Map<string, Promise<T>>} all @param {string} key @param {() => Promise<T>} make @returns {Promise<T>} */
function shared(all, key, make) {
  const known = all.get(key) ?? make();
  all.set(key, known);
  return known;
}
