// `npm start` with `wrangler dev` and with plain workerd: each continues with the data of the other.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startWorkerd } from "../../package/server/workerd.mjs";
import { AgentsFolder } from "../worker/support/agents.mjs";
import { exchange } from "../worker/support/bytes.mjs";
import { Client } from "../worker/support/client.mjs";
import { until } from "../worker/support/poll.mjs";
import { Server, checkout, scratch } from "../worker/support/server.mjs";

const folder = new AgentsFolder({
  models: { demo: { provider: "demo", model: "demo" } },
  prompts: { plain: { prompt: "Hello.", toolDescription: "x", model: "demo", includeChat: true } },
  agents: { plain: { type: "ai_human", sideA: { prompt: "plain" } } },
});
const BUCKET = ["--files-bucket"];
/** Larger than what is stored in a thread's database. */
const LARGE = 34_000_000;
/** @type {Server} */
let server;
before(async () => void (server = await Server.start({ agents: folder.path, flags: ["--workerd", ...BUCKET], wrangler: true })));
after(async () => {
  await server.remove();
  folder.remove();
});

/** Restarts the server on the same folder of threads with other flags. @param {string[]} flags */
async function by(flags) {
  await server.down();
  server.options = { agents: folder.path, flags: [...flags, ...BUCKET], wrangler: true };
  await server.up();
}

test("wrangler and workerd by itself serve the same threads and the same bucket", { timeout: 120_000 }, async () => {
  const client = new Client(server.base, {});
  const one = await client.thread("plain");
  await one.ask("First.");
  await by([]);
  const other = await client.thread("plain");
  for (const thread of [one, other]) await thread.ask("Second.");
  const content = randomBytes(LARGE);
  assert.equal((await exchange(other, "PUT", "/fs/film", { body: content })).status, 201);
  await until("the file is in the bucket", async () => (await other.send("GET", "/fs/film?stat=1")).json.file.storage === "r2");
  await by(["--workerd"]);
  for (const thread of [one, other]) await thread.ask("Third.");
  const texts = async (/** @type {typeof one} */ thread) => (await thread.messages()).filter(({ role }) => role === "user").map(({ content }) => content);
  assert.deepEqual(await texts(one), ["First.", "Second.", "Third."]);
  assert.deepEqual(await texts(other), ["Second.", "Third."]);
  assert.ok((await exchange(other, "GET", "/fs/film")).bytes.equals(content));
});

test("what workerd does not have by itself is refused by name, before anything is started", async () => {
  const home = scratch("refused");
  after(() => rmSync(home, { recursive: true, force: true }));
  /** @param {object} bound @param {{ miniflare?: string }} [more] @returns {Promise<string>} */
  const refusal = (bound, more = {}) => {
    const worker = { config: { name: "bobbin", compatibility_date: "2026-10-01", ...bound }, folder: "." };
    const options = { home, persist: home, vars: {}, workerd: "none", instead: "leave out --workerd", spawned: () => {}, ...more };
    return startWorkerd({ ...options, main: worker, isolate: worker }).then(() => "it was served", (error) => error.message);
  };
  const miniflare = join(checkout, "node_modules/miniflare");
  const bucket = { binding: "FILES", bucket_name: "bobbin-files" };
  assert.match(await refusal({ kv_namespaces: [] }), /^workerd does not support `kv_namespaces` in the configuration of bobbin: leave out --workerd\.$/);
  assert.match(await refusal({ r2_buckets: [bucket] }), /^workerd does not support `r2_buckets` in the configuration of bobbin: leave out --workerd\.$/);
  assert.match(await refusal({ r2_buckets: [{ ...bucket, remote: true }] }, { miniflare }), /has no access to Cloudflare's buckets, and FILES of bobbin is one \(`remote`\): leave out --workerd\.$/);
  assert.match(await refusal({ r2_buckets: [bucket] }, { miniflare: home }), /object-entry\.worker\.js is missing, which provides buckets\. .* Run `npm ci`\.$/);
});
