// Effects of a thread: on time, at least once, repeated, and through kills; and an idle object has no alarm.

import assert from "node:assert/strict";
import { hang, inTurn, say } from "./support/model.mjs";
import { sampled, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const MANY = Number(process.env.BOBBIN_EFFECTS ?? sampled(1000, 300));

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const plain = bobbin.agent("plain", ({ last }) => say(`You said: ${last}`));
const slow = bobbin.agent("slow", inTurn(hang(), say("done")));
const ring = bobbin.effect("ring", () => "rung");
const hold = bobbin.effect("hold", ({ n, closed }) => (n === 1 ? closed.then(() => "too late") : "held"));
const fail = bobbin.effect("fail", () => ({ status: 500, body: "not today" }), { attempts: 2 });
bobbin.definitions.push(() =>
  bobbin.folder.write({ effects: { remind: { description: "Reminds.", run: { native: "queue_message" } } } }),
);

/** @param {Thread} thread @param {object} effect @returns {Promise<any>} */
async function schedule(thread, effect) {
  const answer = await thread.send("POST", "/effects", effect);
  assert.equal(answer.status, 201, answer.text);
  return answer.json.effect;
}

/** @param {Thread} thread @param {string} id @returns {Promise<any>} */
const look = async (thread, id) => (await thread.send("GET", `/effects/${id}`)).json.effect;

/** @param {Thread} thread @param {string} id @param {number} [withinMs] @returns {Promise<any>} */
const over = (thread, id, withinMs = 20_000) =>
  until(
    `the effect ${id} is over`,
    async () => {
      const effect = await look(thread, id);
      return !["pending", "processing"].includes(effect.status) && effect;
    },
    { withinMs },
  );

/** @param {import("./support/tool.mjs").Tool} tool @param {Thread} thread */
const of = (tool, thread) => tool.received.filter(({ body }) => body.threadId === thread.id);

/** @param {Thread} thread */
async function withoutAlarm(thread) {
  /** @type {unknown} */
  let last;
  await until(
    "no alarm",
    async () => {
      const { alarm, due } = await thread.diagnostics();
      last = { alarm, due };
      return alarm.at === null && !alarm.handlerRunning && due.length === 0;
    },
    // A thousand effects take longer on a machine that also compiles.
    { withinMs: 30_000, describe: () => last },
  );
}

test("an effect is a signed call at its time, and leaves no alarm", async () => {
  const thread = await bobbin.client.thread(plain.name);
  const effect = await schedule(thread, { name: "ring", args: { word: "x" }, delay: 1500 });
  assert.deepEqual([effect.status, effect.attempts, effect.name], ["pending", 0, "ring"]);
  const { alarm, due } = await thread.diagnostics();
  assert.deepEqual([alarm.at, due.map((/** @type {any} */ { what }) => what)], [effect.dueAt, ["effect"]]);
  const done = await over(thread, effect.id);
  assert.deepEqual([done.status, done.attempts, done.error], ["completed", 1, null]);
  const [received, ...more] = of(ring, thread);
  assert.equal(more.length, 0);
  assert.deepEqual(received?.args, { word: "x" });
  assert.equal(received?.body.effectId, effect.id);
  assert.equal(received?.key, effect.idempotencyKey);
  assert.ok(Number(received?.at) * 1000 >= effect.scheduledAt, "not before its time");
  await withoutAlarm(thread);
});

test("a reminder starts a run by itself", async () => {
  const thread = await bobbin.client.thread(plain.name);
  await schedule(thread, { name: "remind", args: { content: "tea" }, delay: 500 });
  const messages = await until("the answer", async () => {
    const messages = await thread.messages();
    return messages.length === 2 ? messages : undefined;
  });
  assert.deepEqual(
    messages.map(({ role, content, metadata }) => [role, content, metadata?.scheduledEffect?.name ?? null]),
    [["user", "tea", "remind"], ["assistant", "You said: tea", null]],
  );
  await withoutAlarm(thread);
});

test("one that is due in the middle of a turn does not wait for its end", async () => {
  const thread = await bobbin.client.thread(slow.name);
  await thread.accepted("hello");
  await slow.model.request(1);
  const effect = await schedule(thread, { name: "ring", delay: 300 });
  assert.equal((await over(thread, effect.id)).status, "completed");
  assert.equal((await thread.diagnostics()).state, "running");
  await thread.send("POST", "/stop");
});

test("one that repeats has a key of its own each time, until it is cancelled", async () => {
  const thread = await bobbin.client.thread(plain.name);
  const effect = await schedule(thread, { name: "ring", every: 1000, delay: 0 });
  await until("three calls", () => of(ring, thread).length >= 3);
  assert.equal((await thread.send("POST", `/effects/${effect.id}/cancel`)).json.action, "canceled");
  const calls = of(ring, thread);
  assert.equal(new Set(calls.map(({ key }) => key)).size, calls.length);
  const steps = calls.slice(1).map(({ body }, at) => body.scheduledAt - calls[at]?.body.scheduledAt);
  assert.ok(steps.every((step) => step % 1_000_000 === 0 && step > 0), `no drift: ${steps}`);
  await over(thread, effect.id);
  await withoutAlarm(thread);
  const before = of(ring, thread).length;
  await sleep(1500);
  assert.equal(of(ring, thread).length, before);
});

test("one that fails is tried again, given up, and can be replayed", async () => {
  const thread = await bobbin.client.thread(plain.name);
  const effect = await schedule(thread, { name: "fail" });
  const failed = await over(thread, effect.id);
  assert.deepEqual([failed.status, failed.attempts, failed.error], ["failed", 2, "http 500 from fail: not today"]);
  assert.equal(new Set(of(fail, thread).map(({ key }) => key)).size, 1);
  const replayed = (await thread.send("POST", `/effects/${effect.id}/run`)).json;
  assert.equal(replayed.action, "replayed");
  assert.equal((await over(thread, replayed.replayedId)).replayedFrom, effect.id);
  const { logs } = (await thread.send("GET", "/logs")).json;
  assert.equal(logs.filter((/** @type {any} */ { type }) => type === "effect_failure").length, 2);
});

test("kill -9: one under way is tried again with its key, one that came due meanwhile runs late, once", async () => {
  const thread = await bobbin.client.thread(plain.name);
  const held = await schedule(thread, { name: "hold" });
  await hold.call(1);
  const missed = await schedule(thread, { name: "ring", delay: 1500 });
  bobbin.server.kill();
  await sleep(2500);
  await bobbin.server.up();
  const second = await hold.call(2);
  assert.deepEqual([second.key, second.body.attempt], [hold.received[0]?.key, 2]);
  assert.deepEqual([(await over(thread, held.id)).status, (await over(thread, missed.id)).status], ["completed", "completed"]);
  assert.deepEqual([hold.received.length, of(ring, thread).length], [2, 1]);
  await withoutAlarm(thread);
});

test("a terminated thread takes no effects, and the ones it had are cancelled", async () => {
  const thread = await bobbin.client.thread(plain.name);
  const effect = await schedule(thread, { name: "ring", delay: 60_000 });
  await thread.send("POST", "/terminate");
  assert.equal((await look(thread, effect.id)).status, "agent_canceled");
  assert.equal((await thread.send("POST", "/effects", { name: "ring" })).json.error.code, "terminated");
  await withoutAlarm(thread);
});

test(
  `${MANY} effects: each once, none before its time, and no alarm after the last`,
  async () => {
    const thread = await bobbin.client.thread(plain.name);
    const before = of(ring, thread).length;
    const start = Date.now() + 4000 + MANY * 4;
    const spread = MANY * 5;
    const at = (/** @type {number} */ n) => start + Math.floor((n * spread) / MANY);
    let next = 0;
    const scheduler = async () => {
      for (let n = next++; n < MANY; n = next++) await schedule(thread, { name: "ring", args: { word: String(n) }, at: at(n) });
    };
    await Promise.all(Array.from({ length: 20 }, scheduler));
    const listed = (await thread.send("GET", "/effects?limit=1")).json;
    assert.deepEqual([listed.total, listed.effects.length], [MANY, 1]);
    await until("all are over", async () => (await thread.send("GET", "/effects?limit=1")).json.upcomingCount === 0, {
      withinMs: 4000 + MANY * 4 + spread + 120_000,
    });
    const calls = of(ring, thread).slice(before);
    assert.equal(calls.length, MANY);
    assert.equal(new Set(calls.map(({ key }) => key)).size, MANY);
    const late = calls.map(({ at: came, args }) => came - at(Number(args.word))).sort((a, b) => a - b);
    assert.ok(Number(late[0]) >= 0, `none before its time: ${late[0]} ms`);
    const part = (/** @type {number} */ share) => late[Math.floor((late.length - 1) * share)];
    console.log(`# late by: median ${part(0.5)} ms, 99 % ${part(0.99)} ms, most ${part(1)} ms`);
    await withoutAlarm(thread);
    const page = (await thread.send("GET", "/effects?limit=500&offset=500")).json;
    assert.equal(page.effects.length, Math.min(500, Math.max(0, MANY - 500)));
  },
  600_000,
);
