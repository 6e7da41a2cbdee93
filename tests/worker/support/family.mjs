// Families of threads: agents for parents and children, and the state of a whole family as seen from outside.

import assert from "node:assert/strict";
import { Thread } from "./client.mjs";
import { say, use } from "./model.mjs";
import { sleep, until } from "./poll.mjs";

/** @typedef {import("./model.mjs").Asked} Asked */
/** @typedef {import("./model.mjs").Script} Script */
/** @typedef {import("./suite.mjs").Suite} Suite */
/** @typedef {import("./suite.mjs").AgentSettings} AgentSettings */

/**
 * @typedef {object} Entry  a child as its parent's registry shows it
 * @property {string} id
 * @property {string} agent_name
 * @property {string} status
 * @property {boolean} blocking
 * @property {boolean} resumable
 *
 * @typedef {object} Member
 * @property {Thread} thread
 * @property {number} depth           0 for the root
 * @property {Member | undefined} parent
 * @property {Entry | undefined} entry
 * @property {Member[]} children      oldest first
 */

const words = { type: "object", properties: { text: { type: "string" }, files: { type: "array", items: { type: "string" } } } };
const TASK = { type: "object", properties: { task: { type: "string" } }, required: ["task"] };

/** The tools with which a child ends its session, fails it, and reports its status. */
export const SESSION = ["finish", "give_up", "report"];

/** @param {Suite} bobbin @param {object} [more]  further fields of the tools */
export function sessionTools(bobbin, more = {}) {
  for (const name of SESSION) bobbin.tool(name, () => "noted", { args: words, ...more });
}

const bound = {
  sessionStop: { name: "finish", messageProperty: "text", attachmentsProperty: "files" },
  sessionFail: { name: "give_up", messageProperty: "text" },
  sessionStatus: { name: "report", messageProperty: "text" },
};

/**
 * Defines an agent that works as a subagent. Side B replies "Go on." by default.
 *
 * @param {Suite} bobbin
 * @param {string} name
 * @param {Script} script                       the script of side A
 * @param {AgentSettings & { b?: Script, schema?: object | null }} [settings]  `schema`: the schema of its arguments, `null` for none
 */
export function subagent(bobbin, name, script, settings = {}) {
  const { b = () => say("Go on."), schema = TASK, tools = [], side = bound, agent = {}, prompt = {}, ...more } = settings;
  const all = [...SESSION, ...tools];
  const second = bobbin.agent(`${name}_b`, b, { tools: all, prompt });
  const first = bobbin.agent(name, script, {
    ...more,
    tools: all,
    side,
    prompt: { ...prompt, ...(schema === null ? {} : { requiredSchema: schema }) },
    agent: {
      type: "dual_ai",
      exposeAsTool: true,
      toolDescription: `Has ${name} do it.`,
      sideB: { prompt: `${name}_b_prompt`, ...side },
      maxSessionTurns: 8,
      ...agent,
    },
  });
  return { name, model: first.model, b: second.model };
}

/** An entry of a prompt's `tools` for a subagent that is called by name, with its task. @param {string} name @param {object} [more] */
export const direct = (name, more = {}) => ({ name, initUserMessageProperty: "task", ...more });

/** An entry for a resumable subagent. @param {string} name @param {object} [how] @param {object} [more] */
export const resumable = (name, how = {}, more = {}) => ({ name, resumable: { receives_messages: "side_a", ...how }, ...more });

/** A call of `subagent_create`. @param {string} agent @param {string} message @param {object} [more] */
export const create = (agent, message, more = {}) => ({
  name: "subagent_create",
  args: { agent, message, attachments: [], name: message, ...more },
});

/** A call of `subagent_message`. @param {string} referenceId @param {string} message @param {object} [more] */
export const write = (referenceId, message, more = {}) => ({
  name: "subagent_message",
  args: { referenceId, message, attachments: [], ...more },
});

/** Ends the session with a text made from the task. @param {(task: string, asked: Asked) => string} [makes] @returns {Script} */
export const finishes = (makes = (task) => `did ${task}`) => (asked) =>
  use({ name: "finish", args: { text: makes(task(asked), asked) } });

/** Returns the parent's newest message. @param {Asked} asked @returns {string} */
export function task({ messages }) {
  const from = messages.findLast(({ role, content }) => role === "user" && content !== "Go on.");
  return typeof from?.content === "string" ? from.content : "";
}

/** Returns the references in a text, in order. @param {string} text */
export const references = (text) => text.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? [];

/** Returns the registry of a thread, oldest first. @param {Thread} thread @returns {Promise<Entry[]>} */
export async function registry(thread) {
  const entries = await registryIfThere(thread);
  assert.ok(entries, `${thread.id} is there`);
  return entries;
}

/** Returns nothing for a child that is not created yet. @param {Thread} thread @returns {Promise<Entry[] | undefined>} */
async function registryIfThere(thread) {
  const answer = await thread.send("GET", "/subagents");
  if (answer.status === 404) return undefined;
  assert.equal(answer.status, 200, answer.text);
  return answer.json.subagents.reverse();
}

/** Returns the messages from children, oldest first. They are silent. @param {Thread} thread @returns {Promise<any[]>} */
export async function told(thread) {
  const all = await thread.messages({ includeSilent: true });
  return all.filter(({ role, metadata }) => role !== "system" && metadata?.subagent_id);
}

/**
 * Returns a thread and its descendants, level by level. A child that is not created yet is included, without children.
 *
 * @param {Thread} root
 * @returns {Promise<[Member, ...Member[]]>}
 */
export async function members(root) {
  /** @type {[Member, ...Member[]]} */
  const found = [{ thread: root, depth: 0, parent: undefined, entry: undefined, children: [] }];
  for (const member of found) {
    for (const entry of (await registryIfThere(member.thread)) ?? []) {
      const child = { thread: new Thread(root.client, entry.id), depth: member.depth + 1, parent: member, entry, children: [] };
      member.children.push(child);
      found.push(child);
    }
  }
  return found;
}

/** Returns whether the thread is idle: nothing runs, waits or is due. @param {any} state  diagnostics */
const rests = (state) => state.state !== "running" && state.state !== "parked" && state.alarm.at === null && state.due.length === 0;

/**
 * Waits until a whole family is idle, and returns it. Threads are read one after another, so work could move between
 * them unseen. The family must therefore be idle and unchanged in two successive passes.
 *
 * @param {Thread} root
 * @param {number} [withinMs]
 */
export async function atRest(root, withinMs = 20_000) {
  /** @type {unknown} */
  let last;
  let before = "";
  return until(
    `the family of ${root.id} is at rest`,
    async () => {
      const family = await members(root);
      /** @type {unknown[]} */
      const seen = [];
      for (const { thread, entry } of family) {
        const answer = await thread.send("GET", "/diagnostics");
        const state = answer.status === 200 ? answer.json : { state: answer.text, alarm: {}, due: [], history: {} };
        last = { id: thread.id, agent: entry?.agent_name, state: state.state, phase: state.phase, due: state.due, alarm: state.alarm };
        if (answer.status !== 200 || !rests(state)) return undefined;
        seen.push([thread.id, entry?.status, state.state, state.history.lastSeq, state.children]);
      }
      const now = JSON.stringify(seen);
      if (now === before) return family;
      before = now;
      return undefined;
    },
    { withinMs, everyMs: 50, describe: () => last },
  );
}

/** Without a request for this long, a family makes no more requests. */
const QUIET_MS = 3000;

/**
 * Waits for a random moment in work that has just begun: a number of model requests, and a short time after the last
 * one. Fixed times would be too early on a slow machine and too late on a fast one.
 *
 * @param {ReturnType<typeof import("./poll.mjs").chance>} random
 * @param {() => number} asked   returns the number of requests so far
 * @param {number} all           the number of requests of the whole work
 * @returns {Promise<string>} a description of the moment
 */
export async function randomMoment(random, asked, all) {
  const [before, wanted, more] = [asked(), random.between(0, all - 1), random.between(0, 25)];
  let [seen, since] = [before, Date.now()];
  const come = () => {
    if (asked() !== seen) [seen, since] = [asked(), Date.now()];
    // Results that arrive together are sent to the model together, so a family may make fewer requests than expected.
    return seen - before >= wanted || (seen > before && Date.now() - since > QUIET_MS);
  };
  await until(`${wanted} requests were made, or no more came`, come, { everyMs: 2, withinMs: 60_000 });
  await sleep(more);
  return `${more} ms after request ${wanted} of ${all}`;
}
