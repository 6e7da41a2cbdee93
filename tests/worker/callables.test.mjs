// What is called and is no plain tool: prompts, agents that take the thread over, and the calls that code makes or
// queues. What each model is shown, what stands in the thread, and what a kill in the middle leaves of it.

import assert from "node:assert/strict";
import { hang, inTurn, refuse, say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/model.mjs").Asked} Asked */
/** @typedef {import("./support/model.mjs").Call} Call */
/** @typedef {import("./support/model.mjs").Reply} Reply */
/** @typedef {import("./support/model.mjs").Script} Script */
/** @typedef {import("./support/tool.mjs").Received} Received */

/** A run must be going on by then after a restart, without any request. */
const RESUMES_MS = 5000;

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const unknown = (/** @type {string} */ name) =>
  `The runtime restarted while "${name}" was running. It may or may not have taken effect. Check before trying again.`;
const handed = (/** @type {string} */ name) => `Handed off to "${name}", which goes on from here.`;

/** A tool that is in the middle of its first call when the server dies. */
const slow = (/** @type {Received} */ { n, closed }) => (n === 1 ? closed.then(() => "too late") : "done");

/** Text and calls in one reply. @param {string} text @param {...Call} calls @returns {Reply} */
const sayAndUse = (text, ...calls) => async (out) => {
  await out.text(text);
  for (const call of calls) await out.call(call);
  await out.end();
};

/** Makes these calls in answer to each message of the user, then says that it is done. @param {...Call} calls @returns {Script} */
const makes = (...calls) => ({ messages }) => (messages.at(-1)?.role === "tool" ? say("done") : use(...calls));

/**
 * A prompt to be called, with a model of its own.
 *
 * @param {string} name
 * @param {Script} script
 * @param {object} [fields]  of the prompt
 */
function prompt(name, script, fields = {}) {
  const model = bobbin.models.model(name, script);
  bobbin.definitions.push(() =>
    bobbin.folder.write({
      models: { [`${name}_model`]: bobbin.models.definition(name) },
      prompts: { [name]: { toolDescription: `Asks ${name}.`, model: `${name}_model`, ...fields, prompt: `You are ${name}.` } },
    }),
  );
  return { name, model };
}

const question = { type: "object", properties: { question: { type: "string" } }, required: ["question"] };

/** What a model was shown. @param {Asked | undefined} asked */
const shown = (asked) =>
  (asked?.messages ?? []).map((m) => {
    const calls = (m.tool_calls ?? []).map((/** @type {any} */ call) => `[${call.function.name}]`);
    return [`${m.role}:`, ...[textOf(m)].filter(Boolean), ...calls].join(" ");
  });

/** Names of the tools that a model was offered. @param {Asked | undefined} asked @returns {string[]} */
const offered = (asked) => (asked?.body.tools ?? []).map((/** @type {any} */ tool) => tool.function.name);

/** Results of a thread's own calls. @param {Thread} thread */
const results = async (thread) => (await thread.messages()).filter(({ role }) => role === "tool").map(({ content }) => content);

/** Rows of the log, oldest first. @param {Thread} thread @param {string} type @returns {Promise<any[]>} */
async function logged(thread, type) {
  const answer = await thread.send("GET", "/logs?limit=500&order=asc");
  assert.equal(answer.status, 200, answer.text);
  return answer.json.logs.filter((/** @type {any} */ row) => row.type === type);
}

/** Calls of a tool that a thread has made. @param {import("./support/tool.mjs").Tool} tool @param {Thread} thread */
const of = (tool, thread) => tool.received.filter(({ body }) => body.threadId === thread.id);

const look = bobbin.tool("look", ({ args }) => `seen ${args.word}`);
bobbin.tool("broken", () => ({ status: 500, body: "no luck" }));

// Prompts as tools.

const check = prompt("check", () => sayAndUse("I looked.", { name: "look", args: { word: "oven" } }), {
  tools: ["look"],
  requiredSchema: question,
});
const clerk = bobbin.agent(
  "clerk",
  ({ messages, last }) => {
    if (messages.at(-1)?.role === "tool") return say(`told: ${last}`);
    return last === "hello" ? say("hi") : use({ name: "check", args: { question: "Is the oven off?" } });
  },
  { tools: [{ name: "check", initUserMessageProperty: "question" }] },
);

test("a prompt is asked once, sees its own text and one message, and its calls run in the thread", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  await thread.ask("hello");
  await thread.ask("please check");

  assert.equal(check.model.asked.length, 1);
  assert.deepEqual(shown(check.model.asked[0]), ["system: You are check.", "user: Is the oven off?"]);
  assert.deepEqual(offered(check.model.asked[0]), ["look"]);
  assert.deepEqual(of(look, thread).map(({ args }) => args), [{ word: "oven" }]);
  const told = 'I looked.\n\nTool calls:\n- look({"word":"oven"})\n  seen oven';
  assert.deepEqual(shown(clerk.model.asked.at(-1)), [
    "system: You are clerk.",
    "user: hello",
    "assistant: hi",
    "user: please check",
    "assistant: [check]",
    `tool: ${told}`,
  ]);

  // Nobody who does not ask for depth sees its messages.
  const rows = await thread.messages();
  assert.deepEqual(
    rows.map(({ role, content, depth }) => [depth, role, content]),
    [
      [0, "user", "hello"],
      [0, "assistant", "hi"],
      [0, "user", "please check"],
      [0, "assistant", rows[3].content],
      [0, "tool", told],
      [0, "assistant", `told: ${told}`],
    ],
  );
  assert.equal(rows[4].tool_status, "success");
  const within = (await thread.messages({ depth: 1 })).filter(({ depth }) => depth > 0);
  assert.deepEqual(
    within.map(({ role, content, depth, parent_id }) => [depth, role, content, parent_id]),
    [
      [1, "assistant", "I looked.", rows[4].id],
      [1, "tool", "seen oven", rows[4].id],
    ],
  );

  const [outer, ...more] = (await logged(thread, "tool_call")).filter(({ tool_name }) => tool_name === "check");
  assert.deepEqual([outer.kind, outer.state, outer.runs, more.length], ["prompt", "succeeded", 1, 0]);
  assert.deepEqual(
    (await logged(thread, "llm_request")).map(({ prompt_name, attempt, status, parent_call }) => [prompt_name, attempt, status, parent_call]),
    [
      ["clerk_prompt", 1, "completed", undefined],
      ["clerk_prompt", 1, "completed", undefined],
      ["check", 1, "completed", outer.id],
      ["clerk_prompt", 1, "completed", undefined],
    ],
  );
  await bobbin.quiet([{ thread, model: clerk.model }, { thread, model: check.model }]);
});

test("who listens with depth follows its text, nobody else does", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  const [top, deep] = [await thread.events(), await thread.events({ query: "?depth=1" })];
  await thread.ask("please check");
  for (const reader of [top, deep]) await reader.next("the end", ({ event }) => event === "stopped");
  const within = deep.events.filter(({ data }) => data.depth === 1);
  const text = within.filter(({ event }) => event === "message_chunk").map(({ data }) => data.chunk);
  assert.equal(text.join(""), "I looked.");
  assert.deepEqual(
    within.filter(({ event, data }) => event === "message_data" && data.data.status === "completed").map(({ data }) => data.data.content),
    ["I looked.", "seen oven"],
  );
  assert.ok(top.events.every(({ data }) => (data.depth ?? 0) === 0));
  for (const reader of [top, deep]) reader.close();
});

const both = prompt("both", () => sayAndUse("Said.", { name: "look", args: { word: "it" } }, { name: "broken", args: {} }), {
  tools: ["look", "broken"],
});
const fine = prompt("fine", () => sayAndUse("Said.", { name: "look", args: { word: "it" } }), { tools: ["look"] });
const mute = prompt("mute", () => refuse(400));
const silent = prompt("silent", () => use({ name: "look", args: { word: "it" } }), { tools: ["look"], requiredSchema: question });

const looked = '- look({"word":"it"})\n  seen it';
const failure = "1 of 2 tool calls failed.";
const why = "broken: http 500 from broken: no luck";

/** Each flag of an entry: what is called, the entry's fields, and the result. @type {[string, object, string, string][]} */
const flags = [
  [fine.name, {}, "success", `Said.\n\nTool calls:\n${looked}`],
  [fine.name, { includeToolCalls: false }, "success", "Said."],
  [fine.name, { includeTextResponse: false }, "success", `Tool calls:\n${looked}`],
  [fine.name, { includeTextResponse: false, includeToolCalls: false }, "success", "The prompt finished and gave no output."],
  [silent.name, { includeToolCalls: false }, "success", "The prompt finished and gave no output."],
  [both.name, {}, "error", `${failure}\n${why}\n\nSaid.\n\nTool calls:\n${looked}\n- broken({})\n  failed`],
  [both.name, { includeErrors: false, includeToolCalls: false }, "error", `${failure}\n\nSaid.`],
  [both.name, { includeTextResponse: false, includeToolCalls: false }, "error", `${failure}\n${why}`],
  [mute.name, {}, "error", "The model “mute_model” could not answer"],
];
const flagged = flags.map(([name, fields], at) =>
  bobbin.agent(`flags_${at}`, makes({ name, args: { question: "?" } }), { tools: [{ name, ...fields }] }),
);

test("the result holds what the entry asks for; a failure within is an error, and the run goes on", async () => {
  const table = await Promise.all(
    flagged.map(async ({ name }) => {
      const thread = await bobbin.client.thread(name);
      const { message } = await thread.ask("go");
      assert.equal(message.content, "done");
      const row = (await thread.messages()).find(({ role }) => role === "tool");
      return [row.tool_status, row.content];
    }),
  );
  const mutes = table.pop();
  assert.deepEqual(table, flags.slice(0, -1).map(([, , status, text]) => [status, text]));
  const [, , status, text] = flags.at(-1) ?? [];
  assert.deepEqual([mutes?.[0], String(mutes?.[1]).startsWith(String(text))], [status, true], mutes?.[1]);
});

const historian = prompt("historian", ({ messages }) => say(`I read ${messages.length}.`), {
  includeChat: true,
  requiredSchema: question,
});
const plain = prompt("plain", ({ last }) => say(`asked: ${last}`), { requiredSchema: question });
const asker = bobbin.agent(
  "asker",
  ({ messages, last }) => {
    if (messages.at(-1)?.role === "tool") return say("done");
    if (last === "hello") return use({ name: "look", args: { word: "you" } });
    return use({ name: "historian", args: { question: "tea" } }, { name: "plain", args: { question: "why" } });
  },
  { tools: ["look", { name: "historian", initUserMessageProperty: "question" }, "plain"], prompt: { parallelToolCalls: true } },
);

test("with includeChat it reads the chat; without a property all arguments are the message", async () => {
  const thread = await bobbin.client.thread(asker.name);
  await thread.ask("hello");
  await thread.ask("and now");
  assert.deepEqual(shown(historian.model.asked[0]), [
    "system: You are historian.",
    "user: hello",
    "assistant: done",
    "user: and now",
    "user: tea",
  ]);
  assert.deepEqual(shown(plain.model.asked[0]), ["system: You are plain.", 'user: {\n  "question": "why"\n}']);
  assert.deepEqual((await results(thread)).slice(1), ["I read 5.", 'asked: {\n  "question": "why"\n}']);
});

const careful = prompt("careful", () => say("fine"), { requiredSchema: question });
const careless = bobbin.agent(
  "careless",
  makes({ name: "careful", args: {} }, { name: "careful", args: { question: 1 } }, { name: "careful", args: { question: "x" } }),
  { tools: ["careful"], prompt: { parallelToolCalls: true } },
);

test("arguments that requiredSchema refuses are a result, and no request", async () => {
  const thread = await bobbin.client.thread(careless.name);
  await thread.ask("go");
  assert.deepEqual(await results(thread), [
    'Invalid arguments for "careful": question: required but missing.',
    'Invalid arguments for "careful": question: expected string, got integer.',
    "fine",
  ]);
  assert.equal(careful.model.asked.length, 1);
  const [parameters] = (careless.model.asked[0]?.body.tools ?? []).map((/** @type {any} */ tool) => tool.function.parameters);
  assert.deepEqual([parameters.required, parameters.additionalProperties], [["question"], false]);
});

const flaky = prompt("flaky", inTurn(refuse(503), say("at last")));
const patient = bobbin.agent("patient", makes({ name: "flaky", args: {} }), { tools: ["flaky"] });

test("each attempt of a prompt has its row in the log, under the call", async () => {
  const thread = await bobbin.client.thread(patient.name);
  await thread.ask("go");
  assert.deepEqual(await results(thread), ["at last"]);
  assert.equal(flaky.model.asked.length, 2);
  const [outer] = await logged(thread, "tool_call");
  const rows = (await logged(thread, "llm_request")).filter(({ prompt_name }) => prompt_name === "flaky");
  assert.deepEqual(
    rows.map(({ attempt, retry_of_attempt, status, status_code, parent_call }) => [attempt, retry_of_attempt ?? null, status, status_code ?? null, parent_call]),
    [
      [1, null, "failed", 503, outer.id],
      [2, 1, "completed", null, outer.id],
    ],
  );
});

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

/** A thread as GET gives it. @param {Thread} thread @returns {Promise<any>} */
const about = async (thread) => (await thread.send("GET")).json.thread;

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
  const { agent_id, origin_agent_id } = await about(thread);
  assert.deepEqual([agent_id, origin_agent_id], ["billing", "desk"]);
  await until("the list shows it", async () => {
    const { threads } = await bobbin.client.threads({ agent_id: "billing", search: thread.id });
    return threads.some((row) => row.id === thread.id && row.origin_agent_id === "desk" && row.agent.title === "Billing");
  }, { everyMs: 200 });
  const frame = await events.next("the hand-off", ({ event }) => event === "agent_handoff");
  assert.deepEqual([frame.data.new_agent_id, frame.data.new_agent_title], ["billing", "Billing"]);
  events.close();

  // It stays.
  const asked = desk.model.asked.length;
  assert.equal((await thread.ask("and now")).message.content, "billing: and now");
  assert.equal(desk.model.asked.length, asked);
  assert.deepEqual((await thread.lines()).at(-3), ["assistant", "billing: Explain the bill."]);
});

test("the last hand-off of a step wins; one with wrong arguments is an error and changes nothing", async () => {
  const thread = await bobbin.client.thread(desk.name);
  assert.equal((await thread.ask("wrong")).message.content, "sorry");
  assert.deepEqual(await results(thread), ['Invalid arguments for "billing": question: required but missing.']);
  assert.equal((await about(thread)).agent_id, "desk");
  const asked = billing.model.asked.length;
  await thread.ask("both");
  assert.equal((await about(thread)).agent_id, "shipping");
  assert.equal(billing.model.asked.length, asked);
  assert.equal(shown(shipping.model.asked.at(-1)).at(-1), `tool: ${handed("shipping")}`);
});

// Calls that code makes and queues.

const given = { type: "object", properties: { word: { type: "string" }, question: { type: "string" } } };
const each = { type: "object", properties: { tool: { type: "string" }, list: { type: "array", items: given } } };
const later = { type: "object", properties: { tool: { type: "string" }, args: given } };
bobbin.native("call_each", "call_each", each);
bobbin.native("call_each_again", "call_each", each, { idempotent: true });
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
  assert.deepEqual(await results(thread), [
    "1. seen a\n2. seen b",
    '1 of 2 calls failed.\n1. asked: {\n  "question": "one"\n}\n2. Invalid arguments for "plain": question: required but missing.',
    '"charge" may not be called here. Allowed: look, plain.',
  ]);
  assert.deepEqual(shown(mapper.model.asked.at(-1)).slice(1).map((line) => line.split(" ")[0]), ["user:", "assistant:", "tool:", "tool:", "tool:"]);
  const calls = await logged(thread, "tool_call");
  const [outer] = calls.filter(({ tool_name }) => tool_name === "call_each");
  const made = calls.filter(({ tool_name }) => tool_name === "look");
  assert.deepEqual(
    made.map(({ receipt, parent_call, state }) => [receipt, parent_call, state]),
    [0, 1].map((n) => [`${outer.receipt}.${n}`, outer.id, "succeeded"]),
  );
  assert.deepEqual(of(look, thread).map(({ key }) => key), made.map(({ receipt }) => `${thread.id}/${receipt}`));
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
  assert.deepEqual(of(look, thread).map(({ args }) => args.word), ["now", "first", "second"]);
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
  assert.equal((await about(thread)).agent_id, "shipping");
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
  assert.equal((await results(thread)).at(-1), "requests so far: 1");
  assert.deepEqual(shown(halting.model.asked.at(-1)).slice(-2), ["assistant: [count]", "tool: requests so far: 1"]);
  assert.equal(halting.model.asked.length, 2);
});

// A kill in the middle of each.

const thinker = prompt("thinker", inTurn(hang(), say("thought")));
const charge = bobbin.tool("charge", slow);
const charger = prompt("charger", () => sayAndUse("Charging.", { name: "look", args: { word: "it" } }, { name: "charge", args: {} }), {
  tools: ["look", "charge"],
});
const store = bobbin.tool("store", slow, { idempotent: true });
const storer = prompt("storer", () => sayAndUse("Storing.", { name: "store", args: {} }), { tools: ["store"] });
const pack = bobbin.tool("pack", slow);
const sign = bobbin.tool("sign", slow);
const ship = bobbin.tool("ship", ({ args, n, closed }) => (n === 2 ? closed.then(() => "too late") : `shipped ${args.word}`));
const exposed = { agent: { exposeAsTool: true, toolDescription: "Takes over." }, prompt: { requiredSchema: question } };
const heir = bobbin.agent("heir", ({ last }) => say(`heir: ${last}`), exposed);
const dreamer = bobbin.agent("dreamer", inTurn(hang(), say("awake")), exposed);

const parallel = { parallelToolCalls: true };
const killed = {
  asking: bobbin.agent("asking", makes({ name: "thinker", args: {} }), { tools: ["thinker"] }),
  charging: bobbin.agent("charging", makes({ name: "charger", args: {} }), { tools: ["charger"] }),
  storing: bobbin.agent("storing", makes({ name: "storer", args: {} }), { tools: ["storer"] }),
  handing: bobbin.agent("handing", () => use({ name: "heir", args: { question: "Yours." } }, { name: "pack", args: {} }), {
    tools: [{ name: "heir", initUserMessageProperty: "question" }, "pack"],
    prompt: parallel,
  }),
  handed: bobbin.agent("handed", () => use({ name: "dreamer", args: { question: "Yours." } }), {
    tools: [{ name: "dreamer", initUserMessageProperty: "question" }],
  }),
  queueing: bobbin.agent(
    "queueing",
    makes({ name: "call_later", args: { tool: "sign" } }, { name: "call_later", args: { tool: "look", args: { word: "after" } } }),
    { tools: [{ name: "call_later", options: { tools: ["sign", "look"] } }], prompt: parallel },
  ),
  mapping: bobbin.agent("mapping", makes({ name: "call_each_again", args: { tool: "ship", list: words("a", "b", "c") } }), {
    tools: [{ name: "call_each_again", options: { tools: ["ship"] } }],
  }),
};

/** @type {Record<keyof typeof killed, Thread>} */
let threads;

test("a kill in the middle of each: all go on within 5 s, without any request", async () => {
  const made = await Promise.all(Object.entries(killed).map(async ([name, agent]) => [name, await bobbin.client.thread(agent.name)]));
  threads = /** @type {typeof threads} */ (Object.fromEntries(made));
  for (const thread of Object.values(threads)) await thread.accepted("go");
  await Promise.all([thinker.model.request(1), charge.call(1), store.call(1), pack.call(1)]);
  await Promise.all([dreamer.model.request(1), sign.call(1), ship.call(2)]);
  assert.equal((await about(threads.handing)).agent_id, "handing", "its step is not closed");
  assert.equal((await about(threads.handed)).agent_id, "dreamer");

  await bobbin.server.crash();

  const { asking, charging, storing, handing, handed: taken, queueing, mapping } = killed;
  await Promise.all([
    thinker.model.request(2, RESUMES_MS),
    store.call(2, RESUMES_MS),
    ship.call(3, RESUMES_MS),
    dreamer.model.request(2, RESUMES_MS),
    heir.model.request(1, RESUMES_MS),
    ...[charging, queueing].map(({ model }) => model.request(2, RESUMES_MS)),
  ]);
  for (const thread of Object.values(threads)) await thread.idle();
  const asked = [asking, charging, storing, handing, taken, queueing, mapping].map(({ model }) => model.asked.length);
  assert.deepEqual(asked, [2, 2, 2, 1, 1, 2, 2], "no stored reply is asked for again");
});

test("killed while a prompt's model answers: it is asked the same again, once", async () => {
  const { asked } = thinker.model;
  assert.equal(asked.length, 2);
  assert.deepEqual(asked[1]?.messages, asked[0]?.messages);
  assert.deepEqual(await results(threads.asking), ["thought"]);
  const [outer] = await logged(threads.asking, "tool_call");
  assert.deepEqual([outer.kind, outer.runs, outer.state], ["prompt", 2, "succeeded"]);
  const rows = (await logged(threads.asking, "llm_request")).filter(({ prompt_name }) => prompt_name === "thinker");
  assert.deepEqual(
    rows.map(({ attempt, status, error_type, parent_call }) => [attempt, status, error_type ?? null, parent_call]),
    [
      [1, "failed", "interrupted", outer.id],
      [2, "completed", null, outer.id],
    ],
  );
});

test("killed during a prompt's http tool: neither asked nor called again, and the model is told plainly", async () => {
  assert.deepEqual([charger.model.asked.length, charge.received.length, of(look, threads.charging).length], [1, 1, 1]);
  const text = [
    `1 of 2 tool calls failed.\ncharge: ${unknown("charge")}`,
    "Charging.",
    'Tool calls:\n- look({"word":"it"})\n  seen it\n- charge({})\n  failed',
  ].join("\n\n");
  assert.deepEqual(await results(threads.charging), [text]);
  assert.equal(killed.charging.model.asked[1]?.last, text);
  const within = (await threads.charging.messages({ depth: 1 })).filter(({ depth }) => depth === 1);
  assert.deepEqual(within.map(({ role, content }) => [role, content]), [
    ["assistant", "Charging."],
    ["tool", "seen it"],
    ["tool", unknown("charge")],
  ]);
});

test("killed during a prompt's idempotent http tool: called again with the same key, its model is not", async () => {
  assert.deepEqual([storer.model.asked.length, store.received.length], [1, 2]);
  assert.equal(store.received[1]?.key, store.received[0]?.key);
  assert.deepEqual(await results(threads.storing), ["Storing.\n\nTool calls:\n- store({})\n  done"]);
});

test("killed before or after a hand-off takes place: it takes place once", async () => {
  assert.deepEqual([heir.model.asked.length, pack.received.length], [1, 1]);
  assert.deepEqual(shown(heir.model.asked[0]).slice(1), [
    "user: go",
    "assistant: [heir] [pack]",
    `tool: ${handed("heir")}`,
    `tool: ${unknown("pack")}`,
    "user: Yours.",
  ]);
  assert.deepEqual((await threads.handing.lines()).slice(2), [
    ["tool", handed("heir")],
    ["tool", unknown("pack")],
    ["user", "Yours."],
    ["assistant", "heir: Yours."],
  ]);
  assert.deepEqual(dreamer.model.asked[1]?.messages, dreamer.model.asked[0]?.messages);
  assert.deepEqual((await threads.handed.lines()).slice(2), [
    ["tool", handed("dreamer")],
    ["user", "Yours."],
    ["assistant", "awake"],
  ]);
  for (const [thread, now, before] of /** @type {const} */ ([
    [threads.handing, "heir", "handing"],
    [threads.handed, "dreamer", "handed"],
  ])) {
    const { agent_id, origin_agent_id } = await about(thread);
    assert.deepEqual([agent_id, origin_agent_id], [now, before]);
  }
});

test("killed during a queued tool: not called again, and the ones after it are", async () => {
  assert.equal(sign.received.length, 1);
  assert.deepEqual((await results(threads.queueing)).slice(2), [unknown("sign"), "seen after"]);
  assert.deepEqual(of(look, threads.queueing).map(({ args }) => args.word), ["after"]);
});

test("killed during a call that code waits for: it gets the results it had, and makes no call twice", async () => {
  assert.deepEqual(ship.received.map(({ args }) => args.word), ["a", "b", "c"]);
  assert.deepEqual(await results(threads.mapping), [`1 of 3 calls failed.\n1. shipped a\n2. ${unknown("ship")}\n3. shipped c`]);
  const calls = await logged(threads.mapping, "tool_call");
  assert.deepEqual(
    calls.map(({ tool_name, state, runs }) => [tool_name, state, runs]),
    [
      ["call_each_again", "failed", 2],
      ["ship", "succeeded", 1],
      ["ship", "indeterminate", 1],
      ["ship", "succeeded", 1],
    ],
  );
});

test("afterwards all are quiet", async () => {
  await bobbin.quiet(
    Object.entries(killed).map(([name, { model }]) => ({ thread: threads[/** @type {keyof typeof killed} */ (name)], model })),
  );
});
