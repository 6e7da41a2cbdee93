// Open WebUI, by the requests that it sends: a chat is one thread, and what Open WebUI asks for itself beside it is in no chat.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { say } from "./support/model.mjs";
import { exchange } from "./support/http.mjs";
import { checkout } from "./support/server.mjs";
import { suite } from "./support/suite.mjs";

const bobbin = suite({ key: "key-of-all", vars: { BOBBIN_API_KEYS: "key-of-all=admin" } });
const test = bobbin.test.bind(bobbin);
bobbin.agent("echo", ({ last }) => say(`You wrote: ${last.split("\n")[0]}`, { chunks: 3 }));

/** @param {string} name */
const recorded = (name) => JSON.parse(readFileSync(join(checkout, "tests/fixtures/open-webui", `${name}.json`), "utf8"));
const { headers, turns } = recorded("chat");
const { tasks } = recorded("tasks");

/** @param {string} chat @param {any} body @param {Record<string, string>} [more] */
async function ask(chat, body, more = {}) {
  const all = { ...headers, "X-OpenWebUI-Chat-Id": chat, Authorization: "Bearer key-of-all", ...more };
  const answer = await exchange(bobbin.server.base, "POST", "/v1/chat/completions", { headers: all, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, answer.text);
  const chunks = answer.text.split("\n\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)));
  const text = body.stream ? chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("") : answer.json.choices[0].message.content;
  return { thread: `${answer.headers["x-bobbin-thread"]}`, text, chunks, ended: answer.text.endsWith("data: [DONE]\n\n") };
}

/** @param {string} thread */
const rows = async (thread) => {
  const { json } = await bobbin.client.send("GET", `/threads/${thread}/messages`);
  return json.messages.map((/** @type {any} */ { role, content }) => [role, content]);
};
const TURNS = [
  ["user", "one"],
  ["assistant", "You wrote: one"],
  ["user", "two"],
  ["assistant", "You wrote: two"],
];

test("two turns of a chat are one thread with four messages", async () => {
  const chat = headers["X-OpenWebUI-Chat-Id"];
  const [first, second] = [await ask(chat, turns[0]), await ask(chat, turns[1])];
  assert.deepEqual([first.text, second.text], ["You wrote: one", "You wrote: two"]);
  assert.ok(second.ended && second.chunks.at(-1).usage.total_tokens > 0, "with what was used");
  assert.equal(first.thread, second.thread);
  assert.deepEqual(await rows(second.thread), TURNS);
  assert.equal((await bobbin.client.send("GET", `/threads/key:${chat}`)).json.thread.id, first.thread);
  const files = (await bobbin.client.send("GET", `/threads/${second.thread}/messages`)).json.messages[2].attachments;
  assert.deepEqual(files.map((/** @type {any} */ { mimeType }) => mimeType), ["image/png"], "with its picture");
});

test("what it asks for itself is in no chat, before, between and behind the turns", async () => {
  const chat = "chat-with-tasks";
  /** @type {Awaited<ReturnType<typeof ask>>[]} */
  const others = [];
  const beside = async (/** @type {string[]} */ names) => {
    for (const name of names) others.push(await ask(chat, tasks[name]));
  };
  await beside(["query_generation"]);
  const first = await ask(chat, turns[0]);
  await beside(["title_generation", "tags_generation", "follow_up_generation"]);
  const second = await ask(chat, turns[1]);
  await beside(["follow_up_generation"]);
  assert.equal(second.thread, first.thread);
  assert.deepEqual((await rows(first.thread)).slice(-4), TURNS);
  for (const { thread, text } of others) {
    assert.notEqual(thread, first.thread);
    assert.match(text, /^You wrote: ### Task:/);
    assert.deepEqual((await bobbin.client.send("GET", `/threads/${thread}`)).json.thread.tags, ["ephemeral"]);
  }
});

test("where the connection names the task, none is taken for a turn, however it is worded", async () => {
  const chat = "chat-with-named-tasks";
  const first = await ask(chat, turns[0], { "X-OpenWebUI-Task": "" });
  const merged = await ask(chat, tasks.moa_response_generation, { "X-OpenWebUI-Task": "moa_response_generation" });
  assert.notEqual(merged.thread, first.thread);
  assert.equal((await rows(first.thread)).length, 2);
});

test("a person may write such a text", async () => {
  const chat = "chat-of-tasks";
  const body = { ...turns[0], messages: [{ role: "user", content: "### Task: find it" }] };
  const first = await ask(chat, body);
  assert.equal((await bobbin.client.send("GET", `/threads/key:${chat}`)).json.thread.id, first.thread);
});
