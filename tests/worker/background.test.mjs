// Responses that OpenAI continues in the background. The process is killed during them, and none is paid for twice.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { wholeBody } from "./support/http.mjs";
import { sleep, until } from "./support/poll.mjs";
import { events } from "./support/responses.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {Record<string, any>} Json */

const THREADS = 8;
const TAKES_MS = 2500;

/** Responses that were paid for, by id. @type {Map<string, { text: string, begun: number, body: Json }>} */
const paid = new Map();
/** The ids of fetched responses. @type {string[]} */
const fetched = [];

/** The ids of responses to cancel, in order of the requests. @type {string[]} */
const cancelled = [];

const server = http.createServer(async (request, response) => {
  response.on("error", () => {});
  const text = await wholeBody(request);
  if (text === undefined) return;
  const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
  const [, toCancel] = /\/responses\/([^/]+)\/cancel$/.exec(pathname) ?? [];
  if (toCancel !== undefined) {
    cancelled.push(`${request.method} ${toCancel} ${request.headers.authorization}`);
    // Fail the first request.
    response.writeHead(cancelled.length === 1 ? 503 : 200, { "content-type": "application/json" });
    return response.end(JSON.stringify({ id: toCancel, status: "cancelled" }));
  }
  if (request.method === "POST") {
    const body = JSON.parse(text);
    assert.deepEqual([body.background, body.store], [true, true]);
    const id = `resp_${paid.size + 1}`;
    paid.set(id, { text: `answer to ${body.input.at(-1).content}`, begun: Date.now(), body });
    return stream(id, response);
  }
  const id = pathname.split("/").at(-1) ?? "";
  const known = paid.get(id);
  if (!known) {
    response.writeHead(404, { "content-type": "application/json" });
    return response.end(JSON.stringify({ error: { message: "not found" } }));
  }
  fetched.push(id);
  if (searchParams.get("stream") === "true") return stream(id, response);
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(whole(id, Date.now() - known.begun >= TAKES_MS)));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
const bobbin = suite({ vars: { OPENAI_API_KEY: "sk-of-the-tests" } });
after(async () => {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
});

/** @param {string} id @param {boolean} over @returns {Json} */
function whole(id, over) {
  const { text = "", body = {} } = paid.get(id) ?? {};
  const all = events(body, { items: [{ text }] });
  const { response } = JSON.parse(`{${all.at(-1)}}`);
  return over ? { ...response, id } : { ...response, id, status: "in_progress", output: [] };
}

/**
 * Streams from the beginning, with the remaining events at their times.
 * @param {string} id @param {import("node:http").ServerResponse} response
 */
async function stream(id, response) {
  const { text = "", begun = 0, body = {} } = paid.get(id) ?? {};
  const all = events(body, { items: [{ text }] });
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const [at, event] of all.entries()) {
    const left = begun + (TAKES_MS * at) / all.length - Date.now();
    if (left > 0) await sleep(left);
    if (!response.writable) return;
    response.write(`data: {"sequence_number":${at},${event.replaceAll('"resp_1"', JSON.stringify(id))}}\n\n`);
  }
  response.end();
}

bobbin.definitions.push(() =>
  bobbin.folder.write({
    models: {
      m: {
        provider: "openai", api: "responses", model: "gpt-x", baseUrl: `http://127.0.0.1:${port}/v1`, apiKeyEnv: "OPENAI_API_KEY",
        providerOptions: { background: true },
      },
    },
    prompts: { p: { toolDescription: "x", model: "m", includeChat: true, prompt: "You answer." } },
    agents: { patient: { type: "ai_human", sideA: { prompt: "p" } } },
  }),
);

bobbin.test("a kill in the middle of answers loses none and pays none twice", async () => {
  const threads = await Promise.all(Array.from({ length: THREADS }, () => bobbin.client.thread("patient")));
  await Promise.all(threads.map((thread, n) => thread.post(`question ${n}`)));
  await until("every answer has begun", () => paid.size >= THREADS, { withinMs: 30_000, describe: () => paid.size });
  // Their names and a part of each have arrived.
  await sleep(TAKES_MS / 2);
  await bobbin.server.crash();
  const answers = () =>
    Promise.all(
      threads.map(async (thread) => {
        const { messages } = (await bobbin.client.send("GET", `/threads/${thread.id}/messages`)).json;
        return messages.filter((/** @type {Json} */ { role }) => role === "assistant").map((/** @type {Json} */ { content }) => content);
      }),
    );
  await until("every thread has its answer", async () => (await answers()).every(({ length }) => length > 0), { withinMs: 30_000 });
  assert.deepEqual(await answers(), threads.map((_, n) => [`answer to question ${n}`]));
  assert.equal(paid.size, THREADS, "none was paid for twice");
  assert.equal(new Set(fetched).size, THREADS, "each was fetched");
  const { logs } = (await bobbin.client.send("GET", `/threads/${threads[0]?.id}/logs`)).json;
  const adjusted = logs.filter((/** @type {Json} */ { adjusted }) => adjusted);
  assert.match(adjusted[0]?.adjusted ?? "", /was fetched/, JSON.stringify(logs));
});

bobbin.test("an answer that the provider has lost is asked for again", async () => {
  const before = paid.size;
  const thread = await bobbin.client.thread("patient");
  await thread.post("once more");
  await until("the answer has begun", () => paid.size > before, { withinMs: 30_000 });
  await sleep(TAKES_MS / 2);
  await bobbin.server.down();
  const [lost] = [...paid].at(-1) ?? [""];
  paid.set("other", /** @type {any} */ (paid.get(lost)));
  paid.delete(lost);
  await bobbin.server.up();
  await until("the thread has its answer", async () => {
    const { messages } = (await bobbin.client.send("GET", `/threads/${thread.id}/messages`)).json;
    return messages.some((/** @type {Json} */ { content }) => content === "answer to once more");
  }, { withinMs: 30_000 });
});

bobbin.test("an answer that was stopped is cancelled at the provider, however often that takes", async () => {
  const before = new Set(paid.keys());
  const thread = await bobbin.client.thread("patient");
  await thread.post("never mind");
  await until("the answer has begun", () => paid.size > before.size, { withinMs: 30_000 });
  await sleep(TAKES_MS / 4);
  assert.equal((await thread.send("POST", "/stop")).status, 200);
  const [id] = [...paid.keys()].filter((known) => !before.has(known));
  await until("it is cancelled", () => cancelled.length >= 2, { withinMs: 30_000, describe: () => cancelled });
  assert.deepEqual(cancelled, Array(2).fill(`POST ${id} Bearer sk-of-the-tests`));
  await until("nothing is owed any more", async () => (await thread.diagnostics()).due.length === 0, { withinMs: 30_000 });
});
