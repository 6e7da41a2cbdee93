// The two streams of a thread: resumable server-sent events, and the message socket.

import assert from "node:assert/strict";
import { exchange } from "./support/http.mjs";
import { after, inTurn, pieces, refuse, say, breakOff } from "./support/model.mjs";
import { chance, gate, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";
import { Transcript } from "./support/transcript.mjs";

/** @typedef {import("./support/events.mjs").EventReader} EventReader */
/** @typedef {import("./support/client.mjs").Thread} Thread */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

/** Characters of one to four bytes, so that offsets in bytes and in characters differ. */
const LONG = Array.from({ length: 60 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");

bobbin.tool("lookup", () => "found");
bobbin.agent("plain", ({ last }) => say(`You wrote: ${last}`, { chunks: 4 }));
bobbin.agent("talker", () => say(LONG, { chunks: 60, everyMs: 8 }));
bobbin.agent(
  "worker",
  ({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? say(LONG, { chunks: 40, everyMs: 5 })
      : async (out) => {
          for (const piece of pieces("Let me look that up – 日本 🧵.", 8)) await out.text(piece);
          await out.call({ name: "lookup", args: {} });
          await out.end();
        },
  { tools: ["lookup"] },
);

/** @param {any} message */
const finished = (message) => message.role === "assistant" && message.tool_calls === null && message.content !== null;

/** Waits for the final message of the thread on the stream. @param {EventReader} reader */
const answered = (reader) =>
  reader.next("the final message", ({ event, data }) => event === "message_data" && finished(data.data));

/** Feeds a reader's events to a transcript, which checks each of them. @param {EventReader} reader @param {Transcript} transcript */
function follow(reader, transcript) {
  for (const { event, data } of reader.events) transcript.take(event, data);
  reader.onEvent = ({ event, data }) => transcript.take(event, data);
}

/**
 * Checks that a transcript shows the thread's contents, and that the streamed text is the stored text.
 *
 * @param {Thread} thread
 * @param {Transcript} transcript
 */
async function matches(thread, transcript) {
  const stored = await thread.messages();
  assert.deepEqual(
    stored.map(({ id }) => transcript.text(id)),
    stored.map(({ content }) => content ?? ""),
  );
  for (const { id, content } of stored) {
    const streamed = transcript.streamed.get(id);
    if (streamed !== undefined) assert.equal(streamed, content ?? "", `the streamed text of ${id}`);
  }
}

test("the events of a turn: snapshot first, then steps, chunks and whole messages", async () => {
  const thread = await bobbin.client.thread("plain");
  await thread.ask("earlier");
  const reader = await thread.events();
  assert.equal(reader.status, 200);
  assert.match(reader.headers["content-type"] ?? "", /^text\/event-stream/);
  const snapshot = await reader.next("a snapshot", () => true);
  assert.equal(snapshot.event, "snapshot");
  assert.match(snapshot.id ?? "", /^\d+\.\d+$/);
  assert.deepEqual(
    { ...snapshot.data, messages: snapshot.data.messages.map((/** @type {any} */ { content }) => content) },
    { type: "snapshot", messages: ["earlier", "You wrote: earlier"], partial: null, state: "idle", hasMore: false },
  );

  await thread.accepted("hello");
  await answered(reader);
  const events = reader.events.slice(1);
  const kinds = [...new Set(events.map(({ event }) => event))];
  for (const kind of ["message_data", "step_started", "message_chunk"]) assert.ok(kinds.includes(kind), `${kind} in ${kinds}`);
  for (const { event, data } of events) assert.equal(data.type, event);
  const started = events.find(({ event }) => event === "step_started");
  assert.deepEqual([started?.data.step, started?.data.side, started?.id], [1, "a", undefined]);
  const chunks = events.filter(({ event }) => event === "message_chunk");
  assert.equal(chunks.map(({ data }) => data.chunk).join(""), "You wrote: hello");
  for (const { id, data } of chunks) {
    const end = data.offset + Buffer.byteLength(data.chunk);
    assert.match(id ?? "", new RegExp(`^\\d+\\.\\d+\\.[^.]+\\.${data.attempt}\\.${end}$`));
    assert.equal(data.depth, 0);
  }
  const transcript = new Transcript();
  for (const { event, data } of reader.events) transcript.take(event, data);
  await matches(thread, transcript);
  await reader.next("the end of the step", ({ event }) => event === "step_completed");
  reader.close();
});

/**
 * Follows a turn on a stream that is cut at random positions.
 *
 * @param {string} agent
 * @param {ReturnType<typeof chance>} random
 */
async function cutAgainAndAgain(agent, random) {
  const thread = await bobbin.client.thread(agent);
  const transcript = new Transcript();
  await thread.accepted("talk");
  const complete = () => [...transcript.messages.values()].some(finished);
  /** @type {string | undefined} */
  let lastEventId;
  let cuts = 0;
  for (;;) {
    const reader = await thread.events({ lastEventId, cutAfter: random.between(1, 4000) });
    follow(reader, transcript);
    await until("the stream is cut or complete", () => reader.ended || complete(), {
      describe: () => ({ resumedAt: lastEventId, events: reader.events.slice(-3) }),
    });
    lastEventId = reader.lastId ?? lastEventId;
    reader.close();
    if (complete()) break;
    cuts++;
    if (random.between(0, 3) === 0) await sleep(random.between(0, 60));
  }
  await thread.idle();
  assert.equal(transcript.seen.snapshot, 1, "every resumption went on where the last one ended");
  assert.equal(transcript.seen.reset, 0);
  await matches(thread, transcript);
  return cuts;
}

for (const agent of ["talker", "worker"]) {
  test(`a stream that is cut again and again gives the same text (${agent})`, async () => {
    const rounds = Array.from({ length: 8 }, (_, round) => cutAgainAndAgain(agent, chance(`${agent} ${round}`)));
    const cuts = await Promise.all(rounds);
    assert.ok(cuts.reduce((sum, count) => sum + count) >= 16, `cut ${cuts} times`);
  });
}

test("after the end a stream resumes at every event it ever sent", async () => {
  const random = chance("resume");
  const thread = await bobbin.client.thread("worker");
  const reader = await thread.events();
  const transcript = new Transcript();
  /** @type {{ id: string, transcript: Transcript }[]} */
  const points = [];
  reader.onEvent = ({ event, data, id }) => {
    transcript.take(event, data);
    if (id !== undefined) points.push({ id, transcript: new Transcript(transcript) });
  };
  await thread.accepted("talk");
  await answered(reader);
  await thread.idle();
  reader.close();
  await matches(thread, transcript);

  assert.ok(points.length > 40, `${points.length} points`);
  for (let n = 0; n < 25; n++) {
    const point = random.pick(points);
    const again = await thread.events({ lastEventId: point.id });
    const resumed = new Transcript(point.transcript);
    follow(again, resumed);
    await until(`a resumption at ${point.id} is complete`, () => [...resumed.messages.values()].some(finished), {
      describe: () => again.events,
    });
    again.close();
    assert.equal(resumed.seen.snapshot, 0, point.id);
    assert.ok(resumed.seen.chunk <= 1, "a missing suffix comes as one chunk");
    await matches(thread, resumed);
  }
});

const halves = gate();
bobbin.agent("halves", () => async (out) => {
  await out.text("The first half – 日本. ");
  await halves.passed;
  await out.text("The second half.");
  await out.end();
});

test("whoever comes in the middle of a text gets it from its start", async () => {
  const thread = await bobbin.client.thread("halves");
  await thread.accepted("go");
  const early = await thread.events();
  await early.next("the first half", ({ event, data }) => event === "message_chunk" || data.partial);
  const late = await thread.events();
  const transcript = new Transcript();
  follow(late, transcript);
  await until("the late reader shows the first half", () =>
    [...transcript.partial.values()].some(({ text }) => text === "The first half – 日本. "),
  );
  assert.equal(late.events[0]?.data.state, "running");
  halves.open();
  await answered(late);
  await matches(thread, transcript);
  early.close();
  late.close();
});

bobbin.agent("broken", inTurn(breakOff("This is lost, every word of it."), say("This is kept.", { chunks: 3 })));

test("a lost attempt is taken back: reset, then the next attempt's text", async () => {
  const thread = await bobbin.client.thread("broken");
  const reader = await thread.events();
  const transcript = new Transcript();
  follow(reader, transcript);
  await thread.accepted("go");
  await answered(reader);
  assert.equal(transcript.seen.reset, 1);
  const reset = reader.events.find(({ event }) => event === "message_reset");
  const chunks = reader.events.filter(({ event }) => event === "message_chunk");
  assert.deepEqual([...new Set(chunks.map(({ data }) => data.message_id))], [reset?.data.message_id], "one message, two attempts");
  assert.deepEqual(
    [...new Set(chunks.map(({ data }) => data.attempt))].sort(),
    [reset?.data.attempt - 1, reset?.data.attempt],
  );
  await matches(thread, transcript);

  // A client that disconnected during the lost attempt is informed, too.
  const lost = chunks.filter(({ data }) => data.attempt < reset?.data.attempt).at(-1);
  const again = await thread.events({ lastEventId: lost?.id });
  const resumed = new Transcript();
  resumed.take("message_chunk", { ...lost?.data, offset: 0 });
  follow(again, resumed);
  await answered(again);
  assert.equal(resumed.text(reset?.data.message_id), "This is kept.");
  again.close();
  reader.close();
});

test("an edited history gives a fresh snapshot, and so does an unknown id", async () => {
  const thread = await bobbin.client.thread("plain");
  const { message } = await thread.ask("hello");
  const reader = await thread.events();
  await reader.next("a snapshot", ({ event }) => event === "snapshot");
  const id = reader.lastId;
  reader.close();
  assert.equal((await thread.send("PATCH", `/messages/${message.id}`, { content: "edited" })).status, 200);
  for (const lastEventId of [id, "7.99.m_none.1.5", "no id at all"]) {
    const again = await thread.events({ lastEventId });
    const first = await again.next("an event", () => true);
    assert.equal(first.event, "snapshot", `after ${lastEventId}`);
    assert.deepEqual(first.data.messages.map((/** @type {any} */ { content }) => content), ["hello", "edited"]);
    again.close();
  }
});

test("a snapshot holds the newest 100 messages", async () => {
  const thread = await bobbin.client.thread("plain");
  for (let at = 0; at < 120; at++) await thread.accepted(`note ${at}`, { role: "system" });
  const reader = await thread.events();
  const { data } = await reader.next("a snapshot", ({ event }) => event === "snapshot");
  assert.equal(data.hasMore, true);
  assert.deepEqual(
    data.messages.map((/** @type {any} */ { content }) => content),
    Array.from({ length: 100 }, (_, at) => `note ${at + 20}`),
  );
  reader.close();
});

test("rows that were missed come one by one after a resumption", async () => {
  const thread = await bobbin.client.thread("plain");
  const reader = await thread.events();
  const transcript = new Transcript();
  follow(reader, transcript);
  await reader.next("a snapshot", () => true);
  const lastEventId = reader.lastId;
  reader.close();
  for (let at = 0; at < 5; at++) await thread.accepted(`note ${at}`, { role: "system" });
  await thread.ask("hello");
  const again = await thread.events({ lastEventId });
  follow(again, transcript);
  await answered(again);
  assert.equal(transcript.seen.snapshot, 1);
  await matches(thread, transcript);
  again.close();
});

test("missed rows are all there when their resumption is cut again and again", async () => {
  const random = chance("rows");
  const thread = await bobbin.client.thread("plain");
  const reader = await thread.events();
  const transcript = new Transcript();
  follow(reader, transcript);
  await reader.next("a snapshot", () => true);
  let lastEventId = reader.lastId;
  reader.close();
  const notes = Array.from({ length: 25 }, (_, at) => `note ${at}`);
  for (const note of notes) await thread.accepted(note, { role: "system" });
  await thread.ask("hello");
  const { total } = await thread.page({ limit: 1 });
  for (let resumed = 0; transcript.messages.size < total; resumed++) {
    assert.ok(resumed < 200, `still at ${lastEventId} with ${transcript.messages.size} of ${total}`);
    const again = await thread.events({ lastEventId, cutAfter: random.between(300, 3000) });
    follow(again, transcript);
    await until("the stream is cut or complete", () => again.ended || transcript.messages.size === total, {
      describe: () => ({ resumedAt: lastEventId, bytes: again.bytes, shown: transcript.messages.size, total }),
    });
    lastEventId = again.lastId ?? lastEventId;
    again.close();
  }
  assert.equal(transcript.seen.snapshot, 1);
  assert.deepEqual(transcript.lines().slice(0, notes.length), notes.map((note) => ["system", note]));
  await matches(thread, transcript);
});

test("the stream of a thread that does not exist is an error, not a stream", async () => {
  const answer = await exchange(bobbin.server.base, "GET", "/api/threads/00000000-0000-4000-8000-000000000000/events");
  assert.equal(answer.status, 404);
  assert.equal(answer.json.error.code, "thread_not_found");
});

test("the socket carries the same frames", async () => {
  const thread = await bobbin.client.thread("worker");
  const socket = await thread.stream();
  const transcript = new Transcript();
  socket.onFrame = (frame) => transcript.take(frame.type, frame);
  await thread.ask("go");
  await socket.next("the final message", ({ type, data }) => type === "message_data" && finished(data));
  const kinds = new Set(socket.frames.map(({ type }) => type));
  for (const kind of ["step_started", "message_chunk", "message_data", "tool_started", "tool_completed", "step_completed"]) {
    await socket.next(`a ${kind}`, ({ type }) => type === kind);
    assert.ok(kind === "step_completed" || kinds.has(kind), `${kind} in ${[...kinds]}`);
  }
  await matches(thread, transcript);
  const fields = (/** @type {string} */ kind) => socket.frames.find(({ type }) => type === kind);
  assert.deepEqual([fields("tool_started").tool, fields("tool_completed").tool], ["lookup", "lookup"]);
  assert.equal(fields("tool_completed").status, "success");
  assert.equal(fields("step_completed").stopped, false, "the first step goes on");
  assert.equal(socket.frames.filter(({ type }) => type === "step_completed").at(-1).stopped, true);
  for (const frame of socket.frames) {
    if (/^(step_|tool_)/.test(frame.type)) {
      assert.ok(Math.abs(frame.timestamp - Date.now()) < 60_000, "timestamps of frames are in milliseconds");
    }
  }
  const order = socket.frames.map(({ type }) => type).filter((type) => /^(step|tool)_/.test(type));
  assert.deepEqual(order, [
    "step_started",
    "tool_started",
    "tool_completed",
    "step_completed",
    "step_started",
    "step_completed",
  ]);
  socket.close();
});

bobbin.agent("falling", inTurn(refuse(503), refuse(503), say("unreached")), { model: { fallbacks: ["plain_model"] } });

test("the socket tells of model requests and fallbacks", async () => {
  const thread = await bobbin.client.thread("falling");
  const socket = await thread.stream();
  assert.equal((await thread.ask("hello")).message.content, "You wrote: hello");
  const requests = socket.frames.filter(({ type }) => type === "llm_request");
  assert.deepEqual(requests.map(({ model }) => model), ["falling_model", "falling_model", "plain_model"]);
  const fallback = await socket.next("the fallback", ({ type }) => type === "fallback_triggered");
  assert.deepEqual([fallback.from, fallback.to], ["falling_model", "plain_model"]);
  const response = await socket.next("the response", ({ type }) => type === "llm_response");
  assert.ok(response.latency >= 0 && typeof response.timestamp === "number");
  socket.close();
});

test("silent messages reach only the sockets and streams that asked for them", async () => {
  const thread = await bobbin.client.thread("plain");
  const sockets = { plain: await thread.stream(), all: await thread.stream("?includeSilent=true&depth=2") };
  const readers = { plain: await thread.events(), all: await thread.events({ query: "?includeSilent=true" }) };
  await thread.ask("between us", { silent: true });
  const secret = (/** @type {any} */ data) => data.data?.content === "between us";
  await sockets.all.next("the silent message", secret);
  await readers.all.next("the silent message", ({ data }) => secret(data));
  const final = (/** @type {any} */ data) => data.type === "message_data" && finished(data.data);
  await sockets.plain.next("the answer", final);
  await readers.plain.next("the answer", ({ data }) => final(data));
  assert.ok(!sockets.plain.frames.some(secret), "not on the socket");
  assert.ok(!readers.plain.events.some(({ data }) => secret(data)), "not on the stream");

  const fresh = await thread.events();
  const snapshot = await fresh.next("a snapshot", () => true);
  assert.deepEqual(snapshot.data.messages.map((/** @type {any} */ { content }) => content), ["You wrote: between us"]);
  for (const listener of [...Object.values(sockets), ...Object.values(readers), fresh]) listener.close();
});

test("a socket answers ping with pong, and a request without upgrade is refused", async () => {
  const thread = await bobbin.client.thread("plain");
  const socket = await thread.stream();
  socket.send("ping");
  await until("pong", () => socket.texts.includes("pong"));
  socket.send("anything else");
  socket.send("ping");
  await until("a second pong", () => socket.texts.filter((text) => text === "pong").length === 2);
  assert.equal(socket.closed, false);
  socket.close();
  const answer = await thread.send("GET", "/stream");
  assert.equal(answer.status, 400, answer.text);
  assert.equal(typeof answer.json.error.code, "string");
  const wrong = await thread.send("GET", "/stream?depth=deep", undefined, { headers: { accept: "text/event-stream" } });
  assert.equal(wrong.status, 400);
});

const joining = gate();
bobbin.agent("joined", inTurn(
  async (out) => {
    await out.text("The first half – 日本. ");
    await joining.passed;
    await out.text("The second half.");
    await out.end();
  },
  say("And to you."),
));

test("a message that comes in the middle of a text spoils no resumption", async () => {
  const thread = await bobbin.client.thread("joined");
  const reader = await thread.events();
  const transcript = new Transcript();
  follow(reader, transcript);
  await reader.next("a snapshot", () => true);
  await thread.accepted("go");
  await until("the first half", () => transcript.seen.chunk > 0);
  await thread.accepted("by the way");
  await reader.next("the second message", ({ data }) => data.data?.content === "by the way");
  const lastEventId = reader.lastId;
  reader.close();
  const again = await thread.events({ lastEventId });
  follow(again, transcript);
  joining.open();
  await until("both answers", () => [...transcript.messages.values()].filter(finished).length === 2);
  assert.equal(transcript.seen.snapshot, 1);
  await matches(thread, transcript);
  again.close();
});

const many = gate();
bobbin.agent("many", () => after(many.passed, say(LONG, { chunks: 30, everyMs: 2 })));

test("ten listeners of one thread see the same, and one that leaves disturbs none", async () => {
  const thread = await bobbin.client.thread("many");
  const transcripts = Array.from({ length: 10 }, () => new Transcript());
  const sockets = await Promise.all(
    transcripts.slice(0, 5).map(async (transcript) => {
      const socket = await thread.stream();
      socket.onFrame = (frame) => transcript.take(frame.type, frame);
      return socket;
    }),
  );
  const readers = await Promise.all(
    transcripts.slice(5).map(async (transcript) => {
      const reader = await thread.events();
      follow(reader, transcript);
      return reader;
    }),
  );
  const leaving = await thread.stream();
  await thread.accepted("go");
  many.open();
  await leaving.next("a chunk", ({ type }) => type === "message_chunk");
  leaving.connection.destroy();
  for (const transcript of transcripts) {
    await until("the whole answer", () => [...transcript.messages.values()].some(finished));
    await matches(thread, transcript);
  }
  for (const listener of [...sockets, ...readers]) listener.close();
});

test("items come with the messages that they are of, on both streams, and only when they are asked for", async () => {
  const thread = await bobbin.client.thread("worker");
  const reader = await thread.events({ query: "?items=1" });
  const socket = await thread.stream("?items=1");
  const plain = await thread.stream();
  await thread.ask("go");
  const ended = (/** @type {any} */ frame) => frame.type === "stopped";
  await reader.next("the end", ({ data }) => ended(data));
  await Promise.all([socket, plain].map((open) => open.next("the end", ended)));
  const items = (/** @type {any[]} */ frames) => frames.filter(({ type }) => type === "item");
  const seen = items(reader.events.map(({ data }) => data));
  assert.deepEqual(seen.map(({ itemType }) => itemType), ["agent_message", "command_execution", "agent_message"]);
  const ids = (/** @type {any[]} */ all) => all.map(({ itemId }) => itemId);
  assert.deepEqual(ids(items(socket.frames)), ids(seen));
  assert.deepEqual(items(plain.frames), []);
  const again = await thread.stream("?items=1");
  await until("a snapshot's items", () => items(again.frames).length === seen.length);
  assert.deepEqual(ids(items(again.frames)), ids(seen));
  for (const open of [socket, plain, again]) open.close();
  const refused = await exchange(bobbin.server.base, "GET", `/api/threads/${thread.id}/events?items=maybe`);
  assert.equal(refused.status, 400, refused.text);
});
