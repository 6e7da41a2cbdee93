// Pydantic AI.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { makes, say, sayAndUse } from "../../worker/support/model.mjs";
import { suite } from "../../worker/support/suite.mjs";
import { missing, python } from "../support/python.mjs";

const KEY = "key-of-the-tests";
const folder = fileURLToPath(new URL(".", import.meta.url));
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin` } });
bobbin.tool("pay", () => "paid", { approval: "always", idempotent: true });
bobbin.tool("lookup", () => "found");
bobbin.agent("payer", makes({ name: "pay", args: { amount: 5 } }), { tools: ["pay"] });
bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
  tools: ["lookup"],
});

if (missing) console.log(`skipped: ${missing}`);
else {
  bobbin.test("pydantic-ai: what waits for a person is said, and calls are read", async () => {
    assert.match(await python(folder, "check.py", bobbin.server.base, KEY), /all is well/);
  });
}
