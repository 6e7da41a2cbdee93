// Rows of other clients' protocols: a model's reply over each protocol, compared with the events of its run.

import { interleaved, ratio } from "./measure.mjs";
import { message } from "./model.mjs";

/**
 * @typedef {import("./rows.mjs").Bench} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./sides.mjs").Side} Side
 *
 * @typedef {object} Read   milliseconds
 * @property {number} first  from the request to the first text
 * @property {number} rest   from there to the end
 */

const AGENT = "bench";
/** Pieces of text in a long reply. */
const CHUNKS = 1_000;
/** The delay of the reply in milliseconds, so that all clients read when it begins: events need a second request. */
const READ_FROM = 60;
/** A part of every piece of text. */
const WORD = "bobbin holds";

/** @param {Side} side @param {string} method @param {string} path @param {object} [body] @param {Record<string, string>} [headers] */
async function request(side, method, path, body, headers = {}) {
  const init = { method, headers: { "content-type": "application/json", ...headers } };
  const response = await fetch(side.base + path, body === undefined ? init : { ...init, body: JSON.stringify(body) });
  if (!response.ok || !response.body) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

/** Reads a stream to its end. @param {number} start @param {Response} response @returns {Promise<Read>} */
async function read(start, response) {
  let [first, seen] = [0, ""];
  const decoder = new TextDecoder();
  for await (const bytes of /** @type {AsyncIterable<Uint8Array>} */ (response.body)) {
    if (first > 0) continue;
    seen += decoder.decode(bytes, { stream: true });
    if (seen.includes(WORD)) first = performance.now();
  }
  if (first === 0) throw new Error(`${response.url}: no text came`);
  return { first: first - start, rest: performance.now() - first };
}

/**
 * How each protocol requests a reply in a thread.
 *
 * @type {Record<string, (side: Side, thread: string, text: string) => Promise<Response>>}
 */
const PROTOCOLS = {
  events: async (side, thread, text) => {
    const posted = await request(side, "POST", `/api/threads/${thread}/messages`, { role: "user", content: text });
    const { messageId } = /** @type {any} */ (await posted.json());
    return request(side, "GET", `/api/threads/${thread}/events?after=${messageId}`);
  },
  "AI SDK": (side, thread, text) =>
    request(side, "POST", `/api/agents/${AGENT}/chat`, {
      id: thread,
      trigger: "submit-message",
      messages: [{ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] }],
    }),
  "chat completions": (side, thread, text) =>
    request(side, "POST", "/v1/chat/completions", { model: AGENT, stream: true, messages: [{ role: "user", content: text }] }, { "x-bobbin-thread": thread }),
  "AG-UI": (side, thread, text) =>
    request(side, "POST", `/api/agents/${AGENT}/ag-ui`, {
      threadId: thread,
      runId: crypto.randomUUID(),
      state: {},
      messages: [{ id: crypto.randomUUID(), role: "user", content: text }],
      tools: [],
      context: [],
      forwardedProps: {},
    }),
  responses: (side, thread, text) => request(side, "POST", "/v1/responses", { model: AGENT, stream: true, conversation: thread, input: text }),
};

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function clients({ product, times }) {
  const names = Object.keys(PROTOCOLS);
  const threads = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await product.thread(AGENT)])));
  const samples = (/** @type {keyof Read} */ what, /** @type {string} */ wishes) =>
    Object.fromEntries(
      names.map((name) => [
        name,
        async () => {
          const start = performance.now();
          const told = await read(start, /** @type {Response} */ (await PROTOCOLS[name]?.(product, threads[name], message(wishes))));
          return told[what];
        },
      ]),
    );
  const first = await interleaved("the first text, by protocol", times(80), samples("first", ""));
  const rest = await interleaved("1,000 pieces of text, by protocol", times(48), samples("rest", `chunks=${CHUNKS} after=${READ_FROM}`));
  const of = (/** @type {string} */ what, /** @type {Record<string, number>} */ values) =>
    names.slice(1).map((name) => ({
      ...ratio(`${name}: ${what}`, "ms", { product: values[name] ?? NaN, floor: values.events ?? NaN }, 1.15),
      against: "/events",
    }));
  return [...of("first text", first), ...of("1,000 pieces of text", rest)];
}
