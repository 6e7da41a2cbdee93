// Rows of memories: the additional cost of a turn with recalled texts, the comparison of vectors alone, and indexing. The
// benchmark's model serves the vectors: it responds at once.

import { cost, interleaved, settle, timed } from "./measure.mjs";

/**
 * @typedef {import("./rows.mjs").Bench} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./sides.mjs").Side} Side
 */

const TURNS = 5;
/** Chunks of the large memory, and of one whose indexing is timed. */
const MANY = 10_000;
const SOME = 1_000;

/** A text with this many chunks, one per line. @param {number} lines */
const textOf = (lines) =>
  Array.from({ length: lines }, (_, n) => `Line ${n} of the record names the mark m${n} and ends the paragraph.\n\n`.padStart(90, ".")).join("");

/** Adds a text and waits until all of it has vectors. @param {Side} product @param {string} thread @param {number} lines */
async function indexed(product, thread, lines) {
  await product.ask(`/api/threads/${thread}/memory/record/documents`, { text: textOf(lines) });
  for (const end = performance.now() + 600_000; performance.now() < end; ) {
    const { chunks, state } = (await product.get(`/api/threads/${thread}/memory/record`)).json;
    if (state === "ready") return /** @type {number} */ (chunks);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("a text was not indexed within 10 minutes");
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function recall({ product, times }) {
  const threads = { full: await product.thread("recalling"), none: await product.thread() };
  const chunks = await indexed(product, threads.full, MANY);
  if (chunks < MANY) throw new Error(`${chunks} chunks of ${MANY}`);
  const few = await product.thread("recalling");
  await indexed(product, few, 1);

  const turn = (/** @type {string} */ thread) => () => timed(() => product.post(thread, "the mark m77", true));
  const turns = await interleaved("a turn with what fits it", times(60), { full: turn(threads.full), none: turn(threads.none) });

  const query = (/** @type {string} */ thread) => () =>
    timed(() => product.answered(`/api/threads/${thread}/memory/record/search`, { query: "the mark m77", mode: "vector" }));
  const scans = await interleaved("vectors alone", times(60), { full: query(threads.full), few: query(few) });

  const seconds = [];
  for (let n = 0; n < Math.max(2, times(5)); n++) {
    const thread = await product.thread("recalling");
    seconds.push((await timed(() => indexed(product, thread, SOME))) / 1000);
  }

  // The agent `bench` uses no memory.
  const plain = await product.thread();
  const beside = await product.thread();
  await indexed(product, beside, 10);
  const someTurns = (/** @type {string} */ thread) => async () => {
    for (let n = 0; n < TURNS; n++) await product.post(thread, "", true);
    await settle();
  };
  for (const thread of [plain, beside]) await someTurns(thread)();
  const [more, less] = [await cost(product, beside, someTurns(beside)), await cost(product, plain, someTurns(plain))];
  return [
    { what: "turn with texts of a memory of 10,000 chunks × 768: more than without", unit: "ms", value: turns.full - turns.none, budget: 40 },
    { what: "… comparing the vectors alone", unit: "ms", value: scans.full - scans.few, budget: 15 },
    { what: "1,000 chunks indexed", unit: "s", value: Math.min(...seconds), budget: 3 },
    { what: "turn beside a memory that the prompt does not use: SQL statements more", unit: "", value: (more.statements - less.statements) / TURNS, budget: 0 },
  ];
}
