// Memories over HTTP: documents are found, cited and deleted, and survive kills during indexing.
//
// BOBBIN_MEMORY_KILLS sets the number of kills; the default is 20, or 3 in a sample (docs/testing.md). BOBBIN_SEED
// repeats the moments of a run.

import assert from "node:assert/strict";
import { add, recall, search, settled } from "./support/memories.mjs";
import { say, textOf } from "./support/model.mjs";
import { chance, sampled, sleep } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const KILLS = Number(process.env.BOBBIN_MEMORY_KILLS ?? sampled(20, 3));

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

bobbin.definitions.push(() => {
  bobbin.folder.json("models/embed.json", { kind: "embedding", provider: "demo", model: "demo" });
  bobbin.folder.json("memories/book.json", { description: "What is known.", embedding: "embed" });
  bobbin.folder.json("memories/words.json", { description: "The same, by its words alone." });
});
/** @param {import("./support/model.mjs").Asked} asked */
const context = ({ messages }) => messages.map(textOf).find((text) => text.startsWith("Relevant context from memory."));
const reader = bobbin.agent("reader", (asked) => say(context(asked) === undefined ? "Nobody knows." : "It says so [m1]."), {
  prompt: { memory: [{ name: "book", inject: true, tools: ["search"] }] },
});

test("of two hundred documents the one that is asked for in its words is among the first three, with vectors and without", async () => {
  for (const memory of ["book", "words"]) {
    const { alike, otherwise } = await recall(await bobbin.client.thread("reader"), memory);
    assert.ok(alike >= 0.9, `${memory}: ${alike} of the questions, and ${otherwise} of those in other words`);
  }
});

test("what fits a message is put before it and cited by its characters, and a deleted document is in no later request", async () => {
  const thread = await bobbin.client.thread("reader");
  const secret = "f00ba4-1234-canary";
  const text = `The lighthouse is forty metres tall.\n\nIts keeper wrote: api_key: ${secret}\n\nNobody lives there now.`;
  const { id } = await add(thread, "book", { title: "Lighthouses", text });
  await settled(thread, "book");
  const { message } = await thread.ask("How tall is the lighthouse?");
  const [citation, ...others] = message.metadata.citations;
  assert.deepEqual([citation.label, citation.memory, citation.document, citation.title, others.length], ["m1", "book", id, "Lighthouses", 0]);
  const kept = text.replace(secret, "[REDACTED]");
  const [request] = reader.model.asked.slice(-1);
  const asked = request && context(request);
  assert.ok(asked?.endsWith([...kept].slice(citation.start, citation.end).join("")), asked);
  assert.ok(!JSON.stringify(reader.model.asked).includes(secret), "a secret in a document is never sent to a model");
  assert.equal((await thread.send("DELETE", `/memory/book/documents/${id}`)).status, 204);
  const later = await thread.ask("And now, how tall is the lighthouse?");
  assert.equal(later.message.content, "Nobody knows.");
  assert.equal(later.message.metadata.citations, undefined);
  assert.equal((await search(thread, "book", { query: "lighthouse" })).results.length, 0);
});

test("refusals name the field and what to do", async () => {
  const thread = await bobbin.client.thread("reader");
  /** @param {string} method @param {string} path @param {object} [body] */
  const refused = async (method, path, body) => {
    const { status, json } = await thread.send(method, `/memory${path}`, body);
    return [status, json.error.code, json.error.field];
  };
  assert.deepEqual(await refused("GET", "/bok"), [404, "memory_not_found", undefined]);
  assert.deepEqual(await refused("GET", "/book/documents/doc_9"), [404, "not_found", undefined]);
  assert.deepEqual(await refused("POST", "/book/documents", {}), [400, "missing_field", "text"]);
  assert.deepEqual(await refused("POST", "/book/documents", { text: "x", tags: ["A"] }), [400, "invalid_field", "tags"]);
  assert.deepEqual(await refused("POST", "/book/documents", { text: "x", mimeType: "image/png" }), [415, "unsupported_media_type", "mimeType"]);
  assert.deepEqual(await refused("POST", "/book/documents", { text: "x".repeat((1 << 20) + 1) }), [413, "too_large", "text"]);
  assert.deepEqual(await refused("POST", "/book/search", { query: "x", topK: 21 }), [400, "invalid_field", "topK"]);
  assert.deepEqual(await refused("PUT", "/book/search"), [405, "method_not_allowed", undefined]);
});

test("killed while a thousand chunks are indexed: each is there once, and none is missing", async () => {
  const random = chance("memory-kills");
  const text = Array.from({ length: 10_000 }, (_, n) => `Line ${n} names the number w${n} and nothing else of note.`).join("\n");
  const calm = await bobbin.client.thread("reader");
  await add(calm, "book", { text });
  const { chunks } = await settled(calm, "book");
  assert.ok(chunks >= 900, `${chunks} chunks`);
  for (let kill = 0; kill < KILLS; kill++) {
    const thread = await bobbin.client.thread("reader");
    const { id } = await add(thread, "book", { text });
    await sleep(random.between(0, 1_500));
    await bobbin.server.crash();
    // Everything indexed so far is found, and nothing twice.
    const early = await search(thread, "book", { query: "the number w4321", topK: 20 });
    const places = early.results.map((/** @type {{ start: number }} */ { start }) => start);
    assert.equal(new Set(places).size, places.length, JSON.stringify(early.results));
    const found = await settled(thread, "book");
    const { document } = (await thread.send("GET", `/memory/book/documents/${id}`)).json;
    assert.deepEqual([found.chunks, document.chunks, document.done, document.state], [chunks, chunks, chunks, "ready"], `kill ${kill + 1}`);
    for (const n of [0, 4_321, 9_999]) {
      const { results } = await search(thread, "book", { query: `w${n}`, mode: "text", topK: 2 });
      assert.ok(results.some((/** @type {{ text: string }} */ hit) => hit.text.includes(`w${n} `)), `w${n} after kill ${kill + 1}`);
    }
  }
}, 120_000 + KILLS * 60_000);
