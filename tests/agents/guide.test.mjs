// Cases in code (docs/testing-agents.md). In a project of one's own it is `import { agent, test } from "bobbin/test"`.

import assert from "node:assert/strict";
import { agent, test } from "../../package/test/index.mjs";

test("the guide converts what it says into the units of its guests", async () => {
  const guide = agent("guide", {
    script: [{ calls: [{ tool: "convert_units", arguments: { value: 2, from: "mi", to: "km" } }] }, { text: "A walk of 3.2 km." }],
  });
  const { reply, calls } = await guide.send("How far is a walk of two miles?");
  assert.equal(reply, "A walk of 3.2 km.");
  assert.match(calls[0]?.result ?? "", /3\.21/);
});
