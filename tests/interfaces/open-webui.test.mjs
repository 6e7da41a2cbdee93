// Open WebUI's requests: each chat is one thread, and its utility requests belong to no chat.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { say } from "../worker/support/model.mjs";
import { exchange } from "../worker/support/http.mjs";
import { chance, sampled, sleep } from "../worker/support/poll.mjs";
import { checkout } from "../worker/support/server.mjs";
import { suite } from "../worker/support/suite.mjs";

const KILLS = Number(process.env.BOBBIN_REPLACED_KILLS ?? sampled(4, 2));
const bobbin = suite({ key: "key-of-all", vars: { BOBBIN_API_KEYS: "key-of-all=admin", BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef" } });
const test = bobbin.test.bind(bobbin);
bobbin.agent("echo", ({ last }) => say(`You wrote: ${last.split("\n")[0]}`, { chunks: 3 }));

const slow = bobbin.agent("slow", () => say("Slowly.", { chunks: 3, everyMs: 200 }));

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

test("another answer, another text and an earlier branch are what the page shows, and nothing of what it dropped", async () => {
  const chat = "chat-that-changes";
  const user = (/** @type {any} */ content) => ({ role: "user", content });
  const turn = (/** @type {string} */ said, answer = `You wrote: ${said}`) => [user(said), { role: "assistant", content: answer }];
  const image = turns[1].messages.at(-1).content[1];
  const lists = /** @type {[any[], any[]][]} */ ([
    [[user("one")], turn("one")],
    [[user("one")], turn("one")],
    [[...turn("one"), user("two")], [...turn("one"), ...turn("two")]],
    [[...turn("one"), user("two")], [...turn("one"), ...turn("two")]],
    [[...turn("one"), user("2")], [...turn("one"), ...turn("2")]],
    [[...turn("one"), ...turn("2"), user("three")], [...turn("one"), ...turn("2"), ...turn("three")]],
    // An edited reply, and a question.
    [[...turn("one", "Changed."), ...turn("2"), ...turn("three"), user("four")], [...turn("one", "Changed."), ...turn("2"), ...turn("three"), ...turn("four")]],
    [[...turn("1", "Changed."), ...turn("2"), user("three, anew")], [...turn("1", "Changed."), ...turn("2"), ...turn("three, anew")]],
    // With an image it is a different message.
    [[...turn("1", "Changed."), user([{ type: "text", text: "seen" }, image])], [...turn("1", "Changed."), ...turn("seen")]],
    [[user("all anew")], turn("all anew")],
  ]);
  const of = (/** @type {any[]} */ list) => list.map(({ role, content }) => [role, content]);
  let thread = "";
  for (const [messages, then] of lists) {
    const answer = await ask(chat, { model: "echo", stream: false, messages });
    assert.equal(answer.text, then.at(-1).content);
    thread ||= answer.thread;
    assert.equal(answer.thread, thread);
    assert.deepEqual(await rows(thread), of(then));
  }
  // Under another header a list with one message contains only what is new.
  const plain = { "X-OpenWebUI-Chat-Id": "", "X-Bobbin-Thread": thread };
  await ask(chat, { model: "echo", stream: false, messages: [user("and this")] }, plain);
  assert.deepEqual(await rows(thread), of([...turn("all anew"), ...turn("and this")]));
});

test("a chat that came with its history may change from its first message on", async () => {
  const history = [{ role: "user", content: "one" }, { role: "assistant", content: "A." }];
  const first = await ask("chat-of-history", { model: "echo", stream: false, messages: [...history, { role: "user", content: "two" }] });
  assert.equal((await rows(first.thread)).length, 4);
  await ask("chat-of-history", { model: "echo", stream: false, messages: [{ role: "user", content: "one, anew" }] });
  assert.deepEqual(await rows(first.thread), [["user", "one, anew"], ["assistant", "You wrote: one, anew"]]);
});

test("a message that the thread refuses replaces nothing", async () => {
  const history = [{ role: "user", content: "one" }, { role: "assistant", content: "A." }];
  const body = { model: "echo", stream: false };
  const { thread } = await ask("chat-that-is-refused", { ...body, messages: [...history, { role: "user", content: "two" }] });
  const before = await rows(thread);
  const all = { ...headers, "X-OpenWebUI-Chat-Id": "chat-that-is-refused", Authorization: "Bearer key-of-all" };
  const image = turns[1].messages.at(-1).content[1];
  const long = "x".repeat(1_048_577);
  for (const content of [long, [{ type: "text", text: long }, image]]) {
    for (const list of [[{ role: "user", content }], [...history, { role: "user", content }]]) {
      const refused = await exchange(bobbin.server.base, "POST", "/v1/chat/completions", { headers: all, body: JSON.stringify({ ...body, messages: list }) });
      assert.deepEqual([refused.status, refused.json.error.code], [413, "too_large"], refused.text);
      assert.deepEqual(await rows(thread), before);
    }
  }
});

test("who may not edit a thread's messages replaces none", async () => {
  const history = [{ role: "user", content: "one" }, { role: "assistant", content: "A." }];
  const { thread } = await ask("chat-of-a-token", { model: "echo", stream: false, messages: [...history, { role: "user", content: "two" }] });
  const before = await rows(thread);
  const { token } = (await bobbin.client.send("POST", "/tokens", { scope: `thread:${thread}`, ttl: 60 })).json;
  const all = { ...headers, "X-OpenWebUI-Chat-Id": thread, Authorization: `Bearer ${token}` };
  const body = JSON.stringify({ model: "echo", stream: false, messages: [{ role: "user", content: "other" }] });
  const refused = await exchange(bobbin.server.base, "POST", "/v1/chat/completions", { headers: all, body });
  assert.deepEqual([refused.status, refused.json.error.code], [403, "forbidden"], refused.text);
  assert.deepEqual(await rows(thread), before);
});

test("a kill loses no message that is replaced, and stores none twice", async () => {
  const random = chance("open-webui");
  const turn = (/** @type {string} */ said, answer = `You wrote: ${said}`) => [{ role: "user", content: said }, { role: "assistant", content: answer }];
  const image = turns[1].messages.at(-1).content[1];
  for (let n = 0; n < KILLS; n += 1) {
    const chat = `chat-killed-${n}`;
    // The first message was created with the thread, and the second has no file: neither can be changed in place.
    const { thread } = await ask(chat, { model: "echo", stream: false, messages: [...turn("one", "A."), { role: "user", content: "two" }] });
    const kept = n % 2 === 0 ? [] : turn("one", "A.");
    const content = [{ type: "text", text: `other ${n}` }, image];
    const body = JSON.stringify({ model: "echo", stream: false, messages: [...kept, { role: "user", content }] });
    const all = { ...headers, "X-OpenWebUI-Chat-Id": chat, Authorization: "Bearer key-of-all" };
    const old = await rows(thread);
    const killed = sleep(random.between(0, 60)).then(() => bobbin.server.crash());
    /** @type {string | undefined} */
    let answered;
    for (let count = 0; answered === undefined; count += 1) {
      assert.ok(count < 60, "it is answered");
      const answer = await exchange(bobbin.server.base, "POST", "/v1/chat/completions", { headers: all, body }).catch(() => undefined);
      if (answer?.status === 200) answered = answer.json.choices[0].message.content;
      else if (answer) assert.ok(answer.status >= 500, answer.text);
      if (answered === undefined) {
        // The state after the kill, before the request is repeated.
        await killed;
        const now = await rows(thread);
        const begun = [...kept.map(({ role, content }) => [role, content]), ["user", `other ${n}`]];
        const isWhole = [old, begun, [...begun, ["assistant", `You wrote: other ${n}`]]].some((whole) => isDeepStrictEqual(whole, now));
        assert.ok(isWhole, `kill ${n}: the old messages or the new ones, not ${JSON.stringify(now)}`);
        await sleep(200);
      }
    }
    await killed;
    assert.equal(answered, `You wrote: other ${n}`);
    assert.deepEqual(await rows(thread), [...kept, ...turn(`other ${n}`)].map(({ role, content }) => [role, content]), `kill ${n}`);
  }
});

test("who wants another answer while one is made is given that, and a key makes one of many requests", async () => {
  const messages = [{ role: "user", content: "slow" }];
  const body = { model: "slow", stream: false, messages };
  const [one, two] = await Promise.all([ask("chat-at-once", body), slow.model.request(1).then(() => ask("chat-at-once", body))]);
  assert.deepEqual([one.text, two.text, slow.model.asked.length], ["Slowly.", "Slowly.", 1]);
  const keyed = { "Idempotency-Key": "again" };
  const answers = await Promise.all([1, 2, 3].map(() => ask("chat-at-once", body, keyed)));
  assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
  await ask("chat-at-once", body, keyed);
  assert.equal(slow.model.asked.length, 2, "once for the key");
  assert.equal((await rows(one.thread)).length, 2);
});

test("a person may write such a text", async () => {
  const chat = "chat-of-tasks";
  const body = { ...turns[0], messages: [{ role: "user", content: "### Task: find it" }] };
  const first = await ask(chat, body);
  assert.equal((await bobbin.client.send("GET", `/threads/key:${chat}`)).json.thread.id, first.thread);
});
