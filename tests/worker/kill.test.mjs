// Kills the whole server (SIGKILL to every process) in every phase of a run and restarts it on the same storage. No
// request wakes a thread. The runs continue by themselves, nothing is lost, and nothing happens twice.
//
// BOBBIN_SOAK_SECONDS adds rounds of kills at random moments for that long, and the cases that take minutes.

import assert from "node:assert/strict";
import { hang, inTurn, say, stallAfter, textOf, use } from "./support/model.mjs";
import { chance, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";
import { Transcript } from "./support/transcript.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/suite.mjs").Agent} Agent */

const SOAK_MS = Number(process.env.BOBBIN_SOAK_SECONDS ?? 0) * 1000;
/** The time limit for a run to continue after a restart, without any request. */
const RESUMES_MS = 5000;

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const unknown = (/** @type {string} */ name) =>
  `The runtime restarted while "${name}" was running. It may or may not have taken effect. Check before trying again.`;

const results = (/** @type {Record<string, any>[]} */ messages) =>
  messages.filter(({ role }) => role === "tool").map(textOf);

/**
 * Calls a tool once, then replies with its result.
 * @param {string} name @param {object} [args] @returns {import("./support/model.mjs").Script}
 */
const usesOnce = (name, args = {}) => ({ messages }) => {
  const [result] = results(messages);
  return result === undefined ? use({ name, args }) : say(`got: ${result}`);
};

/** A tool that is in its first call when the server is killed. */
const slow = (/** @type {import("./support/tool.mjs").Received} */ received) =>
  received.n === 1 ? received.closed.then(() => "too late") : "done";

const charge = bobbin.tool("charge", slow);
const store = bobbin.tool("store", slow, { idempotent: true });
const step = bobbin.tool("step", async ({ args }) => {
  await sleep(40);
  return `did ${args.word}`;
});
bobbin.native("pause", "wait", { type: "object", properties: { seconds: { type: "number" } }, required: ["seconds"] });

const phases = {
  beforeFirstChunk: bobbin.agent("silent", inTurn(hang(), say("I am back."))),
  inText: bobbin.agent("talking", inTurn(stallAfter("This attempt is lost – 日本 🧵.", 6), say("This one is kept – 日本.", { chunks: 5 }))),
  inNative: bobbin.agent("pausing", usesOnce("pause", { seconds: 30 }), { tools: ["pause"] }),
  inHttp: bobbin.agent("charging", usesOnce("charge"), { tools: ["charge"] }),
  inIdempotentHttp: bobbin.agent("storing", usesOnce("store"), { tools: ["store"] }),
  withQueue: bobbin.agent("joined", inTurn(hang(), say("to the first"), say("to all of you"))),
  afterTool: bobbin.agent(
    "between",
    (asked) => (asked.n === 1 ? use({ name: "step", args: { word: "it" } }) : asked.n === 2 ? hang() : say("after the tool")),
    { tools: ["step"] },
  ),
};
const finished = bobbin.agent("finished", () => say("long done"));
const halted = bobbin.agent("halted", hang);

/** @type {Record<keyof typeof phases | "finished" | "halted", Thread>} */
let threads;
/** @type {import("./support/events.mjs").EventReader} */
let reader;
const transcript = new Transcript();

test("a kill in every phase: every run goes on within 5 s, without any request", async () => {
  const made = await Promise.all(
    [...Object.values(phases), finished, halted].map(async ({ name }) => [name, await bobbin.client.thread(name)]),
  );
  const byAgent = Object.fromEntries(made);
  threads = /** @type {typeof threads} */ (
    Object.fromEntries(Object.entries({ ...phases, finished, halted }).map(([phase, { name }]) => [phase, byAgent[name]]))
  );
  reader = await threads.inText.events();
  reader.onEvent = ({ event, data }) => transcript.take(event, data);

  await threads.finished.ask("hello");
  await threads.halted.accepted("hello");
  await halted.model.request(1);
  assert.equal((await threads.halted.send("POST", "/stop")).status, 200);
  for (const phase of /** @type {(keyof typeof phases)[]} */ (Object.keys(phases))) await threads[phase].accepted("hello");
  await phases.beforeFirstChunk.model.request(1);
  await until("the text has begun", () => transcript.seen.chunk >= 6);
  await phases.inNative.model.request(1);
  await charge.call(1);
  await store.call(1);
  await phases.withQueue.model.request(1);
  for (const content of ["two", "three"]) await threads.withQueue.accepted(content);
  await phases.afterTool.model.request(2);
  const native = await threads.inNative.stream();
  native.close();
  await until("the native tool runs", async () => {
    const [, call] = await threads.inNative.messages();
    return call?.tool_calls !== null && call !== undefined;
  });

  await bobbin.server.crash();

  const second = [phases.beforeFirstChunk, phases.inText, phases.inNative, phases.inHttp, phases.withQueue];
  await Promise.all([
    ...second.map(({ model }) => model.request(2, RESUMES_MS)),
    phases.afterTool.model.request(3, RESUMES_MS),
    store.call(2, RESUMES_MS),
  ]);
  for (const thread of Object.values(threads)) await thread.idle();
});

test("killed before the first chunk: asked again, answered once", async () => {
  assert.deepEqual(await threads.beforeFirstChunk.lines(), [
    ["user", "hello"],
    ["assistant", "I am back."],
  ]);
  assert.equal(phases.beforeFirstChunk.model.asked.length, 2);
});

test("killed in the middle of a text: a resumed stream drops it and brings the new one", async () => {
  assert.equal(reader.ended, true, "the stream died with the server");
  const again = await threads.inText.events({ lastEventId: reader.lastId });
  again.onEvent = ({ event, data }) => transcript.take(event, data);
  for (const { event, data } of again.events) transcript.take(event, data);
  await again.next("the final message", ({ event, data }) => event === "message_data" && data.data.role === "assistant");
  assert.equal(transcript.seen.reset, 1);
  assert.equal(transcript.seen.snapshot, 1, "only the one of the start");
  assert.deepEqual(transcript.lines(), [
    ["user", "hello"],
    ["assistant", "This one is kept – 日本."],
  ]);
  assert.deepEqual(await threads.inText.lines(), transcript.lines());
  again.close();
});

test("killed during a native tool: it is not run again, and the model gets a clear result", async () => {
  const messages = await threads.inNative.messages();
  assert.deepEqual(messages.map(({ role, content }) => [role, content]), [
    ["user", "hello"],
    ["assistant", messages[1].content],
    ["tool", unknown("pause")],
    ["assistant", `got: ${unknown("pause")}`],
  ]);
});

test("killed during an http tool: it is not called again, and the model gets a clear result", async () => {
  assert.equal(charge.received.length, 1);
  assert.deepEqual((await threads.inHttp.lines()).slice(2), [
    ["tool", unknown("charge")],
    ["assistant", `got: ${unknown("charge")}`],
  ]);
});

test("killed during an idempotent http tool: called again with the same key", async () => {
  assert.equal(store.received.length, 2);
  const [first, second] = store.received;
  assert.equal(second?.key, first?.key);
  assert.deepEqual(second?.args, first?.args);
  assert.deepEqual((await threads.inIdempotentHttp.lines()).slice(2), [
    ["tool", "done"],
    ["assistant", "got: done"],
  ]);
});

test("messages that waited in the queue come after the step that was repeated, in order", async () => {
  assert.deepEqual(await threads.withQueue.lines(), [
    ["user", "hello"],
    ["assistant", "to the first"],
    ["user", "two"],
    ["user", "three"],
    ["assistant", "to all of you"],
  ]);
  const { messages } = await phases.withQueue.model.request(3);
  assert.deepEqual(messages.filter(({ role }) => role === "user").map(textOf), ["hello", "two", "three"]);
});

test("killed between two steps: the tool's result is kept and the tool is not called again", async () => {
  assert.equal(step.received.length, 1);
  assert.equal(phases.afterTool.model.asked.length, 3);
  assert.deepEqual((await threads.afterTool.lines()).slice(2), [
    ["tool", "did it"],
    ["assistant", "after the tool"],
  ]);
});

test("threads that were done or stopped stay so; afterwards all are quiet", async () => {
  assert.deepEqual(await threads.finished.lines(), [
    ["user", "hello"],
    ["assistant", "long done"],
  ]);
  assert.equal((await threads.halted.diagnostics()).state, "stopped");
  assert.equal(halted.model.asked.length, 1);
  const all = { ...phases, finished, halted };
  await bobbin.quiet(
    Object.entries(all).map(([phase, { model }]) => ({ thread: threads[/** @type {keyof typeof all} */ (phase)], model })),
  );
});

bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`, { chunks: 3 }));

test("killed while messages are accepted: every accepted one is kept, every retried one is stored once", async () => {
  const random = chance("accept");
  const all = await Promise.all(Array.from({ length: 4 }, () => bobbin.client.thread("echo")));
  /** @type {{ thread: Thread, content: string, key: string, accepted: boolean }[]} */
  const posts = [];
  let down = false;
  const post = async (/** @type {Thread} */ thread) => {
    for (let n = 0; !down; n++) {
      const content = `message ${n}`;
      const key = `${thread.id}-${n}`;
      const entry = { thread, content, key, accepted: false };
      posts.push(entry);
      const answer = await thread.post(content, {}, { headers: { "idempotency-key": key } }).catch(() => undefined);
      entry.accepted = answer?.status === 202;
      if (!entry.accepted) return;
    }
  };
  const posting = all.map(post);
  const enough = random.between(20, 60);
  await until(`${enough} messages are accepted`, () => posts.filter(({ accepted }) => accepted).length >= enough);
  const killed = bobbin.server.down();
  await Promise.all(posting);
  down = true;
  await killed;
  await bobbin.server.up();

  const accepted = posts.filter((entry) => entry.accepted);
  for (const thread of all) {
    const stored = (await thread.messages()).filter(({ role }) => role === "user").map(({ content }) => content);
    const mine = accepted.filter((entry) => entry.thread === thread).map(({ content }) => content);
    assert.deepEqual(stored.slice(0, mine.length), mine, "accepted messages are there, in order");
    assert.ok(stored.length <= mine.length + 1, "and at most the one whose answer was lost");
  }
  for (const entry of posts.slice(-8)) {
    const headers = { "idempotency-key": entry.key };
    assert.equal((await entry.thread.post(entry.content, {}, { headers })).status, 202);
  }
  for (const thread of all) {
    await thread.idle();
    const messages = await thread.messages();
    const stored = messages.filter(({ role }) => role === "user").map(({ content }) => content);
    assert.equal(new Set(stored).size, stored.length, "none twice");
    for (const { content } of posts.slice(-8).filter((entry) => entry.thread === thread)) {
      assert.equal(stored.filter((text) => text === content).length, 1);
    }
    assert.equal(messages.at(-1)?.role, "assistant", "the last message is answered");
  }
});

const awaited = bobbin.agent("awaited", inTurn(hang(), say("worth the wait")));

test("who waited when the server died asks again with the same key and gets the run's answer", async () => {
  const thread = await bobbin.client.thread("awaited");
  const options = { headers: { "idempotency-key": "patient" } };
  const lost = thread.ask("please wait", {}, options);
  await awaited.model.request(1);
  const rejected = assert.rejects(lost);
  await bobbin.server.down();
  await rejected;
  await bobbin.server.up();
  const { outcome, message } = await thread.ask("please wait", {}, options);
  assert.deepEqual([outcome, message.content], ["completed", "worth the wait"]);
  assert.equal((await thread.page()).total, 2);
});

/** An agent of twelve steps with a tool that must not be called twice. */
const chain = bobbin.agent(
  "chain",
  ({ messages }) => {
    const done = results(messages).length;
    return done < 12 ? use({ name: "step", args: { word: `${done}` } }) : say(`did ${done}`, { chunks: 8, everyMs: 5 });
  },
  { tools: ["step"] },
);

/** Kills the server at random moments while threads work, and checks the results. @param {string} round @param {number} kills */
async function chaos(round, kills) {
  const random = chance(round);
  const first = step.received.length;
  const all = await Promise.all(Array.from({ length: 3 }, () => bobbin.client.thread("chain")));
  await Promise.all(all.map((thread) => thread.accepted("go")));
  for (let n = 0; n < kills; n++) {
    await sleep(random.between(50, 900));
    await bobbin.server.crash();
  }
  for (const thread of all) {
    await thread.idle(60_000);
    const messages = await thread.messages();
    assert.equal(messages.length, 1 + 12 * 2 + 1, `${round}: ${JSON.stringify(messages.map(({ role }) => role))}`);
    assert.equal(messages.at(-1).content, "did 12");
    for (const { content } of messages.filter(({ role }) => role === "tool")) {
      assert.ok(/^did \d+$/.test(content) || content === unknown("step"), content);
    }
  }
  const keys = step.received.slice(first).map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, `${round}: no call was made twice`);
  await bobbin.quiet(all.map((thread) => ({ thread, model: chain.model })));
}

test("killed at random moments of a long turn, again and again", () => chaos("chain", 2));

if (SOAK_MS > 0) {
  test(`soak: random kills for ${SOAK_MS / 1000} s`, async () => {
    const end = Date.now() + SOAK_MS;
    for (let round = 0; Date.now() < end; round++) {
      await chaos(`soak ${round}`, 1 + (round % 3));
      console.log(`round ${round} of kills survived, ${Math.round((end - Date.now()) / 1000)} s to go`);
    }
  }, SOAK_MS + 300_000);

  const doomed = bobbin.agent("doomed", hang);

  test("soak: a step that dies every time is given up, with its reason in the history", async () => {
    const thread = await bobbin.client.thread("doomed");
    await thread.accepted("go");
    for (let n = 1; n <= 7; n++) {
      await doomed.model.request(n, 90_000);
      await bobbin.server.crash();
    }
    await thread.idle(120_000);
    const last = (await thread.messages()).at(-1);
    assert.equal(last.metadata.status_kind, "run_failed");
    assert.match(JSON.stringify(last), /recovery_exhausted/);
    assert.equal(doomed.model.asked.length, 7, "the first call and six recoveries");
    await bobbin.quiet([{ thread, model: doomed.model }]);
  }, 600_000);
}
