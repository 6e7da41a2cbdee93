// Memories over HTTP: what goes in, when it is done, what is found; and how well, on a corpus of our own.

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
 * @property {string} alike       a question in its words
 * @property {string} otherwise   one in other words
 */

/** Two hundred short documents of varied subjects. @type {Known[]} */
export const corpus = JSON.parse(readFileSync(join(checkout, "tests/fixtures/recall.json"), "utf8"));

/** @param {Thread} thread @param {string} memory @param {object} document */
export async function add(thread, memory, document) {
  const answer = await thread.send("POST", `/memory/${memory}/documents`, document);
  assert.equal(answer.status, 202, answer.text);
  return answer.json.document;
}

/** Waits until all of a memory is in a state. @param {Thread} thread @param {string} memory @param {string} [state] @param {number} [withinMs] */
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
 * Puts the corpus into a memory and asks everything: the share of the questions of each kind whose document is among the first three.
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
