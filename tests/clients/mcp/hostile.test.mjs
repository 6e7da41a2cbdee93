// A server that means ill: each of its attacks ends as an error that says what is wrong, within bounds of time and memory, and costs
// neither the process nor another thread.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { tree } from "../../worker/support/processes.mjs";
import { until } from "../../worker/support/poll.mjs";
import { CALLS, hostile } from "./peers/hostile.mjs";
import { came, ended, Peers, waits } from "./support.mjs";

/** How long a call may take, and what all that belongs to it may take besides. */
const TIMEOUT_MS = 4000;
const BESIDES_MS = 8000;
/** What the process may need more than before, at its highest. */
const MORE_BYTES = 300 * 1024 * 1024;

/** @type {import("./peers/hostile.mjs").Hostile} */
let ill;
const peers = new Peers().use({ ill: async () => (ill = await hostile()) }, { ill: { timeoutMs: TIMEOUT_MS, headers: { authorization: "Bearer of-this-server-alone" } } });

/** The memory of all processes of the server, now and at its highest. */
function memory() {
  const pids = tree(peers.suite.server.child?.pid ?? 0);
  const of = (/** @type {string} */ field) => pids.reduce((sum, pid) => sum + read(pid, field), 0);
  return { now: of("VmRSS"), most: of("VmHWM") };
}

/** @param {number} pid @param {string} field */
function read(pid, field) {
  try {
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** What an attack leaves that is no error: a good answer, or a run that waits, which can be stopped. @type {Record<string, "good" | "waits" | "either">} */
const OTHERWISE = {
  cookie: "good",
  broken_utf8: "either",
  many_parts: "either",
  wrong_shapes: "either",
  many_questions: "either",
  task_at_once: "waits",
  task_in_a_year: "waits",
  task_before_now: "waits",
  sign_in_elsewhere: "either",
};

/** What the model is told of some, beyond that it failed. @type {Record<string, RegExp>} */
const SAYS = {
  ...of(/is over \d+ bytes, the limit/, "huge_json", "huge_event", "gzip_bomb"),
  ...of(/did not answer within 4 s/, "endless_events", "endless_progress", "drip", "silent"),
  ...of(/a redirect, which is not followed/, "redirect_to_loopback", "redirect_to_localhost", "redirect_elsewhere", "redirect_in_circles"),
  ...of(/broke off its answer/, "wrong_id", "wrong_id_stream", "no_answer_stream", "cut"),
  ...of(/has over 100000 values in its JSON, the limit/, "deep_json"),
  ...of(/is not of the protocol/, "no_json", "broken_json", "nothing", "accepted", "unknown_result", "sampling"),
  many_parts: /20000 attachments are too many/,
  loud_error: /error -32603/,
  broken: /http 500/,
};

/** @param {RegExp} says @param {...string} attacks */
function of(says, ...attacks) {
  return Object.fromEntries(attacks.map((attack) => [attack, says]));
}

for (const attack of Object.keys(CALLS)) {
  peers.test(`a server that means ill: ${attack}`, async () => {
    const before = memory();
    const began = Date.now();
    const thread = await peers.begin("ill", attack, {});
    // Somebody else's thread answers meanwhile.
    const other = await peers.suite.client.thread("plain");
    const asked = Date.now();
    assert.equal((await other.ask("hello")).outcome, "completed");
    assert.ok(Date.now() - asked < 3000, `another thread answered after ${Date.now() - asked} ms`);
    const expected = OTHERWISE[attack];
    const rests = await until("it is over, or waits", async () => ((await waits(thread)).length > 0 ? "waits" : (await thread.facts()).state === "idle" ? "over" : undefined), { withinMs: 60_000, everyMs: 100 });
    assert.ok(Date.now() - began < TIMEOUT_MS + BESIDES_MS, `it took ${Date.now() - began} ms`);
    if (rests === "waits") {
      assert.ok(expected === "waits" || expected === "either", `it waits: ${JSON.stringify(await waits(thread)).slice(0, 500)}`);
      assert.ok((await waits(thread)).length <= 100);
      await thread.send("POST", "/stop");
      await until("it is stopped", async () => (await waits(thread)).length === 0);
    } else {
      assert.equal(await ended(thread), "completed");
      const { ok, result } = await came(thread);
      if (expected === undefined) assert.equal(ok, false, result.slice(0, 500));
      if (SAYS[attack]) assert.match(result, SAYS[attack]);
      assert.ok(result.length < 64 * 1024, `${result.length} characters`);
    }
    const after = memory();
    assert.ok(after.most - before.now < MORE_BYTES, `${Math.round((after.most - before.now) / 1024 / 1024)} MB more`);
    assert.deepEqual(ill.escaped, [], "nothing went to another server");
    assert.equal(peers.suite.server.child?.exitCode, null);
  });
}

peers.test("a server that means ill: what it wants to be kept is not sent back, and tasks are not asked after all the time", async () => {
  assert.match((await peers.call("ill", "cookie")).result, /cookies: none/);
  assert.match((await peers.call("ill", "cookie")).result, /cookies: none/);
  const before = ill.books.methods.filter((method) => method === "tasks/get").length;
  const thread = await peers.begin("ill", "task_at_once", {});
  await until("it waits", async () => (await waits(thread)).length > 0, { withinMs: 20_000 });
  await new Promise((done) => setTimeout(done, 5000));
  const polls = ill.books.methods.filter((method) => method === "tasks/get").length - before;
  assert.ok(polls <= 8, `${polls} polls in 5 s`);
  await thread.send("POST", "/stop");
});
