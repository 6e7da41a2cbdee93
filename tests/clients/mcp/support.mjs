// A server whose agents have the tools of peers, pinned as people pin them, and what tests ask of it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import { bobbin as program } from "../../cli/support/bobbin.mjs";
import { say, use } from "../../worker/support/model.mjs";
import { until } from "../../worker/support/poll.mjs";
import { Suite } from "../../worker/support/suite.mjs";

/** @typedef {import("../../worker/support/client.mjs").Thread} Thread */
/** @typedef {{ result: string, ok: boolean, code: string | undefined, attachments: any[] }} Came   what a call came to */

/** Does what a message says as JSON, and says what came of it. @param {import("../../worker/support/model.mjs").Asked} asked */
export const does = ({ messages }) => {
  const last = messages.at(-1);
  if (last?.role === "tool") return say("It is done.");
  const text = typeof last?.content === "string" ? last.content : "";
  return text.startsWith("[{") ? use(...JSON.parse(text)) : say(`You said: ${text}`);
};

export class Peers {
  /** @type {{ url: string, close: () => unknown }[]} */
  open = [];

  /** @param {import("../../worker/support/suite.mjs").Settings} [settings] */
  constructor(settings) {
    this.suite = new Suite(settings ?? {});
  }

  /**
   * Peers, each with an agent of its name that has all of its tools.
   *
   * @param {Record<string, () => Promise<{ url: string, close: () => unknown, definition?: object }>>} starts
   * @param {Record<string, object>} [definitions]   more of the servers' files
   */
  use(starts, definitions = {}) {
    for (const name of Object.keys(starts)) this.suite.agent(name, does, { tools: [`mcp:${name}`], prompt: { parallelToolCalls: true, parallelReadOnly: true } });
    this.suite.agent("plain", does);
    before(async () => {
      for (const [name, start] of Object.entries(starts)) {
        const peer = await start();
        this.open.push(peer);
        this.suite.folder.json(`mcp/${name}.json`, { url: peer.url, ...definitions[name] });
      }
      const { code, err } = await program(["mcp", "pull", "--agents", this.suite.folder.path]);
      assert.equal(code, 0, err);
      await this.suite.up();
    });
    after(async () => {
      await this.suite.down();
      for (const peer of this.open) await peer.close();
    });
    return this;
  }

  /** @param {string} name @param {() => Promise<void>} body @param {number} [withinMs] */
  test(name, body, withinMs) {
    this.suite.test(`mcp: ${name}`, body, withinMs);
  }

  /** Where the definitions are. */
  get agents() {
    return join(this.suite.folder.path);
  }

  /** A thread of a peer's agent, and what becomes of a message that calls. @param {string} server @param {...[tool: string, args: object]} calls */
  async ask(server, ...calls) {
    const thread = await this.suite.client.thread(server);
    return { thread, ...(await thread.ask(JSON.stringify(calls.map(([tool, args]) => ({ name: `${server}__${tool}`, args }))))) };
  }

  /** The same, without waiting for it. @param {string} server @param {string} tool @param {object} args @returns {Promise<Thread>} */
  async begin(server, tool, args) {
    const thread = await this.suite.client.thread(server);
    await thread.accepted(JSON.stringify([{ name: `${server}__${tool}`, args }]));
    return thread;
  }

  /** What a call comes to that ends by itself. @param {string} server @param {string} tool @param {object} args @returns {Promise<Came>} */
  async call(server, tool, args = {}) {
    const { thread, outcome } = await this.ask(server, [tool, args]);
    assert.equal(outcome, "completed");
    return came(thread);
  }
}

/** The newest result of a thread. @param {Thread} thread @returns {Promise<Came>} */
export async function came(thread) {
  const { messages } = await thread.page({ limit: 50 });
  const result = messages.findLast(({ role }) => role === "tool");
  assert.ok(result, `there is a result: ${JSON.stringify(messages.map(({ role, content }) => [role, content]))}`);
  const { content, metadata, attachments, tool_status: status } = result;
  return { result: content, ok: status !== "error", code: metadata?.error_code ?? metadata?.errorCode, attachments };
}

/** What a thread asks. @param {Thread} thread @returns {Promise<any[]>} */
export const waits = async (thread) => (await thread.send("GET", "/waits")).json.waits;

/** Waits until it asks. @param {Thread} thread @returns {Promise<any>} */
export const asked = (thread) => until("it asks", async () => (await waits(thread))[0], { withinMs: 30_000 });

/** @param {Thread} thread @param {any} wait @param {object} decision */
export async function decide(thread, wait, decision) {
  const answer = await thread.send("POST", `/waits/${wait.id}`, decision);
  assert.equal(answer.status, 200, answer.text);
  return answer.json.wait;
}

/** Waits until the run is over, and says how. @param {Thread} thread @param {number} [withinMs] @returns {Promise<string>} */
export async function ended(thread, withinMs = 60_000) {
  await until("it comes to rest", async () => (await thread.facts().catch(() => ({}))).state === "idle", { withinMs, everyMs: 100 });
  return (await thread.send("GET", "/runs")).json.runs[0].outcome;
}
