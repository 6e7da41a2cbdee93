// Memories of owners and of the instance over HTTP: access, searches and saves by threads, a restart, and turns when a
// memory is full or has no owner.

import assert from "node:assert/strict";
import { say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const ALICE = "key-of-alice";
const BOB = "key-of-bob";
const ADMIN = "key-of-the-admin";
const CANARY = "the heliotrope pangolin sleeps in drawer nine";

const bobbin = suite({ key: ADMIN, vars: { BOBBIN_DEV: "0", BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice,${BOB}=owner:bob` } });
const test = bobbin.test.bind(bobbin);

bobbin.definitions.push(() => {
  bobbin.folder.json("models/embed.json", { kind: "embedding", provider: "demo", model: "demo" });
  bobbin.folder.json("memories/customer.json", { description: "What is known of a customer.", scope: "owner", embedding: "embed" });
  bobbin.folder.json("memories/rules.json", { description: "What holds for everybody.", scope: "instance" });
  bobbin.folder.json("memories/small.json", { description: "Two notes.", scope: "owner", limits: { chunks: 2 } });
  bobbin.folder.json("memories/own.json", { description: "A thread's own." });
});
/** @param {import("./support/model.mjs").Asked} asked */
const context = ({ messages }) => messages.map(textOf).find((text) => text.startsWith("Relevant context from memory."));
const reader = bobbin.agent("reader", (asked) => say(context(asked) === undefined ? "Nobody knows." : "It says so [m1]."), {
  prompt: { memory: [{ name: "customer", inject: true }] },
});
bobbin.agent("ruled", (asked) => say(context(asked) === undefined ? "Nobody knows." : "It says so [m1]."), {
  prompt: { memory: [{ name: "rules", inject: true }] },
});
/** Saves the message that it receives. @param {string} memory */
const writer = (memory) =>
  bobbin.agent(
    `writer_${memory}`,
    ({ messages }) => {
      const last = messages.at(-1);
      if (last?.role === "tool") return say(textOf(last));
      const [tool = "", ...rest] = textOf(/** @type {any} */ (last)).split(" ");
      return use({ name: tool, args: JSON.parse(rest.join(" ")) });
    },
    { prompt: { memory: [{ name: memory, tools: ["search", "save", "update", "delete"] }] } },
  );
writer("customer");
writer("small");

/** @param {string} key @param {string} path @param {object} body */
async function add(key, path, body) {
  const answer = await bobbin.as(key).send("POST", `/memory/${path}`, body);
  assert.equal(answer.status, 202, answer.text);
  return answer.json.document;
}

/** @param {string} key @param {string} path */
const ready = (key, path) =>
  until(
    `${path} is ready`,
    async () => {
      const { json } = await bobbin.as(key).send("GET", `/memory/${path}`);
      return json.state === "ready" && json;
    },
    { withinMs: 60_000, everyMs: 100 },
  );

/** @param {string} key @param {string} name @param {string} query @returns {Promise<string[]>} */
async function search(key, name, query) {
  const answer = await bobbin.as(key).send("POST", `/memory/${name}`, { query });
  assert.equal(answer.status, 200, answer.text);
  return answer.json.results.map((/** @type {{ text: string }} */ hit) => hit.text);
}

test("what is an owner's is in nothing of another owner, also after a restart", async () => {
  await add(ALICE, "customer/documents", { key: "secret", title: "Drawers", text: `In this house ${CANARY}.` });
  await ready(ALICE, "customer");
  const question = "Where does the heliotrope pangolin sleep?";
  const told = [];
  for (const round of [1, 2]) {
    assert.deepEqual(await search(BOB, "customer/search", question), []);
    assert.equal((await search(ALICE, "customer/search", question)).length, 1);
    assert.equal((await search(ADMIN, "customer/search?user_id=alice", question)).length, 1);
    for (const method of ["GET", "DELETE"]) {
      const refused = await bobbin.as(BOB).send(method, "/memory/customer?user_id=alice");
      assert.deepEqual([refused.status, refused.json.error.code, refused.json.error.field], [403, "forbidden", "user_id"]);
    }
    const hers = await bobbin.as(ALICE).thread("reader");
    const his = await bobbin.as(BOB).thread("reader");
    const { message } = await hers.ask(question);
    assert.equal(message.content, "It says so [m1].");
    assert.deepEqual([message.metadata.citations[0].memory, message.metadata.citations[0].title], ["customer", "Drawers"]);
    const before = reader.model.asked.length;
    assert.equal((await his.ask(`${question} (${round})`)).message.content, "Nobody knows.");
    told.push(JSON.stringify(reader.model.asked.slice(before)));
    for (const path of ["/messages", "/logs", "/runs", "/diagnostics", "/fs"]) told.push((await his.send("GET", path)).text);
    told.push((await bobbin.as(BOB).send("GET", "/memory/customer/documents")).text);
    if (round === 1) await bobbin.server.crash();
  }
  assert.ok(told.every((text) => !text.includes(CANARY) && !text.includes("drawer nine")));
});

test("two threads of one owner save at the same time, and a third one finds both notes", async () => {
  const threads = await Promise.all(["a", "b"].map(() => bobbin.as(ALICE).thread("writer_customer")));
  const notes = ["The invoice goes to Brackwater.", "The parcel goes to Cindervale."];
  const replies = await Promise.all(threads.map((thread, n) => thread.ask(`memory_save ${JSON.stringify({ content: notes[n] })}`)));
  const ids = replies.map(({ message }) => message.content);
  for (const id of ids) assert.match(id, /^note-[0-9a-f-]{36}$/);
  await ready(ALICE, "customer");
  const third = await bobbin.as(ALICE).thread("writer_customer");
  for (const [n, word] of ["invoice", "parcel"].entries()) {
    const { message } = await third.ask(`memory_search ${JSON.stringify({ query: word })}`);
    assert.ok(message.content.includes(`${notes[n]}\n(id ${ids[n]}, `), message.content);
  }
  const changed = await third.ask(`memory_update ${JSON.stringify({ id: ids[0], content: "The invoice goes to Eastrey, api_key: f00ba4-9876-canary" })}`);
  assert.equal(changed.message.content, ids[0]);
  await ready(ALICE, "customer");
  assert.deepEqual((await search(ALICE, "customer/search", "invoice")).filter((text) => text.includes("invoice")), ["The invoice goes to Eastrey, api_key: [REDACTED]"]);
  const { id } = await add(ALICE, "customer/documents", { key: "book", text: "A document about parcels." });
  const document = await third.ask(`memory_delete ${JSON.stringify({ id })}`);
  assert.match(document.message.content, /is a document, not a note/);
  assert.equal((await third.ask(`memory_delete ${JSON.stringify({ id: ids[1] })}`)).message.content, `Forgot ${ids[1]}.`);
  assert.ok((await search(ALICE, "customer/search", "Cindervale")).every((text) => !text.includes("Cindervale")));
  // Deletes all documents of the owner and of no one else.
  await add(BOB, "customer/documents", { text: "A customer of Fallowmere." });
  assert.equal((await bobbin.client.send("DELETE", "/memory/customer?user_id=alice")).status, 204);
  assert.deepEqual(await search(ALICE, "customer/search", "invoice parcel document"), []);
  assert.equal((await search(BOB, "customer/search", "Fallowmere")).length, 1);
});

test("a memory that is full says so to clients and to models, and the turn goes on", async () => {
  const thread = await bobbin.as(ALICE).thread("writer_small");
  const save = (/** @type {string} */ content) => thread.ask(`memory_save ${JSON.stringify({ content })}`);
  for (const text of ["First of two.", "Second of two."]) {
    assert.match((await save(text)).message.content, /^note-/);
    await ready(ALICE, "small");
  }
  const refused = await save("Third of two.");
  assert.equal(refused.outcome, "completed");
  assert.match(refused.message.content, /holds 2 of 2 chunks/);
  const { status, json } = await bobbin.as(ALICE).send("POST", "/memory/small/documents", { text: "Third of two." });
  assert.deepEqual([status, json.error.code], [409, "memory_full"]);
});

test("a thread without an owner has no memory of one: it is said, and holds up nothing", async () => {
  const writing = await bobbin.client.thread("writer_customer");
  const saved = await writing.ask(`memory_save ${JSON.stringify({ content: "Nobody's." })}`);
  assert.match(saved.message.content, /is an owner's, and this thread has none\. Threads are created with an owner by `user_id`\./);
  const reading = await bobbin.client.thread("reader");
  const answer = await reading.ask("What is known?");
  assert.deepEqual([answer.outcome, answer.message.content], ["completed", "Nobody knows."]);
  assert.ok(JSON.stringify(answer).includes("memory.unavailable"), JSON.stringify(answer));
});

test("the instance's memory is written by administrators and found by every thread", async () => {
  assert.equal((await bobbin.as(ALICE).send("POST", "/memory/rules/documents", { text: "x" })).status, 403);
  assert.equal((await bobbin.as(ALICE).send("POST", "/memory/rules/search", { query: "x" })).status, 403);
  await add(ADMIN, "rules/documents", { title: "Opening", text: "The observatory opens at nine." });
  await ready(ADMIN, "rules");
  for (const key of [ALICE, BOB]) {
    const thread = await bobbin.as(key).thread("ruled");
    const { message } = await thread.ask("When does the observatory open?");
    assert.equal(message.metadata?.citations?.[0]?.title, "Opening", message.content);
  }
});

test("refusals name the field and what to do", async () => {
  /** @param {string} key @param {string} method @param {string} path @param {object} [body] */
  const refused = async (key, method, path, body) => {
    const { status, json } = await bobbin.as(key).send(method, `/memory${path}`, body);
    return [status, json.error.code, json.error.field];
  };
  assert.deepEqual(await refused(ADMIN, "GET", "/customer"), [400, "missing_field", "user_id"]);
  assert.deepEqual(await refused(ADMIN, "GET", "/rules?user_id=alice"), [400, "invalid_field", "user_id"]);
  assert.deepEqual(await refused(ADMIN, "GET", "/own"), [404, "memory_not_found", undefined]);
  assert.deepEqual(await refused(ALICE, "GET", "/bok"), [404, "memory_not_found", undefined]);
  assert.deepEqual(await refused(ALICE, "GET", "/customer?colour=red"), [400, "invalid_field", "colour"]);
  assert.deepEqual(await refused(ALICE, "POST", "/customer/documents", { path: "/a.md" }), [400, "invalid_field", "path"]);
  assert.deepEqual(await refused(ALICE, "PUT", "/customer"), [405, "method_not_allowed", undefined]);
  assert.deepEqual(await refused("no-key", "GET", "/customer"), [401, "unauthenticated", undefined]);
});
