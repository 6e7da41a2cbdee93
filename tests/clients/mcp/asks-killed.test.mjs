// What is asked and what goes on for long, while the server is killed: with the peer's books, which no kill reaches. `BOBBIN_MCP_KILLS` says how often.

import assert from "node:assert/strict";
import { chance, sleep, until } from "../../worker/support/poll.mjs";
import { modern } from "./peers/modern.mjs";
import { asked, came, decide, ended, Peers, waits } from "./support.mjs";

const KILLS = Number(process.env["BOBBIN_MCP_KILLS"] ?? 6);

/** @type {import("./peers/serve.mjs").Peer} */
let peer;
const peers = new Peers().use({ modern: async () => (peer = await modern()) });
/** @param {string} tool */
const count = (tool) => peer.books.count(tool);
const crash = () => peers.suite.server.crash();
/** @param {string} tool @param {number} before */
const arrived = (tool, before) => until(`${tool} is called`, () => count(tool) > before, { withinMs: 30_000 });

peers.test("what a server asks is there after kills and after a deployment, and is answered then", async () => {
  const before = count("ask");
  const thread = await peers.begin("modern", "ask", {});
  const wait = await asked(thread);
  await crash();
  assert.deepEqual((await waits(thread)).map(({ id }) => id), [wait.id]);
  // Another deployment: with an agent more.
  await peers.suite.server.down();
  peers.suite.folder.write({ agents: { newer: { type: "ai_human", sideA: { prompt: "plain_prompt" } } } });
  await peers.suite.server.up();
  assert.deepEqual((await waits(thread)).map(({ id, form }) => [id, form]), [[wait.id, wait.form]]);
  await decide(thread, wait, { decision: "answer", content: { name: "Bo", count: 3 } });
  assert.equal(await ended(thread), "completed");
  assert.match((await came(thread)).result, /^accept: /);
  const calls = peer.books.calls.filter(({ tool }) => tool === "ask").slice(before);
  assert.deepEqual(calls.map(({ state }) => state), [undefined, "the first state"]);
});

peers.test("whenever the server is killed, nothing that was asked is lost", async () => {
  const random = chance("moments of kills around questions");
  for (let kill = 0; kill < KILLS; kill++) {
    const before = count("ask_twice");
    const thread = await peers.begin("modern", "ask_twice", {});
    await sleep(random.between(0, 400));
    if (kill % 2 === 0) await crash();
    const first = await until("it asks or is over", async () => (await waits(thread))[0] ?? ((await thread.facts()).state === "idle" ? "over" : undefined), { withinMs: 30_000 });
    // A call without a hint that was lost in flight is over with an error, and asks nothing.
    if (first !== "over") {
      await decide(thread, first, { decision: "answer", content: { first: "one" } });
      await sleep(random.between(0, 100));
      if (kill % 2 === 1) await crash();
      const second = await until("it asks again or is over", async () => (await waits(thread))[0] ?? ((await thread.facts()).state === "idle" ? "over" : undefined), { withinMs: 30_000 });
      if (second !== "over") {
        await decide(thread, second, { decision: "answer", content: { second: "two" } });
        assert.equal(await ended(thread), "completed");
        assert.equal((await came(thread)).result, "one, then two");
      }
    }
    assert.equal(await ended(thread), "completed");
    const calls = peer.books.calls.filter(({ tool }) => tool === "ask_twice").slice(before);
    const states = calls.map(({ state }) => state);
    assert.equal(new Set(states).size, states.length, `no round twice: ${JSON.stringify(states)}`);
  }
});

peers.test("a task goes on at its server while there is nobody here, and its result is there", async () => {
  const before = count("job");
  const thread = await peers.begin("modern", "job", { ms: 6000 });
  await arrived("job", before);
  for (let kill = 0; kill < 3; kill++) {
    await sleep(1200);
    await crash();
  }
  assert.equal(await ended(thread), "completed");
  assert.deepEqual([(await came(thread)).result, count("job") - before], ["The job is done.", 1]);
});
