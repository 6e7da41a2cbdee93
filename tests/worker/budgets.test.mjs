// Budgets over HTTP, on a real clock and through kills. The model server counts requests and usage.

import assert from "node:assert/strict";
import { randomMoment } from "./support/family.mjs";
import { say, textOf } from "./support/model.mjs";
import { chance, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/model.mjs").Reply} Reply */

/** The number of kills during attempts. */
const KILLS = Number(process.env.BOBBIN_BUDGET_KILLS ?? 3);
/** The number of kills per run: a step that is interrupted more often is abandoned. */
const KILLS_EACH = 3;

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

/** Counts the tokens of a request like the runtime, approximately. A token costs a millionth of a dollar. @param {any[]} messages */
const inputOf = (messages) => Math.round(messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0) / 3.2);

/**
 * Replies with text or calls, and reports the usage of a request of this size.
 * @param {string} text @param {...import("./support/model.mjs").Call} calls @returns {Reply}
 */
const paid = (text, ...calls) => async (out, { body, messages }) => {
  if (text !== "") await out.text(text);
  for (const call of calls) await out.call(call);
  await out.chunk({}, calls.length > 0 ? "tool_calls" : "stop");
  const input = inputOf(messages);
  give(body.user, input, 10);
  await out.line({ id: out.id, object: "chat.completion.chunk", model: body.model, choices: [], usage: { prompt_tokens: input, completion_tokens: 10, total_tokens: input + 10 } });
  if (out.response.writable) out.response.end("data: [DONE]\n\n");
};

/** The usage of each thread: input and output tokens. @type {Map<string, { input: number, output: number }>} */
const given = new Map();
const givenTo = (/** @type {string} */ thread) => given.get(thread) ?? { input: 0, output: 0 };
/** @param {string} thread @param {number} input @param {number} output */
const give = (thread, input, output) => given.set(thread, { input: givenTo(thread).input + input, output: givenTo(thread).output + output });

bobbin.tool("look", () => "seen");
const look = { name: "look", args: {} };
const small = { capabilities: { maxOutputTokens: 300 } };
/** 12,000 bytes: 4,000 tokens, 0.004 USD. */
const LONG = "tell me ".repeat(1_500);

/** Defines an agent that calls `look` again and again. @param {string} name @param {object} budget @param {object} [more] */
const looker = (name, budget, more = {}) =>
  bobbin.agent(name, ({ body }) => (body.tools === undefined ? paid("That is all.") : paid("", look)), { tools: ["look"], model: small, agent: { budget }, ...more });

const cautious = looker("cautious", { run: { maxCostUsd: 0.01 } });
const finishing = looker("finishing", { run: { maxCostUsd: 0.013 }, onExceeded: "finish", finishReserveTokens: 300 });
const nothing = looker("nothing", { run: { maxTokens: 0 }, onExceeded: "fail" });
const thrifty = looker("thrifty", { run: { maxCostUsd: 0.5 }, onExceeded: "fail" });
const slow = bobbin.agent("slow", () => say("one two three four five six seven eight nine ten", { chunks: 10, everyMs: 600 }), {
  model: small,
  agent: { budget: { run: { maxSeconds: 2 }, onExceeded: "fail" } },
});
/** The number of words of a complete response, and the number before which it is killed. */
const WORDS = 60;
const KILLED_WITHIN = 40;
/**
 * Streams words slowly. Whatever was sent is charged, even if it does not arrive.
 * @param {import("./support/model.mjs").Out} out @param {import("./support/model.mjs").Asked} asked
 */
const slowly = async (out, { body, messages }) => {
  give(body.user, inputOf(messages), 0);
  for (let n = 0; n < WORDS && out.response.writable; n++) {
    await out.text("word ");
    give(body.user, 0, 1);
    await sleep(40);
  }
  await out.chunk({}, "stop");
  if (out.response.writable) out.response.end("data: [DONE]\n\n");
};
const askedIn = (/** @type {string} */ thread) => killed.model.asked.filter(({ body }) => body.user === thread).length;
/** @type {import("./support/suite.mjs").Agent} */
const killed = bobbin.agent("killed", ({ body }) => (askedIn(body.user) > KILLS_EACH ? paid("done") : slowly), {
  model: small,
  agent: { budget: { run: { maxCostUsd: 5 } } },
});

/** Waits until the thread asks for a larger budget. @param {Thread} thread @returns {Promise<any>} */
const asking = (thread) =>
  until("it asks for more", async () => {
    const { waits } = (await thread.send("GET", "/waits")).json;
    return waits.find((/** @type {any} */ { kind, allows }) => kind === "budget" && allows.length > 0);
  });

test("a run is parked before the attempt that it cannot pay, goes on as far as it is extended, and fails when that is denied", async () => {
  const thread = await bobbin.client.thread(cautious.name);
  const outcome = await thread.ask(LONG);
  assert.deepEqual([outcome.outcome, outcome.reason, outcome.pauseKind], ["parked", "waiting_for_budget", "human"]);
  assert.equal(cautious.model.asked.length, 2, "two steps of 0.004 each");
  const first = await asking(thread);
  assert.deepEqual([first.budget.scope, first.budget.unit, first.budget.limit, first.budget.forChild], ["run", "costUsd", 0.01, null]);
  const shown = (await thread.send("GET", "/budget")).json;
  assert.deepEqual([shown.limits.run, shown.wait, shown.spent.run.modelCalls], [{ maxCostUsd: 0.01 }, first.id, 2]);
  const refused = await thread.send("POST", `/waits/${first.id}`, { decision: "extend", add: { maxCostUsd: 0.000001 } });
  assert.deepEqual([refused.status, refused.json.error.code, refused.json.error.field], [400, "invalid_field", "add.maxCostUsd"]);
  const extended = await thread.send("POST", `/waits/${first.id}`, { decision: "extend", add: { maxCostUsd: 0.01 } });
  assert.deepEqual([extended.status, extended.json.wait.decision], [200, "extend"], extended.text);
  const second = await asking(thread);
  assert.notEqual(second.id, first.id);
  assert.equal(cautious.model.asked.length, 4, "two steps more");
  assert.equal((await thread.send("POST", `/waits/${second.id}`, { decision: "deny" })).status, 200);
  await thread.idle();
  const { runs } = (await thread.send("GET", "/runs")).json;
  assert.deepEqual([runs[0].outcome, runs[0].reason], ["failed", "budget_exceeded"]);
  const messages = await thread.messages();
  assert.equal(messages.filter((/** @type {any} */ { role, tool_calls }) => role === "assistant" && tool_calls !== null).length, 4, "what was paid for is kept");
  const { logs } = (await thread.send("GET", "/logs?order=asc")).json;
  const events = logs.filter((/** @type {any} */ { type }) => type === "budget").length;
  assert.equal(events, 4, "asked, extended, asked, exceeded");
  await bobbin.quiet([{ thread, model: cautious.model }]);
});

test("a run that finishes has one last step without tools; a limit of nothing sends nothing", async () => {
  const thread = await bobbin.client.thread(finishing.name);
  const outcome = await thread.ask(LONG);
  assert.deepEqual([outcome.outcome, outcome.reason, outcome.message.content], ["completed", "budget_finished", "That is all."]);
  const last = finishing.model.asked.at(-1);
  assert.equal(last?.body.tools, undefined);
  assert.equal(finishing.model.asked.filter(({ body }) => body.tools === undefined).length, 1, "one request without tools");
  const told = last?.messages.filter(({ role }) => role === "system").at(-1);
  assert.match(textOf(told), /^The budget of this run is used up/);
  const none = await (await bobbin.client.thread(nothing.name)).ask("hello");
  assert.deepEqual([none.outcome, none.reason, nothing.model.asked.length], ["failed", "budget_exceeded", 0]);
});

test("a model that streams slowly is stopped when the time is used up", async () => {
  const thread = await bobbin.client.thread(slow.name);
  const outcome = await thread.ask("hello");
  assert.deepEqual([outcome.outcome, outcome.reason], ["failed", "budget_exceeded"]);
  const [run] = (await thread.send("GET", "/runs")).json.runs;
  const took = (run.endedAt - run.startedAt) / 1_000;
  assert.ok(took > 1_900 && took < 2_500, `${took} ms`);
});

test("a message and a thread only tighten; nobody but the owner sets limits", async () => {
  const thread = await bobbin.client.thread(thrifty.name, { budget: { run: { maxSteps: 3 } } });
  const sent = await thread.post("go on", { budget: { run: { maxCostUsd: 100, maxModelCalls: 2 } } });
  assert.equal(sent.status, 202, sent.text);
  await thread.idle();
  const shown = (await thread.send("GET", "/budget")).json;
  assert.deepEqual(shown.limits.run, { maxCostUsd: 0.5, maxModelCalls: 2, maxSteps: 3 });
  assert.equal(thrifty.model.asked.length, 2);
  const set = await thread.send("PATCH", "/budget", { thread: { maxTokens: 100 } });
  assert.deepEqual([set.status, set.json.limits.thread], [200, { maxTokens: 100 }], set.text);
  const none = await thread.ask("and on");
  assert.deepEqual([none.reason, thrifty.model.asked.length], ["budget_exceeded", 2]);
  assert.equal((await thread.send("PATCH", "/budget", { run: { maxTokens: 1 } })).status, 409);
});

test("no attempt becomes free by dying", async () => {
  const random = chance("budgets");
  const begun = Date.now();
  for (let kills = 0; kills < KILLS; ) {
    const thread = await bobbin.client.thread(killed.name);
    await thread.accepted("hello");
    for (let attempt = 1; attempt <= KILLS_EACH; attempt++, kills++) {
      await until(`attempt ${attempt} is made`, () => askedIn(thread.id) >= attempt, { withinMs: 60_000, everyMs: 2 });
      await randomMoment(random, () => givenTo(thread.id).output, KILLED_WITHIN);
      await bobbin.server.crash();
    }
    await thread.idle(120_000);
    const booked = (await thread.send("GET", "/budget")).json;
    const [out, spent, attempts] = [givenTo(thread.id), booked.spent.run, askedIn(thread.id)];
    const found = `after ${kills} kills ${JSON.stringify(spent)} are booked of ${JSON.stringify(out)} in ${attempts} attempts`;
    assert.ok(out.output > 0 && spent.tokens >= out.input + out.output, found);
    assert.ok(Math.round(spent.costUsd * 1e6) >= out.input + 2 * out.output && spent.modelCalls >= attempts, found);
    // Each attempt is charged at most its request and the longest response.
    assert.ok(spent.tokens <= (KILLS_EACH + 1) * (300 + 2 * (out.input / attempts)) && spent.modelCalls <= KILLS_EACH + 1, found);
    assert.equal(booked.estimated, true);
    if (kills % 12 === 0) console.log(`${kills} kills survived, ${Math.round((Date.now() - begun) / 1000)} s`);
  }
}, 60_000 + KILLS * 30_000);

const asks = bobbin.tool("asks", () => "paid", { approval: "always" });
const patient = bobbin.agent("patient", ({ messages }) => (messages.at(-1)?.role === "tool" ? paid("done") : paid("", { name: "asks", args: {} })), {
  tools: ["asks"],
  model: small,
  agent: { budget: { run: { maxSeconds: 3 }, onExceeded: "fail" } },
});

test("what a run waits for people does not count as its time", async () => {
  const thread = await bobbin.client.thread(patient.name);
  assert.equal((await thread.ask("pay")).outcome, "parked");
  const { waits } = (await thread.send("GET", "/waits")).json;
  await sleep(4_000);
  assert.equal((await thread.send("POST", `/waits/${waits[0].id}`, { decision: "approve" })).status, 200);
  await thread.idle();
  const { runs } = (await thread.send("GET", "/runs")).json;
  assert.deepEqual([runs[0].outcome, asks.received.length], ["completed", 1]);
  const { seconds } = (await thread.send("GET", "/budget")).json.spent.run;
  assert.ok(seconds < 3, `${seconds} s`);
});
