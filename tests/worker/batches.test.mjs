// Read-only calls of one reply run at the same time: their duration, the tool server's view, and a kill in the middle.

import assert from "node:assert/strict";
import { say, textOf, use } from "./support/model.mjs";
import { sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/tool.mjs").Received} Received */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const TAKES_MS = 300;
const unknown = (/** @type {string} */ name) =>
  `The runtime restarted while "${name}" was running. It may or may not have taken effect. Check before trying again.`;

/** The tool server's record: a call's word, and when it began and ended. @type {{ word: string, from: number, to: number }[]} */
const seen = [];

/**
 * Answers each call after a delay.
 * @param {string} did @param {(word: string) => number} takes @returns {(received: Received) => Promise<string>}
 */
const slowly = (did, takes = () => TAKES_MS) => async ({ args }) => {
  const call = { word: args.word, from: Date.now(), to: 0 };
  seen.push(call);
  await sleep(takes(args.word));
  call.to = Date.now();
  return `${did} ${args.word}`;
};

const reads = { tier: "read_only" };
bobbin.tool("look", slowly("saw"), reads);
bobbin.tool("write", slowly("wrote"));
bobbin.tool("uneven", slowly("saw", (word) => ({ one: 400, two: 50, three: 200 })[word] ?? 0), reads);
bobbin.tool("fails", () => ({ status: 500, body: "no luck" }), reads);

/**
 * Makes these calls in one reply, then says that it is done.
 * @param {...[string, string]} calls @returns {import("./support/model.mjs").Script}
 */
const uses = (...calls) => ({ messages }) =>
  messages.at(-1)?.role === "tool" ? say("done") : use(...calls.map(([name, word]) => ({ name, args: { word } })));

const together = { parallelToolCalls: true, parallelReadOnly: true };
const oneByOne = { parallelToolCalls: true };

/** @param {string} name @param {[string, string][]} calls @param {object} [prompt] */
const agent = (name, calls, prompt = together) =>
  bobbin.agent(name, uses(...calls), { tools: ["look", "write", "uneven", "fails", "kept", "lost", "charge"], prompt });

/** @type {[string, string][]} */
const three = [["look", "a"], ["look", "b"], ["look", "c"]];
const quick = agent("quick", three);
const patient = agent("patient", three, oneByOne);
const mixed = agent("mixed", [["look", "r1"], ["look", "r2"], ["write", "w"], ["look", "r3"], ["look", "r4"]]);
/** @type {[string, string][]} */
const orderly = [["uneven", "one"], ["uneven", "two"], ["uneven", "three"]];
const unsorted = agent("unsorted", orderly);
const sorted = agent("sorted", orderly, oneByOne);
const partly = agent("partly", [["look", "x"], ["fails", "y"], ["look", "z"]]);

/** Measures the time from message to reply, in ms. @param {import("./support/suite.mjs").Agent} of */
async function took({ name }) {
  const thread = await bobbin.client.thread(name);
  await thread.ask("hello");
  const from = Date.now();
  await thread.ask("again");
  return Date.now() - from;
}

test("three calls of 300 ms take less than 500 ms together, and 900 ms or more one by one", async () => {
  assert.ok((await took(patient)) >= 3 * TAKES_MS);
  // Take the fastest of three, because a machine can be busy for a moment.
  const times = [await took(quick), await took(quick), await took(quick)];
  assert.ok(Math.min(...times) >= TAKES_MS && Math.min(...times) < 500, `${times}`);
});

test("a call that writes is alone, and in its place", async () => {
  const thread = await bobbin.client.thread(mixed.name);
  await thread.ask("go");
  const call = (/** @type {string} */ word) => seen.find((one) => one.word === word) ?? assert.fail(`${word} was not seen`);
  const [r1, r2, w, r3, r4] = [call("r1"), call("r2"), call("w"), call("r3"), call("r4")];
  assert.ok(r2.from < r1.to && r1.from < r2.to, "the first two at the same time");
  assert.ok(r4.from < r3.to && r3.from < r4.to, "the last two as well");
  assert.ok(Math.max(r1.to, r2.to) <= w.from && w.to <= Math.min(r3.from, r4.from), JSON.stringify(seen));
  assert.deepEqual(await thread.results(), ["saw r1", "saw r2", "wrote w", "saw r3", "saw r4"]);
});

test("messages, ids and frames are the same as one by one, whatever order the results come in", async () => {
  const told = [];
  for (const { name } of [unsorted, sorted]) {
    const thread = await bobbin.client.thread(name);
    const events = await thread.events();
    await thread.ask("go");
    const own = (/** @type {string} */ text) => text.replaceAll(thread.id, "T").replaceAll(thread.id.split("-")[0] ?? "", "T").replaceAll(name, "NAME");
    await until("the run has ended", () => events.events.some(({ event }) => event === "stopped"));
    const frames = events.events
      .filter(({ event }) => ["tool_started", "tool_completed", "message_data", "step_started", "step_completed"].includes(event))
      .map(({ event, data }) => own(`${event} ${data.tool ?? ""} ${data.data?.id ?? ""} ${data.data?.content ?? ""}`));
    const rows = (await thread.messages()).map(({ id, role, content, tool_status }) => own(JSON.stringify([id, role, content, tool_status])));
    told.push({ frames, rows });
  }
  assert.ok((told[0]?.frames.length ?? 0) >= 11, JSON.stringify(told[0]));
  assert.deepEqual(told[0], told[1]);
});

test("a call that fails ends none of the others", async () => {
  const thread = await bobbin.client.thread(partly.name);
  await thread.ask("go");
  assert.deepEqual(await thread.results(), ["saw x", "http 500 from fails: no luck", "saw z"]);
  assert.deepEqual((await thread.logged("tool_call")).map(({ state, tier }) => [state, tier]), [
    ["succeeded", "read_only"],
    ["failed", "read_only"],
    ["succeeded", "read_only"],
  ]);
});

// Kills in the middle of a batch.

const kept = bobbin.tool("kept", ({ args }) => `kept ${args.word}`, reads);
/** A tool that is in its first call when the server is killed. */
const slow = (/** @type {Received} */ { n, closed, args }) => (n === 1 ? closed.then(() => "too late") : `read ${args.word}`);
const lost = bobbin.tool("lost", slow, reads);
const charge = bobbin.tool("charge", slow);
const killed = agent("killed", [["lost", "a"], ["kept", "b"], ["kept", "c"]]);
const charging = agent("charging", [["kept", "d"], ["kept", "e"], ["charge", "f"], ["kept", "g"], ["kept", "h"]]);

test("killed in the middle: what had its result keeps it, what only reads is read again, what writes is not", async () => {
  const threads = [await bobbin.client.thread(killed.name), await bobbin.client.thread(charging.name)];
  for (const thread of threads) await thread.accepted("go");
  await lost.call(1);
  await charge.call(1);
  await kept.call(4);
  // The responses are on their way back.
  await sleep(300);
  await bobbin.server.crash();
  await lost.call(2, 5000);
  for (const thread of threads) await thread.idle();

  assert.deepEqual(await threads[0]?.results(), ["read a", "kept b", "kept c"]);
  assert.deepEqual(await threads[1]?.results(), ["kept d", "kept e", unknown("charge"), "kept g", "kept h"]);
  assert.equal(lost.received[1]?.key, lost.received[0]?.key, "the same key");
  assert.deepEqual([lost.received.length, charge.received.length], [2, 1]);
  const times = (/** @type {string} */ word) => kept.received.filter(({ args }) => args.word === word).length;
  assert.deepEqual(["b", "c", "d", "e", "g", "h"].map(times), [1, 1, 1, 1, 1, 1]);
  const { messages } = await killed.model.request(2);
  assert.deepEqual(messages.filter(({ role }) => role === "tool").map(textOf), ["read a", "kept b", "kept c"]);
});
