// Memories with vectors from a server: it goes down and returns, sends other vectors than before, and receives no
// secret.

import assert from "node:assert/strict";
import { after } from "node:test";
import { EmbeddingServer } from "./support/embeddings.mjs";
import { add, search, settled } from "./support/memories.mjs";
import { say, textOf } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const vectors = new EmbeddingServer();
// Start it before the suite writes its definitions.
await vectors.up();
after(() => vectors.down());
const bobbin = suite();
const test = bobbin.test.bind(bobbin);

bobbin.definitions.push(() => {
  const retry = { maxAttempts: 1 };
  bobbin.folder.json("models/words.json", { kind: "embedding", provider: "openai", model: "words", baseUrl: vectors.base, apiKeyEnv: "MODEL_KEY", retry });
  bobbin.folder.json("memories/book.json", { description: "What is known.", embedding: "words", chunk: { chars: 100, overlap: 0 } });
});
/** @param {import("./support/model.mjs").Asked} asked */
const context = ({ messages }) => messages.map(textOf).find((text) => text.startsWith("Relevant context from memory."));
const reader = bobbin.agent("reader", (asked) => say(context(asked) === undefined ? "Nobody knows." : "It says so [m1]."), {
  prompt: { memory: [{ name: "book", inject: true, tools: ["search"] }] },
});

const WINDMILL = "The windmill on the hill grinds rye on windy mornings, says its miller.";

test("while the server of vectors is down turns go on, that is said once in each, and it heals by itself", async () => {
  const thread = await bobbin.client.thread("reader");
  await add(thread, "book", { text: WINDMILL });
  await settled(thread, "book");
  await vectors.down();
  const later = await add(thread, "book", { text: "The harbour freezes over in January, and the ferries stay in." });
  await until("its words are in", async () => (await thread.send("GET", `/memory/book/documents/${later.id}`)).json.document.state === "partial");
  for (const question of ["When does the windmill grind?", "And the harbour, when is it frozen?"]) {
    const { outcome, message, diagnostics } = await thread.ask(question);
    assert.deepEqual([outcome, message.content], ["completed", "It says so [m1]."]);
    const codes = diagnostics.map((/** @type {{ code: string }} */ { code }) => code);
    assert.deepEqual(codes.filter((/** @type {string} */ code) => code.startsWith("memory.")), ["memory.degraded"], JSON.stringify(diagnostics));
  }
  const found = await search(thread, "book", { query: "harbour" });
  assert.deepEqual([found.degraded, found.results[0].document], [true, later.id]);
  assert.match(found.error, /^embedding_failed: /);
  await vectors.up();
  // No request is needed: the job runs again by itself.
  await settled(thread, "book");
  const { diagnostics } = await thread.ask("When does the harbour freeze?");
  assert.equal(diagnostics?.some((/** @type {{ code: string }} */ { code }) => code.startsWith("memory.")) ?? false, false, JSON.stringify(diagnostics));
  const vector = await search(thread, "book", { query: "the harbour in January", mode: "vector" });
  assert.deepEqual([vector.degraded, vector.results[0].document], [false, later.id]);
});

test("a memory that says nothing holds up a turn for five seconds at most, and the run says so", async () => {
  const thread = await bobbin.client.thread("reader");
  await add(thread, "book", { text: WINDMILL });
  await settled(thread, "book");
  vectors.silent = true;
  const before = performance.now();
  const { outcome, message, diagnostics } = await thread.ask("When does the windmill grind?");
  const seconds = (performance.now() - before) / 1000;
  vectors.silent = false;
  assert.deepEqual([outcome, message.content], ["completed", "Nobody knows."]);
  const told = diagnostics.filter((/** @type {{ code: string }} */ { code }) => code.startsWith("memory."));
  assert.deepEqual([told.length, told[0].code], [1, "memory.unavailable"], JSON.stringify(diagnostics));
  assert.match(told[0].message, /it took more than 5 s/);
  assert.ok(seconds >= 5 && seconds < 8, `${seconds} s`);
  assert.equal((await thread.ask("When does the windmill grind?")).message.content, "It says so [m1].");
});

test("a model that gives vectors of another length is no error: words are found until all are made anew", async () => {
  const thread = await bobbin.client.thread("reader");
  const { id } = await add(thread, "book", { text: WINDMILL });
  await settled(thread, "book");
  vectors.dimensions = 48;
  const between = await search(thread, "book", { query: "windmill" });
  assert.deepEqual([between.degraded, between.results[0].document], [true, id]);
  assert.equal((await thread.ask("When does the windmill grind?")).message.content, "It says so [m1].");
  await settled(thread, "book");
  const after = await search(thread, "book", { query: "the windmill on the hill", mode: "vector" });
  assert.deepEqual([after.degraded, after.results[0].document], [false, id]);
});

test("a secret in a document is sent to no model, and is in no answer, log or export", async () => {
  const thread = await bobbin.client.thread("reader");
  const secret = "zq81-canary-77f0aa";
  await add(thread, "book", { title: "Keys", text: `The windmill's gate opens by code. password: ${secret}\n\nAsk the miller.` });
  await settled(thread, "book");
  await thread.ask("What opens the windmill's gate?");
  const found = await search(thread, "book", { query: "gate code password windmill" });
  const answers = [found, (await thread.send("GET", "/memory/book/documents")).json, (await thread.send("GET", "/logs")).json, await thread.page()];
  for (const told of [vectors.texts, reader.model.asked, answers]) {
    assert.ok(!JSON.stringify(told).includes(secret), "the secret is somewhere");
  }
  assert.ok(vectors.texts.some((text) => text.includes("[REDACTED]")), "what was sent shows that something was taken out");
  assert.deepEqual(vectors.wrong, []);
});
