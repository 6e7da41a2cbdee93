// What AG-UI's own client must see: calm, and again with the server killed while runs go on, with the same assertions. The client
// itself checks the order of events.

import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";
import { say, sayAndUse, use } from "../../worker/support/model.mjs";
import { chance, sleep } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-the-tests";
const LONG = Array.from({ length: 30 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");

/**
 * What the client fetches with. When a connection breaks it cancels a reader that has failed already, and leaves that rejection to
 * nobody: browsers log it, Node ends the process. Reading fails as it does without this.
 *
 * @type {typeof fetch}
 */
async function fetched(input, init) {
  const answer = await fetch(input, init);
  if (!answer.ok || !answer.body) return answer;
  const reader = answer.body.getReader();
  const body = { getReader: () => ({ read: () => reader.read(), cancel: () => reader.cancel().catch(() => {}) }) };
  return /** @type {any} */ ({ ok: true, status: answer.status, headers: answer.headers, body });
}

/** @param {boolean} killed */
export function agUi(killed) {
  const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin,key-of-alice=owner:alice`, BOBBIN_SURFACES: "ag-ui" } });
  bobbin.tool("lookup", () => "found", { idempotent: true });
  const paid = bobbin.tool("pay", () => "paid", { approval: "always", idempotent: true });
  bobbin.definitions.push(() => {
    bobbin.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
  });
  bobbin.agent("echo", ({ messages, last }) => say(`${messages.filter(({ role }) => role === "user").length}: ${last}`, { chunks: 3 }));
  bobbin.agent("talker", () => say(LONG, { chunks: 30, everyMs: 20 }));
  bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
    tools: ["lookup"],
  });
  bobbin.agent("payer", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`So: ${messages.at(-1)?.content}`) : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });
  bobbin.agent("finder", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`You are in ${messages.at(-1)?.content}.`) : use({ name: "locate", args: {} })), {
    tools: ["locate"],
  });
  bobbin.agent("counter", ({ n, last }) => say(`${n}: ${last}`, { chunks: 3, everyMs: 30 }));
  /** Calls of each thread, by their keys: one that is made again does the same again. @type {Map<string, string[]>} */
  const kept = new Map();
  bobbin.tool("keep", async ({ args, key: call }) => {
    const word = String(args.word);
    const calls = kept.get(word) ?? [];
    kept.set(word, calls);
    if (!calls.includes(call)) calls.push(call);
    const values = { word, "a/b~c": Array.from({ length: calls.indexOf(call) + 1 }, (_, at) => at + 1), gone: null };
    for (const [key, value] of Object.entries(values)) {
      // The server that is gone by now makes the call again.
      await bobbin.client.send("POST", `/threads/key:${word}/kv`, { key, value }).catch(() => {});
    }
    return "kept";
  }, { idempotent: true });
  bobbin.agent("keeper", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("Kept.", { chunks: 3, everyMs: 20 }) : use({ name: "keep", args: { word: keeps } })), { tools: ["keep"] });
  bobbin.agent("breaking", ({ n }) => async (out) => {
    await out.text(`words of ${n}`);
    await sleep(50);
    if (n % 2 === 1) return out.cut();
    await out.end();
  });

  const random = chance(`ag-ui ${killed}`);
  const disturb = async () => {
    if (!killed) return;
    await sleep(random.between(0, 700));
    await bobbin.server.crash();
  };
  const test = (/** @type {string} */ text, /** @type {() => Promise<void>} */ body) => bobbin.test(`ag-ui${killed ? ", killed" : ""}: ${text}`, body);
  let made = 0;
  let keeps = "";
  const fresh = () => (keeps = `conversation-${killed ? "k" : "c"}${(made += 1)}`);
  const address = (/** @type {string} */ name) => `${bobbin.server.base}/api/agents/${name}/ag-ui`;
  /** @param {string} name @param {string} threadId @param {string} [key] @param {string} [query] */
  const client = (name, threadId, key = KEY, query = "") => new HttpAgent({ url: address(name) + query, threadId, headers: { authorization: `Bearer ${key}` }, fetch: fetched });
  const person = (/** @type {string} */ content) => ({ id: `u-${random.between(0, 2 ** 40)}`, role: /** @type {const} */ ("user"), content });

  /**
   * A run. One that breaks off is asked for again, as a page does that has lost its connection: with what there is.
   *
   * @param {HttpAgent} agent @param {any} [parameters] @param {any} [more]
   */
  async function ran(agent, parameters = {}, more = {}) {
    const events = /** @type {any[]} */ ([]);
    for (let tries = 0; ; tries += 1) {
      try {
        events.length = 0;
        await agent.runAgent(parameters, { ...more, onEvent: ({ event }) => void events.push(event) });
        return events;
      } catch (error) {
        const { status } = /** @type {{ status?: number }} */ (error);
        if (!killed || tries > 40 || (status !== undefined && status < 500)) throw error;
        await sleep(300);
      }
    }
  }
  const ofKind = (/** @type {any[]} */ events, /** @type {string} */ kind) => events.filter(({ type }) => type === kind);
  const said = (/** @type {readonly any[]} */ messages) => messages.map(({ role, content }) => [role, content ?? ""]);
  /** @param {string} name @param {string} threadId @param {string} [more] */
  const read = async (name, threadId, more = "") => {
    const answer = await fetch(`${address(name)}?threadId=${threadId}${more}`, { headers: { authorization: `Bearer ${KEY}` } });
    assert.equal(answer.status, 200);
    return /** @type {any} */ (await answer.json());
  };

  test("turns follow one another in one thread, and the history is what the client has", async () => {
    const id = fresh();
    const agent = client("echo", id);
    agent.addMessage(person("one"));
    const events = await ran(agent);
    assert.deepEqual([events[0].type, events.at(-1).type], ["RUN_STARTED", "RUN_FINISHED"]);
    agent.addMessage(person("two"));
    const disturbed = disturb();
    await ran(agent);
    await disturbed;
    assert.deepEqual(said(agent.messages), [["user", "one"], ["assistant", "1: one"], ["user", "two"], ["assistant", "2: two"]]);
    const told = await read("echo", id);
    assert.deepEqual(told.messages, agent.messages);
    assert.deepEqual([told.activeRun, told.interrupts, told.page], [null, null, { truncated: false }]);
    const last = await read("echo", id, "&limit=2");
    assert.deepEqual([said(last.messages), last.page.truncated], [[["user", "two"], ["assistant", "2: two"]], true]);
    assert.deepEqual(said((await read("echo", id, `&limit=2&before=${last.page.cursor}`)).messages), [["user", "one"], ["assistant", "1: one"]]);
  });

  test("a long text comes once and whole, wherever the connection breaks", async () => {
    const agent = client("talker", fresh());
    agent.addMessage(person("go"));
    const disturbed = disturb();
    await ran(agent);
    await disturbed;
    assert.deepEqual(said(agent.messages), [["user", "go"], ["assistant", LONG]]);
    const again = client("talker", agent.threadId);
    again.setMessages([agent.messages[0]]);
    await ran(again);
    assert.deepEqual(again.messages, agent.messages, "the same message is the same run");
    const { json } = await bobbin.client.send("GET", `/threads/key:${agent.threadId}/messages`);
    assert.equal(json.messages.length, 2);
  });

  test("a page that has gone away is told the reply anew, by asking for nothing new or by the id of its run", async () => {
    const id = fresh();
    const agent = client("talker", id);
    agent.addMessage(person("go"));
    let pieces = 0;
    const left = agent.runAgent({ runId: `run-of-${id}` }, { onTextMessageContentEvent: () => void ((pieces += 1) === 5 && agent.abortRun()) });
    await left.catch(() => {});
    assert.ok(pieces >= 1, "something was said");
    const disturbed = disturb();
    const events = await ran(agent);
    await disturbed;
    assert.deepEqual(said(agent.messages), [["user", "go"], ["assistant", LONG]]);
    assert.equal(ofKind(events, "RUN_FINISHED").length, 1);
    const replay = await fetch(`${address("talker")}?threadId=${id}&runId=run-of-${id}&offset=-1`, { headers: { authorization: `Bearer ${KEY}` } });
    const text = await replay.text();
    const told = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json ?? ""));
    assert.equal(ofKind(told, "TEXT_MESSAGE_CONTENT").map(({ delta }) => delta).join(""), LONG);
  });

  test("the server's calls and their results are messages", async () => {
    const id = fresh();
    const agent = client("looker", id);
    agent.addMessage(person("look"));
    const disturbed = disturb();
    await ran(agent);
    await disturbed;
    assert.deepEqual(said(agent.messages), [["user", "look"], ["assistant", "One moment."], ["tool", "found"], ["assistant", "It is found."]]);
    const call = /** @type {any} */ (agent.messages[1]).toolCalls[0];
    assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["lookup", { of: "it" }]);
    assert.deepEqual((await read("looker", id)).messages, agent.messages);
  });

  test("an approval is an interrupt, and the run goes on with the answer", async () => {
    for (const approved of [true, false]) {
      const id = fresh();
      const agent = client("payer", id);
      agent.addMessage(person("pay"));
      const calls = paid.received.length;
      await ran(agent);
      const [asked, ...others] = agent.pendingInterrupts;
      assert.deepEqual([asked.reason, others.length], ["tool_call", 0]);
      assert.deepEqual((await read("payer", id)).interrupts.pending, [asked]);
      const disturbed = disturb();
      await ran(agent, { resume: [{ interruptId: asked.id, status: "resolved", payload: { approved, reason: "too much" } }] });
      await disturbed;
      assert.equal(agent.pendingInterrupts.length, 0);
      const told = approved ? "paid" : "Denied: too much";
      assert.deepEqual(said(agent.messages), [["user", "pay"], ["assistant", ""], ["tool", told], ["assistant", `So: ${told}`]]);
      const keys = new Set(paid.received.slice(calls).map(({ headers }) => headers["idempotency-key"]));
      assert.equal(keys.size, approved ? 1 : 0);
    }
  });

  test("a call that is left to the client is pending, and its result goes on", async () => {
    const id = fresh();
    const agent = client("finder", id);
    agent.addMessage(person("where am I?"));
    const tools = [{ name: "locate", description: "Where the person is.", parameters: { type: "object", properties: {} } }];
    const events = await ran(agent, { tools });
    const pending = events.at(-1).outcome.pendingToolCallIds;
    assert.equal(pending.length, 1);
    agent.addMessage({ id: `t-${id}`, role: "tool", toolCallId: pending[0], content: "Lisbon" });
    const disturbed = disturb();
    await ran(agent, { tools });
    await disturbed;
    assert.deepEqual(said(agent.messages), [["user", "where am I?"], ["assistant", ""], ["tool", "Lisbon"], ["assistant", "You are in Lisbon."]]);
    agent.addMessage(person("and now?"));
    await assert.rejects(agent.runAgent({ tools: [{ ...tools[0], name: "unknown" }] }), (/** @type {any} */ error) => error.status === 400 && error.payload.error.code === "unsupported_parameter");
  });

  test("what was said in an attempt that was lost is taken back", async () => {
    if (killed) return;
    const agent = client("breaking", fresh());
    agent.addMessage(person("go"));
    const events = await ran(agent);
    assert.ok(ofKind(events, "MESSAGES_SNAPSHOT").length >= 1);
    const { json } = await bobbin.client.send("GET", `/threads/key:${agent.threadId}/messages`);
    assert.deepEqual(said(agent.messages), said(json.messages));
  });

  test("what a run changes of the thread's values changes the state", async () => {
    const id = fresh();
    const set = (/** @type {string} */ key, /** @type {any} */ value) => bobbin.client.send("POST", `/threads/key:${id}/kv`, { key, value });
    const agent = client("keeper", id);
    agent.addMessage(person("one"));
    await ran(agent);
    assert.deepEqual(agent.state, { word: id, "a/b~c": [1] });
    assert.equal((await set("gone", true)).status, 200);
    agent.addMessage(person("two"));
    const disturbed = disturb();
    const deltas = /** @type {any[]} */ ([]);
    await ran(agent, {}, { onStateDeltaEvent: ({ event }) => void deltas.push(...event.delta), onRunStartedEvent: () => void (deltas.length = 0) });
    await disturbed;
    assert.deepEqual(agent.state, { word: id, "a/b~c": [1, 2] });
    if (!killed) {
      assert.deepEqual(deltas, [{ op: "replace", path: "/a~1b~0c", value: [1, 2] }, { op: "remove", path: "/gone" }]);
    }
  });

  test("an edited message is answered instead of the old one, and the last one once more", async () => {
    const id = fresh();
    const agent = client("counter", id, KEY, "?revise=1");
    const [one, two] = [person("one"), person("two")];
    for (const said of [one, two]) {
      agent.addMessage(said);
      await ran(agent, { runId: `${said.id}-first` });
    }
    const before = said(agent.messages);
    assert.deepEqual(before.map(([, content]) => content?.replace(/^\d+/, "n")), ["one", "n: one", "two", "n: two"]);
    agent.setMessages([...agent.messages.slice(0, 2), two]);
    const disturbed = disturb();
    await ran(agent, { runId: `${two.id}-anew` });
    await disturbed;
    const anew = said(agent.messages);
    assert.deepEqual([anew.length, anew[3]?.[1] !== before[3]?.[1], anew[3]?.[1]?.endsWith(": two")], [4, true, true]);
    assert.deepEqual((await read("counter", id)).messages, agent.messages);
    agent.setMessages([{ ...one, content: "other" }]);
    const other = disturb();
    await ran(agent, { runId: `${one.id}-other` });
    await other;
    assert.deepEqual(said(agent.messages).map(([, content]) => content?.replace(/^\d+/, "n")), ["other", "n: other"]);
    assert.deepEqual((await read("counter", id)).messages, agent.messages);
    const { json } = await bobbin.client.send("GET", `/threads/key:${id}/messages`);
    assert.equal(json.messages.length, 2);
  });

  test("the thread's values are the state", async () => {
    const id = fresh();
    const agent = client("echo", id);
    agent.addMessage(person("one"));
    await ran(agent);
    const set = await bobbin.client.send("POST", `/threads/key:${id}/kv`, { key: "cart", value: { items: 2 } });
    assert.equal(set.status, 200);
    agent.addMessage(person("two"));
    const disturbed = disturb();
    await ran(agent);
    await disturbed;
    assert.deepEqual(agent.state, { cart: { items: 2 } });
  });

  test("nobody reaches the thread of another, and unknown agents are refused", async () => {
    const id = fresh();
    const agent = client("echo", id, "key-of-alice");
    agent.addMessage(person("mine"));
    await ran(agent);
    assert.deepEqual((await read("echo", id)).messages, [], "the same name is another thread for others");
    const stranger = client("echo", id, "wrong");
    stranger.addMessage(person("hello"));
    await assert.rejects(stranger.runAgent(), (/** @type {any} */ error) => error.status === 401);
    const nobody = client("nobody", fresh());
    nobody.addMessage(person("hello"));
    await assert.rejects(nobody.runAgent(), (/** @type {any} */ error) => error.status === 404);
    await assert.rejects(client("echo", fresh()).runAgent(), (/** @type {any} */ error) => error.status === 404, "there is nothing to tell again");
  });
}
