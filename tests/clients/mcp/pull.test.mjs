// `bobbin mcp pull` and `check` at servers of the official packages, of both eras.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { bobbin } from "../../cli/support/bobbin.mjs";
import { scratch } from "../../worker/support/server.mjs";
import { legacy } from "./peers/legacy.mjs";
import { modern } from "./peers/modern.mjs";
import { PLAIN } from "./peers/tools.mjs";

const project = scratch("mcp-pull");
const folder = join(project, "agents", "mcp");
/** @type {import("./peers/serve.mjs").Peer[]} */
let peers;

before(async () => {
  mkdirSync(folder, { recursive: true });
  peers = await Promise.all([modern({ token: "a-token" }), legacy(), legacy({ sessions: false })]);
  const [one, two, three] = peers.map(({ url }) => url);
  const files = { modern: { url: one, headers: { authorization: "Bearer {{env PEER_TOKEN}}" } }, legacy: { url: two }, stateless: { url: three } };
  for (const [name, definition] of Object.entries(files)) writeFileSync(join(folder, `${name}.json`), JSON.stringify(definition));
});
after(async () => {
  await Promise.all(peers.map((peer) => peer.close()));
  rmSync(project, { recursive: true });
});

test("mcp: the tools of official servers are pinned, and are as they were", async () => {
  const env = { PEER_TOKEN: "a-token" };
  const pulled = await bobbin(["mcp", "pull"], { cwd: project, env });
  assert.equal(pulled.code, 0, pulled.err);
  for (const [name, protocol] of [["modern", "2026-07-28"], ["legacy", "2025-11-25"], ["stateless", "2025-11-25"]]) {
    const list = JSON.parse(readFileSync(join(folder, `${name}.tools.json`), "utf8"));
    assert.equal(list.protocol, protocol);
    const tools = Object.fromEntries(list.tools.map((/** @type {any} */ { name: tool, ...about }) => [tool, about]));
    for (const [tool, { run: _, ...about }] of Object.entries(PLAIN)) assert.deepEqual(tools[tool], about, `${tool} of ${name}`);
  }
  assert.equal((await bobbin(["mcp", "check"], { cwd: project, env })).code, 0);
  assert.ok(peers[1]?.books.methods.includes("DELETE"), "the session is left");
});
