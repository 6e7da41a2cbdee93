// Values of a thread: from clients and tools, concurrently, and after kills.

import assert from "node:assert/strict";
import { say, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const key = { type: "string" };
bobbin.native("remember", "remember", { type: "object", properties: { key, value: {} }, required: ["key", "value"] });
bobbin.native("recall", "recall", { type: "object", properties: { key }, required: ["key"] });
// Calls the tool in the newest message, `remember <key> <json>` or `recall <key>`, and repeats its result.
bobbin.agent(
  "notebook",
  ({ messages, last }) => {
    const newest = messages.at(-1);
    if (newest?.role === "tool") return say(`It said: ${newest.content}`);
    const [name = "", of, ...rest] = last.split(" ");
    return use({ name, args: name === "remember" ? { key: of, value: JSON.parse(rest.join(" ")) } : { key: of } });
  },
  { tools: ["remember", "recall"] },
);
bobbin.agent("plain", () => say("hello"));

/** @param {Thread} thread @param {string} key @param {unknown} value @param {object} [more] */
const set = (thread, key, value, more) => thread.send("POST", "/kv", { key, value, ...more });

/** @param {Thread} thread @param {string} key */
const get = (thread, key) => thread.send("GET", `/kv?key=${encodeURIComponent(key)}`);

/** @param {Thread} thread @param {string} [query] @returns {Promise<any>} */
async function list(thread, query = "") {
  const answer = await thread.send("GET", `/kv${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

test("any JSON comes back as it was, in this life and the next", async () => {
  const thread = await bobbin.client.thread("plain");
  const values = {
    text: "naïve – 日本 🧵 \u0000 \"",
    "zero and friends": [0, -0.5, 1e-7, 123456789012345, 1.7976931348623157e308],
    flags: [true, false],
    "deep/er": { a: { b: { c: [[[null]]] } } },
    empty: [{}, [], ""],
    "ключ ?&=#%": 1,
  };
  for (const [key, value] of Object.entries(values)) {
    const answer = await set(thread, key, value);
    assert.deepEqual([answer.status, answer.json], [200, { key, value, previousKey: null, deleted: false }], answer.text);
  }
  const check = async () => {
    for (const [key, value] of Object.entries(values)) assert.deepEqual((await get(thread, key)).json, { key, value });
    const { values: listed, total, cursor } = await list(thread);
    assert.deepEqual([total, cursor], [6, null]);
    assert.deepEqual(Object.fromEntries(listed.map((/** @type {any} */ { key, value }) => [key, value])), values);
  };
  await check();
  await bobbin.server.crash();
  await check();
});

test("tools and clients see each other's values at once", async () => {
  const thread = await bobbin.client.thread("notebook");
  assert.match((await thread.ask("recall colour")).message.content, /Nothing is kept/);
  await thread.ask('remember colour {"name":"red","rgb":[255,0,0]}');
  assert.deepEqual((await get(thread, "colour")).json.value, { name: "red", rgb: [255, 0, 0] });
  await set(thread, "colour", "blue");
  assert.equal((await thread.ask("recall colour")).message.content, 'It said: "blue"');
  await thread.ask("remember colour null");
  assert.equal((await get(thread, "colour")).status, 404);
});

test("values are the thread's own", async () => {
  const [one, other] = [await bobbin.client.thread("plain"), await bobbin.client.thread("plain")];
  await set(one, "secret", 1);
  assert.equal((await get(other, "secret")).status, 404);
  assert.equal((await list(other)).total, 0);
  assert.equal((await one.send("DELETE")).status, 200);
  assert.equal((await get(one, "secret")).json.error.code, "thread_not_found");
});

test("null, DELETE and previousKey take a key away", async () => {
  const thread = await bobbin.client.thread("plain");
  await set(thread, "a", 1);
  assert.equal((await set(thread, "a", null)).json.deleted, true);
  assert.equal((await get(thread, "a")).status, 404);
  await set(thread, "b", 2);
  assert.equal((await set(thread, "c", 3, { previousKey: "b" })).status, 200);
  assert.deepEqual((await list(thread)).values.map((/** @type {any} */ { key }) => key), ["c"]);
  for (const _ of [1, 2]) assert.equal((await thread.send("DELETE", "/kv?key=c")).status, 204);
  assert.equal((await list(thread)).total, 0);
});

test("fifty writers of one key and fifty of their own: one value stands, none is lost", async () => {
  const thread = await bobbin.client.thread("plain");
  const numbers = Array.from({ length: 50 }, (_, n) => n);
  const answers = await Promise.all(numbers.flatMap((n) => [set(thread, "one", n), set(thread, `own/${n}`, n)]));
  assert.ok(answers.every(({ status }) => status === 200));
  assert.ok(numbers.includes((await get(thread, "one")).json.value));
  const { values, total } = await list(thread, "?prefix=own/&limit=500");
  assert.equal(total, 50);
  assert.deepEqual(values.map((/** @type {any} */ { value }) => value).sort((/** @type {number} */ a, /** @type {number} */ b) => a - b), numbers);
});

test("sizes up to the cap are kept, one byte more is refused by name", async () => {
  const thread = await bobbin.client.thread("plain");
  for (const [key, value] of [
    ["k", ""],
    ["k", "v"],
    ["k".repeat(512), "v"],
    ["large", "v".repeat(999_998)],
  ]) {
    assert.equal((await set(thread, String(key), value)).status, 200);
    assert.equal((await get(thread, String(key))).json.value, value);
  }
  for (const [key, value, field, says] of /** @type {[string, unknown, string, string][]} */ ([
    ["", 1, "key", "must not be empty"],
    ["k".repeat(513), 1, "key", "the limit is 512"],
    ["é".repeat(257), 1, "key", "514 bytes"],
    ["large", "v".repeat(999_999), "value", "the limit is 1000000"],
  ])) {
    const { status, json } = await set(thread, key, value);
    assert.ok(status === 400 || status === 413, `${status}`);
    assert.equal(json.error.field, field);
    assert.ok(json.error.message.includes(says), json.error.message);
  }
  assert.equal((await get(thread, "large")).json.value.length, 999_998, "what was refused has changed nothing");
  const options = { body: '{"key":"k","value":NaN}', headers: { "content-type": "application/json" } };
  const nan = await thread.send("POST", "/kv", undefined, options);
  assert.deepEqual([nan.status, nan.json.error.code], [400, "bad_json"]);
  assert.match(nan.json.error.message, /NaN/);
  const put = await thread.send("PUT", "/kv", { key: "k", value: 1 });
  assert.deepEqual([put.status, put.headers.allow], [405, "GET, POST, DELETE"]);
});

test("a list is paged by cursor while others write", async () => {
  const thread = await bobbin.client.thread("plain");
  await Promise.all(Array.from({ length: 25 }, (_, n) => set(thread, `k${String(n).padStart(2, "0")}`, n)));
  const seen = [];
  let cursor = "";
  do {
    const page = await list(thread, `?limit=10&cursor=${cursor}`);
    seen.push(...page.values.map((/** @type {any} */ { value }) => value));
    // Keys before the cursor are added and removed. No key is skipped or repeated.
    await set(thread, `a${seen.length}`, "earlier");
    cursor = page.cursor;
  } while (cursor);
  assert.deepEqual(seen, Array.from({ length: 25 }, (_, n) => n));
});

test("listeners are told which key changed", async () => {
  const thread = await bobbin.client.thread("plain");
  const socket = await thread.stream();
  await set(thread, "a", 1);
  await set(thread, "a", null);
  const events = () => socket.frames.filter(({ type }) => type === "event");
  await until("two events", () => events().length === 2, { describe: () => socket.frames });
  const [first, second] = events();
  assert.deepEqual([first.eventType, first.data.key, first.data.deleted], ["kv_changed", "a", false]);
  assert.deepEqual([second.data.key, second.data.deleted], ["a", true]);
  assert.equal(typeof first.timestamp, "number");
});

test("a kill loses no value that was accepted", async () => {
  const thread = await bobbin.client.thread("plain");
  /** @type {number[]} */
  const accepted = [];
  let writing = true;
  const writer = (async () => {
    for (let n = 0; writing; n++) {
      const answer = await set(thread, `n${n}`, n).catch(() => undefined);
      if (answer?.status === 200) accepted.push(n);
    }
  })();
  await until("some were accepted", () => accepted.length >= 20);
  await bobbin.server.crash();
  const before = accepted.length;
  await until("more were accepted", () => accepted.length >= before + 5);
  writing = false;
  await writer;
  for (const n of accepted) assert.equal((await get(thread, `n${n}`)).json?.value, n, `n${n}`);
});
