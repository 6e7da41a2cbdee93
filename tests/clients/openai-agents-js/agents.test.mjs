// OpenAI's Agents SDK for JavaScript: the server's own tools are declared as a hosted MCP server, so that it takes requests for approvals.

import assert from "node:assert/strict";
import { Agent, hostedMcpTool, OpenAIProvider, Runner } from "@openai/agents";
import { makes, say } from "../../worker/support/model.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-the-tests";
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin` } });
const paid = bobbin.tool("pay", () => "paid", { approval: "always", idempotent: true });
bobbin.agent("payer", makes({ name: "pay", args: { amount: 5 } }), { tools: ["pay"] });
bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`));

const runner = () => new Runner({ modelProvider: new OpenAIProvider({ baseURL: `${bobbin.server.base}/v1`, apiKey: KEY, useResponses: true }), tracingDisabled: true });

bobbin.test("openai-agents-js: an approval is asked for, given and denied", async () => {
  for (const [approved, calls] of /** @type {const} */ ([[true, 1], [false, 0]])) {
    const before = paid.received.length;
    const tools = [hostedMcpTool({ serverLabel: "bobbin", serverUrl: `${bobbin.server.base}/mcp`, requireApproval: "always" })];
    const agent = new Agent({ name: "Payer", model: "payer", tools });
    const asked = await runner().run(agent, "pay");
    assert.equal(asked.interruptions?.length, 1);
    for (const one of asked.interruptions) approved ? asked.state.approve(one) : asked.state.reject(one);
    const done = await runner().run(agent, asked.state);
    assert.equal(done.finalOutput, "done");
    assert.equal(paid.received.length - before, calls);
  }
});

bobbin.test("openai-agents-js: a run of turns", async () => {
  const agent = new Agent({ name: "Echo", model: "echo" });
  const first = await runner().run(agent, "one");
  assert.equal(first.finalOutput, "You wrote: one");
  const second = await runner().run(agent, "two", { previousResponseId: first.lastResponseId });
  assert.equal(second.finalOutput, "You wrote: two");
});
