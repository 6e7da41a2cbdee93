// Copies of threads: what they begin with, and that they are whole also where the process is killed in the middle.

import assert from "node:assert/strict";
import { Thread } from "./support/client.mjs";
import { say } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";
const BOB = "key-of-bob";
const bobbin = suite({
  key: ADMIN,
  vars: { BOBBIN_DEV: "0", BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice,${BOB}=owner:bob` },
});
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", ({ last }) => say(`re: ${last}`));

/** @param {string} as @param {object} [body] */
async function created(as, body = {}) {
  const answer = await bobbin.as(as).send("POST", "/threads", { agent_id: "plain", ...body });
  assert.ok(answer.status < 300, answer.text);
  return new Thread(bobbin.as(as), answer.json.threadId);
}

/** @param {Thread} thread @param {object} body @param {Record<string, string>} [headers] */
const fork = (thread, body, headers = {}) => thread.send("POST", "/fork", body, { headers });

/** Writes a file. @param {Thread} thread @param {string} path @param {string} content */
async function put(thread, path, content) {
  const answer = await thread.send("PUT", `/fs/${path}`, undefined, { body: content, headers: { "content-type": "text/plain" } });
  assert.ok(answer.status < 300, answer.text);
}

/** Waits until it is copied. @param {Thread} thread */
const copied = (thread) => until("it is copied", async () => (await thread.send("GET", "")).json.thread.fork.state === "copied");

test("a copy has what was there, and goes its own way", async () => {
  const thread = await created(ALICE, { tags: ["a"] });
  await thread.ask("one");
  await thread.ask("two");
  assert.ok((await thread.send("POST", "/kv", { key: "v", value: { n: 1 } })).status < 300);
  await put(thread, "notes/a.txt", "alpha");
  const before = await thread.messages();
  const headers = { "idempotency-key": "copy" };
  const answer = await fork(thread, { up_to: before[1].id }, headers);
  assert.equal(answer.status, 201, answer.text);
  assert.deepEqual([answer.json.created, answer.json.fork.threadId, answer.json.fork.upTo], [true, thread.id, before[1].id]);
  const again = await fork(thread, { up_to: before[1].id }, headers);
  assert.deepEqual([again.status, again.json.threadId], [200, answer.json.threadId], again.text);
  const other = await fork(thread, { up_to: before[3].id }, headers);
  assert.deepEqual([other.status, other.json.error.code], [422, "idempotency_mismatch"], other.text);
  const copy = new Thread(bobbin.as(ALICE), answer.json.threadId);
  assert.equal((await copy.ask("three")).status, "ok");
  assert.deepEqual(
    (await copy.messages()).map(({ content }) => content),
    ["one", "re: one", "three", "re: three"],
  );
  assert.equal((await copy.send("GET", "/fs/notes/a.txt")).text, "alpha");
  assert.deepEqual((await copy.send("GET", "/kv?key=v")).json.value, { n: 1 });
  const facts = (await copy.send("GET", "")).json.thread;
  assert.deepEqual([facts.user_id, facts.tags, facts.fork.state], ["alice", ["a"], "copied"]);
  assert.deepEqual(await thread.messages(), before);
  const of = await fork(new Thread(bobbin.as(BOB), thread.id), {});
  assert.deepEqual([of.status, of.json.error.code], [404, "thread_not_found"], "nobody else's");
});

test("a kill in the middle of it leaves a copy that becomes whole", async () => {
  const thread = await created(ADMIN);
  await thread.ask("one");
  const large = "x".repeat(3_000_000);
  for (let n = 0; n < 20; n += 1) await put(thread, `f${n}`, n === 10 ? large : `file ${n}`);
  const answer = await fork(thread, { key: "killed" });
  assert.equal(answer.status, 201, answer.text);
  await bobbin.server.crash();
  const copy = new Thread(bobbin.as(ADMIN), answer.json.threadId);
  await copied(copy);
  assert.equal((await copy.send("GET", "/fs/f10")).text.length, large.length);
  assert.equal((await copy.send("GET", "/fs/f19")).text, "file 19");
  assert.deepEqual((await copy.messages()).map(({ content }) => content), ["one", "re: one"]);
});

test("a copy of a thread that is deleted meanwhile is whole or gone", async () => {
  const thread = await created(ADMIN);
  await thread.ask("one");
  for (let n = 0; n < 40; n += 1) await put(thread, `f${n}`, `file ${n}`);
  const answer = await fork(thread, {});
  assert.equal((await thread.send("DELETE", "")).status, 200);
  const copy = new Thread(bobbin.as(ADMIN), answer.json.threadId);
  let whole = false;
  await until("it is whole or gone", async () => {
    const seen = await copy.send("GET", "");
    whole = seen.json.thread?.fork.state === "copied";
    return whole || seen.status === 404;
  });
  if (whole) assert.equal((await copy.send("GET", "/fs?limit=100")).json.files.length, 40);
});
