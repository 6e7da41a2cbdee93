// How well a real model's vectors find what is meant: `npm run test:local-model`. Two hundred documents, asked for in their own words
// and in others (docs/memory.md has the figures).

import assert from "node:assert/strict";
import { after } from "node:test";
import { startLocalEmbeddings } from "../../scripts/local-model.mjs";
import { recall } from "../worker/support/memories.mjs";
import { say } from "../worker/support/model.mjs";
import { suite } from "../worker/support/suite.mjs";

// Before the suite writes its definitions.
const model = await startLocalEmbeddings((line) => console.error(line));
after(() => model.stop());
const bobbin = suite();

bobbin.definitions.push(() => {
  bobbin.folder.json("models/minilm.json", { kind: "embedding", provider: "openai", model: model.name, baseUrl: model.url, apiKeyEnv: "MODEL_KEY" });
  bobbin.folder.json("models/demo.json", { kind: "embedding", provider: "demo", model: "demo" });
  for (const [name, embedding] of [["book", "minilm"], ["letters", "demo"], ["words", undefined]]) {
    bobbin.folder.json(`memories/${name}.json`, { description: "What is known.", embedding });
  }
});
bobbin.agent("reader", () => say("Yes."));

bobbin.test("of two hundred documents the right one is among the first three: 90 % in its words, 80 % in other words", async () => {
  /** @type {Record<string, { alike: number, otherwise: number }>} */
  const shares = {};
  for (const memory of ["book", "letters", "words"]) {
    const of = await recall(await bobbin.client.thread("reader"), memory);
    shares[memory] = of;
    console.log(`${memory}: ${(of.alike * 100).toFixed(1)} % in the document's words, ${(of.otherwise * 100).toFixed(1)} % in others`);
  }
  const { book, words } = shares;
  assert.ok(book && book.alike >= 0.9 && book.otherwise >= 0.8, JSON.stringify(shares));
  assert.ok(words && words.alike >= 0.9, JSON.stringify(shares));
}, 900_000);
