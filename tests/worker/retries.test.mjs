// Retries over HTTP, on a real clock and through kills. The models count their requests.

import assert from "node:assert/strict";
import { breakOff, inTurn, refuse, say, textOf } from "./support/model.mjs";
import { sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

/** Longer than the longest wait within the object. */
const PAUSE_S = 31;
const parks = { retry: { model: { mode: "park", maxAttempts: 3 } } };
const busy = bobbin.agent("busy", inTurn(refuse(503, { "retry-after": String(PAUSE_S) }), say("at last")), { prompt: parks });
const patient = bobbin.agent("patient", inTurn(refuse(429, { "retry-after": "600" }), say("now")), { prompt: parks });
const halted = bobbin.agent("halted", inTurn(refuse(429, { "retry-after": "600" }), say("later")), { prompt: parks });
const asks = bobbin.agent("asks", inTurn(refuse(503)), { prompt: { retry: { model: { maxAttempts: 2, backoffMs: 10 } } } });
const spoken = bobbin.agent("spoken", inTurn(breakOff("one two three four"), say("again")), {
  prompt: { retry: { model: { maxAttempts: 3, backoffMs: 10 } } },
  model: { capabilities: { restartable: false } },
});

/** Returns the pause that a thread is parked for. @param {Thread} thread @returns {Promise<any>} */
const parked = (thread) =>
  until("the run is parked", async () => {
    const { waits } = (await thread.send("GET", "/waits")).json;
    return waits.find((/** @type {any} */ { kind }) => kind === "retry");
  });

test("Retry-After is honoured while the server is killed and starts again: one request, when its time has come", async () => {
  const thread = await bobbin.client.thread(busy.name);
  const outcome = await thread.ask("hello");
  assert.deepEqual([outcome.outcome, outcome.reason, outcome.pauseKind], ["parked", "waiting_for_retry", "system"]);
  const wait = await parked(thread);
  assert.deepEqual([wait.allows, wait.onExpiry], [["retry"], "continue"]);
  await bobbin.server.crash();
  await sleep(2_000);
  assert.equal(busy.model.asked.length, 1, "nothing is asked before its time");
  const again = await busy.model.request(2, PAUSE_S * 1_000 + 20_000);
  await thread.idle();
  assert.ok(again.at - (busy.model.asked[0]?.at ?? 0) >= PAUSE_S * 1_000 - 500, "not too early");
  assert.equal(busy.model.asked.length, 2);
  assert.equal((await thread.messages()).at(-1).content, "at last");
});

test("who watches a long pause ends it, also after a kill", async () => {
  const thread = await bobbin.client.thread(patient.name);
  await thread.accepted("hello");
  const wait = await parked(thread);
  const refused = await thread.send("POST", `/waits/${wait.id}`, { decision: "deny" });
  assert.deepEqual([refused.status, refused.json.error.field], [400, "decision"], refused.text);
  await bobbin.server.crash();
  const answer = await thread.send("POST", `/waits/${wait.id}`, { decision: "retry", actor: "Ann" });
  assert.deepEqual([answer.status, answer.json.wait.state, answer.json.wait.decision], [200, "decided", "retry"], answer.text);
  assert.equal((await thread.send("POST", `/waits/${wait.id}`, { decision: "retry" })).status, 409);
  await thread.idle();
  assert.equal(patient.model.asked.length, 2);
  assert.equal((await thread.messages()).at(-1).content, "now");
});

test("a stop ends a long pause; the next message is answered at once", async () => {
  const thread = await bobbin.client.thread(halted.name);
  await thread.accepted("hello");
  const wait = await parked(thread);
  await thread.send("POST", "/stop");
  assert.equal((await thread.send("GET", `/waits/${wait.id}`)).json.wait.state, "cancelled");
  assert.equal((await thread.ask("and now?")).message.content, "later");
  assert.equal(halted.model.asked.length, 2);
});

test("the message's own policy comes before the prompt's", async () => {
  const thread = await bobbin.client.thread(asks.name);
  const answer = await thread.send("POST", "/messages?wait=true", { role: "user", content: "hello", retry: { model: { maxAttempts: 4 } } });
  assert.equal(answer.json.reason, "model_error", answer.text);
  assert.equal(asks.model.asked.length, 4);
  const { logs } = (await thread.send("GET", "/logs")).json;
  const sources = logs.filter((/** @type {any} */ { type }) => type === "llm_request").map((/** @type {any} */ row) => row.retry_source);
  assert.deepEqual(sources, ["run", "run", "run", "run"]);
  assert.equal((await thread.ask("once more")).reason, "model_error");
  assert.equal(asks.model.asked.length, 6, "of the next run the prompt's holds");
});

test("an answer that may not begin anew breaks off once, and is not asked for again", async () => {
  const thread = await bobbin.client.thread(spoken.name);
  const socket = await thread.stream();
  const outcome = await thread.ask("hello");
  assert.equal(outcome.reason, "model_error", JSON.stringify(outcome));
  assert.match(outcome.error.message, /may not begin anew/);
  await socket.next("the end", ({ type }) => type === "stopped");
  assert.equal(spoken.model.asked.length, 1);
  assert.ok(!(await thread.messages()).some((message) => textOf(message).includes("one two")), "no part of it is stored");
});
