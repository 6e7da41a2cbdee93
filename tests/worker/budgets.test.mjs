// Budgets over HTTP, on a real clock and through kills: the model server counts how often it is asked, and what it gives out.

import assert from "node:assert/strict";
import { atRest, direct, members, sessionTools, subagent } from "./support/family.mjs";
import { say, textOf } from "./support/model.mjs";
import { sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/model.mjs").Reply} Reply */

/** How often the server is killed in the middle of an attempt. */
const KILLS = Number(process.env.BOBBIN_BUDGET_KILLS ?? 3);
/** And how often in one run: a step that is interrupted more often is given up. */
const KILLS_EACH = 3;

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

/** Tokens of a request as this server counts them: as many as the runtime takes them for, about. @param {any[]} messages */
const inputOf = (messages) => Math.round(messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0) / 3.2);

/** Text or calls, with the usage of a request of this size. @param {string} text @param {...import("./support/model.mjs").Call} calls @returns {Reply} */
const paid = (text, ...calls) => async (out, { body, messages }) => {
  if (text !== "") await out.text(text);
  for (const call of calls) await out.call(call);
  await out.chunk({}, calls.length > 0 ? "tool_calls" : "stop");
  const input = inputOf(messages);
  given.set(body.model, (given.get(body.model) ?? 0) + input + 10);
  await out.line({ id: out.id, object: "chat.completion.chunk", model: body.model, choices: [], usage: { prompt_tokens: input, completion_tokens: 10, total_tokens: input + 10 } });
  if (out.response.writable) out.response.end("data: [DONE]\n\n");
};

/** What each model gave out. @type {Map<string, number>} */
const given = new Map();

bobbin.tool("look", () => "seen");
const look = { name: "look", args: {} };
const small = { capabilities: { maxOutputTokens: 300 } };
/** 12,000 bytes: 4,000 tokens, 0.004 USD. */
const LONG = "tell me ".repeat(1_500);

/** An agent that looks again and again. @param {string} name @param {object} budget @param {object} [more] */
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
/** Streams so many words slowly. What has left is given out, whether it arrives or not. @param {number} words @returns {Reply} */
const slowly = (words) => async (out, { body, messages }) => {
  const give = (/** @type {number} */ tokens) => given.set(body.user, (given.get(body.user) ?? 0) + tokens);
  give(inputOf(messages));
  for (let n = 0; n < words && out.response.writable; n++) {
    await out.text("word ");
    give(1);
    await sleep(100);
  }
  await out.chunk({}, "stop");
  if (out.response.writable) out.response.end("data: [DONE]\n\n");
};
const askedIn = (/** @type {string} */ thread) => killed.model.asked.filter(({ body }) => body.user === thread).length;
/** @type {import("./support/suite.mjs").Agent} */
const killed = bobbin.agent("killed", ({ body }) => (askedIn(body.user) > KILLS_EACH ? paid("done") : slowly(40)), {
  model: small,
  agent: { budget: { run: { maxCostUsd: 5 } } },
});

/** What the thread asks people. @param {Thread} thread @returns {Promise<any>} */
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
});

test("a run that finishes has one last step without tools; a limit of nothing sends nothing", async () => {
  const thread = await bobbin.client.thread(finishing.name);
  const outcome = await thread.ask(LONG);
  assert.deepEqual([outcome.outcome, outcome.reason, outcome.message.content], ["completed", "budget_finished", "That is all."]);
  const last = finishing.model.asked.at(-1);
  assert.equal(last?.body.tools, undefined);
  const told = last?.messages.filter(({ role }) => role === "system").at(-1);
  assert.match(textOf(told), /^The budget of this run is used up/);
  const none = await (await bobbin.client.thread(nothing.name)).ask("hello");
  assert.deepEqual([none.outcome, none.reason, nothing.model.asked.length], ["failed", "budget_exceeded", 0]);
});

test("a model that streams slowly is stopped when the time is used up", async () => {
  const thread = await bobbin.client.thread(slow.name);
  const begun = Date.now();
  const outcome = await thread.ask("hello");
  assert.deepEqual([outcome.outcome, outcome.reason], ["failed", "budget_exceeded"]);
  assert.ok(Date.now() - begun < 3_500, `${Date.now() - begun} ms`);
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
  for (let kills = 0; kills < KILLS; ) {
    const thread = await bobbin.client.thread(killed.name);
    await thread.accepted("hello");
    for (let attempt = 1; attempt <= KILLS_EACH; attempt++, kills++) {
      await until(`attempt ${attempt} is made`, () => askedIn(thread.id) >= attempt, { withinMs: 60_000 });
      await sleep(300 + Math.random() * 1_500);
      await bobbin.server.crash();
    }
    await thread.idle(120_000);
    const shown = (await thread.send("GET", "/budget")).json;
    const [out, booked] = [given.get(thread.id) ?? 0, shown.spent.run];
    assert.ok(out > 0 && booked.tokens >= out && booked.costUsd >= out / 1e6, `after ${kills} kills ${JSON.stringify(booked)} are booked of ${out}`);
    assert.equal(shown.estimated, true);
  }
}, 60_000 + KILLS * 30_000);

sessionTools(bobbin);
subagent(bobbin, "worker", ({ messages }) => (messages.filter(({ role }) => role === "tool").length < 4 ? paid("", look) : paid("", { name: "finish", args: { text: "found" } })), {
  tools: ["look"],
  model: small,
  agent: { maxSessionTurns: 1 },
});
/** Has ten work at the same time. @param {string} name */
const leads = (name) =>
  bobbin.agent(
    name,
    ({ messages }) =>
      messages.some(({ role }) => role === "tool") ? paid("noted") : paid("", ...Array.from({ length: 10 }, (_, n) => ({ name: "worker", args: { task: `part ${n}` } }))),
    { tools: [direct("worker", { blocking: false })], model: small, agent: { budget: { thread: { maxTokens: 12_000 } } } },
  );
const leader = leads("leader");
const strict = leads("strict");

// Three levels: the one at the bottom needs more than all have.
subagent(bobbin, "manager", ({ messages }) => (messages.some(({ role }) => role === "tool") ? paid("", { name: "finish", args: { text: "it was found" } }) : paid("", { name: "worker", args: { task: "look ".repeat(400) } })), {
  tools: [direct("worker")],
  model: small,
  agent: { maxSessionTurns: 1 },
});
const top = bobbin.agent("top", ({ messages }) => (messages.at(-1)?.role === "tool" ? paid("all done") : paid("", { name: "manager", args: { task: "have it found" } })), {
  tools: [direct("manager")],
  model: small,
  agent: { budget: { run: { maxTokens: 2_000 } } },
});

const asks = bobbin.tool("asks", () => "paid", { approval: "always" });
const patient = bobbin.agent("patient", ({ messages }) => (messages.at(-1)?.role === "tool" ? paid("done") : paid("", { name: "asks", args: {} })), {
  tools: ["asks"],
  model: small,
  agent: { budget: { run: { maxSeconds: 3 }, onExceeded: "fail" } },
});

/** What all models of a family gave out. */
const spentOf = (/** @type {string[]} */ ...models) => models.reduce((sum, name) => sum + (given.get(name) ?? 0), 0);

test("ten subagents share one budget: together they never use more, people are asked at the top, and what they add reaches all", async () => {
  const thread = await bobbin.client.thread(leader.name);
  await thread.accepted("share it");
  const first = await asking(thread);
  await sleep(3_000);
  const { waits } = (await thread.send("GET", "/waits")).json;
  assert.deepEqual(waits.map((/** @type {any} */ { id }) => id), [first.id], "one question");
  assert.ok(spentOf("leader", "worker") <= 12_000, `${spentOf("leader", "worker")}`);
  const answer = await thread.send("POST", `/waits/${first.id}`, { decision: "extend", add: { maxTokens: 200_000 } });
  assert.equal(answer.status, 200, answer.text);
  await atRest(thread, 60_000);
  const said = (await thread.messages({ includeSilent: "true" })).filter((/** @type {any} */ { content }) => /has finished:\n\nfound/.test(content ?? ""));
  assert.equal(said.length, 10);
  const shown = (await thread.send("GET", "/budget")).json;
  assert.deepEqual([shown.lent.tokens, shown.lent.children], [0, []]);
  assert.ok(shown.spent.thread.tokens >= spentOf("leader", "worker"), `${shown.spent.thread.tokens} of ${spentOf("leader", "worker")}`);
}, 180_000);

test("what people deny to ten subagents ends them all within a step", async () => {
  const before = spentOf("worker");
  const thread = await bobbin.client.thread(strict.name);
  await thread.accepted("share it");
  await asking(thread);
  let [questions, denied] = [0, Date.now()];
  // What subagents have said wakes the thread at the top, which has nothing left either, and asks for itself.
  const family = await until("all rest", async () => {
    const { waits } = (await thread.send("GET", "/waits")).json;
    for (const { id } of waits) {
      if ((await thread.send("POST", `/waits/${id}`, { decision: "deny" })).status !== 200) continue;
      questions++;
      denied = Date.now();
    }
    return atRest(thread, 1_000).catch(() => undefined);
  }, { withinMs: 60_000 });
  assert.ok(Date.now() - denied < 10_000, `${Date.now() - denied} ms after the last word`);
  assert.ok(questions <= 4, `${questions} questions about ten subagents`);
  assert.equal(family.length, 11);
  const { waits } = (await thread.send("GET", "/waits?descendants=true")).json;
  assert.deepEqual(waits, [], "nobody is asked again");
  const said = (await thread.messages({ includeSilent: "true" })).filter((/** @type {any} */ { content }) => /^Subagent .* has (finished|failed)/s.test(content ?? ""));
  assert.equal(said.length, 10);
  assert.ok(said.some(({ content }) => content.includes("has failed")), "not all of them had enough");
  const out = spentOf("strict", "worker") - before;
  const shown = (await thread.send("GET", "/budget")).json;
  assert.ok(shown.spent.thread.tokens >= out && out <= 12_000, `${shown.spent.thread.tokens} of ${out}`);
  assert.deepEqual([shown.lent.tokens, shown.lent.children], [0, []]);
}, 120_000);

test("the question of a subagent's subagent is asked at the top, and what is decided reaches it over a restart", async () => {
  const before = spentOf("worker");
  const thread = await bobbin.client.thread(top.name);
  await thread.accepted("begin");
  const asked = await asking(thread);
  const [, , bottom] = await members(thread);
  assert.deepEqual([asked.budget.unit, asked.budget.forChild], ["tokens", bottom?.thread.id]);
  // All three are out of memory, and the one in the middle is woken by nobody but the answer.
  await bobbin.server.crash();
  const extended = await thread.send("POST", `/waits/${asked.id}`, { decision: "extend", add: { maxTokens: 50_000 } });
  assert.equal(extended.status, 200, extended.text);
  await until("the run is over", async () => (await thread.send("GET", "/runs/r_1")).json.status === "ok", { withinMs: 60_000 });
  assert.equal((await thread.messages()).at(-1).content, "all done");
  await atRest(thread, 20_000);
  const { waits } = (await thread.send("GET", "/waits?state=all")).json;
  assert.equal(waits.filter((/** @type {any} */ { kind }) => kind === "budget").length, 1, "people were asked once");
  const shown = (await thread.send("GET", "/budget")).json;
  const out = spentOf("top", "manager", "worker") - before;
  assert.ok(shown.spent.thread.tokens >= out, `${shown.spent.thread.tokens} of ${out}`);
  assert.deepEqual([shown.lent.tokens, shown.lent.children], [0, []]);
}, 120_000);

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
