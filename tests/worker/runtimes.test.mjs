// `npm start` by `wrangler dev` and by workerd itself: one goes on with what the other began.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AgentsFolder } from "./support/agents.mjs";
import { Client } from "./support/client.mjs";
import { until } from "./support/poll.mjs";
import { Server } from "./support/server.mjs";

const folder = new AgentsFolder({
  models: { demo: { provider: "demo", model: "demo" } },
  prompts: { plain: { prompt: "Hello.", toolDescription: "x", model: "demo", includeChat: true } },
  agents: { plain: { type: "ai_human", sideA: { prompt: "plain" } } },
});
/** @type {Server} */
let server;
before(async () => void (server = await Server.start({ agents: folder.path, wrangler: true })));
after(async () => {
  await server.remove();
  folder.remove();
});

/** Serves the same folder of threads in another way. @param {string[]} flags @param {boolean} [serves] */
async function by(flags, serves = true) {
  await server.down();
  server.options = { agents: folder.path, flags, serves, wrangler: true };
  await server.up();
}

test("wrangler and workerd by itself serve the same threads", { timeout: 120_000 }, async () => {
  const client = new Client(server.base, {});
  const thread = await client.thread("plain");
  await thread.ask("First.");
  for (const [flags, text] of /** @type {const} */ ([[["--workerd"], "Second."], [[], "Third."]])) {
    await by([...flags]);
    await thread.ask(text);
  }
  const texts = (await thread.messages()).filter(({ role }) => role === "user").map(({ content }) => content);
  assert.deepEqual(texts, ["First.", "Second.", "Third."]);
});

test("what workerd does not have by itself is refused by name", { timeout: 60_000 }, async () => {
  await by(["--workerd", "--files-bucket"], false);
  await until("it has ended", () => server.child?.exitCode !== null, { describe: () => server.output() });
  assert.match(server.output(), /workerd by itself has no `r2_buckets`, which the configuration of bobbin has: leave out --workerd\./);
  assert.equal(server.child?.exitCode, 1);
});
