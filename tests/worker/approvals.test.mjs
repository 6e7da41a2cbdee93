// What people are asked, over HTTP: who may decide, by keys, tokens and links; decisions through kills; and an inbox over all
// threads. The server of tools counts the calls.
//
// BOBBIN_APPROVAL_KILLS says how many threads are killed through instead of 12, or of 4 in a sample (docs/testing.md).

import assert from "node:assert/strict";
import { say, textOf, use } from "./support/model.mjs";
import { chance, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";
const KILLS = Number(process.env.BOBBIN_APPROVAL_KILLS ?? (process.env.BOBBIN_SAMPLE === undefined ? 12 : 4));

const bobbin = suite({
  key: ADMIN,
  vars: { BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice`, BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef" },
});
const test = bobbin.test.bind(bobbin);

const args = { type: "object", properties: { amount: { type: "number" }, to: { type: "string" } }, required: ["amount", "to"] };
const pay = bobbin.tool("pay", ({ args }) => `paid ${args.amount} to ${args.to}`, {
  args,
  approval: { mode: "when", when: { properties: { amount: { exclusiveMinimum: 100 } } }, title: "Pay {{args.amount}} to {{args.to}}", edit: ["amount"] },
});
const remind = bobbin.tool("remind", () => "reminded", { approval: { mode: "always", by: "thread" } });

/** Does what the message says as JSON: calls, and then what came of them. */
const clerk = (/** @type {any} */ { messages }) => {
  const last = messages.at(-1);
  if (last.role === "tool") return say(`so: ${textOf(last)}`);
  return use(...JSON.parse(textOf(last)));
};
const cashier = bobbin.agent("cashier", clerk, { tools: ["pay", "remind", "ask_user"], prompt: { parallelToolCalls: true } });

const paying = (/** @type {number} */ amount) => JSON.stringify([{ name: "pay", args: { amount, to: "Ann" } }]);

/** The open waits of a thread, once there are some. @param {Thread} thread @returns {Promise<any[]>} */
const asked = (thread) =>
  until("somebody is asked", async () => {
    const { waits } = (await thread.send("GET", "/waits")).json;
    return waits.length > 0 ? waits : undefined;
  });

/** @param {Thread} thread */
const calls = (thread) => [...pay.received, ...remind.received].filter(({ body }) => body.threadId === thread.id);

/** @param {import("./support/http.mjs").Answer} answer @param {number} status @param {string} code */
function refused(answer, status, code) {
  assert.deepEqual([answer.status, answer.json?.error?.code], [status, code], answer.text);
}

test("a call that needs none is not asked about; one that does waits, and runs as it was approved", async () => {
  const thread = await bobbin.client.thread(cashier.name);
  assert.equal((await thread.ask(paying(50))).message.content, "so: paid 50 to Ann");
  assert.equal((await thread.ask(paying(120))).outcome, "parked");
  const [wait] = await asked(thread);
  assert.deepEqual([wait.kind, wait.title, wait.call.args], ["approval", "Pay 120 to Ann", { amount: 120, to: "Ann" }]);
  assert.equal(calls(thread).length, 1, "nothing has run before the decision");
  const socket = await thread.stream();
  const snapshot = await socket.next("the snapshot", ({ type }) => type === "snapshot");
  assert.deepEqual(snapshot.waits.map((/** @type {any} */ { id }) => id), [wait.id]);
  refused(await thread.send("POST", `/waits/${wait.id}`, { decision: "approve", args: { to: "Eve" } }), 422, "invalid_args");
  refused(await thread.send("POST", `/waits/${wait.id}`, { decision: "maybe" }), 400, "invalid_field");
  refused(await thread.send("POST", `/waits/${wait.id}`, { decision: "approve", text: "x" }), 400, "invalid_field");
  refused(await thread.send("POST", "/waits/w_0_1", { decision: "approve" }), 404, "not_found");
  const answer = await thread.send("POST", `/waits/${wait.id}`, { decision: "approve", args: { amount: 80 }, actor: "Bea" });
  assert.deepEqual([answer.status, answer.json.wait.state, answer.json.wait.decidedBy.actor], [200, "decided", "Bea"], answer.text);
  const closed = await socket.next("wait_closed", ({ type }) => type === "wait_closed");
  assert.deepEqual([closed.id, closed.decision], [wait.id, "approve"]);
  await thread.idle();
  const messages = await thread.messages();
  assert.equal(textOf(messages.at(-2)), '[Approved with changes: {"amount":80}]\npaid 80 to Ann');
  assert.deepEqual(messages.at(-2).metadata.approval.by, "Bea");
  assert.deepEqual(calls(thread).at(-1)?.body.args, { amount: 80, to: "Ann" });
  assert.equal(calls(thread).at(-1)?.body.approved, true);
  const logged = (await thread.send("GET", "/logs?order=asc&limit=100")).json.logs.filter((/** @type {any} */ row) => row.type === "approval");
  assert.equal(logged.length, 1, JSON.stringify(logged));
  socket.close();
});

test("two who decide at once: one does, the other is told what was decided, and the call runs once", async () => {
  const thread = await bobbin.client.thread(cashier.name);
  await thread.accepted(paying(500));
  const [wait] = await asked(thread);
  const decide = () => thread.send("POST", `/waits/${wait.id}`, { decision: "approve" });
  const answers = await Promise.all([decide(), decide(), decide()]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409]);
  assert.equal(answers.find(({ status }) => status === 409)?.json.error.details.wait.decision, "approve");
  await thread.idle();
  assert.equal(calls(thread).length, 1);
  const headers = { "idempotency-key": "again" };
  await thread.accepted(paying(600));
  const [second] = await asked(thread);
  const first = await thread.send("POST", `/waits/${second.id}`, { decision: "deny" }, { headers });
  const same = await thread.send("POST", `/waits/${second.id}`, { decision: "deny" }, { headers });
  assert.deepEqual([first.status, same.status, same.json.wait.decision], [200, 200, "deny"]);
  await thread.idle();
  assert.equal(calls(thread).length, 1, "what is denied never runs");
});

test("who may decide: keys, tokens, and links for one wait", async () => {
  const admin = bobbin.client;
  const thread = await bobbin.as(ALICE).thread(cashier.name);
  await thread.accepted(JSON.stringify([{ name: "pay", args: { amount: 900, to: "Ann" } }, { name: "remind", args: {} }]));
  const waits = await asked(thread);
  const [reminding, paying] = waits;
  assert.deepEqual(waits.map((wait) => wait.call.tool), ["remind", "pay"]);
  assert.equal(reminding.batch, paying.batch);
  /** @param {string} scope @param {object} [more] */
  const token = async (scope, more = {}) => (await bobbin.as(ALICE).send("POST", "/tokens", { scope, ...more })).json.token;
  const page = bobbin.as(await token(`thread:${thread.id}`));
  refused(await page.send("POST", `/threads/${thread.id}/waits/${paying.id}`, { decision: "approve" }), 403, "forbidden");
  const link = await token(`wait:${thread.id}/${paying.id}`, { ttl: 604_800 });
  const bearer = bobbin.as(link);
  assert.equal((await bearer.send("GET", `/threads/${thread.id}/waits/${paying.id}`)).json.wait.id, paying.id);
  for (const path of ["", "/messages", "/waits", `/waits/${reminding.id}`]) refused(await bearer.send("GET", `/threads/${thread.id}${path}`), 404, "thread_not_found");
  refused(await bearer.send("POST", `/threads/${thread.id}/waits/${reminding.id}`, { decision: "deny" }), 404, "thread_not_found");
  refused(await bearer.send("GET", "/agents"), 403, "forbidden");
  refused(await bearer.send("POST", "/tokens", { scope: "admin" }), 403, "forbidden");
  refused(await bobbin.as(ALICE).send("POST", "/tokens", { scope: `thread:${thread.id}`, ttl: 604_800 }), 400, "invalid_field");
  const nobody = bobbin.as(undefined);
  refused(await nobody.send("POST", "/resume", { token: `${link}x`, decision: "approve" }), 400, "invalid_token");
  refused(await nobody.send("POST", "/resume", { token: await token(`thread:${thread.id}`), decision: "approve" }), 400, "invalid_token");
  refused(await nobody.send("POST", "/resume", { decision: "approve" }), 400, "missing_field");
  const inbox = async (/** @type {string} */ query) => (await admin.send("GET", `/waits?user_id=alice${query}`)).json.waits;
  await until("the inbox has both", async () => (await inbox("")).length === 2);
  assert.deepEqual((await inbox("&limit=1")).length, 1);
  assert.deepEqual((await inbox("&kind=question")).length, 0);
  refused(await bobbin.as(ALICE).send("GET", "/waits?user_id=bob"), 403, "forbidden");
  assert.equal((await page.send("POST", `/threads/${thread.id}/waits/${reminding.id}`, { decision: "approve" })).status, 200);
  const resumed = await nobody.send("POST", "/resume", { token: link, decision: "approve", actor: "Ann" });
  assert.deepEqual([resumed.status, resumed.json.wait.decidedBy.actor], [200, "Ann"], resumed.text);
  await thread.idle();
  assert.deepEqual(calls(thread).map(({ body }) => body.name), ["pay", "remind"]);
  refused(await nobody.send("POST", "/resume", { token: link, decision: "deny" }), 409, "conflict");
  await until("the inbox is empty", async () => (await inbox("")).length === 0);
});

test("a parked run has no alarm but its end, and a restart changes nothing", async () => {
  const thread = await bobbin.client.thread(cashier.name);
  await thread.accepted(JSON.stringify([{ name: "ask_user", args: { question: "Whom?", choices: ["Ann", "Bob"] } }]));
  const [wait] = await asked(thread);
  assert.deepEqual([wait.kind, wait.title, wait.choices, wait.freeText], ["question", "Whom?", ["Ann", "Bob"], true]);
  await until("it rests", async () => {
    const { alarm, flow } = await thread.diagnostics();
    return alarm.at === wait.expiresAt && !alarm.handlerRunning && !flow.running;
  });
  await bobbin.server.crash();
  assert.deepEqual((await asked(thread)).map(({ id }) => id), [wait.id]);
  assert.equal((await thread.send("POST", `/waits/${wait.id}`, { decision: "answer", text: "Carl" })).status, 200);
  await thread.idle();
  assert.equal((await thread.messages()).at(-1).content, "so: Carl");
});

test("killed while people decide: each question once, each decision once, no call twice, nothing left parked", async () => {
  const random = chance("decisions");
  for (let kill = 0; kill < KILLS; kill++) {
    const thread = await bobbin.client.thread(cashier.name);
    const approves = kill % 3 !== 2;
    await thread.accepted(paying(1_000 + kill));
    await sleep(random.between(0, 60));
    if (kill % 2 === 0) await bobbin.server.crash();
    const [wait] = await asked(thread);
    const headers = { "idempotency-key": `decision-${kill}` };
    const decide = () => thread.send("POST", `/waits/${wait.id}`, { decision: approves ? "approve" : "deny" }, { headers });
    const first = decide().catch(() => undefined);
    await sleep(random.between(0, 40));
    await bobbin.server.crash();
    await first;
    // Whoever does not know whether it was taken says it again.
    const again = await decide();
    assert.equal(again.status, 200, again.text);
    await thread.idle(60_000);
    const { waits } = (await thread.send("GET", "/waits?state=all")).json;
    assert.deepEqual(waits.map((/** @type {any} */ { state, decision }) => [state, decision]), [["decided", approves ? "approve" : "deny"]]);
    const results = (await thread.messages()).filter(({ role }) => role === "tool").map(textOf);
    assert.equal(results.length, 1, JSON.stringify(results));
    assert.ok(calls(thread).length <= (approves ? 1 : 0), "no call twice, and none that was denied");
    if (!approves) assert.equal(results[0], "Denied.");
    else if (calls(thread).length === 0) assert.match(results[0] ?? "", /restarted while/);
  }
}, 300_000 + KILLS * 60_000);
