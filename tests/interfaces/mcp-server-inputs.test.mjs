// A run's questions to people through MCP: forms with a state that the client returns, results that list the waits, and
// tasks.

import assert from "node:assert/strict";
import { MODERN, Mcp, TASKS } from "../worker/support/mcp.mjs";
import { hang, say, use } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

const bobbin = suite({
  key: "key-of-all",
  vars: {
    BOBBIN_API_KEYS: "key-of-all=admin,key-of-alice=owner:alice,key-of-bob=owner:bob",
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
    BOBBIN_SURFACES: "mcp",
  },
});
const test = bobbin.test.bind(bobbin);

const paid = bobbin.tool("pay", ({ args }) => `paid ${args["amount"]}`, {
  approval: "always",
  args: { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] },
});
/** @param {{ messages: Record<string, any>[] }} asked */
const told = ({ messages }) => {
  const results = messages.slice(messages.findLastIndex(({ role }) => role === "user")).filter(({ role }) => role === "tool");
  return results.map(({ content }) => content).join("; ");
};
const payer = bobbin.agent("payer", (asked) => (told(asked) === "" ? use({ name: "pay", args: { amount: 5 } }) : say(`So: ${told(asked)}`)), { tools: ["pay"] });
bobbin.agent("two", (asked) => (told(asked) === "" ? use({ name: "pay", args: { amount: 1 } }, { name: "pay", args: { amount: 2 } }) : say(`So: ${told(asked)}`)), { tools: ["pay"] });
bobbin.agent("asker", (asked) => (told(asked) === "" ? use({ name: "ask_user", args: { question: "Tea or coffee?", choices: ["Tea", "Coffee"] } }) : say(`So: ${told(asked)}`)), {
  tools: ["ask_user"],
});
bobbin.agent("open", (asked) => (told(asked) === "" ? use({ name: "ask_user", args: { question: "What now?" } }) : say(`So: ${told(asked)}`)), { tools: ["ask_user"] });
const hanging = bobbin.agent("hanging", () => hang());

const forms = { elicitation: { form: {} } };
const client = (/** @type {object} */ capabilities = forms, key = "key-of-alice") => new Mcp(bobbin.server.base, { key, capabilities });
const ask = { message: "go" };
/** @param {any} result */
const only = ({ inputRequests }) => /** @type {[string, any]} */ (Object.entries(inputRequests)[0]);
const accept = (/** @type {object} */ content) => ({ action: "accept", content });
const calls = () => paid.received.length;

test("what waits for a person is a form, and the answer goes on with the same run", async () => {
  for (const able of [forms, { elicitation: {} }]) {
    const alice = client(able);
    const before = calls();
    const parked = await alice.call("ask_payer", ask);
    const { resultType, requestState, content } = parked.result;
    assert.deepEqual([resultType, content, typeof requestState], ["input_required", undefined, "string"], parked.text);
    const [wait, { method, params }] = only(parked.result);
    assert.deepEqual([method, params.mode, params.requestedSchema.required], ["elicitation/create", "form", ["approve"]]);
    assert.match(params.message, /pay\(\{"amount":5\}\)/);
    const answers = { inputResponses: { [wait]: accept({ approve: true }) }, requestState };
    const done = await alice.call("ask_payer", ask, answers);
    assert.deepEqual([done.result.content[0].text, done.result.structuredContent.run], ["So: paid 5", "r_1"], done.text);
    assert.equal(calls(), before + 1);
    const again = await alice.call("ask_payer", ask, answers);
    assert.deepEqual(again.result, done.result, "the same answer again is told the same");
    const otherwise = await alice.call("ask_payer", ask, { inputResponses: { [wait]: accept({ approve: false }) }, requestState });
    assert.deepEqual([otherwise.result.isError, /decided otherwise/.test(otherwise.result.content[0].text)], [true, true], otherwise.text);
    assert.equal(calls(), before + 1, "nothing was done twice");
  }
});

test("a person declines, closes the form, or says something that is no answer", async () => {
  const alice = client();
  const before = calls();
  for (const [response, said] of /** @type {[object, RegExp][]} */ ([
    [{ action: "decline" }, /So: .*denied/i],
    [accept({ approve: false, reason: "too much" }), /So: .*too much/i],
  ])) {
    const { result } = await alice.call("ask_payer", ask);
    const done = await alice.call("ask_payer", ask, { inputResponses: { [only(result)[0]]: response }, requestState: result.requestState });
    assert.match(done.result.content[0].text, said, done.text);
  }
  for (const response of [undefined, {}, accept({}), accept({ approve: "yes" }), { action: "maybe" }]) {
    const { result } = await alice.call("ask_payer", ask);
    const [wait, request] = only(result);
    const inputResponses = response === undefined ? { other: accept({ approve: true }) } : { [wait]: response };
    const again = await alice.call("ask_payer", ask, { inputResponses, requestState: result.requestState });
    assert.deepEqual([again.result.resultType, only(again.result)], ["input_required", [wait, request]], again.text);
  }
  const { result } = await alice.call("ask_payer", ask);
  const closed = await alice.call("ask_payer", ask, { inputResponses: { [only(result)[0]]: { action: "cancel" } }, requestState: result.requestState });
  const { outcome, pending, thread } = closed.result.structuredContent;
  assert.deepEqual([closed.result.resultType, outcome, pending[0].tool], ["complete", "parked", "pay"], closed.text);
  assert.equal((await alice.call("thread_get", { thread })).result.structuredContent.state, "parked");
  assert.equal(calls(), before, "nothing was approved");
});

test("questions are forms with their choices", async () => {
  const alice = client();
  const asked = async (/** @type {string} */ name) => {
    const { result } = await alice.call(name, ask);
    const [wait, { params }] = only(result);
    const answer = (/** @type {string} */ text) => alice.call(name, ask, { inputResponses: { [wait]: accept({ answer: text }) }, requestState: result.requestState });
    return { params, answer };
  };
  const choice = await asked("ask_asker");
  assert.match(choice.params.message, /Tea or coffee\?/);
  const chosen = await choice.answer("Coffee");
  assert.match(chosen.result.content[0].text, /So: .*Coffee/, chosen.text);
  assert.match((await choice.answer("Tea")).result.content[0].text, /decided otherwise/);
  const open = await asked("ask_open");
  assert.equal(open.params.requestedSchema.properties.answer.enum, undefined);
  assert.match((await open.answer("Sleep")).result.content[0].text, /So: .*Sleep/);
});

test("several things are asked at once or one after the other, each with a state of its own", async () => {
  const alice = client();
  const before = calls();
  let { result } = await alice.call("ask_two", ask);
  const states = new Set();
  for (let round = 0; result.resultType === "input_required"; round += 1) {
    assert.ok(round < 3);
    states.add(result.requestState);
    const [wait] = only(result);
    result = (await alice.call("ask_two", ask, { inputResponses: { [wait]: accept({ approve: true }) }, requestState: result.requestState })).result;
  }
  assert.equal(states.size, 2);
  assert.deepEqual([result.content[0].text, calls() - before], ["So: paid 1; paid 2", 2]);
});

test("a state is refused that is not this caller's and this call's", async () => {
  const alice = client();
  const before = calls();
  const { result } = await alice.call("ask_payer", ask);
  const [wait] = only(result);
  const { requestState } = result;
  const inputResponses = { [wait]: accept({ approve: true }) };
  const swapped = requestState.replace(/.$/, (/** @type {string} */ last) => (last === "A" ? "B" : "A"));
  const payload = JSON.parse(Buffer.from(requestState.split(".")[0], "base64url").toString());
  const forged = `${Buffer.from(JSON.stringify({ ...payload, until: payload.until + 1 })).toString("base64url")}.${requestState.split(".")[1]}`;
  const cases = /** @type {[string, Mcp, string, object, any][]} */ ([
    ["another owner", client(forms, "key-of-bob"), "ask_payer", ask, requestState],
    ["an admin", client(forms, "key-of-all"), "ask_payer", ask, requestState],
    ["another agent", alice, "ask_two", ask, requestState],
    ["other arguments", alice, "ask_payer", { message: "something else" }, requestState],
    ["another signature", alice, "ask_payer", ask, swapped],
    ["a longer life", alice, "ask_payer", ask, forged],
    ["half of it", alice, "ask_payer", ask, requestState.slice(0, 20)],
    ["a number", alice, "ask_payer", ask, 7],
    ["none", alice, "ask_payer", ask, undefined],
  ]);
  for (const [what, by, name, args, state] of cases) {
    const answer = await by.call(name, args, { inputResponses, ...(state === undefined ? {} : { requestState: state }) });
    assert.equal(answer.error?.code, -32602, `${what}: ${answer.text}`);
  }
  assert.equal(calls(), before);
  const done = await alice.call("ask_payer", ask, { inputResponses, requestState });
  assert.equal(done.result.content[0].text, "So: paid 5", "it is as good as before");
});

test("clients without forms are told what waits, and answer with a tool", async () => {
  for (const by of [client({}), client({ elicitation: { url: {} } }), new Mcp(bobbin.server.base, { key: "key-of-alice", legacy: true })]) {
    const before = calls();
    const parked = await by.call("ask_payer", ask);
    const { thread, outcome, reason, pending } = parked.result.structuredContent;
    assert.deepEqual([outcome, reason, parked.result.isError], ["parked", "waiting_for_approval", false], parked.text);
    assert.deepEqual([pending.length, pending[0].kind, pending[0].tool, pending[0].args], [1, "approval", "pay", { amount: 5 }]);
    assert.match(parked.result.content[0].text, new RegExp(`${pending[0].id}.*\\n.*pay.*\\n.*thread_respond`));
    const seen = await by.call("thread_get", { thread });
    assert.deepEqual([seen.result.structuredContent.state, seen.result.structuredContent.pending], ["parked", pending]);
    const responses = [{ id: pending[0].id, decision: "approve" }];
    const foreign = new Mcp(bobbin.server.base, { key: "key-of-bob", legacy: true });
    assert.equal((await foreign.call("thread_respond", { thread, responses })).result.isError, true);
    const decided = await by.call("thread_respond", { thread, responses });
    assert.deepEqual(decided.result.structuredContent.decided, [{ id: pending[0].id, state: "decided", decision: "approve" }], decided.text);
    const again = await by.call("thread_respond", { thread, responses });
    assert.deepEqual(again.result.structuredContent, decided.result.structuredContent, "it may come twice");
    const otherwise = await by.call("thread_respond", { thread, responses: [{ id: pending[0].id, decision: "deny" }] });
    assert.equal(otherwise.result.isError, true, otherwise.text);
    const after = await by.call("thread_get", { thread, wait_ms: 20_000 });
    assert.deepEqual([after.result.structuredContent.state, after.result.structuredContent.reply], ["idle", "So: paid 5"], after.text);
    assert.equal(calls(), before + 1);
  }
});

/** @param {Mcp} by @param {string} taskId @param {string} status */
async function reached(by, taskId, status) {
  let task = /** @type {any} */ (undefined);
  await until(`the task is ${status}`, async () => {
    task = (await by.send("tasks/get", { taskId })).result;
    return task?.status === status;
  });
  return task;
}

test("a client that names the extension is given a task, and answers what it asks", async () => {
  const able = { ...forms, extensions: { [TASKS]: {} } };
  const alice = client(able);
  const before = calls();
  const { result } = await alice.call("ask_payer", ask);
  const { resultType, taskId, status, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = result;
  assert.deepEqual([resultType, status, ttlMs, result.task], ["task", "working", null, undefined], JSON.stringify(result));
  assert.ok(Date.parse(createdAt) <= Date.parse(lastUpdatedAt) && pollIntervalMs > 0);
  const asking = await reached(alice, taskId, "input_required");
  assert.equal(asking.resultType, "complete");
  const [wait, { params }] = only(asking);
  assert.match(params.message, /pay/);
  const acked = await alice.send("tasks/update", { taskId, inputResponses: { [wait]: accept({ approve: true }), unknown: accept({}) } });
  assert.deepEqual(Object.keys(acked.result).sort(), ["_meta", "resultType"], acked.text);
  const done = await reached(alice, taskId, "completed");
  assert.deepEqual([done.result.content[0].text, done.result.resultType, done.result.structuredContent.outcome, calls() - before], ["So: paid 5", "complete", "completed", 1]);
  assert.deepEqual((await alice.send("tasks/update", { taskId, inputResponses: { [wait]: accept({ approve: true }) } })).result.resultType, "complete");
  assert.equal((await alice.send("tasks/cancel", { taskId })).result.resultType, "complete", "it is over, and stays so");
  assert.equal((await alice.send("tasks/get", { taskId })).result.status, "completed");
  for (const [by, id] of /** @type {[Mcp, any][]} */ ([[client(able, "key-of-bob"), taskId], [alice, "task_unknown"], [alice, `${taskId}9`], [alice, 7]])) {
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const answer = await by.send(method, { taskId: id, inputResponses: {} }, { headers: { "mcp-name": String(id) } });
      assert.equal(answer.error?.code, -32602, `${method} ${id}: ${answer.text}`);
    }
  }
  for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
    const answer = await client().send(method, { taskId, inputResponses: {} });
    assert.deepEqual([answer.status, answer.error?.code, answer.error?.data], [400, -32021, { requiredCapabilities: { extensions: { [TASKS]: {} } } }], answer.text);
  }
});

test("a task is cancelled, and no other run with it", async () => {
  const alice = client({ extensions: { [TASKS]: {} } });
  const asked = hanging.model.asked.length;
  const first = (await alice.call("ask_hanging", { message: "one" })).result.taskId;
  await until("the model is asked", () => hanging.model.asked.length > asked);
  const headers = { "mcp-protocol-version": MODERN };
  assert.equal((await alice.send("tasks/get", { taskId: first }, { headers })).result.status, "working");
  assert.equal((await alice.send("tasks/cancel", { taskId: first })).result.resultType, "complete");
  const cancelled = await reached(alice, first, "cancelled");
  assert.ok(cancelled.statusMessage.length > 0);
  const parked = (await alice.call("ask_payer", ask)).result.taskId;
  await until("it waits", async () => /pay/.test((await alice.send("tasks/get", { taskId: parked })).result.statusMessage));
  assert.equal((await alice.send("tasks/get", { taskId: parked })).result.status, "working", "a client without forms cannot answer");
  await alice.send("tasks/cancel", { taskId: parked });
  await reached(alice, parked, "cancelled");
  assert.equal(payer.model.asked.length > 0, true);
});
