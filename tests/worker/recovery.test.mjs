// A process is killed with a hundred runs in progress. Each calls its model again soon after the restart, without any
// request, and reads are not delayed.

import assert from "node:assert/strict";
import { hang } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
const busy = bobbin.agent("busy", hang);

const RUNS = 100;
/** Measured: 50 ms between the first and the last of a hundred. They begin before the port is open. */
const SOON_MS = 3000;

test("a hundred runs go on after a kill, without any request", async () => {
  const threads = await Promise.all(Array.from({ length: RUNS }, () => bobbin.client.thread("busy")));
  await Promise.all(threads.map((thread) => thread.post("hello")));
  await busy.model.request(RUNS, 60_000);
  await bobbin.server.down();
  const before = busy.model.asked.length;
  await bobbin.server.up();
  const ready = Date.now();
  const read = await bobbin.client.send("GET", threads[0]?.path ?? "", undefined, { withinMs: SOON_MS });
  assert.equal(read.status, 200, read.text);
  await until("every run has asked again", () => busy.model.asked.length >= before + RUNS, {
    withinMs: 30_000,
    describe: () => busy.model.asked.length - before,
  });
  const late = busy.model.asked.slice(before).map(({ at }) => at - ready);
  assert.ok(Math.max(...late) < SOON_MS, `the last one asked ${Math.max(...late)} ms after the server was ready`);
});
