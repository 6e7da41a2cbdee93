// Copies of threads: their contents, and that they are complete even if the process is killed during the copy.

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

/** Waits until the copy is complete. @param {Thread} thread */
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

/** Returns a message of another system. @param {number} at @param {string} role @param {object} [more] */
const far = (at, role, more = {}) => ({ id: `m_far_${at}`, role, content: `${role} ${at}`, ...more });
const CALLS = JSON.stringify([{ id: "c1", type: "function", function: { name: "look", arguments: "{}" } }]);
const FILE = { id: "a_1", type: "file", path: "/a.txt", name: "a.txt", mimeType: "text/plain", size: 1 };

test("what was said elsewhere is taken in as it was, and goes on here", async () => {
  const history = [
    far(2, "user", { created_at: 1_700_000_000_000_000, metadata: { mine: 1 }, attachments: [FILE] }),
    far(3, "assistant", { tool_calls: CALLS, metadata: { prompt: "plain" } }),
    far(4, "tool", { name: "look", tool_call_id: "c1", tool_status: "error" }),
    far(9, "assistant", { parent_id: "m_far_2" }),
    far(10, "system", { silent: true }),
  ];
  const thread = await created(ALICE, { copied_from: "far", history });
  const messages = await thread.messages({ includeSilent: true });
  const shown = messages.map(({ id, role, tool_calls, tool_call_id, tool_status, silent }) => [id.split("_").at(-1), role, tool_calls, tool_call_id, tool_status, silent]);
  assert.deepEqual(shown, [
    ["2", "user", null, null, null, false],
    ["3", "assistant", CALLS, null, null, false],
    ["4", "tool", null, "c1", "error", false],
    ["9", "assistant", null, null, null, false],
    ["10", "system", null, null, null, true],
  ]);
  assert.deepEqual([messages[0].created_at, messages[0].metadata, messages[0].attachments], [1_700_000_000_000_000, { mine: 1 }, [FILE]]);
  assert.equal(messages[3].parent_id, messages[0].id);
  assert.deepEqual((await thread.facts()).fork, { threadId: "far", upTo: "m_far_10", state: "copied", error: null });
  assert.deepEqual((await thread.send("GET", "/runs")).json.runs, [], "nothing was started");
  const { message } = await thread.ask("go on");
  assert.equal(message.content, "re: go on");
  assert.ok(Number(message.id.split("_").at(-1)) > 10);
  const copy = new Thread(bobbin.as(ALICE), (await fork(thread, {})).json.threadId);
  assert.equal((await copy.messages({ includeSilent: true })).length, 7, "a copy of it is one like any other");
});

/** @type {[string, object[], string][]} */
const REFUSED = [
  ["no number", [far(1, "user", { id: "x" })], "history[0].id"],
  ["numbers that do not grow", [far(2, "user"), far(2, "user")], "history[1].id"],
  ["a call without a result", [far(1, "user"), far(2, "assistant", { tool_calls: CALLS })], "history[1].tool_calls"],
  ["two results of a call", [far(1, "assistant", { tool_calls: CALLS }), far(2, "tool", { tool_call_id: "c1" }), far(3, "tool", { tool_call_id: "c1" })], "history[2].tool_call_id"],
  ["a result of no call", [far(1, "tool", { tool_call_id: "c1" })], "history[0].tool_call_id"],
  ["calls that are none", [far(1, "assistant", { tool_calls: "{}" })], "history[0].tool_calls"],
  ["calls of a result", [far(1, "assistant", { tool_calls: CALLS }), far(2, "tool", { tool_call_id: "c1", tool_calls: CALLS })], "history[1].tool_calls"],
  ["a status of what is no result", [far(1, "user", { tool_status: "success" })], "history[0].tool_status"],
  ["a file at no path", [far(1, "user", { attachments: [{ ...FILE, path: "/../x" }] })], "history[0].attachments"],
  ["a field of something else", [far(1, "user", { subagent_id: "s" })], "history[0].subagent_id"],
];

for (const [what, history, field] of REFUSED) {
  test(`of elsewhere, ${what} is refused, and nothing is made`, async () => {
    const answer = await bobbin.as(ALICE).send("POST", "/threads", { agent_id: "plain", key: "refused", copied_from: "far", history });
    assert.deepEqual([answer.status, answer.json.error.code, answer.json.error.field], [400, "invalid_field", field], answer.text);
    assert.equal((await bobbin.as(ALICE).send("GET", "/threads/key:refused")).status, 404);
  });
}

test("whole messages need the thread that they are of, and have a bound", async () => {
  const without = await bobbin.as(ALICE).send("POST", "/threads", { agent_id: "plain", history: [far(1, "user")] });
  assert.deepEqual([without.status, without.json.error.code], [400, "invalid_field"], without.text);
  // Each message takes a row, however short it is.
  const many = Array.from({ length: 40_000 }, (_, at) => far(at + 1, "user", { content: "x" }));
  const much = await bobbin.as(ALICE).send("POST", "/threads", { agent_id: "plain", copied_from: "far", history: many });
  assert.deepEqual([much.status, much.json.error.code], [413, "too_large"], much.text.slice(0, 200));
});
