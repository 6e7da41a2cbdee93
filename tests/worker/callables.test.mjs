// Calls that are not plain tools: hand-offs to agents, and calls that code makes or queues. Checks what each model sees
// and what the thread stores.

import assert from "node:assert/strict";
import { makes, say, shown, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";
import { callsOf } from "./support/tool.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const handed = (/** @type {string} */ name) => `Handed off to "${name}", which goes on from here.`;
const question = { type: "object", properties: { question: { type: "string" } }, required: ["question"] };

const look = bobbin.tool("look", ({ args }) => `seen ${args.word}`);
bobbin.tool("charge", () => "charged");
bobbin.prompt("plain", ({ last }) => say(`asked: ${last}`), { requiredSchema: question });

// Hand-off.

const billing = bobbin.agent("billing", ({ last }) => say(`billing: ${last}`), {
  prompt: { requiredSchema: question },
  agent: { title: "Billing", exposeAsTool: true, toolDescription: "Takes over what is about bills." },
});
const shipping = bobbin.agent("shipping", ({ last }) => say(`shipping: ${last}`), {
  agent: { exposeAsTool: true, toolDescription: "Takes over what is about parcels." },
});
const desk = bobbin.agent(
  "desk",
  ({ last }) => {
    if (last === "my bill") return use({ name: "billing", args: { question: "Explain the bill." } }, { name: "look", args: { word: "late" } });
    if (last === "both") return use({ name: "billing", args: { question: "?" } }, { name: "shipping", args: {} });
    return last === "wrong" ? use({ name: "billing", args: {} }) : say(last.startsWith("Invalid") ? "sorry" : "hi");
  },
  {
    tools: ["look", "shipping", { name: "billing", initUserMessageProperty: "question" }],
    prompt: { parallelToolCalls: true },
  },
);

test("an agent that is called takes the thread over after the step, history and all", async () => {
  const thread = await bobbin.client.thread(desk.name);
  const events = await thread.events();
  await thread.ask("hello");
  const { outcome, message } = await thread.ask("my bill");
  assert.deepEqual([outcome, message.content], ["completed", "billing: Explain the bill."]);
  assert.deepEqual(shown(billing.model.asked.at(-1)), [
    "system: You are billing.",
    "user: hello",
    "assistant: hi",
    "user: my bill",
    "assistant: [billing] [look]",
    `tool: ${handed("billing")}`,
    "tool: seen late",
    "user: Explain the bill.",
  ]);
  const { agent_id, origin_agent_id } = await thread.facts();
  assert.deepEqual([agent_id, origin_agent_id], ["billing", "desk"]);
  await until("the list shows it", async () => {
    const { threads } = await bobbin.client.threads({ agent_id: "billing", search: thread.id });
    return threads.some((row) => row.id === thread.id && row.origin_agent_id === "desk" && row.agent.title === "Billing");
  }, { everyMs: 200 });
  const frame = await events.next("the hand-off", ({ event }) => event === "agent_handoff");
  assert.deepEqual([frame.data.new_agent_id, frame.data.new_agent_title], ["billing", "Billing"]);
  events.close();

  // The agent stays in charge.
  const asked = desk.model.asked.length;
  assert.equal((await thread.ask("and now")).message.content, "billing: and now");
  assert.equal(desk.model.asked.length, asked);
  assert.deepEqual((await thread.lines()).at(-3), ["assistant", "billing: Explain the bill."]);
});

test("the last hand-off of a step wins; one with wrong arguments is an error and changes nothing", async () => {
  const thread = await bobbin.client.thread(desk.name);
  assert.equal((await thread.ask("wrong")).message.content, "sorry");
  assert.deepEqual(await thread.results(), ['Invalid arguments for "billing": question: required but missing.']);
  assert.equal((await thread.facts()).agent_id, "desk");
  const asked = billing.model.asked.length;
  await thread.ask("both");
  assert.equal((await thread.facts()).agent_id, "shipping");
  assert.equal(billing.model.asked.length, asked);
  assert.equal(shown(shipping.model.asked.at(-1)).at(-1), `tool: ${handed("shipping")}`);
});

// Calls that code makes and queues.

const given = { type: "object", properties: { word: { type: "string" }, question: { type: "string" } } };
const each = { type: "object", properties: { tool: { type: "string" }, list: { type: "array", items: given } } };
const later = { type: "object", properties: { tool: { type: "string" }, args: given } };
bobbin.native("call_each", "call_each", each);
bobbin.native("call_later", "call_later", later);
const words = (/** @type {string[]} */ ...list) => list.map((word) => ({ word }));

const mapper = bobbin.agent(
  "mapper",
  makes(
    { name: "call_each", args: { tool: "look", list: words("a", "b") } },
    { name: "call_each", args: { tool: "plain", list: [{ question: "one" }, {}] } },
    { name: "call_each", args: { tool: "charge", list: words("c") } },
  ),
  { tools: [{ name: "call_each", options: { tools: ["look", "plain"] } }], prompt: { parallelToolCalls: true } },
);

test("code calls tools and prompts and waits; receipts keep it, and no message is stored", async () => {
  const thread = await bobbin.client.thread(mapper.name);
  await thread.ask("go");
  assert.deepEqual(await thread.results(), [
    "1. seen a\n2. seen b",
    '1 of 2 calls failed.\n1. asked: {\n  "question": "one"\n}\n2. Invalid arguments for "plain": question: required but missing.',
    '"charge" may not be called here. Allowed: look, plain.',
  ]);
  assert.deepEqual(shown(mapper.model.asked.at(-1)).slice(1).map((line) => line.split(" ")[0]), ["user:", "assistant:", "tool:", "tool:", "tool:"]);
  const calls = await thread.logged("tool_call");
  const [outer] = calls.filter(({ tool_name }) => tool_name === "call_each");
  const made = calls.filter(({ tool_name }) => tool_name === "look");
  assert.deepEqual(
    made.map(({ receipt, parent_call, state }) => [receipt, parent_call, state]),
    [0, 1].map((n) => [`${outer.receipt}.${n}`, outer.id, "succeeded"]),
  );
  assert.deepEqual(callsOf(look, thread).map(({ key }) => key), made.map(({ receipt }) => `${thread.id}/${receipt}`));
});

const planner = bobbin.agent(
  "planner",
  makes(
    { name: "call_later", args: { tool: "look", args: { word: "first" } } },
    { name: "call_later", args: { tool: "look", args: { word: "second" } } },
    { name: "call_later", args: { tool: "plain", args: {} } },
    { name: "look", args: { word: "now" } },
  ),
  { tools: ["look", { name: "call_later", options: { tools: ["look", "plain"] } }], prompt: { parallelToolCalls: true } },
);

test("queued tools are called in order after the calls of the reply, before the model is asked again", async () => {
  const thread = await bobbin.client.thread(planner.name);
  await thread.ask("go");
  assert.deepEqual(callsOf(look, thread).map(({ args }) => args.word), ["now", "first", "second"]);
  assert.deepEqual(shown(planner.model.asked.at(-1)).slice(2), [
    "assistant: [call_later] [call_later] [call_later] [look]",
    'tool: "look" is called after the calls of this step.',
    'tool: "look" is called after the calls of this step.',
    "tool: Invalid arguments for “plain”: question: required but missing.",
    "tool: seen now",
    "assistant: [look]",
    "tool: seen first",
    "assistant: [look]",
    "tool: seen second",
  ]);
  const queued = (await thread.messages()).filter(({ metadata }) => metadata?.queuedTool);
  assert.equal(queued.length, 2);
  assert.equal(planner.model.asked.length, 2);
});

const porter = bobbin.agent("porter", makes({ name: "call_later", args: { tool: "shipping" } }), {
  tools: [{ name: "call_later", options: { tools: ["shipping"] } }],
});

test("an agent that code queues takes over after the step", async () => {
  const thread = await bobbin.client.thread(porter.name);
  await thread.ask("where is it");
  assert.equal((await thread.facts()).agent_id, "shipping");
  assert.equal(porter.model.asked.length, 1);
  assert.equal(shown(shipping.model.asked.at(-1)).at(-1), `tool: ${handed("shipping")}`);
});

const stall = bobbin.tool("stall", ({ closed }) => closed.then(() => "too late"));
bobbin.tool("count", () => `requests so far: ${halting.model.asked.length}`);
const halting = bobbin.agent("halting", makes({ name: "call_later", args: { tool: "count" } }, { name: "stall", args: {} }), {
  tools: ["stall", { name: "call_later", options: { tools: ["count"] } }],
  prompt: { parallelToolCalls: true },
});

test("a queued tool waits behind a stop, and then begins a step without a model call", async () => {
  const thread = await bobbin.client.thread(halting.name);
  await thread.accepted("go");
  await stall.call(1);
  assert.equal((await thread.send("POST", "/stop")).status, 200);
  const { state, queue } = await thread.diagnostics();
  assert.deepEqual([state, queue.waiting], ["stopped", 1]);
  assert.equal((await thread.send("POST", "/continue", {})).status, 202);
  await thread.idle();
  assert.equal((await thread.results()).at(-1), "requests so far: 1");
  assert.deepEqual(shown(halting.model.asked.at(-1)).slice(-2), ["assistant: [count]", "tool: requests so far: 1"]);
  assert.equal(halting.model.asked.length, 2);
});
