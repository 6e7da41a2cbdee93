// A crate of somebody's own, built in the place of Bobbin's Worker: what docs/native-tools.md promises.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Client } from "../worker/support/client.mjs";
import { until } from "../worker/support/poll.mjs";
import { checkout, scratch, Server } from "../worker/support/server.mjs";

const FIXTURE = join(checkout, "tests/fixtures/own-crate");
/** In a sample, as a member of our workspace, which has compiled nearly all of it already. */
const CRATE = process.env.BOBBIN_SAMPLE === undefined ? outside() : FIXTURE;

/** All that Bobbin is made of is compiled for a crate outside, beside whatever else runs. */
const BUILD_MS = 25 * 60_000;

/** A copy that is a workspace of its own, as somebody's crate is. */
function outside() {
  const folder = join(scratch("own-crate"), "my-worker");
  cpSync(FIXTURE, folder, { recursive: true });
  const manifest = readFileSync(join(FIXTURE, "Cargo.toml"), "utf8").replaceAll('"../../..', `"${checkout}`);
  writeFileSync(join(folder, "Cargo.toml"), `${manifest}\n[workspace]\n`);
  cpSync(join(checkout, "Cargo.lock"), join(folder, "Cargo.lock"));
  after(() => rmSync(dirname(folder), { recursive: true }));
  return folder;
}
/** @type {Server | undefined} */
let server;
after(() => server?.remove());

/** A model of nobody else's: it repeats what it is told, word by word, and refuses once it is told to. */
const parrot = createServer(async (request, response) => {
  let said = "";
  for await (const chunk of request) said += chunk;
  if (said === "refuse") {
    response.writeHead(400).end(`no: ${request.headers.authorization}`);
    return;
  }
  for (const word of said.split(" ")) {
    response.write(`${word}! `);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  response.end();
});
after(() => parrot.close());

test("a native tool of one's own crate is built and called, and one that is missing is told of", async () => {
  // Whole in itself, and built the faster for it.
  process.env.BOBBIN_BUILD = "quick";
  parrot.listen(0, "127.0.0.1");
  await once(parrot, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (parrot.address());
  server = await Server.start({
    agents: join(CRATE, "agents"),
    flags: ["--crate", CRATE],
    startMs: BUILD_MS,
    vars: { PLAIN_URL: `http://127.0.0.1:${port}/`, PLAIN_KEY: "plain-secret" },
  });
  const thread = await new Client(server.base).thread("greeter");
  const answer = await thread.ask('call greet {"name": "Ada"}');
  assert.match(JSON.stringify(answer), /greet said: Hello, Ada!/);
  assert.doesNotMatch(server.output(), /no native "greet"/);
  assert.match(server.output(), /tool shout: native "shout" is not in this Worker/);
});

test("a tool of one's own crate reads and writes what the crate's wrangler.toml binds, for all threads", async () => {
  assert.ok(server);
  const client = new Client(server.base);
  const first = await (await client.thread("greeter")).ask('call note {"name": "milk", "text": "buy two"}');
  assert.match(JSON.stringify(first), /note said: Noted\./);
  const second = await (await client.thread("greeter")).ask('call note {"name": "milk", "text": "none left"}');
  assert.match(JSON.stringify(second), /note said: Noted, instead of: buy two/);
});

test("what the crate's wrangler.toml binds is deployed with it", async () => {
  const args = ["--crate", CRATE, "--agents", join(CRATE, "agents"), "--dry-run"];
  const { stdout } = await promisify(execFile)(process.execPath, [join(checkout, "scripts/deploy.mjs"), ...args], { cwd: checkout });
  assert.match(stdout, /env\.NOTES \(notes\)\s+KV Namespace/);
  assert.match(stdout, /env\.ISOLATE/);
});

test("a panic of one's own tool is a result, and told of once", async () => {
  assert.ok(server);
  const output = () => server?.output() ?? "";
  const answer = await (await new Client(server.base).thread("greeter")).ask("call stumble {}");
  assert.match(JSON.stringify(answer), /stumble said: /);
  await until("the log tells", () => /over its own feet/.test(output()));
  assert.equal(output().split("panicked at").length - 1, 1, output());
});

test("a provider of one's own crate answers, and its failure leads to the fallback", async () => {
  assert.ok(server);
  const thread = await new Client(server.base).thread("parrot");
  assert.match(JSON.stringify(await thread.ask("Good morning")), /Good! morning! /);
  const refused = JSON.stringify(await thread.ask("refuse"));
  assert.match(refused, /You said: refuse/);
  const logs = JSON.stringify(await thread.logged("llm_request"));
  assert.match(logs, /no: \[redacted\]/);
  assert.doesNotMatch(logs, /plain-secret/);
  assert.match(server.output(), /model nowhere: provider "nowhere" \(there are anthropic, demo, openai, plain, workers-ai\) is not in this Worker/);
});

test("what workerd by itself cannot bind for one's own crate is refused", async () => {
  assert.ok(server);
  await server.down();
  server.options = { ...server.options, flags: ["--crate", CRATE, "--workerd"], serves: false };
  await server.up();
  await until("it has ended", () => server?.child?.exitCode !== null, { withinMs: 120_000, describe: () => server?.output() });
  assert.match(server.output(), /workerd does not support `kv_namespaces` in the configuration of bobbin: leave out --workerd\./);
  assert.equal(server.child?.exitCode, 1);
});
