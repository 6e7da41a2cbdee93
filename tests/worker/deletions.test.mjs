// Deletes a thread right after each kind of read. A read that stops before its last row must not lock a table.

import assert from "node:assert/strict";
import { exchange } from "./support/http.mjs";
import { add, settled } from "./support/memories.mjs";
import { say } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

bobbin.definitions.push(() => bobbin.folder.json("memories/words.json", { description: "What is known." }));
bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`), { prompt: { memory: [{ name: "words", tools: ["search"] }] } });

/** More messages than any page or snapshot holds. */
const LONG = Array.from({ length: 16 }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content: `${at} ${"x".repeat(100_000)}` }));

/** More documents than a search for one reads. */
const MILLS = Array.from({ length: 8 }, (_, at) => ({ text: `Mill ${at} stands by the river.`, tags: ["mills"] }));

/** Creates a thread with three runs and some documents. @param {object} [more] */
async function thread(more) {
  const made = await bobbin.client.thread("echo", more);
  for (const word of ["one", "two", "three"]) await made.ask(word);
  for (const mill of MILLS) await add(made, "words", mill);
  await settled(made, "words");
  return made;
}

/** @param {Thread} of @param {string} method @param {string} path @param {object} [body] */
async function read(of, method, path, body) {
  const answer = await of.send(method, path, body);
  assert.ok([200, 201].includes(answer.status), answer.text);
  return answer.json;
}

/** @param {Thread} of */
async function gone(of) {
  const answer = await of.send("DELETE");
  assert.equal(answer.status, 200, answer.text);
  assert.equal((await of.send("GET")).status, 404);
}

for (const [method, path, body] of /** @type {[string, string, object?][]} */ ([
  ["GET", "/runs?limit=1"],
  ["GET", "/runs/r_1"],
  ["GET", "/runs/r_1?trace=1"],
  ["GET", "/runs/r_1/spans"],
  ["GET", "/logs?limit=1"],
  ["GET", "/messages?limit=1"],
  ["POST", "/memory/words/search", { query: "mill", topK: 1 }],
  ["POST", "/memory/words/search", { query: "mill", topK: 1, tags: ["mills"] }],
  ["GET", "/memory/words/documents?limit=1"],
])) {
  test(`a thread is deleted after ${method} ${path}${body === undefined ? "" : ` ${JSON.stringify(body)}`}`, async () => {
    const of = await thread();
    await read(of, method, path, body);
    await gone(of);
  });
}

test("a thread is deleted after pages and snapshots that end by their bytes", async () => {
  for (const look of [
    async (/** @type {Thread} */ of) => assert.equal((await of.page()).hasMore, true),
    async (/** @type {Thread} */ of) => {
      const ids = (await of.messages()).map(({ id }) => id);
      await read(of, "GET", `/messages?ids=${ids.join(",")}`);
    },
    async (/** @type {Thread} */ of) => {
      const events = await of.events();
      await events.next("a snapshot", () => true);
      events.close();
    },
  ]) {
    const of = await bobbin.client.thread("echo", { history: LONG });
    await look(of);
    await gone(of);
  }
});

test("a thread is deleted after a copy of its beginning was made", async () => {
  const of = await thread();
  const [, second] = await of.messages();
  const { threadId } = await read(of, "POST", "/fork", { up_to: second.id });
  const copy = async () => (await bobbin.client.send("GET", `/threads/${threadId}`)).json.thread;
  await until("it is copied", async () => (await copy()).fork.state === "copied");
  await gone(of);
  assert.equal((await bobbin.client.send("GET", `/threads/${threadId}/messages`)).json.total, 2);
});

test("conversations are deleted after a response has branched off, and after their items were listed", async () => {
  /** @param {string} method @param {string} path @param {object} [body] */
  const send = async (method, path, body) => {
    const answer = await exchange(bobbin.server.base, method, path, {
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    assert.equal(answer.status, 200, answer.text);
    return answer;
  };
  const first = await send("POST", "/v1/responses", { model: "echo", input: "one" });
  await send("POST", "/v1/responses", { model: "echo", input: "two", previous_response_id: first.json.id });
  await send("POST", "/v1/responses", { model: "echo", input: "other", previous_response_id: first.json.id });
  const conversation = `/v1/conversations/${first.headers["x-bobbin-thread"]}`;
  await send("GET", `${conversation}/items?limit=1`);
  const { json } = await send("DELETE", conversation);
  assert.equal(json.deleted, true);
});

for (const [what, messages] of /** @type {[string, object[]][]} */ ([
  ["edited", [{ id: "u1", role: "user", content: "other" }]],
  ["answered again", [{ id: "u1", role: "user", content: "one" }]],
])) {
  test(`a thread is deleted after a run of AG-UI in which a message was ${what}`, async () => {
    const of = await thread();
    /** @param {object[]} messages @param {string} runId */
    const run = async (messages, runId) => {
      const input = { threadId: of.id, runId, messages, state: {}, tools: [], context: [], forwardedProps: {} };
      const answer = await bobbin.client.send("POST", "/agents/echo/ag-ui?revise=1", input);
      assert.equal(answer.status, 200, answer.text);
      assert.match(answer.text, /RUN_FINISHED/);
    };
    await run([{ id: "u1", role: "user", content: "one" }], "run-1");
    await run([{ id: "u2", role: "user", content: "two" }], "run-2");
    const before = (await of.messages()).length;
    await run(messages, "run-3");
    assert.equal((await of.messages()).length, before - 2, "what followed is gone");
    await gone(of);
  });
}

test("a thread is deleted after a list of a chat has replaced a message", async () => {
  const of = await bobbin.client.thread("echo", { history: [{ role: "user", content: "one" }, { role: "assistant", content: "A." }] });
  await of.ask("two");
  const answer = await exchange(bobbin.server.base, "POST", "/v1/chat/completions", {
    headers: { "content-type": "application/json", "x-openwebui-chat-id": of.id },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "one, again" }] }),
  });
  assert.equal(answer.status, 200, answer.text);
  assert.equal((await of.messages()).length, 2);
  await gone(of);
});

test("a thread that was read deletes itself all the same", async () => {
  const of = await thread({ expires_in: 8 });
  await read(of, "GET", "/runs/r_1");
  await until("it is gone", async () => (await of.send("GET")).status === 404, { withinMs: 15_000 });
});
