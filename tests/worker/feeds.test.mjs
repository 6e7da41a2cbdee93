// The feed of a run: complete from its first message to one last frame. An incomplete feed is aborted, not ended.

import assert from "node:assert/strict";
import { after, inTurn, say, stallAfter, use } from "./support/model.mjs";
import { chance, gate, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/events.mjs").EventReader} EventReader */
/** @typedef {import("./support/client.mjs").Thread} Thread */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const LONG = Array.from({ length: 60 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");
const LOST = "This attempt is lost – 日本 🧵.";
const LARGE = "x".repeat(200 << 10);

bobbin.tool("lookup", () => "found");
bobbin.tool("much", () => LARGE);
bobbin.tool("pay", () => "paid", { approval: "always" });
// The first message gets its reply once the feed is open.
const door = gate();
const worker = bobbin.agent(
  "worker",
  ({ messages }) =>
    messages.at(-1)?.role === "tool" ? say(LONG, { chunks: 30, everyMs: 10 }) : after(door.passed, use({ name: "lookup", args: { of: "it" } })),
  { tools: ["lookup"] },
);
bobbin.agent("large", ({ messages }) => (messages.filter(({ role }) => role === "tool").length < 60 ? use({ name: "much", args: {} }) : say("done")), {
  tools: ["much"],
});
bobbin.agent("payer", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("done") : use({ name: "pay", args: {} })), { tools: ["pay"] });
const talker = bobbin.agent("talker", inTurn(stallAfter(LOST, 6), say("This one is kept – 日本.", { chunks: 5 })));

/** @param {EventReader} reader @param {number} [withinMs] */
const over = (reader, withinMs = 60_000) => until("the feed is over", () => reader.ended, { withinMs, describe: () => reader.events.slice(-3) });
/** @param {EventReader} reader */
const kinds = (reader) => reader.events.map(({ event }) => event);

test("the feed of a run begins with the run and ends with its end", async () => {
  const thread = await bobbin.client.thread("worker");
  const { messageId } = await thread.accepted("hello");
  const reader = await thread.events({ query: `?after=${messageId}` });
  assert.equal(reader.status, 200);
  door.open();
  await over(reader);
  assert.ok(reader.whole, "it ended by itself");
  const [first] = reader.events;
  assert.deepEqual([first?.event, first?.data.run, first?.data.agent], ["run", "r_1", "worker"]);
  const last = reader.events.at(-1);
  assert.deepEqual([last?.event, last?.data.outcome, last?.data.reason], ["run_ended", "completed", "stop_on_response"]);
  assert.equal(kinds(reader).filter((kind) => kind === "run_ended").length, 1);
  const stored = await thread.messages();
  const told = reader.events.filter(({ event }) => event === "message_data").map(({ data }) => data.data.id);
  assert.deepEqual(told, stored.slice(1).map(({ id }) => id));
  assert.equal(last?.data.message_id, stored.at(-1).id);
  const started = reader.events.find(({ event }) => event === "tool_started");
  const [call] = JSON.parse(stored[1].tool_calls);
  assert.deepEqual(
    [started?.data.call_id, JSON.parse(started?.data.arguments), started?.data.message_id],
    [call.id, { of: "it" }, stored[2].id],
  );
  assert.ok(worker.model.asked.length >= 2);

  const again = await thread.events({ query: "?run=r_1" });
  await over(again);
  assert.deepEqual(kinds(again), ["run", "message_data", "message_data", "message_data", "message_data", "run_ended"]);
  const nothing = await thread.events({ query: "?run=r_1", lastEventId: last?.id });
  assert.equal(nothing.status, 204);
});

test("what makes no sense is refused by name", async () => {
  const thread = await bobbin.client.thread("worker");
  await thread.ask("hello");
  for (const [query, status, field] of /** @type {const} */ ([
    ["?run=r_9", 404, "run"],
    ["?run=7", 404, "run"],
    ["?after=m_x_1", 404, "after"],
    ["?run=r_1&after=m_x_1", 400, "after"],
  ])) {
    const answer = await thread.send("GET", `/events${query}`);
    assert.deepEqual([answer.status, answer.json.error.field], [status, field], answer.text);
  }
  const socket = await thread.send("GET", "/stream?run=r_1");
  assert.equal(socket.status, 400, socket.text);
});

test("a feed that is cut again and again gives the same messages and one end", async () => {
  const random = chance("feed");
  const thread = await bobbin.client.thread("worker");
  const { messageId } = await thread.accepted("hello");
  /** @type {string | undefined} */
  let lastEventId;
  let text = "";
  const messages = new Map();
  let ends = 0;
  while (ends === 0) {
    const reader = await thread.events({ query: `?after=${messageId}`, lastEventId, cutAfter: random.between(1, 3000) });
    await over(reader);
    for (const { event, data } of reader.events) {
      if (event === "message_chunk") text = Buffer.concat([Buffer.from(text).subarray(0, data.offset), Buffer.from(data.chunk)]).toString();
      if (event === "message_data") messages.set(data.message_id, data.data);
      if (event === "run_ended") ends += 1;
    }
    lastEventId = reader.lastId ?? lastEventId;
  }
  assert.equal(text, LONG);
  const stored = await thread.messages();
  assert.deepEqual([...messages.keys()], stored.slice(1).map(({ id }) => id));
});

test("a run of many megabytes is told whole, and to a slow reader too", async () => {
  const thread = await bobbin.client.thread("large");
  await thread.ask("go", {}, { withinMs: 100_000 });
  const reader = await thread.events({ query: "?run=r_1" });
  reader.response.pause();
  await sleep(2000);
  reader.response.resume();
  await over(reader);
  assert.ok(reader.whole);
  assert.ok(reader.bytes > 12_000_000, `${reader.bytes} bytes`);
  const told = reader.events.filter(({ event }) => event === "message_data").map(({ data }) => data.data.id);
  assert.deepEqual(told, (await thread.messages()).map(({ id }) => id));
  assert.equal(reader.events.at(-1)?.event, "run_ended");
});

test("a run that waits keeps its feed, and goes on in it", async () => {
  const thread = await bobbin.client.thread("payer");
  const { messageId } = await thread.accepted("hello");
  const reader = await thread.events({ query: `?after=${messageId}` });
  const parked = await reader.next("that it waits", ({ event }) => event === "run_parked");
  assert.deepEqual([parked.data.pauseKind, parked.data.waits.length], ["human", 1]);
  const late = await thread.events({ query: "?run=r_1" });
  await late.next("that it waits", ({ event }) => event === "run_parked");
  const decided = await thread.send("POST", `/waits/${parked.data.waits[0].id}`, { decision: "approve" });
  assert.equal(decided.status, 200, decided.text);
  for (const each of [reader, late]) {
    await over(each);
    assert.ok(each.whole);
    assert.equal(each.events.at(-1)?.data.outcome, "completed");
  }
});

test("a stop ends the feed of what runs", async () => {
  const thread = await bobbin.client.thread("worker");
  const first = await thread.accepted("hello");
  const feed = await thread.events({ query: `?after=${first.messageId}` });
  await feed.next("a first piece", ({ event }) => event === "message_data");
  assert.equal((await thread.send("POST", "/stop")).status, 200);
  await over(feed);
  assert.ok(feed.whole);
  assert.deepEqual([feed.events.at(-1)?.event, feed.events.at(-1)?.data.outcome], ["run_ended", "stopped"]);
});

test("killed in the middle: the feed breaks off, and goes on where it was", async () => {
  const thread = await bobbin.client.thread("talker");
  const { messageId } = await thread.accepted("hello");
  const reader = await thread.events({ query: `?after=${messageId}` });
  const told = () => reader.events.map(({ event, data }) => (event === "message_chunk" ? data.chunk : "")).join("");
  await until("the text is there that is lost", () => told() === LOST, { describe: () => told() });
  await bobbin.server.crash();
  await over(reader);
  assert.equal(reader.whole, false, "it is not taken for whole");
  const again = await thread.events({ query: `?after=${messageId}`, lastEventId: reader.lastId });
  await over(again);
  assert.ok(again.whole);
  const reset = kinds(again).indexOf("message_reset");
  assert.ok(reset >= 0, `the lost text is taken back: ${kinds(again)}`);
  assert.deepEqual(kinds(again).filter((kind) => kind === "run_ended").length, 1);
  assert.equal(again.events.at(-1)?.data.outcome, "completed");
  assert.equal(talker.model.asked.length, 2);
});
