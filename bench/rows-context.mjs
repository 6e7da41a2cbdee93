// Rows of context: a turn in a thread with a summary, compared with one without.

import { cost, counters, interleaved, ratio, settle, timed } from "./measure.mjs";

/**
 * @typedef {import("./rows.mjs").Bench} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./sides.mjs").Side} Side
 */

const TURNS = 5;

/** A thread with a few turns. @param {Side} product @param {"summing" | "unsummed"} agent */
async function begun(product, agent) {
  const thread = await product.thread(agent);
  for (let n = 0; n < TURNS; n++) await product.post(thread, "", true);
  return thread;
}

/** @param {Side} product @param {string} thread */
async function summarised(product, thread) {
  await product.ask(`/api/threads/${thread}/context/summarize`);
  const end = performance.now() + 20_000;
  while (performance.now() < end) {
    const { summary } = (await product.get(`/api/threads/${thread}/context`)).json;
    if (summary) return;
    await settle();
  }
  throw new Error("no summary was made within 20 s");
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function summaries({ product, times, restartProduct }) {
  const [has, none] = [await begun(product, "summing"), await begun(product, "unsummed")];
  await summarised(product, has);
  // Measured first: after many turns a new summary is due, and its statements would be counted too.
  const turns = (/** @type {string} */ thread) => async () => {
    for (let n = 0; n < TURNS; n++) await product.post(thread, "", true);
    await settle();
  };
  const [more, less] = [await cost(product, has, turns(has)), await cost(product, none, turns(none))];
  const turn = (/** @type {string} */ thread) => () => timed(() => product.post(thread, "", true));
  const values = await interleaved("a turn with a summary", times(80), { product: turn(has), floor: turn(none) });
  await restartProduct();
  const cold = [];
  for (const thread of [has, none]) {
    await product.post(thread, "", true);
    cold.push((await counters(product, thread)).statements);
  }
  return [
    { ...ratio("plain turn of a thread with a summary", "ms", values, 1.03), against: "without" },
    { what: "… SQL statements more", unit: "", value: (more.statements - less.statements) / TURNS, budget: 0 },
    { what: "… cold: SQL statements more", unit: "", value: (cold[0] ?? 0) - (cold[1] ?? 0), budget: 1 },
  ];
}
