// Threads with keys that their creators choose: one thread for each key and owner, found by it everywhere, and a new
// one after the first is deleted.

import assert from "node:assert/strict";
import { Thread } from "./support/client.mjs";
import { say, use } from "./support/model.mjs";
import { gate, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";
const BOB = "key-of-bob";

const bobbin = suite({
  key: ADMIN,
  vars: {
    BOBBIN_DEV: "0",
    BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice,${BOB}=owner:bob`,
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
  },
});
const test = bobbin.test.bind(bobbin);
bobbin.agent("plain", ({ last }) => say(`re: ${last}`));
bobbin.agent("other", () => say("I am the other one"));
const door = gate();
/** @type {number} */
let worked = 0;
bobbin.tool("work", async () => {
  worked += 1;
  await door.passed;
  return "worked";
});
bobbin.agent(
  "working",
  ({ messages }) => (messages.at(-1)?.role === "tool" ? say("done") : use({ name: "work", args: {} })),
  { tools: ["work"] },
);

/** @param {string} as @param {object} body */
const create = (as, body) => bobbin.as(as).send("POST", "/threads", body);

/** Returns the thread of a key, addressed by the key. @param {string} as @param {string} key */
const keyed = (as, key) => new Thread(bobbin.as(as), `key:${encodeURIComponent(key)}`);

/** @param {import("./support/http.mjs").Answer} answer @param {number} status @param {string} code */
function refused(answer, status, code) {
  assert.deepEqual([answer.status, answer.json?.error?.code], [status, code], answer.text);
}

test("one key is one thread, however many ask for it at once", async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => create(ALICE, { agent_id: "plain", key: "chat-1" })));
  const made = answers.filter(({ status }) => status === 201);
  assert.equal(made.length, 1, answers.map(({ text }) => text).join("\n"));
  for (const { status, json } of answers) {
    assert.deepEqual(json, {
      threadId: made[0]?.json.threadId,
      agent_id: "plain",
      key: "chat-1",
      created: status === 201,
      message: json.message,
    });
  }
  refused(await create(ALICE, { agent_id: "other", key: "chat-1" }), 409, "key_conflict");
  refused(await create(ALICE, { key: "chat-1" }), 400, "missing_field");
  const without = await create(ALICE, { agent_id: "plain" });
  assert.deepEqual([without.status, Object.keys(without.json).sort()], [200, ["agent_id", "message", "threadId"]]);
});

test("every route takes the key, escaped or not, and the list finds it", async () => {
  const key = "chat/1 +%".replaceAll(" ", "_");
  const { threadId } = (await create(ALICE, { agent_id: "plain", key, tags: ["mine"] })).json;
  const thread = keyed(ALICE, key);
  assert.equal((await thread.ask("hello")).message.content, "re: hello");
  assert.deepEqual(await thread.lines(), await new Thread(bobbin.as(ALICE), threadId).lines());
  const facts = await thread.facts();
  assert.deepEqual([facts.id, facts.key, facts.tags], [threadId, key, ["mine"]]);
  assert.equal((await thread.send("PUT", "/fs/notes/a.txt", { any: 1 })).status, 201);
  assert.equal((await thread.send("GET", "/fs/notes/a.txt")).text, '{"any":1}');
  const events = await thread.events();
  await events.next("the snapshot", ({ event }) => event === "snapshot");
  events.close();
  const list = await bobbin.as(ALICE).threads({ key });
  assert.deepEqual(
    [list.total, list.hasMore, list.threads.map(({ id, key: named }) => [id, named])],
    [1, false, [[threadId, key]]],
  );
  assert.equal((await bobbin.as(ALICE).threads({ key: "nothing" })).total, 0);
  assert.equal((await bobbin.client.threads({ key, user_id: "alice" })).threads[0]?.id, threadId);
  assert.equal((await bobbin.client.threads({ key })).total, 0, "an admin's own keys are those of nobody");
});

test("a key belongs to its owner", async () => {
  const ids = new Set();
  for (const [as, body] of /** @type {[string, object][]} */ ([
    [ALICE, {}],
    [BOB, {}],
    [ADMIN, {}],
    [ADMIN, { user_id: "carol" }],
  ])) {
    const answer = await create(as, { agent_id: "plain", key: "same", ...body });
    assert.equal(answer.status, 201, answer.text);
    ids.add(answer.json.threadId);
  }
  assert.equal(ids.size, 4);
  const alices = (await create(ADMIN, { agent_id: "plain", key: "same", user_id: "alice" })).json;
  assert.deepEqual([alices.created, alices.threadId], [false, (await keyed(ALICE, "same").facts()).id]);
  refused(await create(BOB, { agent_id: "plain", key: "same", user_id: "alice" }), 403, "forbidden");
  refused(await bobbin.as(BOB).send("GET", `/threads/${alices.threadId}`), 404, "thread_not_found");
  refused(await keyed(BOB, "chat-1").send("GET"), 404, "thread_not_found");
});

test("what is no key is refused", async () => {
  for (const key of ["", " ", "a b", "a\u0000b", "a\u200bb", "x".repeat(256)]) {
    const answer = await create(ALICE, { agent_id: "plain", key });
    refused(answer, 400, "invalid_field");
    assert.equal(answer.json.error.field, "key", JSON.stringify(key));
    refused(await keyed(ALICE, key).send("GET"), 404, "thread_not_found");
  }
  refused(await create(ALICE, { agent_id: "plain", key: 7 }), 400, "invalid_field");
  refused(await bobbin.as(ALICE).send("GET", "/threads?key="), 400, "invalid_field");
  assert.equal((await create(ALICE, { agent_id: "plain", key: "ü".repeat(255) })).status, 201);
});

test("after its deletion the key is free, and nothing of the first thread is in the second", async () => {
  await create(ALICE, { agent_id: "working", key: "again", tags: ["first"] });
  const thread = keyed(ALICE, "again");
  await thread.send("POST", "/kv", { key: "k", value: 1 });
  await thread.accepted("work");
  await until("the tool runs", () => worked === 1);
  const [first] = await thread.messages();
  const events = await thread.events();
  const { id } = await thread.facts();
  const mint = () => bobbin.as(ALICE).send("POST", "/tokens", { scope: `thread:${id}` });
  const token = (await mint()).json.token;
  assert.equal((await bobbin.as(token).send("GET", `/threads/${id}`)).status, 200);
  assert.equal((await thread.send("DELETE")).status, 200);
  refused(await thread.send("GET"), 404, "thread_not_found");
  assert.equal((await bobbin.as(ALICE).threads({ key: "again" })).total, 0);

  const answer = await create(ALICE, { agent_id: "other", key: "again" });
  assert.deepEqual([answer.status, answer.json.threadId], [201, id]);
  door.open();
  assert.equal((await thread.ask("hello")).message.content, "I am the other one");
  assert.deepEqual(await thread.lines(), [
    ["user", "hello"],
    ["assistant", "I am the other one"],
  ]);
  refused(await thread.send("GET", `/messages/${first.id}`), 404, "message_not_found");
  assert.deepEqual((await thread.facts()).tags, []);
  assert.equal((await thread.send("GET", "/kv")).json.total, 0);
  assert.equal((await bobbin.as(ALICE).threads({ key: "again" })).threads[0]?.agent_id, "other");
  refused(await bobbin.as(token).send("GET", `/threads/${id}`), 404, "thread_not_found");
  assert.equal((await bobbin.as((await mint()).json.token).send("GET", `/threads/${id}`)).status, 200);
  assert.equal((await thread.diagnostics()).life, 2);
  events.close();
});

test("a thread of a key survives a kill, and its key stays taken", async () => {
  const { threadId } = (await create(ALICE, { agent_id: "plain", key: "killed" })).json;
  await keyed(ALICE, "killed").ask("hello");
  await bobbin.server.crash();
  const answer = await create(ALICE, { agent_id: "plain", key: "killed" });
  assert.deepEqual([answer.status, answer.json.threadId, answer.json.created], [200, threadId, false]);
  assert.equal((await keyed(ALICE, "killed").lines()).length, 2);
});
