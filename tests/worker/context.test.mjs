// The context of requests in the real product: a thread outgrows its window, is summarized, and is killed during that.

import assert from "node:assert/strict";
import { say } from "./support/model.mjs";
import { sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

/** @typedef {import("./support/model.mjs").Asked} Asked */

/** @param {Asked} asked */
const isSummary = ({ messages }) => messages[0]?.content.startsWith("You keep the memory");

/** Returns the words that begin with `fact-`. @param {string} text */
const facts = (text) => [...new Set(text.match(/fact-\w+/g))].sort().join(" ");

/** The duration of a summary request. */
let pauseMs = 0;

const clerk = bobbin.agent(
  "clerk",
  (asked) => {
    if (!isSummary(asked)) return say("fine");
    return async (out, all) => {
      // End with the client. A remaining timer would keep the process alive.
      const over = new AbortController();
      await Promise.race([sleep(pauseMs, undefined, over), out.closed]);
      over.abort();
      await say(`Known: ${facts(asked.messages[1]?.content)}.`)(out, all);
    };
  },
  { prompt: { context: { maxInputTokens: 1_500 }, summary: { minTurns: 2, maxTokens: 200 } } },
);

/** @param {number} n */
const said = (n) => `fact-${n} ${"word ".repeat(80)}`;

test("a thread that outgrows its window is summarised, and says so", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  const socket = await thread.stream();
  const empty = (await thread.send("GET", "/context")).json;
  assert.equal(empty.summary, null);
  assert.equal(empty.budget, 1_500);
  for (let n = 0; n < 30; n++) await thread.ask(said(n));
  await until("a summary holds", async () => (await thread.send("GET", "/context")).json.summary !== null);
  await thread.ask("one more");
  const { summary, summaries, used } = (await thread.send("GET", "/context?history=true")).json;
  assert.match(summary.text, /fact-0 /);
  assert.ok(summaries.length >= 1 && summaries[0].epoch === summary.epoch && used <= 1);
  const last = clerk.model.asked.filter((asked) => !isSummary(asked)).at(-1);
  assert.match(last?.messages[1]?.content, /^Summary of the conversation so far \(the messages themselves are kept\):\n\nKnown: fact-0 /);
  const updated = socket.frames.filter((/** @type {any} */ frame) => frame.type === "event" && frame.eventType === "summary_updated");
  assert.ok(updated.length >= 1 && updated.every((/** @type {any} */ { data }) => data.upto.startsWith("m_")));
  assert.ok(socket.frames.some((/** @type {any} */ frame) => frame.type === "progress" && /^Summarising \d+ earlier turns$/.test(frame.message)));
  const { logs } = (await thread.send("GET", "/logs?limit=500")).json;
  assert.ok(logs.some((/** @type {{ purpose?: string }} */ { purpose }) => purpose === "summary"));
  socket.close();
});

test("kill -9 in the middle of a summary: turns go on, and it is made again by itself", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  for (let n = 0; n < 5; n++) await thread.ask(said(n));
  const before = clerk.model.asked.filter(isSummary).length;
  pauseMs = 60_000;
  const asked = await thread.send("POST", "/context/summarize", {});
  assert.equal(asked.status, 202, asked.text);
  assert.ok(asked.json.upto.startsWith("m_") && asked.json.epoch === 0);
  await until("the model is asked", () => clerk.model.asked.filter(isSummary).length > before);
  // From now on responses are immediate.
  pauseMs = 0;
  await bobbin.server.crash();
  assert.equal((await thread.ask("goes on")).message.content, "fine");
  await until("it is made again and stored", async () => (await thread.send("GET", "/context")).json.summary !== null, { withinMs: 20_000 });
  const { summary } = (await thread.send("GET", "/context")).json;
  assert.equal(summary.epoch, 1);
  assert.match(summary.text, /fact-0 /);
  assert.equal((await thread.send("DELETE", "/context/summary")).status, 204);
  assert.equal((await thread.send("GET", "/context")).json.summary, null);
  assert.equal((await thread.send("GET", "/messages?limit=100")).json.total, 12);
});
