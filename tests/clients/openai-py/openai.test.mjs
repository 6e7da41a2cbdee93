// OpenAI's package for Python, and the types of Open Responses.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { say, sayAndUse, use } from "../../worker/support/model.mjs";
import { suite } from "../../worker/support/suite.mjs";
import { missing, python } from "../support/python.mjs";

const KEY = "key-of-the-tests";
const folder = fileURLToPath(new URL(".", import.meta.url));
const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin` } });
bobbin.tool("lookup", () => "found");
bobbin.definitions.push(() => {
  bobbin.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
});
bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`, { chunks: 3 }));
bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
  tools: ["lookup"],
});
bobbin.agent("finder", () => use({ name: "locate", args: {} }), { tools: ["locate"] });
bobbin.agent("thinker", () => async (out) => {
  await out.chunk({ reasoning_content: "Let me see." });
  await out.text("I see.");
  await out.end();
});

if (missing) console.log(`skipped: ${missing}`);
else {
  bobbin.test("openai-py: completions, responses, and every event", async () => {
    assert.match(await python(folder, "check.py", bobbin.server.base, KEY), /all is well/);
  });
}
