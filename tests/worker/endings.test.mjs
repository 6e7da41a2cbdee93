// How runs end, what the history contains afterwards, and that the thread is then idle.

import assert from "node:assert/strict";
import { hang, inTurn, refuse, say, stallAfter, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/suite.mjs").Agent} Agent */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

/** Threads whose run has ended. The last test watches them all. @type {{ thread: Thread, model: Agent["model"] }[]} */
const over = [];

/** @param {Agent} agent */
async function threadOf(agent) {
  const thread = await bobbin.client.thread(agent.name);
  over.push({ thread, model: agent.model });
  return thread;
}

/** @param {Record<string, any>[]} messages */
const results = (messages) => messages.filter(({ role }) => role === "tool").map(textOf);

/** Checks that every call has its result. @param {any[]} messages */
function paired(messages) {
  const calls = messages.flatMap(({ tool_calls }) => (tool_calls ? JSON.parse(tool_calls) : [])).map(({ id }) => id);
  assert.deepEqual(messages.filter(({ role }) => role === "tool").map(({ tool_call_id }) => tool_call_id), calls);
}

bobbin.tool("lookup", () => "found");
bobbin.tool("failing", () => ({ status: 503, body: "out of order" }));
const stuck = bobbin.tool("stuck", ({ closed }) => closed.then(() => ""));
const word = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };
bobbin.tool("strictly", ({ args }) => `got ${args.word}`, { args: word });

const silent = bobbin.agent("silent", inTurn(hang(), say("after the stop")));

test("stopped while the model thinks: the request is given up, the waiter is told, the next send goes on", async () => {
  const thread = await threadOf(silent);
  const socket = await thread.stream();
  const waiting = thread.ask("think");
  const asked = await silent.model.request(1);
  const stopped = await thread.send("POST", "/stop");
  assert.deepEqual([stopped.status, stopped.json.status], [200, "stopped"]);
  const { outcome, reason, message } = await waiting;
  assert.deepEqual([outcome, reason, message], ["stopped", "stopped_by_user", null]);
  await until("the model's request is closed", () => asked.gone);
  await socket.next("stopped_by_user", ({ type }) => type === "stopped_by_user");
  assert.equal((await thread.diagnostics()).state, "stopped");
  assert.deepEqual(await thread.lines(), [["user", "think"]]);
  assert.equal((await thread.ask("go on")).message.content, "after the stop");
  const { messages } = await silent.model.request(2);
  assert.deepEqual(messages.filter(({ role }) => role === "user").map(textOf).slice(-1), ["go on"]);
  socket.close();
});

const talking = bobbin.agent("talking", inTurn(stallAfter("half a sentence"), say("a whole one")));

test("stopped in the middle of a text: the half text is gone, continue goes on", async () => {
  const thread = await threadOf(talking);
  const socket = await thread.stream();
  await thread.accepted("talk");
  await socket.next("a chunk", ({ type }) => type === "message_chunk");
  await thread.send("POST", "/stop");
  await thread.idle();
  assert.ok(!(await thread.messages()).some(({ content }) => content?.includes("half")));
  const again = await thread.send("POST", "/continue", {});
  assert.deepEqual([again.status, again.json.status], [202, "queued"], again.text);
  await until("the run has ended", async () => (await thread.messages()).at(-1)?.content === "a whole one");
  socket.close();
});

const tooling = bobbin.agent(
  "tooling",
  ({ messages }) =>
    results(messages).length === 0
      ? use({ name: "stuck", args: {} }, { name: "lookup", args: {} })
      : say(results(messages).join(" / ")),
  { tools: ["stuck", "lookup"] },
);

test("stopped during a tool: every call has a result, and the model learns of it later", async () => {
  const thread = await threadOf(tooling);
  await thread.accepted("use them");
  const call = await stuck.call(1);
  assert.equal((await thread.send("POST", "/stop")).status, 200);
  await call.closed;
  await thread.idle();
  const { message } = await thread.ask("what happened?");
  assert.equal(
    message.content,
    'The run was stopped while "stuck" was running. It may or may not have taken effect. / Not run: the run was stopped.',
  );
  assert.equal(stuck.received.length, 1);
});

test("stopping an idle thread changes nothing but the next send clears it", async () => {
  const thread = await threadOf(tooling);
  assert.equal((await thread.send("POST", "/stop")).status, 200);
  assert.equal((await thread.page()).messages.filter(({ role }) => role !== "system").length, 0);
  assert.equal((await thread.diagnostics()).state, "stopped");
});

const refusing = bobbin.agent("refusing", () => refuse(503));

test("a model that fails: two attempts, then the run has failed and says so", async () => {
  const thread = await threadOf(refusing);
  const { outcome, reason, error, message } = await thread.ask("hello");
  assert.deepEqual([outcome, reason], ["failed", "model_error"]);
  assert.equal(typeof error.message, "string");
  assert.equal(refusing.model.asked.length, 2);
  const last = (await thread.messages()).at(-1);
  assert.equal(last.metadata.status_kind, "run_failed");
  assert.ok(last.content.length > 10, "a person understands it");
  assert.ok(!JSON.stringify([last, error, message]).includes("model-key-of-the-tests"));
  await thread.ask("again");
  const { messages } = await refusing.model.request(3);
  assert.equal(textOf(messages.at(-1)), "again");
});

const bad = bobbin.agent("bad", () => refuse(400));

test("a request that the model refuses is not sent again", async () => {
  const thread = await threadOf(bad);
  assert.deepEqual([(await thread.ask("hello")).outcome, bad.model.asked.length], ["failed", 1]);
});

const recovering = bobbin.agent("recovering", inTurn(refuse(503), say("better now")));

test("a model that fails once is asked again", async () => {
  const thread = await threadOf(recovering);
  assert.equal((await thread.ask("hello")).message.content, "better now");
  assert.equal(recovering.model.asked.length, 2);
});

const limited = bobbin.agent("limited", inTurn(refuse(429, { "retry-after": "2" }), say("in time")));

test("Retry-After is honoured", async () => {
  const thread = await threadOf(limited);
  assert.equal((await thread.ask("hello")).message.content, "in time");
  const [first, second] = limited.model.asked;
  assert.ok(second && first && second.at - first.at >= 1900, "not before the two seconds are over");
});

const backup = bobbin.agent("backup", () => say("from the fallback"));
const failing = bobbin.agent("primary", () => refuse(500), { model: { fallbacks: ["backup_model"] } });

test("a fallback answers when the model does not", async () => {
  const thread = await threadOf(failing);
  assert.equal((await thread.ask("hello")).message.content, "from the fallback");
  assert.deepEqual([failing.model.asked.length, backup.model.asked.length], [2, 1]);
});

const endless = bobbin.agent("endless", () => use({ name: "lookup", args: {} }), {
  tools: ["lookup"],
  side: { maxSteps: 3 },
});

test("maxSteps ends the run", async () => {
  const thread = await threadOf(endless);
  const { outcome, reason } = await thread.ask("go");
  assert.deepEqual([outcome, reason], ["failed", "max_steps"]);
  assert.equal(endless.model.asked.length, 3);
  const messages = await thread.messages();
  paired(messages);
  assert.equal(messages.at(-1).metadata.status_kind, "run_failed");
});

const stopping = bobbin.agent("stopping", () => use({ name: "lookup", args: { word: "bye" } }), {
  tools: ["lookup"],
  side: { stopTool: "lookup", stopToolResponseProperty: "word" },
});

test("a stop tool ends the turn, and its argument is the answer", async () => {
  const thread = await threadOf(stopping);
  const { outcome, reason, message } = await thread.ask("go");
  assert.deepEqual([outcome, reason, message.content], ["completed", "stop_tool", "bye"]);
  paired(await thread.messages());
});

const empty = bobbin.agent("empty", () => say(""));

test("an empty reply is fed back once, then the run has failed", async () => {
  const thread = await threadOf(empty);
  const { outcome, reason } = await thread.ask("go");
  assert.deepEqual([outcome, reason, empty.model.asked.length], ["failed", "empty_reply", 2]);
  const { messages } = await empty.model.request(2);
  assert.ok(JSON.stringify(messages).includes("Your last reply was empty. Answer in text or call a tool."));
});

const stubborn = bobbin.agent("stubborn", () => use({ name: "failing", args: {} }), { tools: ["failing"] });

test("the same tool error eight times in a row ends the run", async () => {
  const thread = await threadOf(stubborn);
  const { outcome, reason } = await thread.ask("go");
  assert.deepEqual([outcome, reason, stubborn.model.asked.length], ["failed", "repeated_tool_error", 8]);
  paired(await thread.messages());
});

const confused = bobbin.agent(
  "confused",
  ({ messages }) => {
    const texts = results(messages);
    if (texts.length === 0) return use({ name: "nothing", args: {} });
    if (texts.length === 1) return use({ name: "strictly", args: { word: 5 } });
    if (texts.length === 2) return use({ name: "strictly", args: '{"word": "bo' });
    if (texts.length === 3) return use({ name: "strictly", args: { word: "bobbin" } });
    return say("at last");
  },
  { tools: ["strictly", "lookup"] },
);

test("unknown tools and wrong arguments are told to the model, which goes on", async () => {
  const thread = await threadOf(confused);
  assert.equal((await thread.ask("go")).message.content, "at last");
  const [unknown, wrong, malformed, right] = results(await thread.messages());
  assert.equal(unknown, 'There is no tool "nothing" here. Available: strictly, lookup.');
  assert.equal(wrong, 'Invalid arguments for "strictly": word: expected string, got integer.');
  assert.match(malformed ?? "", /arguments for "strictly" are not valid JSON: .*column 12/);
  assert.equal(right, "got bobbin");
});

const repeating = bobbin.agent(
  "repeating",
  ({ n }) =>
    n === 1
      ? use({ name: "lookup", args: {}, id: "call_1" })
      : n === 2
        ? use({ name: "lookup", args: {}, id: "call_1" }, { name: "lookup", args: {}, id: "" })
        : say("done"),
  { tools: ["lookup"] },
);

test("call ids that a provider repeats or leaves empty are replaced", async () => {
  const thread = await threadOf(repeating);
  assert.equal((await thread.ask("go")).message.content, "done");
  const messages = await thread.messages();
  paired(messages);
  const ids = messages.filter(({ role }) => role === "tool").map(({ tool_call_id }) => tool_call_id);
  assert.deepEqual([ids.length, new Set(ids).size], [3, 3]);
});

const ended = bobbin.agent("ended", hang);

test("a terminated thread refuses work, stays readable, and its run has ended", async () => {
  const thread = await threadOf(ended);
  const waiting = thread.ask("hello");
  const asked = await ended.model.request(1);
  const answer = await thread.send("POST", "/terminate");
  assert.equal(answer.status, 200, answer.text);
  const { outcome, reason } = await waiting;
  assert.deepEqual([outcome, reason], ["stopped", "terminated"]);
  await until("the model's request is closed", () => asked.gone);
  assert.equal((await thread.send("POST", "/terminate")).status, 200, "again is no error");
  for (const [method, path, body] of /** @type {[string, string, object][]} */ ([
    ["POST", "/messages", { role: "user", content: "hello?" }],
    ["POST", "/messages?wait=true", { role: "user", content: "hello?" }],
    ["POST", "/continue", {}],
  ])) {
    const refused = await thread.send(method, path, body);
    assert.deepEqual([refused.status, refused.json.error.code], [409, "terminated"], `${method} ${path}`);
  }
  const [first] = await thread.messages();
  assert.equal(first.content, "hello");
  const { thread: info } = (await thread.send("GET")).json;
  assert.equal(typeof info.terminated, "number");
  const reader = await thread.events();
  await reader.next("a snapshot", ({ event }) => event === "snapshot");
  reader.close();
});

test("after all these ends every thread is quiet", () => bobbin.quiet(over));
