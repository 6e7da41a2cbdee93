// Plays one run of a case: sends its turns to a new thread and compares the result of each with its expectations.

import { Api, Refused } from "./api.mjs";
import { Answers } from "./answers.mjs";
import { milliseconds } from "./cases.mjs";
import { asked, verdict } from "./judges.mjs";
import { held } from "./expect.mjs";
import { Family, outsideOf, watching } from "./family.mjs";
import { shown } from "./schema.mjs";

/** @typedef {import("./cases.mjs").Case} Case */
/** @typedef {import("./cases.mjs").Turn} Turn */

/** A failed expectation; soft: it is only shown. @typedef {{ turn: number, about: string, what: string, soft: boolean }} Failure */

/**
 * The result of a run.
 *
 * @typedef {object} Played
 * @property {Failure[]} failures
 * @property {import("./answers.mjs").Sent[]} sent       requests to the outside, other than to models
 * @property {{ object: string, did: string[] }[]} writes
 * @property {{ object: string, write: number, did: string, at: number } | undefined} drop
 * @property {import("./expect.mjs").Called[]} calls
 * @property {{ values: Record<string, unknown>, files: string[] }} left   the thread's state at the end
 * @property {number} cost      USD
 * @property {string[]} log     the Worker's output
 */

/**
 * The environment in which cases are played.
 *
 * @typedef {object} Stage
 * @property {string} url
 * @property {import("./outside.mjs").Outside | undefined} outside
 * @property {{ key: string | undefined } | undefined} [deployed]   a deployment, and the key for its API
 * @property {(play: Play) => import("./answers.mjs").Model} model
 * @property {import("./cassette.mjs").Cassette | undefined} cassette
 * @property {import("./mcp.mjs").McpTool[]} mcp         tools of MCP servers
 * @property {((model: string | undefined) => string) | undefined} judge   returns the agent that judges with a model, if any
 * @property {Record<string, string>} stubbed     stubbed tools that run code, by file
 * @property {(tool: string) => boolean} reads     whether a repeated call of a tool changes nothing
 */

/** The values for a deployment, whose objects cannot be watched. */
const UNWATCHED = { writes: [], drop: undefined, log: [] };

/** Seconds after which a deployment's thread expires, if nothing deletes it. */
const LEFT_S = 3600;

/** The time limit of a judge. */
const JUDGED_MS = 60_000;

let runs = 0;

/**
 * @param {Case} case_ @param {Stage} stage @param {{ dropAt?: number, whole?: boolean }} [options]   whole: includes
 * calls and the thread's final state @returns {Promise<Played>}
 */
export async function play(case_, stage, { dropAt = 0, whole = false } = {}) {
  const played = await begin(case_, stage, dropAt);
  try {
    return await played.run(whole);
  } finally {
    await end(played, stage);
  }
}

/** Removes everything of the run. @param {Play} played @param {Stage} stage */
async function end({ id, api, family }, { outside, deployed }) {
  outside?.forget(id);
  if (deployed && family.thread === "") return;
  const gone = deployed ? api.ask("DELETE", `/api/threads/${family.thread}`, undefined, {}) : api.post("/test/end", {});
  // If a deployment rejects the deletion, the thread expires.
  await gone.catch(() => {});
}

/** Starts a run without playing its turns. @param {Case} case_ @param {Stage} stage @param {number} [dropAt] @returns {Promise<Play>} */
export async function begin(case_, stage, dropAt = 0) {
  const id = `run${++runs}`;
  const { deployed } = stage;
  const api = new Api(stage.url, deployed ? bearer(deployed.key) : { "x-bobbin-test-run": id });
  if (!deployed) await api.post("/test/begin", { dropAt, stubbed: stage.stubbed });
  const played = new Play(id, case_, stage, api);
  stage.outside?.register(id, (asked) => played.answers.answer(asked));
  return played;
}

/** @param {string | undefined} key @returns {Record<string, string>} */
const bearer = (key) => (key === undefined ? {} : { authorization: `Bearer ${key}` });

export class Play {
  #case;
  /** @type {Failure[]} */
  failures = [];
  /** The number of the current turn, from 1. */
  #turn = 0;
  /** @type {Turn | undefined} */
  #now;
  #judgeOf;
  #deployed;
  #stuck = false;

  /** @param {string} id @param {Case} case_ @param {Stage} stage @param {Api} api */
  constructor(id, case_, stage, api) {
    this.id = id;
    this.#case = case_;
    this.api = api;
    this.answers = new Answers(case_, {
      model: stage.model(this),
      cassette: stage.cassette,
      mcp: stage.mcp,
      problem: (what) => this.problem(what),
      drop: (object) => api.post("/test/drop", { object }),
    });
    this.family = new Family(api, stage.deployed ? outsideOf(api) : watching(api));
    this.#deployed = stage.deployed !== undefined;
    this.#judgeOf = stage.judge;
  }

  /** @param {boolean} whole @returns {Promise<Played>} */
  async run(whole) {
    try {
      for (const turn of this.#case.turns) if (!(await this.turn(turn))) break;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.fail(error.message);
    }
    const { writes, drop, log } = this.#deployed ? UNWATCHED : await this.api.get("/test/look");
    const there = this.family.thread !== "";
    const cost = there ? await this.family.cost() : 0;
    const [calls, left] = there && whole ? await Promise.all([this.family.calls(), this.family.left()]) : [[], { values: {}, files: [] }];
    return { failures: this.failures, sent: this.answers.sent, writes, drop, log, calls, left, cost };
  }

  /** Plays the next turn. Returns whether the case continues. @param {Turn} turn */
  async turn(turn) {
    if (this.family.thread === "") await this.#begin();
    this.#turn++;
    this.#now = turn;
    return this.#play(turn, Date.now() + this.#case.withinMs);
  }

  async #begin() {
    const { agent, env, history, values, files } = this.#case;
    const whose = this.#deployed ? { tags: ["bobbin-test"], expires_in: LEFT_S } : { user_id: "tester" };
    const body = { agent_id: agent, ...whose, ...(Object.keys(env).length > 0 && { env }), ...(history.length > 0 && { history }) };
    const { threadId } = await this.api.post("/api/threads", body, { key: `thread ${crypto.randomUUID()}` });
    this.family.thread = threadId;
    for (const [key, value] of Object.entries(values)) await this.api.post(`/api/threads/${threadId}/kv`, { key, value });
    for (const [path, content] of Object.entries(files)) await this.api.post(`/api/threads/${threadId}/fs${path}`, { content });
  }

  /** Returns whether the case continues. @param {Turn} turn @param {number} until */
  async #play(turn, until) {
    try {
      if (!(await this.#act(turn, until))) return false;
      await this.family.settle(until);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.fail(error.code === "late" ? `the turn did not end within ${this.#case.withinMs / 1000} s; ${await this.family.waitsFor()}` : error.message);
      return false;
    }
    // Further failures would only repeat this one.
    if (this.#stuck) return false;
    const seen = this.family.seen((question, model) => this.#judge(question, model));
    for (const expected of turn.expect) {
      const failure = await held(expected, await seen);
      if (failure !== undefined) this.fail(failure.what, failure.soft);
    }
    return true;
  }

  /** @param {Turn} turn @param {number} until */
  async #act(turn, until) {
    const thread = `/api/threads/${this.family.thread}`;
    const options = { key: `turn ${this.#turn}`, until };
    if ("send" in turn) {
      const { send: content, attachments, metadata } = turn;
      const body = { role: "user", content, ...(attachments && { attachments }), ...(metadata && { metadata }) };
      await this.api.post(`${thread}/messages?wait=true`, body, options);
    } else if ("approve" in turn) return this.#decide("approval", turn["approve"], { decision: "approve", ...(turn["args"] && { args: turn["args"] }) }, options);
    else if ("deny" in turn) return this.#decide("approval", turn["deny"], { decision: "deny", ...(turn["reason"] && { reason: turn["reason"] }) }, options);
    else if ("answer" in turn) return this.#decide("question", turn["tool"], { decision: "answer", text: turn["answer"] }, options);
    else if ("result" in turn) return this.#decide("client_tool", turn["tool"], { decision: "answer", result: turn["result"] }, options);
    else if ("advance" in turn) await this.family.advance(milliseconds(turn["advance"]), until);
    else if ("stop" in turn) await this.api.post(`${thread}/stop`, {}, options);
    else if ("continue" in turn) await this.api.post(`${thread}/continue`, {}, options);
    return true;
  }

  /** @param {string} kind @param {string | undefined} tool @param {object} decision @param {{ key: string, until: number }} options */
  async #decide(kind, tool, decision, options) {
    const waits = await this.family.waits();
    const wait = waits.find((/** @type {any} */ one) => one.kind === kind && (tool === undefined || one.tool === tool));
    if (wait === undefined) {
      const open = waits.map((/** @type {any} */ one) => `${one.kind}${one.tool === "" ? "" : ` of “${one.tool}”`}`).join(", ");
      this.fail(`no ${kind}${tool === undefined ? "" : ` of “${tool}”`} waits; ${open === "" ? "nothing waits" : `open waits are ${open}`}`);
      return false;
    }
    await this.api.post(`/api/threads/${wait.thread}/waits/${wait.id}`, decision, options);
    return true;
  }

  /** @param {string} question @param {string | undefined} model */
  async #judge(question, model) {
    if (this.#judgeOf === undefined) return undefined;
    const agent = this.#judgeOf(model);
    const messages = await this.family.messages();
    const { threadId } = await this.api.post("/api/threads", { agent_id: agent, user_id: "judge" }, { key: `judge ${this.#turn} ${question}` });
    this.family.leaveOut(threadId);
    const { message } = await this.api.post(`/api/threads/${threadId}/messages?wait=true`, { role: "user", content: asked(question, messages) }, { key: "judge", until: Date.now() + JUDGED_MS });
    return verdict(message?.content ?? "");
  }

  /** Records a request that nothing can answer. The case ends with this turn. @param {string} what */
  problem(what) {
    this.#stuck = true;
    this.fail(what);
  }

  /** @param {string} what @param {boolean} [soft] */
  fail(what, soft = false) {
    const turn = Math.max(this.#turn, 1);
    if (this.failures.some((one) => one.turn === turn && one.what === what && one.soft === soft)) return;
    this.failures.push({ turn, about: aboutTurn(this.#now), what, soft });
  }
}

/** Describes a turn in a few words. @param {Turn | undefined} turn */
function aboutTurn(turn) {
  const [act] = Object.entries(turn ?? {}).filter(([name]) => name !== "expect");
  return act === undefined ? "" : `${act[0]} ${shown(act[1])}`.slice(0, 80);
}

