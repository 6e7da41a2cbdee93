// Calls while the server is killed: with the peer's books, which no kill reaches. `BOBBIN_MCP_KILLS` says how often.

import assert from "node:assert/strict";
import { chance, sleep, until } from "../../worker/support/poll.mjs";
import { modern } from "./peers/modern.mjs";
import { came, ended, Peers } from "./support.mjs";

const KILLS = Number(process.env["BOBBIN_MCP_KILLS"] ?? 6);

/** @type {import("./peers/serve.mjs").Peer} */
let peer;
const peers = new Peers().use({ modern: async () => (peer = await modern()) });
/** @param {string} tool */
const count = (tool) => peer.books.count(tool);
const crash = () => peers.suite.server.crash();
/** @param {string} tool @param {number} before */
const arrived = (tool, before) => until(`${tool} is called`, () => count(tool) > before, { withinMs: 30_000 });

peers.test("a call that was under way is made again only if the server says that it may be", async () => {
  const [pays, looks] = [count("pay"), count("look")];
  const [paying, looking] = [await peers.begin("modern", "pay", { ms: 4000 }), await peers.begin("modern", "look", { ms: 4000 })];
  await Promise.all([arrived("pay", pays), arrived("look", looks)]);
  await crash();
  assert.deepEqual([await ended(paying), await ended(looking)], ["completed", "completed"]);
  assert.deepEqual([count("pay") - pays, count("look") - looks], [1, 2]);
  const paid = await came(paying);
  assert.equal(paid.ok, false, "it is not known whether it was paid");
  assert.equal((await came(looking)).result, "seen");
  const keys = peer.books.calls.filter(({ tool }) => tool === "look").slice(-2).map(({ call }) => call);
  assert.equal(keys[0], keys[1], "the server may know the call again");
});

peers.test("whenever the server is killed, nothing without a hint is called twice, and each run ends", async () => {
  const random = chance("moments of kills around calls");
  for (let kill = 0; kill < KILLS; kill++) {
    const before = count("pay");
    const thread = await peers.begin("modern", "pay", { ms: random.between(0, 300) });
    await sleep(random.between(0, 700));
    await crash();
    assert.equal(await ended(thread), "completed");
    assert.ok(count("pay") - before <= 1, `${count("pay") - before} calls`);
  }
});
