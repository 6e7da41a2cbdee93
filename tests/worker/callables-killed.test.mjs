// Kills during calls that are not plain tools: prompts, hand-offs to agents, and calls that code makes or queues.

import assert from "node:assert/strict";
import { hang, inTurn, makes, say, sayAndUse, shown, use } from "./support/model.mjs";
import { suite } from "./support/suite.mjs";
import { callsOf } from "./support/tool.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/tool.mjs").Received} Received */

/** The time limit for a run to continue after a restart, without any request. */
const RESUMES_MS = 5000;

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const unknown = (/** @type {string} */ name) =>
  `The runtime restarted while "${name}" was running. It may or may not have taken effect. Check before trying again.`;
const handed = (/** @type {string} */ name) => `Handed off to "${name}", which goes on from here.`;

/** A tool that is in its first call when the server is killed. */
const slow = (/** @type {Received} */ { n, closed }) => (n === 1 ? closed.then(() => "too late") : "done");

const question = { type: "object", properties: { question: { type: "string" } }, required: ["question"] };
const given = { type: "object", properties: { word: { type: "string" }, question: { type: "string" } } };
const each = { type: "object", properties: { tool: { type: "string" }, list: { type: "array", items: given } } };
const later = { type: "object", properties: { tool: { type: "string" }, args: given } };
bobbin.native("call_each_again", "call_each", each, { idempotent: true });
bobbin.native("call_later", "call_later", later);
const words = (/** @type {string[]} */ ...list) => list.map((word) => ({ word }));

const look = bobbin.tool("look", ({ args }) => `seen ${args.word}`);
const thinker = bobbin.prompt("thinker", inTurn(hang(), say("thought")));
const charge = bobbin.tool("charge", slow);
const charger = bobbin.prompt("charger", () => sayAndUse("Charging.", { name: "look", args: { word: "it" } }, { name: "charge", args: {} }), {
  tools: ["look", "charge"],
});
const store = bobbin.tool("store", slow, { idempotent: true });
const storer = bobbin.prompt("storer", () => sayAndUse("Storing.", { name: "store", args: {} }), { tools: ["store"] });
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
  assert.equal((await threads.handing.facts()).agent_id, "handing", "its step is not closed");
  assert.equal((await threads.handed.facts()).agent_id, "dreamer");

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
  assert.deepEqual(await threads.asking.results(), ["thought"]);
  const [outer] = await threads.asking.logged("tool_call");
  assert.deepEqual([outer.kind, outer.runs, outer.state], ["prompt", 2, "succeeded"]);
  const rows = (await threads.asking.logged("llm_request")).filter(({ prompt_name }) => prompt_name === "thinker");
  assert.deepEqual(
    rows.map(({ attempt, status, error_type, parent_call }) => [attempt, status, error_type ?? null, parent_call]),
    [
      [1, "failed", "interrupted", outer.id],
      [2, "completed", null, outer.id],
    ],
  );
});

test("killed during a prompt's http tool: neither is repeated, and the model gets a clear result", async () => {
  assert.deepEqual([charger.model.asked.length, charge.received.length, callsOf(look, threads.charging).length], [1, 1, 1]);
  const text = [
    `1 of 2 tool calls failed.\ncharge: ${unknown("charge")}`,
    "Charging.",
    'Tool calls:\n- look({"word":"it"})\n  seen it\n- charge({})\n  failed',
  ].join("\n\n");
  assert.deepEqual(await threads.charging.results(), [text]);
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
  assert.deepEqual(await threads.storing.results(), ["Storing.\n\nTool calls:\n- store({})\n  done"]);
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
    const { agent_id, origin_agent_id } = await thread.facts();
    assert.deepEqual([agent_id, origin_agent_id], [now, before]);
  }
});

test("killed during a queued tool: not called again, and the ones after it are", async () => {
  assert.equal(sign.received.length, 1);
  assert.deepEqual((await threads.queueing.results()).slice(2), [unknown("sign"), "seen after"]);
  assert.deepEqual(callsOf(look, threads.queueing).map(({ args }) => args.word), ["after"]);
});

test("killed during a call that code waits for: it gets the results it had, and makes no call twice", async () => {
  assert.deepEqual(ship.received.map(({ args }) => args.word), ["a", "b", "c"]);
  assert.deepEqual(await threads.mapping.results(), [`1 of 3 calls failed.\n1. shipped a\n2. ${unknown("ship")}\n3. shipped c`]);
  const calls = await threads.mapping.logged("tool_call");
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
