// Responses that follow an earlier one, as requests: each in one copy of the thread, even if the server is killed
// during it.

import assert from "node:assert/strict";
import { say } from "./support/model.mjs";
import { exchange } from "./support/http.mjs";
import { chance, sampled, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const KILLS = Number(process.env.BOBBIN_FOLLOWING_KILLS ?? sampled(4, 2));
const bobbin = suite({ key: "key-of-all", vars: { BOBBIN_API_KEYS: "key-of-all=admin,key-of-alice=owner:alice,key-of-bob=owner:bob" } });
const test = bobbin.test.bind(bobbin);
bobbin.agent("echo", ({ messages, last }) => say(`${messages.filter(({ role }) => role === "user").length}: ${last}`));
bobbin.agent("slow", ({ last }) => say(`re: ${last}`, { chunks: 10, everyMs: 300 }));

/** @param {object} body @param {Record<string, string>} [headers] */
const respond = (body, headers = {}) =>
  exchange(bobbin.server.base, "POST", "/v1/responses", {
    body: JSON.stringify({ model: "echo", ...body }),
    headers: { "content-type": "application/json", authorization: "Bearer key-of-alice", ...headers },
  });

/** Requests a response that must succeed. @param {object} body @param {Record<string, string>} [headers] */
async function response(body, headers) {
  const answer = await respond(body, headers);
  assert.equal(answer.status, 200, answer.text);
  return { ...answer.json, thread: answer.headers["x-bobbin-thread"], text: answer.json.output?.[0]?.content?.[0]?.text };
}

/** @param {string | undefined} thread */
const rows = async (thread) => (await bobbin.client.send("GET", `/threads/${thread}/messages`)).json.messages.map((/** @type {any} */ { content }) => content);

/** Returns Alice's threads. */
const threads = async () => (await bobbin.as("key-of-alice").send("GET", "/threads?limit=500")).json.threads.map((/** @type {any} */ { id }) => id);

test("branches that begin at once do not know of each other", async () => {
  const first = await response({ input: "one" });
  const branches = await Promise.all(["a", "b", "c"].map((input) => response({ input, previous_response_id: first.id })));
  assert.deepEqual(branches.map(({ text }) => text), ["2: a", "2: b", "2: c"]);
  assert.equal(new Set(branches.map(({ thread }) => thread)).size, 3);
  assert.equal(branches.filter(({ thread }) => thread === first.thread).length, 1, "one of them has the thread itself");
});

test("instructions of a branch are of that branch alone", async () => {
  const first = await response({ input: "one" });
  await response({ input: "two", previous_response_id: first.id });
  const branch = await response({ input: "other", previous_response_id: first.id, instructions: "Be brief." });
  const all = async (/** @type {string} */ thread) => (await bobbin.client.send("GET", `/threads/${thread}/messages?includeSilent=true`)).json.messages.map((/** @type {any} */ { role }) => role);
  assert.deepEqual(await all(branch.thread), ["user", "assistant", "system", "user", "assistant"]);
  assert.deepEqual(await all(first.thread), ["user", "assistant", "user", "assistant"]);
});

test("a request with a key has one copy; the same question without one has another", async () => {
  const first = await response({ input: "one" });
  await response({ input: "two", previous_response_id: first.id });
  const body = { input: "other", previous_response_id: first.id };
  const keyed = await Promise.all([1, 2, 3].map(() => response(body, { "idempotency-key": "branch" })));
  assert.equal(new Set(keyed.map(({ id }) => id)).size, 1, JSON.stringify(keyed));
  const retried = [];
  for (const count of ["0", "1", "2", "0"]) retried.push(await response(body, { "x-stainless-retry-count": count }));
  assert.equal(new Set(retried.slice(0, 3).map(({ id }) => id)).size, 1, "it says that it comes again");
  assert.notEqual(retried[3].id, retried[0].id);
  assert.notEqual(keyed[0].thread, retried[0].thread);
  assert.deepEqual(await rows(keyed[0].thread), ["one", "1: one", "other", "2: other"]);
});

test("a request with a key that has followed the newest response is not answered in a copy later", async () => {
  const first = await response({ input: "one" });
  const body = { input: "two", previous_response_id: first.id };
  const [once, again] = [await response(body, { "idempotency-key": "newest" }), await response(body, { "idempotency-key": "newest" })];
  assert.deepEqual([again.id, again.thread], [once.id, first.thread]);
});

test("what deletes itself has copies that do so", async () => {
  const first = await response({ input: "one", store: false });
  await response({ input: "two", previous_response_id: first.id });
  const branch = await response({ input: "other", previous_response_id: first.id, store: false });
  const facts = (await bobbin.client.send("GET", `/threads/${branch.thread}`)).json.thread;
  assert.deepEqual(facts.tags, ["ephemeral"]);
  assert.equal(facts.fork.threadId, first.thread);
});

test("what cannot be followed is refused by name", async () => {
  const refused = async (/** @type {object} */ body, /** @type {number} */ status, /** @type {string} */ code, as = "key-of-alice") => {
    const answer = await respond({ input: "x", ...body }, { authorization: `Bearer ${as}` });
    const { error } = answer.json;
    assert.deepEqual([answer.status, error.code, error.param], [status, code, "previous_response_id"], answer.text);
    return error.message;
  };
  // A response in progress, after which someone has sent another message.
  const going = await response({ model: "slow", input: "one", background: true });
  await response({ model: "slow", input: "two", background: true, previous_response_id: going.id });
  const message = await refused({ model: "slow", previous_response_id: going.id }, 409, "conflict");
  assert.match(message, /still being made/);
  const done = async () => (await exchange(bobbin.server.base, "GET", `/v1/responses/${going.id}`, { headers: { authorization: "Bearer key-of-alice" } })).json.status === "completed";
  await until("it is done", done, { withinMs: 30_000 });
  const late = await response({ model: "slow", input: "late", previous_response_id: going.id });
  assert.notEqual(late.thread, going.thread, "then it is followed");
  const first = await response({ input: "one" });
  await response({ input: "two", previous_response_id: first.id });
  await refused({ previous_response_id: first.id }, 404, "not_found", "key-of-bob");
  await refused({ previous_response_id: "resp_none" }, 404, "not_found");
  const missing = first.id.replace(/_\d+$/, "_99");
  await refused({ previous_response_id: missing }, 404, "not_found");
  await bobbin.client.send("DELETE", `/threads/${first.thread}`);
  await refused({ previous_response_id: first.id }, 404, "not_found");
});

test("a kill loses no branch and makes none twice", async () => {
  const random = chance("following");
  for (let n = 0; n < KILLS; n += 1) {
    const first = await response({ input: "one" });
    await response({ input: "two", previous_response_id: first.id });
    const before = await threads();
    const killed = sleep(random.between(0, 60)).then(() => bobbin.server.crash());
    let branch;
    for (let count = 0; branch === undefined; count += 1) {
      assert.ok(count < 300, "it is answered within a minute");
      const answer = await respond({ input: `other ${n}`, previous_response_id: first.id }, { "x-stainless-retry-count": `${count}` }).catch(() => undefined);
      if (answer?.status === 200) branch = answer;
      else if (answer) assert.ok(answer.status >= 500, answer.text);
      if (!branch) await sleep(200);
    }
    await killed;
    const made = (await threads()).filter((/** @type {string} */ id) => !before.includes(id));
    assert.deepEqual(made, [branch.headers["x-bobbin-thread"]], `kill ${n}`);
    const said = await rows(String(made[0]));
    assert.deepEqual(said, ["one", "1: one", `other ${n}`, `2: other ${n}`], `kill ${n}`);
    assert.deepEqual(await rows(first.thread), ["one", "1: one", "two", "2: two"], `kill ${n}`);
  }
});
