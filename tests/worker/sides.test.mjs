// Two models that talk to each other: what each side sees, every rule that ends a turn or a session, and a session that
// survives a crash of the server.

import assert from "node:assert/strict";
import { hang, say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/model.mjs").Asked} Asked */
/** @typedef {import("./support/model.mjs").Script} Script */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

bobbin.tool("look", ({ args }) => `seen ${args.what}`, { args: { type: "object", properties: { what: { type: "string" } } } });
bobbin.tool("done", () => "told", { args: { type: "object", properties: { text: { type: "string" } } } });
bobbin.tool("broken", () => ({ body: { status: "error", error: "It is broken." } }));
const closing = { type: "object", properties: { summary: { type: "string" }, files: { type: "array", items: { type: "string" } } } };
bobbin.tool("finish", () => "finished", { args: closing });
bobbin.tool("give_up", () => "gave up", { args: closing });
bobbin.tool("status", () => "noted", { args: { type: "object", properties: { now: { type: "string" } } } });

/**
 * Defines an agent with two sides, each with its own prompt and model.
 *
 * @param {string} name
 * @param {Script} a
 * @param {Script} b
 * @param {{ tools?: string[], side?: object, agent?: object, prompt?: object }} [settings]
 */
function pair(name, a, b, { tools = [], side = {}, agent = {}, prompt = {} } = {}) {
  // An agent that nobody talks to defines the prompt and model of side B.
  const second = bobbin.agent(`${name}_b`, b, { tools, prompt });
  const first = bobbin.agent(name, a, {
    tools,
    prompt,
    side,
    agent: { type: "dual_ai", sideB: { prompt: `${name}_b_prompt`, ...side }, maxSessionTurns: 12, ...agent },
  });
  return { name, a: first.model, b: second.model };
}

/** Returns what a model received, without the system prompt. @param {Asked | undefined} asked */
const shown = (asked) => (asked?.messages ?? []).slice(1).map((m) => `${m.role}: ${textOf(m) || `[${m.tool_calls?.[0]?.function.name}]`}`);

/** Counts the model's own texts in a request. @param {Asked} asked */
const said = (asked) => asked.messages.filter((m) => m.role === "assistant" && /^[AB]\d/.test(textOf(m))).length;

/** Replies with a numbered line in each turn. @param {string} letter @returns {Script} */
const talk = (letter) => (asked) => say(`${letter}${said(asked)}`, { chunks: 2 });

const debate = pair(
  "debate",
  (asked) => {
    const n = said(asked);
    if (n === 2) return use({ name: "finish", args: { summary: "We agree." } });
    return asked.messages.at(-1)?.role === "tool" ? say(`A${n}`) : use({ name: "look", args: { what: `A's ${n}` } });
  },
  (asked) => {
    const n = said(asked);
    return n === 0 && asked.messages.at(-1)?.role !== "tool" ? use({ name: "look", args: { what: "B's" } }) : say(`B${n}`);
  },
  {
    tools: ["look", "finish"],
    side: { sessionStop: { name: "finish", messageProperty: "summary" } },
  },
);

test("each side sees itself as the assistant, the other one as the user, and not the other one's calls", async () => {
  const thread = await bobbin.client.thread(debate.name);
  const outcome = await thread.ask("Is tea better?");
  assert.deepEqual([outcome.outcome, outcome.reason, outcome.result], ["completed", "session_stop", { text: "We agree." }]);
  assert.deepEqual(shown(debate.b.asked.at(-1)), [
    "assistant: Is tea better?",
    "user: A0",
    "assistant: [look]",
    "tool: seen B's",
    "assistant: B0",
    "user: A1",
  ]);
  assert.deepEqual(shown(debate.a.asked.at(-1)), [
    "user: Is tea better?",
    "assistant: [look]",
    "tool: seen A's 0",
    "assistant: A0",
    "user: B0",
    "assistant: [look]",
    "tool: seen A's 1",
    "assistant: A1",
    "user: B1",
  ]);
  // Stored roles identify the author.
  const stored = await thread.messages();
  const texts = stored.filter((m) => m.role !== "tool" && m.tool_calls === null).map((m) => `${m.role}: ${m.content}`);
  assert.deepEqual(texts, ["user: Is tea better?", "assistant: A0", "user: B0", "assistant: A1", "user: B1"]);
  await bobbin.quiet([{ thread, model: debate.a }, { thread, model: debate.b }]);
});

const forgetful = pair("forgetful", talk("A"), talk("B"), { prompt: { includeChat: false }, agent: { maxSessionTurns: 4 } });

test("without includeChat a side sees what opened its turn, and no more", async () => {
  const thread = await bobbin.client.thread(forgetful.name);
  assert.equal((await thread.ask("Go.")).reason, "max_session_turns");
  assert.deepEqual(forgetful.a.asked.map(shown), [["user: Go."], ["user: B0"]]);
  assert.deepEqual(forgetful.b.asked.map(shown), [["user: A0"], ["user: A0"]]);
});

/**
 * Every rule that ends a turn or a session: side A's first reply, the settings of the sides, the order of requests, and
 * the end of the run.
 *
 * @type {{ what: string, reply: import("./support/model.mjs").Reply, side?: object, agent?: object, order: string, reason: string, text?: string }[]}
 */
const rules = [
  {
    what: "a failure before a success, and both before the stop tool",
    reply: use({ name: "done", args: {} }, { name: "finish", args: {} }, { name: "give_up", args: { summary: "No way." } }),
    side: { stopTool: "done", sessionStop: "finish", sessionFail: { name: "give_up", messageProperty: "summary" } },
    order: "a",
    reason: "session_fail",
    text: "No way.",
  },
  {
    what: "a success before the stop tool; its result speaks where no argument does",
    reply: use({ name: "done", args: {} }, { name: "finish", args: {} }),
    side: { stopTool: "done", sessionStop: "finish", sessionFail: "give_up" },
    order: "a",
    reason: "session_stop",
    text: "finished",
  },
  {
    what: "a session tool that fails ends nothing",
    reply: use({ name: "broken", args: {} }),
    side: { sessionStop: "broken" },
    order: "aabab",
    reason: "max_session_turns",
  },
  {
    what: "the stop tool ends the turn, not the session, whatever came of it",
    reply: use({ name: "broken", args: {} }),
    side: { stopTool: "broken" },
    order: "abab",
    reason: "max_session_turns",
  },
  { what: "a text ends the turn", reply: say("A0"), order: "abab", reason: "max_session_turns" },
  {
    what: "with neither, sides change after each step",
    reply: use({ name: "look", args: { what: "it" } }),
    side: { stopOnResponse: false },
    order: "abab",
    reason: "max_session_turns",
  },
  { what: "a side's own cap ends the run", reply: say("A0"), side: { maxSteps: 1 }, order: "ab", reason: "max_steps" },
  {
    what: "a side's own cap comes before the session's",
    reply: say("A0"),
    side: { maxSteps: 1 },
    agent: { maxSessionTurns: 2 },
    order: "ab",
    reason: "max_steps",
  },
];

const ruled = rules.map((rule, at) => {
  /** @type {string[]} */
  const order = [];
  const tools = ["look", "done", "broken", "finish", "give_up"];
  const first = (/** @type {Asked} */ asked) => {
    order.push("a");
    return asked.n === 1 ? rule.reply : talk("A")(asked);
  };
  const second = (/** @type {Asked} */ asked) => {
    order.push("b");
    return talk("B")(asked);
  };
  const settings = { tools, side: rule.side ?? {}, agent: { maxSessionTurns: 4, ...rule.agent } };
  return { ...rule, seen: order, pair: pair(`rule_${at}`, first, second, settings) };
});

test("every rule that ends a turn or a session, in its order", async () => {
  const table = await Promise.all(
    ruled.map(async ({ what, seen, pair: { name } }) => {
      const thread = await bobbin.client.thread(name);
      const outcome = await thread.ask("Go.");
      return { what, order: seen.join(""), reason: outcome.reason, text: outcome.result?.text };
    }),
  );
  const expected = ruled.map(({ what, order, reason, text }) => ({ what, order, reason, text }));
  assert.deepEqual(table, expected);
});

const saying = pair(
  "saying",
  () => use({ name: "done", args: { text: "Said by the tool." } }),
  (asked) => use({ name: "status", args: { now: `B heard: ${textOf(asked.messages.at(-1))}` } }, { name: "finish", args: {} }),
  {
    tools: ["done", "status", "finish"],
    side: {
      stopTool: "done",
      stopToolResponseProperty: "text",
      sessionStop: "finish",
      sessionStatus: { name: "status", messageProperty: "now" },
    },
  },
);
test("a stop tool's argument is the reply, and a status is told to whoever listens", async () => {
  const thread = await bobbin.client.thread(saying.name);
  const events = await thread.events();
  assert.equal((await thread.ask("Go.")).reason, "session_stop");
  const status = await events.next("the status", ({ data }) => data.eventType === "session_status");
  assert.deepEqual(status.data.data, { status: "B heard: Said by the tool.", side: "b" });
  events.close();
});

const lasting = pair(
  "lasting",
  talk("A"),
  (asked) => (said(asked) === 1 && asked.n === 2 ? hang() : talk("B")(asked)),
  { agent: { maxSessionTurns: 6 } },
);

test("killed in the middle of side B's turn, the session goes on with side B, and counts go on", async () => {
  const thread = await bobbin.client.thread(lasting.name);
  await thread.accepted("Go.");
  await lasting.b.request(2);
  await bobbin.server.crash();
  await lasting.b.request(3, 5000);
  await thread.idle();
  const stored = await thread.messages();
  assert.deepEqual(
    stored.map((m) => `${m.role}: ${m.content}`),
    [
      "user: Go.",
      ...["assistant: A0", "user: B0", "assistant: A1", "user: B1", "assistant: A2", "user: B2"],
      "assistant: The session was ended after 6 turns, the most that it may have.",
    ],
  );
  assert.deepEqual([lasting.a.asked.length, lasting.b.asked.length], [3, 4]);
  assert.deepEqual(shown(lasting.b.asked[2]), shown(lasting.b.asked[1]));
});

const begun = pair("begun", talk("A"), talk("B"), { agent: { maxSessionTurns: 1 } });
const held = pair("held", talk("A"), hang, {});

test("the role of a message decides who begins; continue goes on with the side whose turn it was, or as told", async () => {
  const thread = await bobbin.client.thread(begun.name);
  const answer = await thread.send("POST", "/messages", { role: "assistant", content: "A message of side A." });
  assert.equal(answer.status, 202, answer.text);
  await thread.idle();
  assert.deepEqual([begun.a.asked.length, begun.b.asked.length], [0, 1]);

  const other = await bobbin.client.thread(held.name);
  await other.accepted("Go.");
  await held.b.request(1);
  assert.equal((await other.send("POST", "/stop")).status, 200);
  assert.equal((await other.send("POST", "/continue", {})).status, 202);
  await held.b.request(2);
  assert.equal((await other.send("POST", "/stop")).status, 200);
  const wrong = await other.send("POST", "/continue", { side: "c" });
  assert.deepEqual([wrong.status, wrong.json.error.field], [400, "side"]);
  assert.equal((await other.send("POST", "/continue", { side: "a" })).status, 202);
  await held.a.request(2);
  await held.b.request(3);
  assert.equal((await other.send("POST", "/stop")).status, 200);
  await until("both stand still", async () => (await other.diagnostics()).state === "stopped");
});
