// Memories over HTTP: adding documents, waiting for them, searching, and the recall on the tests' own corpus.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./poll.mjs";
import { checkout } from "./server.mjs";

/**
 * @typedef {import("./client.mjs").Thread} Thread
 *
 * @typedef {object} Known  a document of the corpus
 * @property {string} title
 * @property {string} text
 * @property {string} alike       a question in the document's words
 * @property {string} otherwise   a question in other words
 */

/** Two hundred short documents about varied subjects. @type {Known[]} */
export const corpus = JSON.parse(readFileSync(join(checkout, "tests/fixtures/recall.json"), "utf8"));

/** @param {Thread} thread @param {string} memory @param {object} document */
export async function add(thread, memory, document) {
  const answer = await thread.send("POST", `/memory/${memory}/documents`, document);
  assert.equal(answer.status, 202, answer.text);
  return answer.json.document;
}

/**
 * Waits until all documents of a memory are in a state.
 * @param {Thread} thread @param {string} memory @param {string} [state] @param {number} [withinMs]
 */
export const settled = (thread, memory, state = "ready", withinMs = 60_000) =>
  until(
    `${memory} is ${state}`,
    async () => {
      const { json } = await thread.send("GET", `/memory/${memory}`);
      return json.state === state && json;
    },
    { withinMs, everyMs: 100 },
  );

/** @param {Thread} thread @param {string} memory @param {object} wanted */
export async function search(thread, memory, wanted) {
  const answer = await thread.send("POST", `/memory/${memory}/search`, wanted);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

/**
 * Adds the corpus to a memory and asks all questions. Returns for each kind of question the share whose document is
 * among the first three results.
 *
 * @param {Thread} thread
 * @param {string} memory
 * @returns {Promise<{ alike: number, otherwise: number }>}
 */
export async function recall(thread, memory) {
  for (const { title, text } of corpus) await add(thread, memory, { key: title, title, text });
  const { documents } = await settled(thread, memory, "ready", 300_000);
  assert.equal(documents, corpus.length);
  const share = async (/** @type {"alike" | "otherwise"} */ kind) => {
    let found = 0;
    for (const known of corpus) {
      const { results, degraded } = await search(thread, memory, { query: known[kind], topK: 3 });
      assert.equal(degraded, false);
      if (results.some((/** @type {{ title: string }} */ hit) => hit.title === known.title)) found++;
    }
    return found / corpus.length;
  };
  return { alike: await share("alike"), otherwise: await share("otherwise") };
}
