// The first `npm start` of a checkout serves the Worker before the sandbox is compiled. Until the sandbox joins, code is refused
// and says why.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { builtFolder } from "../../scripts/compile.mjs";
import { startServer } from "../../scripts/server.mjs";
import { wranglerNode } from "../../scripts/setup.mjs";
import { AgentsFolder } from "../worker/support/agents.mjs";
import { Client } from "../worker/support/client.mjs";
import { until } from "../worker/support/poll.mjs";
import { memory, scratch } from "../worker/support/server.mjs";

const folder = new AgentsFolder({
  models: { demo: { provider: "demo", model: "demo" } },
  prompts: { desk: { toolDescription: "Adds.", model: "demo", includeChat: true, tools: ["add"], prompt: "You add." } },
  agents: { desk: { type: "ai_human", sideA: { prompt: "desk" } } },
  tools: { add: { description: "Adds.", args: { type: "object", properties: {}, additionalProperties: false }, run: { code: "add.ts" } } },
});
folder.file("tools/add.ts", "export default (): string => `the sum is ${1 + 1}`;\n");
after(() => folder.remove());

for (const bare of [true, false]) {
  test(`the sandbox joins a running server (${bare ? "workerd" : "wrangler"})`, { timeout: 120_000 }, async () => {
    const persist = scratch("joins", memory);
    const server = await startServer({
      ...{ node: wranglerNode(), dist: builtFolder("dist"), isolate: undefined, port: 0, agents: folder.path, persist, bare },
      ...{ vars: {}, crate: undefined, inspectorPort: undefined, log: () => {}, ended: (code) => assert.fail(`The server ended (${code}).`) },
    });
    try {
      const client = new Client(server.url);
      const asked = async () => {
        const thread = await client.thread("desk");
        const { message } = await thread.ask("call add {}");
        return String(message.content);
      };
      assert.match(await asked(), /still being compiled.*Nothing has run/);
      await server.joinIsolate(builtFolder("dist-isolate"));
      await until("the code runs", async () => /the sum is 2/.test(await asked().catch(() => "")), { withinMs: 30_000 });
    } finally {
      await server.stop();
      rmSync(persist, { recursive: true, force: true });
    }
  });
}
