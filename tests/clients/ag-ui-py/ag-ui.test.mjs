// The models of the protocol in Python.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { say, sayAndUse, use } from "../../worker/support/model.mjs";
import { sleep } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";
import { missing, python } from "../support/python.mjs";

const KEY = "key-of-the-tests";
const folder = fileURLToPath(new URL(".", import.meta.url));
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin`, BOBBIN_SURFACES: "ag-ui" } });
bobbin.tool("lookup", () => "found");
bobbin.tool("pay", () => "paid", { approval: "always" });
bobbin.definitions.push(() => {
  bobbin.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
});
bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`, { chunks: 3 }));
bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
  tools: ["lookup"],
});
bobbin.agent("payer", () => use({ name: "pay", args: { amount: 5 } }), { tools: ["pay"] });
bobbin.agent("finder", () => use({ name: "locate", args: {} }), { tools: ["locate"] });
bobbin.agent("thinker", () => async (out) => {
  await out.chunk({ reasoning_content: "Let me see." });
  await out.text("I see.");
  await out.end();
});
bobbin.agent("breaking", ({ n }) => async (out) => {
  await out.text(`words of ${n}`);
  await sleep(50);
  if (n % 2 === 1) return out.cut();
  await out.end();
});

if (missing) console.log(`skipped: ${missing}`);
else {
  bobbin.test("ag-ui-py: every event, and every message of the history", async () => {
    assert.match(await python(folder, "check.py", bobbin.server.base, KEY), /all is well/);
  });
}
