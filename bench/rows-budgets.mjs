// Rows of budgets: a turn with four kinds of limits, and a child with an allocation, each compared with the same without.

import { cost, counters, interleaved, ratio, settle, timed } from "./measure.mjs";

/**
 * @typedef {import("./rows.mjs").Bench} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./measure.mjs").Counters} Counters
 * @typedef {import("./sides.mjs").Side} Side
 */

const TURNS = 10;

/**
 * The average SQL cost of several turns.
 *
 * @param {Side} product @param {string} thread @param {() => Promise<unknown>} turn @returns {Promise<Counters>}
 */
async function each(product, thread, turn) {
  const { statements, rowsRead, rowsWritten } = await cost(product, thread, async () => {
    for (let n = 0; n < TURNS; n++) await turn();
    await settle();
  });
  return { statements: statements / TURNS, rowsRead: rowsRead / TURNS, rowsWritten: rowsWritten / TURNS };
}

/** A thread and its socket. @param {Side} product @param {"family" | "lending"} agent */
async function opened(product, agent) {
  const thread = await product.thread(agent);
  return { thread, socket: await product.socket(thread) };
}

/**
 * Measures from the post to the reply that follows the child's result. The run parks, so the POST does not wait for it.
 *
 * @param {Side} product @param {Awaited<ReturnType<typeof opened>>} one
 */
async function lending(product, { thread, socket }) {
  const answered = new Promise((resolve) => {
    socket.onFrame = ({ type, data }) => {
      if (type === "message_data" && data.role === "assistant" && data.content && !data.tool_calls) resolve(undefined);
    };
  });
  const value = await timed(async () => {
    await product.post(thread, "waited=1", false);
    await answered;
  });
  await settle();
  return value;
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function budgets({ product, times }) {
  const [limited, free] = [await product.thread("limited"), await product.thread()];
  const turn = (/** @type {string} */ thread) => () => timed(() => product.post(thread, "", true));
  const turns = await interleaved("a turn with limits", times(80), { product: turn(limited), floor: turn(free) });
  const sql = await each(product, limited, turn(limited));

  const [lends, gives] = [await opened(product, "lending"), await opened(product, "family")];
  const [lent, given] = [() => lending(product, lends), () => lending(product, gives)];
  const children = await interleaved("a child with a grant", times(60), { product: lent, floor: given });
  const [more, less] = [await each(product, lends.thread, lent), await each(product, gives.thread, given)];
  const lives = [];
  for (const { thread } of [lends, gives]) {
    const [newest] = (await product.get(`/api/threads/${thread}/subagents`)).json.subagents;
    lives.push((await counters(product, newest.id)).statements);
  }
  return [
    { ...ratio("plain turn with limits of four kinds", "ms", turns, 1.03), against: "without" },
    { what: "… SQL: statements", unit: "", value: sql.statements, budget: 6 },
    { what: "… rows read", unit: "", value: sql.rowsRead, budget: 5 },
    { what: "… rows written", unit: "", value: sql.rowsWritten, budget: 6 },
    { ...ratio("turn with one call of a child that is lent a part", "ms", children, 1.05), against: "without" },
    { what: "… SQL statements of the parent more", unit: "", value: more.statements - less.statements, budget: 0 },
    { what: "… of the child, its whole life", unit: "", value: (lives[0] ?? 0) - (lives[1] ?? 0), budget: 0 },
  ];
}
