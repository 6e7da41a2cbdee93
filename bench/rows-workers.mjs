// Rows of workers: one that is created, written to and waited for, compared with a subagent that is waited for; four at once,
// compared with the floor.

import { interleaved, ratio, settle, timed } from "./measure.mjs";

/**
 * @typedef {import("./rows.mjs").Bench} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./sides.mjs").Side} Side
 */

const WORKERS = 4;

/**
 * Measures from the post until `count` matching messages have arrived, in a new thread.
 *
 * @param {Side} side
 * @param {"family" | "leading"} agent
 * @param {string} wishes
 * @param {number} count
 * @param {(data: any) => boolean} counts  whether a stored message matches
 */
async function until(side, agent, wishes, count, counts) {
  const thread = await side.thread(agent);
  const socket = await side.socket(thread, "?includeSilent=true");
  const seen = new Set();
  const all = new Promise((resolve) => {
    socket.onFrame = ({ type, data }) => {
      if (type === "message_data" && counts(data)) seen.add(data.id);
      if (seen.size === count) resolve(undefined);
    };
  });
  const value = await timed(async () => {
    await side.post(thread, wishes, false);
    await all;
  });
  socket.close();
  await settle();
  return value;
}

const isAnswer = (/** @type {any} */ { role, content, tool_calls }) => role === "assistant" && Boolean(content) && !tool_calls;
const isResult = (/** @type {any} */ { role, content }) => role === "tool" && String(content).includes("outcomes");
const isReport = (/** @type {any} */ { role, content }) => role === "user" && String(content).startsWith("Subagent ");

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function workers({ product, floor, times }) {
  const one = await interleaved("one worker", times(40), {
    product: () => until(product, "leading", "wrote=1", 1, isAnswer),
    floor: () => until(product, "leading", "created=1", 1, isAnswer),
  });
  const four = await interleaved(`${WORKERS} workers`, times(30), {
    product: () => until(product, "leading", `led=${WORKERS}`, 1, isResult),
    floor: () => until(floor, "family", `sent=${WORKERS}`, WORKERS, isReport),
  });
  return [
    { ...ratio("a worker that is made, written to and waited for", "ms", one, 1.1), against: "subagent_create" },
    ratio(`${WORKERS} workers at once, all outcomes in`, "ms", four, 1.5),
  ];
}
