// Approvals over HTTP: permission by keys, tokens and links; restarts and deployments; and the inbox of all threads.
// The tool server counts the calls.

import assert from "node:assert/strict";
import { say, textOf, use } from "./support/model.mjs";
import { sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";

const bobbin = suite({
  key: ADMIN,
  vars: { BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice`, BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef" },
});
const test = bobbin.test.bind(bobbin);

const args = { type: "object", properties: { amount: { type: "number" }, to: { type: "string" } }, required: ["amount", "to"] };
const pay = bobbin.tool("pay", ({ args }) => `paid ${args.amount} to ${args.to}`, {
  args,
  approval: { mode: "when", when: { properties: { amount: { exclusiveMinimum: 100 } } }, title: "Pay {{args.amount}} to {{args.to}}", reason: "{{args.amount}} is more than 100.", edit: ["amount"] },
});
const transferring = { args: { type: "object", properties: { amount: { type: "number" }, iban: { type: "string" } } }, approval: "always" };
const transfer = bobbin.tool("transfer", () => "transferred", transferring);
const elsewhere = bobbin.tools.tool("elsewhere", () => "transferred elsewhere");
const remind = bobbin.tool("remind", () => "reminded", { approval: { mode: "always", by: "thread" } });
const wipe = bobbin.tool("wipe", () => "wiped", { approval: { mode: "always", by: "admin" } });

/** Makes the calls that the message lists as JSON, then repeats the result. */
const clerk = (/** @type {any} */ { messages }) => {
  const last = messages.at(-1);
  if (last.role === "tool") return say(`so: ${textOf(last)}`);
  return use(...JSON.parse(textOf(last)));
};
const cashier = bobbin.agent("cashier", clerk, { tools: ["pay", "transfer", "remind", "wipe", "ask_user"], prompt: { parallelToolCalls: true } });

const paying = (/** @type {number} */ amount) => JSON.stringify([{ name: "pay", args: { amount, to: "Ann" } }]);

/** Waits until the thread has open waits, and returns them. @param {Thread} thread @returns {Promise<any[]>} */
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
  assert.deepEqual([wait.kind, wait.title, wait.reason, wait.call.args], ["approval", "Pay 120 to Ann", "120 is more than 100.", { amount: 120, to: "Ann" }]);
  assert.equal(calls(thread).length, 1, "nothing has run before the decision");
  const socket = await thread.stream();
  const snapshot = await socket.next("the snapshot", ({ type }) => type === "snapshot");
  assert.deepEqual(snapshot.waits.map((/** @type {any} */ { id }) => id), [wait.id]);
  refused(await thread.send("POST", `/waits/${wait.id}`, { decision: "approve", args: { to: "Eve" } }), 422, "invalid_args");
  refused(await thread.send("POST", `/waits/${wait.id}`, { decision: "maybe" }), 400, "invalid_field");
  refused(await thread.send("POST", `/waits/${wait.id}`, { decision: "approve", text: "x" }), 400, "invalid_field");
  refused(await thread.send("POST", `/waits/${wait.id}`, { decision: "approve", actor: "x".repeat(201) }), 400, "invalid_field");
  refused(await thread.send("POST", `/waits/${wait.id}`, { decision: "deny", reason: "x".repeat(65_537) }), 413, "too_large");
  refused(await thread.send("POST", "/waits/w_0_1", { decision: "approve" }), 404, "not_found");
  const [{ id: still }] = await asked(thread);
  assert.equal(still, wait.id, "nothing happened");
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

test("decisions about several calls are taken all or none", async () => {
  const thread = await bobbin.client.thread(cashier.name);
  await thread.accepted(JSON.stringify([201, 202, 203].map((amount) => ({ name: "pay", args: { amount, to: "Ann" } }))));
  const [third, second, first] = await asked(thread);
  const unknown = first.id.replace(/_\d+$/, "_99");
  const all = (/** @type {string[]} */ ...ids) => thread.send("POST", "/waits", { decisions: ids.map((id) => ({ id, decision: "approve" })) });
  const partly = await all(first.id, second.id, unknown);
  refused(partly, 409, "conflict");
  assert.deepEqual(partly.json.error.details.waits.map((/** @type {any} */ { id, state }) => [id, state]), [[first.id, "open"], [second.id, "open"]]);
  refused(await all(first.id, "w_00000000_1"), 409, "conflict");
  refused(await all(first.id, first.id), 400, "invalid_field");
  refused(await all(), 400, "invalid_field");
  refused(await all(...Array.from({ length: 101 }, (_, n) => first.id.replace(/_\d+$/, `_${n + 1}`))), 400, "invalid_field");
  const stops = { id: first.id, decision: "deny", stop: true };
  const early = await thread.send("POST", "/waits", { decisions: [stops, { id: second.id, decision: "approve" }] });
  refused(early, 400, "invalid_field");
  assert.match(early.text, /must be the last one/);
  assert.equal((await asked(thread)).length, 3, "all are open");
  assert.equal(calls(thread).length, 0);
  const answer = await all(third.id, first.id, second.id);
  assert.deepEqual([answer.status, answer.json.waits.map((/** @type {any} */ { state }) => state)], [200, ["decided", "decided", "decided"]], answer.text);
  const again = await all(first.id, second.id);
  refused(again, 409, "conflict");
  assert.deepEqual(again.json.error.details.waits.map((/** @type {any} */ { decision }) => decision), ["approve", "approve"]);
  await thread.idle();
  assert.deepEqual(calls(thread).map(({ body }) => body.args.amount), [201, 202, 203], "in their order");
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

test("what admins decide is decided by no link of an owner's", async () => {
  const thread = await bobbin.as(ALICE).thread(cashier.name);
  await thread.accepted(JSON.stringify([{ name: "wipe", args: {} }]));
  const [wait] = await asked(thread);
  assert.equal(wait.by, "admin");
  const path = `/threads/${thread.id}/waits/${wait.id}`;
  const scope = `wait:${thread.id}/${wait.id}`;
  refused(await bobbin.as(ALICE).send("POST", path, { decision: "approve" }), 403, "forbidden");
  refused(await bobbin.as(ALICE).send("POST", "/tokens", { scope }), 403, "forbidden");
  refused(await bobbin.as(ALICE).send("POST", "/tokens", { scope: scope.replace(/_\d+$/, "_99") }), 404, "not_found");
  const other = await bobbin.client.thread(cashier.name);
  refused(await bobbin.as(ALICE).send("POST", "/tokens", { scope: `wait:${other.id}/w_${other.id.slice(0, 8)}_1` }), 404, "thread_not_found");
  // The outcome of the run does not contain a token, either.
  const told = async (/** @type {string} */ key) => (await bobbin.as(key).send("GET", `/threads/${thread.id}/runs/r_1`)).json;
  assert.deepEqual([(await told(ALICE)).status, (await told(ALICE)).token], ["paused", null]);
  assert.ok((await told(ADMIN)).token);
  assert.equal(wipe.received.length, 0);
  const minted = await bobbin.client.send("POST", "/tokens", { scope, ttl: 604_800 });
  assert.equal((await bobbin.as(undefined).send("POST", "/resume", { token: minted.json.token, decision: "approve" })).status, 200);
  await thread.idle();
  assert.equal(wipe.received.length, 1);
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

test("a link decides when the server was stopped between; one that is forged, has ended or is another wait's does not", async () => {
  const thread = await bobbin.as(ALICE).thread(cashier.name);
  await thread.accepted(JSON.stringify([{ name: "pay", args: { amount: 700, to: "Ann" } }, { name: "pay", args: { amount: 800, to: "Bob" } }]));
  const [second, first] = await asked(thread);
  /** @param {any} wait @param {number} [ttl] */
  const link = async (wait, ttl = 604_800) => {
    const minted = await bobbin.as(ALICE).send("POST", "/tokens", { scope: `wait:${thread.id}/${wait.id}`, ttl });
    assert.equal(minted.status, 200, minted.text);
    return minted.json.token;
  };
  const [ours, other, short] = [await link(first), await link(second), await link(first, 1)];
  await bobbin.server.down();
  await sleep(1_000);
  await bobbin.server.up();
  const nobody = bobbin.as(undefined);
  const path = `/threads/${thread.id}/waits/${first.id}`;
  const [payload, signature] = ours.split(".");
  const forged = [`${payload}.${signature.slice(0, -2)}AA`, `${payload}.${other.split(".")[1]}`, `${other.split(".")[0]}.${signature}`, "bbt_", "", ALICE];
  for (const token of [short, ...forged]) {
    refused(await nobody.send("POST", "/resume", { token, decision: "approve" }), 400, "invalid_token");
    if (token.startsWith("bbt_")) refused(await bobbin.as(token).send("GET", path), 401, "unauthenticated");
  }
  refused(await bobbin.as(other).send("GET", path), 404, "thread_not_found");
  refused(await bobbin.as(other).send("POST", path, { decision: "approve" }), 404, "thread_not_found");
  assert.deepEqual((await asked(thread)).map(({ id }) => id), [second.id, first.id], "nothing was decided");
  const decided = await nobody.send("POST", "/resume", { token: ours, decision: "approve" });
  assert.deepEqual([decided.status, decided.json.wait.id, decided.json.wait.decidedBy.scope], [200, first.id, `wait:${thread.id}/${first.id}`], decided.text);
  // The first call runs, and the run parks again for the second.
  await until("the first has run", () => calls(thread).length === 1);
  await until("it is parked again", async () => (await thread.diagnostics()).state === "parked");
  assert.equal((await nobody.send("POST", "/resume", { token: other, decision: "deny" })).status, 200);
  await thread.idle();
  assert.deepEqual(calls(thread).map(({ body }) => body.args), [{ amount: 700, to: "Ann" }]);
  assert.equal((await thread.messages()).at(-1).content, "so: Denied.");
  assert.equal((await thread.logged("recovery")).length, 0, "nothing was taken up for nothing");
});

test("a deployment that changes the tool between question and answer: it is asked anew, and what was shown is what runs", async () => {
  const thread = await bobbin.client.thread(cashier.name);
  await thread.accepted(JSON.stringify([{ name: "transfer", args: { amount: 5, iban: "CH93 0076 2011 6238 5295 7" } }]));
  const [old] = await asked(thread);
  const before = { ...bobbin.tools.definition("transfer", transferring) };
  bobbin.folder.write({ tools: { transfer: { ...before, run: { http: { url: `${bobbin.tools.base}/elsewhere` } } } } });
  await bobbin.server.crash();
  assert.equal((await thread.send("POST", `/waits/${old.id}`, { decision: "approve" })).status, 200);
  const [anew] = await until("it is asked anew", async () => (await asked(thread)).filter(({ id }) => id !== old.id));
  assert.equal((await thread.send("GET", `/waits/${old.id}`)).json.wait.state, "void");
  assert.notEqual(anew.call.digest, old.call.digest);
  assert.deepEqual([transfer.received.length, elsewhere.received.length], [0, 0]);
  assert.equal((await thread.send("POST", `/waits/${anew.id}`, { decision: "approve" })).status, 200);
  await thread.idle();
  assert.deepEqual([transfer.received.length, elsewhere.received.length], [0, 1]);
  assert.equal(JSON.stringify(elsewhere.received[0]?.body.args), JSON.stringify(anew.call.args), "byte for byte");
});
