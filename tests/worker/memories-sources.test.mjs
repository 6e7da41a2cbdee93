// Automatic sources of memories, over HTTP: messages, for the thread and for its owner, and files. Deleted content is
// not found any more, and ingestion survives kills.
//
// BOBBIN_SEED repeats the moments of a run.

import assert from "node:assert/strict";
import { search, settled } from "./support/memories.mjs";
import { say, textOf } from "./support/model.mjs";
import { chance, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const ALICE = "key-of-alice";
const BOB = "key-of-bob";
const ADMIN = "key-of-the-admin";
const CANARY = "f00ba4-1234-canary";

const bobbin = suite({ key: ADMIN, vars: { BOBBIN_DEV: "0", BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice,${BOB}=owner:bob` } });
const test = bobbin.test.bind(bobbin);

bobbin.definitions.push(() => {
  bobbin.folder.json("models/embed.json", { kind: "embedding", provider: "demo", model: "demo" });
  bobbin.folder.json("memories/talk.json", { description: "What was said.", scope: "owner", embedding: "embed", sources: { messages: true } });
  bobbin.folder.json("memories/own.json", { description: "What was said here.", embedding: "embed", sources: { messages: true } });
  bobbin.folder.json("memories/shelf.json", { description: "Files.", embedding: "embed", sources: { files: ["/shelf/**"] } });
  bobbin.folder.json("memories/tight.json", { description: "Two.", sources: { messages: true, files: ["/tight/**"] }, limits: { chunks: 2 } });
});
/** @param {import("./support/model.mjs").Asked} asked */
const context = ({ messages }) => messages.map(textOf).find((text) => text.startsWith("Relevant context from memory."));
/** @param {import("./support/model.mjs").Asked} asked */
const answer = (asked) => say(context(asked) === undefined ? "Nobody knows." : "It says so [m1].");
const talker = bobbin.agent("talker", answer, { prompt: { memory: [{ name: "talk", inject: true }], includeChat: true } });
const keeper = bobbin.agent("keeper", answer, { prompt: { memory: [{ name: "own", inject: true }], includeChat: true } });
bobbin.agent("filer", answer, { prompt: { memory: [{ name: "shelf", inject: true }] } });
bobbin.agent("crammer", answer, { prompt: { memory: [{ name: "tight" }] } });

/** Searches an owner's memory of messages. @param {string} key @param {string} query @returns {Promise<string[]>} */
async function found(key, query) {
  const { status, json, text } = await bobbin.as(key).send("POST", "/memory/talk/search", { query, mode: "text" });
  assert.equal(status, 200, text);
  return json.results.map((/** @type {{ text: string }} */ hit) => hit.text);
}

/** Waits until a search satisfies a condition. @param {string} what @param {() => Promise<boolean>} holds */
const soon = (what, holds) => until(what, holds, { withinMs: 30_000, everyMs: 100 });

/** @param {Thread} thread @param {string} path @param {string} text @param {string} [type] */
async function put(thread, path, text, type = "text/markdown") {
  const { status } = await thread.send("PUT", `/fs${path}`, undefined, { body: text, headers: { "content-type": type } });
  assert.ok(status === 200 || status === 201, `${path}: ${status}`);
}

test("what is said in one thread is put before turns of the owner's others, of nobody else's, and goes with its message", async () => {
  const first = await bobbin.as(ALICE).thread("talker");
  const { id } = (await first.ask(`My tortoise is called Biscuit, api_key: ${CANARY}`)).message;
  await soon("it is found", async () => (await found(ALICE, "tortoise")).length === 1);
  assert.deepEqual(await found(ALICE, "tortoise"), ["My tortoise is called Biscuit, api_key: [REDACTED]"]);
  assert.deepEqual(await found(BOB, "tortoise"), []);
  const second = await bobbin.as(ALICE).thread("talker");
  const { message } = await second.ask("What is the tortoise called?");
  assert.deepEqual([message.content, message.metadata.citations[0].memory, message.metadata.citations[0].title], ["It says so [m1].", "talk", "The user said"]);
  const [request] = talker.model.asked.slice(-1);
  assert.match((request && context(request)) ?? "", /\[m1\] The user said, \d{4}-\d\d-\d\d: My tortoise is called Biscuit/);
  const his = await bobbin.as(BOB).thread("talker");
  assert.equal((await his.ask("What is the tortoise called?")).message.content, "Nobody knows.");
  const messages = (await first.send("GET", "/messages")).json.messages;
  const said = messages.find((/** @type {{ role: string }} */ { role }) => role === "user");
  assert.equal((await first.send("DELETE", `/messages/${said.id}`)).status, 200);
  await soon("it is gone", async () => (await found(ALICE, "Biscuit")).length === 0);
  assert.equal((await first.send("PATCH", `/messages/${id}`, { content: "A heron lives there." })).status, 200);
  await soon("the other text is found", async () => (await found(ALICE, "heron")).length === 1);
});

test("a thread's own memory brings what is in the request no more, and nothing of what is", async () => {
  const thread = await bobbin.client.thread("keeper");
  await thread.ask("The lighthouse is forty metres tall.");
  await settled(thread, "own");
  assert.equal((await search(thread, "own", { query: "lighthouse", mode: "text" })).results.length, 1);
  assert.equal((await thread.ask("How tall is the lighthouse?")).message.content, "Nobody knows.");
  assert.ok(keeper.model.asked.every((asked) => context(asked) === undefined), "it is in the request anyway");
});

test("files come in when they are written, move, and go, and a restart changes nothing", async () => {
  const thread = await bobbin.client.thread("filer");
  await put(thread, "/shelf/a/mills.md", "The windmill turns at night.");
  await put(thread, "/shelf/a/harbour.html", "<h1>Harbour</h1><script>no</script><p>It opens at nine.", "text/html");
  await put(thread, "/elsewhere/x.md", "A windmill that nobody asks for.");
  await put(thread, "/shelf/picture.png", "png", "image/png");
  const texts = async (/** @type {string} */ query) =>
    (await search(thread, "shelf", { query, mode: "text" })).results.map((/** @type {{ title: string, text: string }} */ hit) => `${hit.title}: ${hit.text}`);
  const mills = "/shelf/a/mills.md: The windmill turns at night.";
  await soon("files are found", async () => (await texts("windmill opens")).length === 2);
  assert.deepEqual(await texts("windmill"), [mills]);
  assert.deepEqual(await texts("opens"), ["/shelf/a/harbour.html: # Harbour\n\nIt opens at nine."]);
  assert.equal((await thread.send("PATCH", "/fs/shelf/a", { path: "/shelf/b" })).status, 200);
  await bobbin.server.crash();
  await soon("they have moved", async () => (await texts("windmill"))[0]?.startsWith("/shelf/b/mills.md: ") === true);
  const gone = await thread.send("DELETE", "/fs/shelf/b?recursive=true");
  assert.equal(gone.status, 204, gone.text);
  assert.deepEqual(await texts("windmill opens"), []);
  const { json } = await thread.ask("Is there a picture?").then(({ run }) => thread.send("GET", `/runs/${run}`));
  const told = json.diagnostics.find((/** @type {{ code: string }} */ { code }) => code === "memory.skipped");
  assert.match(told.message, /\/shelf\/picture\.png was not taken in: A memory does not take documents of the type image\/png\./);
  await soon("nothing is left", async () => (await settled(thread, "shelf")).documents === 0);
});

test("a memory without room takes in no more: runs go on, and the next one is told", async () => {
  const thread = await bobbin.client.thread("crammer");
  for (const n of [1, 2, 3]) assert.equal((await thread.ask(`Number ${n}.`)).outcome, "completed");
  await settled(thread, "tight");
  const { run, outcome } = await thread.ask("And now?");
  assert.equal(outcome, "completed");
  const { json } = await thread.send("GET", `/runs/${run}`);
  assert.match(json.diagnostics.find((/** @type {{ code: string }} */ { code }) => code === "memory_full").message, /holds 2 of 2 chunks/);
});

test("killed while a memory ingests messages: each message is there once, and none is missing", async () => {
  const random = chance("memory-sources");
  const thread = await bobbin.client.thread("keeper");
  for (let round = 0; round < 8; round++) {
    await thread.ask(`Number ${round} is w${round}w.`);
    await sleep(random.between(0, 120));
    await bobbin.server.crash();
  }
  await settled(thread, "own");
  await soon("all of it is there", async () => (await settled(thread, "own")).documents === 16);
  for (let round = 0; round < 8; round++) {
    const { results } = await search(thread, "own", { query: `w${round}w`, mode: "text" });
    assert.equal(results.length, 1, `number ${round}`);
  }
}, 120_000);
