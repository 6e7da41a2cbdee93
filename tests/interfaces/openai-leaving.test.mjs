// Chat completions clients that disconnect during a response: the run continues unless they have requested otherwise.

import assert from "node:assert/strict";
import { http } from "../../package/lib/node-http.mjs";
import { say } from "../worker/support/model.mjs";
import { sleep, until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

const bobbin = suite({ key: "key-of-all", vars: { BOBBIN_API_KEYS: "key-of-all=admin" } });
const test = bobbin.test.bind(bobbin);
const LONG = Array.from({ length: 40 }, (_, at) => `${at} words; `).join("");
bobbin.agent("talker", () => say(LONG, { chunks: 40, everyMs: 150 }));
bobbin.agent("thinker", () => async (out) => {
  await sleep(20_000);
  await out.text("at last");
  await out.end();
});
const CANCELS = { "x-bobbin-cancel-on-disconnect": "1" };

/**
 * A client with its own connection, which can disconnect at any time.
 *
 * @param {string} thread @param {object} body @param {Record<string, string>} [headers]
 */
function client(thread, body, headers = {}) {
  const text = JSON.stringify({ messages: [{ role: "user", content: "go" }], ...body });
  const all = { "content-type": "application/json", authorization: "Bearer key-of-all", "x-bobbin-thread": thread, ...headers };
  const request = http.request(new URL("/v1/chat/completions", bobbin.server.base), { method: "POST", agent: false, headers: all });
  const seen = { text: "", ended: false, failed: false };
  request.on("error", () => (seen.failed = true));
  const response = new Promise((/** @type {(response: import("node:http").IncomingMessage) => void} */ resolve) => {
    request.on("response", (answer) => {
      answer.setEncoding("utf8").on("data", (piece) => (seen.text += piece));
      answer.on("end", () => (seen.ended = true)).on("error", () => (seen.failed = true));
      resolve(answer);
    });
  });
  request.end(text);
  return { request, response, seen, leave: () => request.destroy() };
}

/** @param {string} thread */
const runs = async (thread) => (await bobbin.client.send("GET", `/threads/key:${thread}/runs`)).json.runs ?? [];
/** @param {string} thread @param {string} outcome */
const ends = (thread, outcome) =>
  until(`the run of ${thread} is ${outcome}`, async () => (await runs(thread))[0]?.outcome === outcome, { withinMs: 30_000, everyMs: 100 });
/** @param {string} thread */
const running = (thread) => until(`${thread} runs`, async () => (await runs(thread))[0]?.status === "running");

test("who goes in the middle of a stream stops the run if that was said, and nothing otherwise", async () => {
  for (const [thread, headers, status] of /** @type {[string, Record<string, string>, string][]} */ ([
    ["stays", {}, "completed"],
    ["says-no", { "x-bobbin-cancel-on-disconnect": "0" }, "completed"],
    ["cancels", CANCELS, "stopped"],
  ])) {
    const { seen, leave } = client(thread, { model: "talker", stream: true }, headers);
    await until("something was said", () => seen.text.includes("words"));
    leave();
    await ends(thread, status);
    const { json } = await bobbin.client.send("GET", `/threads/key:${thread}/messages`);
    assert.equal(json.messages.at(-1).content === LONG, status === "completed", thread);
  }
});

test("who goes before anything was said stops the run", async () => {
  const { leave } = client("silent", { model: "thinker", stream: true }, CANCELS);
  await running("silent");
  leave();
  await ends("silent", "stopped");
});

test("of an answer that is no stream it is said that nobody looks", async () => {
  const { response, seen } = client("whole", { model: "talker" }, CANCELS);
  assert.equal((await response).headers["x-bobbin-ignored"], "x-bobbin-cancel-on-disconnect");
  await until("it is whole", () => seen.ended);
  await ends("whole", "completed");
});

test("who only pauses reads all of it", async () => {
  const { response, seen } = client("pauses", { model: "talker", stream: true }, CANCELS);
  const answer = await response;
  answer.pause();
  await sleep(4_000);
  assert.equal((await runs("pauses"))[0].status, "running");
  answer.resume();
  await until("it has all", () => seen.ended, { withinMs: 30_000 });
  assert.ok(seen.text.endsWith("data: [DONE]\n\n") && seen.text.includes("39 words"), seen.text.slice(-300));
  await ends("pauses", "completed");
});

test("a run that others wait for is not stopped", async () => {
  const first = client("shared", { model: "talker", stream: true }, CANCELS);
  await until("something was said", () => first.seen.text.includes("words"));
  const second = client("shared", { model: "talker", stream: true, messages: [{ role: "user", content: "and this" }] });
  await until("it is stored", async () => (await bobbin.client.send("GET", "/threads/key:shared/messages")).json.messages.length >= 2);
  first.leave();
  await until("the other one has its answer", () => second.seen.ended, { withinMs: 40_000 });
  assert.ok(second.seen.text.includes("39 words"), second.seen.text.slice(-300));
  await ends("shared", "completed");
});
