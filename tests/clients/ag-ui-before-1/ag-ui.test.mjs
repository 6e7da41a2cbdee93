// AG-UI's client before version 1.0, which CopilotKit 1.75.0 is made of. It ends a run at an event, or an end, that it does not know.

import assert from "node:assert/strict";
import { EventSchemas, HttpAgent } from "@ag-ui/client";
import { refuse, say, sayAndUse, use } from "../../worker/support/model.mjs";
import { until } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-the-tests";
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin`, BOBBIN_SURFACES: "ag-ui" } });
bobbin.definitions.push(() => {
  bobbin.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
});
bobbin.tool("pay", () => "paid", { approval: "always", idempotent: true });
bobbin.tool("lookup", () => "found", { idempotent: true });
const result = (/** @type {any[]} */ messages) => messages.at(-1)?.role === "tool" && `${messages.at(-1)?.content}`;
bobbin.agent("finder", ({ messages }) => (result(messages) ? say(`You are in ${result(messages)}.`) : use({ name: "locate", args: {} })), { tools: ["locate"] });
bobbin.agent("payer", ({ messages }) => (result(messages) ? say(`So: ${result(messages)}`) : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });
bobbin.agent("asker", ({ messages }) => (result(messages) ? say(`So: ${result(messages)}`) : use({ name: "ask_user", args: { question: "Which?" } })), { tools: ["ask_user"] });
bobbin.agent("looker", ({ messages }) => (result(messages) ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), { tools: ["lookup"] });
bobbin.agent("talker", () => say("word ".repeat(300), { chunks: 300, everyMs: 30 }));
bobbin.agent("thinker", () => async (out) => {
  await out.chunk({ reasoning_content: "Let me see." });
  await out.text("I see.");
  await out.end();
});
bobbin.agent("failing", () => refuse(400));

let n = 0;
const fresh = () => `chat-${++n}`;
const url = (/** @type {string} */ agent) => `${bobbin.server.base}/api/agents/${agent}/ag-ui`;
const headers = { authorization: `Bearer ${KEY}` };
const client = (/** @type {string} */ agent, /** @type {string} */ threadId) => new HttpAgent({ url: url(agent), headers, threadId });
const person = (/** @type {string} */ content) => ({ id: `u-${fresh()}`, role: /** @type {const} */ ("user"), content });

/** What a run of the client sees. @param {HttpAgent} agent @param {any} [parameters] */
async function ran(agent, parameters = {}) {
  /** @type {any[]} */
  const events = [];
  await agent.runAgent(parameters, { onEvent: ({ event }) => void events.push(event) });
  assert.ok(!events.some(({ type }) => type === "RUN_ERROR"), JSON.stringify(events.at(-1)));
  return events;
}

/** What the API sends, each event held against the client's schemas. @param {string} agent @param {any} body */
async function told(agent, body, query = "") {
  const input = { state: {}, tools: [], context: [], forwardedProps: {}, ...body };
  const answer = await fetch(url(agent) + query, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(input) });
  const events = (await answer.text()).split("\n").filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6)));
  for (const event of events) assert.ok(EventSchemas.safeParse(event).success, JSON.stringify(event));
  return events;
}

bobbin.test("ag-ui before 1.0: a call that is left to the client, and its result", async () => {
  const agent = client("finder", fresh());
  agent.addMessage(person("where am I?"));
  const tools = [{ name: "locate", description: "Where the person is.", parameters: { type: "object", properties: {} } }];
  await ran(agent, { tools });
  const call = /** @type {any} */ (agent.messages.at(-1)).toolCalls[0].id;
  agent.addMessage({ id: "t", role: "tool", toolCallId: call, content: "Lisbon" });
  await ran(agent, { tools });
  assert.deepEqual(agent.messages.map(({ role, content }) => [role, content]).slice(-2), [["tool", "Lisbon"], ["assistant", "You are in Lisbon."]]);
});

for (const [name, payload, answer] of /** @type {const} */ ([
  ["payer", { approved: true }, "paid"],
  ["payer", { approved: false, reason: "too much" }, "Denied: too much"],
  ["asker", { text: "the blue one" }, "the blue one"],
])) {
  bobbin.test(`ag-ui before 1.0: ${JSON.stringify(payload)}, with a message of the client's for the call, as CopilotKit sends it`, async () => {
    const agent = client(name, fresh());
    agent.addMessage(person("go"));
    const asked = (await ran(agent)).at(-1).outcome.interrupts[0];
    agent.addMessage({ id: "mine", role: "tool", toolCallId: asked.toolCallId, content: JSON.stringify(payload) });
    const events = await ran(agent, { resume: [{ interruptId: asked.id, status: "resolved", payload }] });
    assert.deepEqual(events.filter(({ type }) => type === "TOOL_CALL_RESULT").map(({ content }) => content), [answer]);
    assert.equal(agent.messages.at(-1)?.content, `So: ${answer}`);
  });
}

bobbin.test("ag-ui before 1.0: a run that somebody stops ends in order", async () => {
  const agent = client("talker", fresh());
  agent.addMessage(person("talk"));
  const running = ran(agent);
  await until("it talks", () => agent.messages.length > 1);
  const { status } = await bobbin.client.send("POST", `/threads/key:${agent.threadId}/stop`, {});
  assert.ok(status < 300, `${status}`);
  assert.equal((await running).at(-1).type, "RUN_FINISHED");
});

bobbin.test("ag-ui before 1.0: every kind of event", async () => {
  /** @type {Set<string>} */
  const kinds = new Set();
  const all = async (/** @type {string} */ agent, /** @type {any} */ more = {}, query = "") => {
    const threadId = fresh();
    const messages = [{ id: `u-${threadId}`, role: "user", content: "go" }];
    for (const runId of ["r1", "r2"]) for (const { type } of await told(agent, { threadId, runId, messages, ...more }, query)) kinds.add(type);
  };
  await all("looker", { parentRunId: "r0", context: [{ description: "Page", value: "cart" }] });
  await all("thinker", {}, "?reasoning=1");
  await all("failing");
  await all("payer");
  for (const kind of ["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "CUSTOM", "STATE_SNAPSHOT", "REASONING_START", "TOOL_CALL_RESULT", "MESSAGES_SNAPSHOT"]) {
    assert.ok(kinds.has(kind), `${kind} is not among ${[...kinds]}`);
  }
});
