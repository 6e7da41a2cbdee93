// Threads that make threads: agents for both ends, and what can be seen of a whole family from outside.

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
 * @property {number} depth           0 for the one that all come from
 * @property {Member | undefined} parent
 * @property {Entry | undefined} entry
 * @property {Member[]} children      oldest first
 */

const words = { type: "object", properties: { text: { type: "string" }, files: { type: "array", items: { type: "string" } } } };
const TASK = { type: "object", properties: { task: { type: "string" } }, required: ["task"] };

/** The tools with which a child ends its session, fails it, and says how it is. */
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
 * An agent that works as a subagent. Its side B says "Go on." unless it has a script.
 *
 * @param {Suite} bobbin
 * @param {string} name
 * @param {Script} script                       of side A
 * @param {AgentSettings & { b?: Script, schema?: object | null }} [settings]  `schema`: of its arguments, `null` for none
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

/** An entry of a prompt's `tools`: called by its name, with its task. @param {string} name @param {object} [more] */
export const direct = (name, more = {}) => ({ name, initUserMessageProperty: "task", ...more });

/** One that can be written to again. @param {string} name @param {object} [how] @param {object} [more] */
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

/** Ends the session with what is made of its task. @param {(task: string, asked: Asked) => string} [makes] @returns {Script} */
export const finishes = (makes = (task) => `did ${task}`) => (asked) =>
  use({ name: "finish", args: { text: makes(task(asked), asked) } });

/** The newest thing that the parent has said. @param {Asked} asked @returns {string} */
export function task({ messages }) {
  const from = messages.findLast(({ role, content }) => role === "user" && content !== "Go on.");
  return typeof from?.content === "string" ? from.content : "";
}

/** References in a text, in order. @param {string} text */
export const references = (text) => text.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? [];

/** The registry of a thread, oldest first. @param {Thread} thread @returns {Promise<Entry[]>} */
export async function registry(thread) {
  const entries = await registryIfThere(thread);
  assert.ok(entries, `${thread.id} is there`);
  return entries;
}

/** Of a child whose letter is under way there is none yet. @param {Thread} thread @returns {Promise<Entry[] | undefined>} */
async function registryIfThere(thread) {
  const answer = await thread.send("GET", "/subagents");
  if (answer.status === 404) return undefined;
  assert.equal(answer.status, 200, answer.text);
  return answer.json.subagents.reverse();
}

/** What children have said, oldest first: silent messages. @param {Thread} thread @returns {Promise<any[]>} */
export async function told(thread) {
  const all = await thread.messages({ includeSilent: true });
  return all.filter(({ role, metadata }) => role !== "system" && metadata?.subagent_id);
}

/**
 * A thread and all that came from it, level by level. A child whose letter is under way is among them, without any of its own.
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

/** Nothing runs, waits or is due, and no letter is on its way. @param {any} state  diagnostics */
const rests = (state) => state.state !== "running" && state.state !== "parked" && state.alarm.at === null && state.due.length === 0;

/**
 * Waits until a whole family is at rest, and returns it. Its threads are asked one after the other, so what goes on could
 * be where nobody looks; a family that looks the same twice, and rests both times, rests.
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

/** Without a request for so long, a family has nothing more to ask. */
const QUIET_MS = 3000;

/**
 * Waits for a moment at random in what has just begun: so many requests to models, and a little after the last of them. By the
 * clock, a slow machine would be hit before anything happens, and a fast one after it.
 *
 * @param {ReturnType<typeof import("./poll.mjs").chance>} random
 * @param {() => number} asked   requests so far
 * @param {number} all           those of it all
 * @returns {Promise<string>} which moment that is
 */
export async function randomMoment(random, asked, all) {
  const [before, wanted, more] = [asked(), random.between(0, all - 1), random.between(0, 25)];
  let [seen, since] = [before, Date.now()];
  const come = () => {
    if (asked() !== seen) [seen, since] = [asked(), Date.now()];
    // Results that come together go to the model together: beside others, a family may ask less often than alone.
    return seen - before >= wanted || (seen > before && Date.now() - since > QUIET_MS);
  };
  await until(`${wanted} requests were made, or no more came`, come, { everyMs: 2, withinMs: 60_000 });
  await sleep(more);
  return `${more} ms after request ${wanted} of ${all}`;
}
