// OpenAI's Agents SDK for Python.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { say, use } from "../../worker/support/model.mjs";
import { suite } from "../../worker/support/suite.mjs";
import { missing, python } from "../support/python.mjs";

const KEY = "key-of-the-tests";
const folder = fileURLToPath(new URL(".", import.meta.url));
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin` } });
bobbin.tool("pay", () => "paid", { approval: "always", idempotent: true });
bobbin.agent("payer", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`So: ${messages.at(-1)?.content}`) : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });
bobbin.agent("echo", ({ messages, last }) => say(`${messages.filter(({ role }) => role === "user").length}: ${last}`));

if (missing) console.log(`skipped: ${missing}`);
else {
  bobbin.test("openai-agents-py: approvals, and a conversation that is named", async () => {
    assert.match(await python(folder, "check.py", bobbin.server.base, KEY), /all is well/);
  });
}
