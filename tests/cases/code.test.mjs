// Cases in code: `import { test, agent } from "bobbin/test"`. Run by node:test as it stands here.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { CaseFailed, agent, test } from "../../package/test/index.mjs";

const agents = fileURLToPath(new URL("app", import.meta.url));
const LOOKUP = { calls: [{ tool: "lookup", arguments: { order: "A1" } }] };

test("a conversation, turn by turn", async () => {
  const clerk = agent("clerk", {
    agents,
    script: [LOOKUP, { calls: [{ tool: "refund", arguments: { order: "A1" } }] }, { text: "Paid." }, { text: "Good bye." }],
    stubs: [{ tool: "lookup", outcome: { response: "lost" } }, { tool: "refund", outcome: { response: "paid" } }],
  });
  const asked = await clerk.send("Where is A1?");
  assert.deepEqual([asked.outcome, asked.waits.map(({ tool }) => tool)], ["parked", ["refund"]]);
  const paid = await clerk.approve("refund");
  assert.equal(paid.reply, "Paid.");
  assert.deepEqual(paid.calls.map(({ tool, args, state }) => [tool, args, state]), [["lookup", { order: "A1" }, "succeeded"], ["refund", { order: "A1" }, "succeeded"]]);
  assert.ok(paid.cost > 0);
  await clerk.advance("3d");
  await clerk.expect({ toolOrder: ["lookup", "refund"] }, { reply: "Paid." });
  await assert.rejects(clerk.expect({ reply: "Denied." }), (error) => error instanceof CaseFailed && /the reply does not include “Denied.”: it is “Paid.”/.test(error.message));
  assert.equal((await clerk.send("Bye")).reply, "Good bye.");
});

test("what the script lacks, and what is misspelt, rejects", async () => {
  await assert.rejects(agent("clerk", { agents, script: [] }).send("Hello"), /the script has 0 replies for the prompt “clerk”, and reply 1 is requested/);
  await assert.rejects(agent("clerk", { agents }).turn({ sends: "Hello" }), /`turns\[0\]\.sends` is unknown/);
  await assert.rejects(agent("nobody", { agents }).send("Hello"), /there is no agent “nobody”\. Agents are clerk/);
});
