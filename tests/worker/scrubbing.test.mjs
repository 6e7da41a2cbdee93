// Values that look like secrets in a tool's result, in the real product: only the tool's server sees them.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { Collector } from "./support/collector.mjs";
import { say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** One with a name, and one without. */
const CANARIES = ["canary-4711-hunter", "cNrY7Qx2Lm9Zt4Wv8Bk3Hs6Pd1"];
const [NAMED = "", RANDOM = ""] = CANARIES;

const collector = new Collector();
const endpoint = await collector.listen();
const bobbin = suite({ vars: { BOBBIN_LOG_BODIES: "1", BOBBIN_OTLP_ENDPOINT: endpoint, BOBBIN_OTLP_CONTENT: "1" } });
const test = bobbin.test.bind(bobbin);
after(() => collector.close());

bobbin.tool("config", () => `DB_PASSWORD=${NAMED}\nsession ${RANDOM} is open`);
bobbin.tool("record", () => ({ body: { status: "success", result: { user: "ann", api_key: NAMED, note: `see ${RANDOM}` } } }));
bobbin.tool("denied", () => ({ status: 403, body: `no access with token=${NAMED}` }));
bobbin.tool("cursors", () => `next ${"aB3x".repeat(2)}Qx2Lm9Zt4Wv8Bk3Hs6Pd1`, { scrub: { entropy: "off" } });

const clerk = bobbin.agent(
  "clerk",
  ({ messages, last }) => {
    const at = messages.findLastIndex(({ role }) => role === "user");
    const result = messages.slice(at).find(({ role }) => role === "tool");
    return result ? say(`told: ${textOf(result)}`) : use({ name: last, args: {} });
  },
  { tools: ["config", "record", "denied", "cursors"] },
);

/** Checks that the texts contain none of them. @param {string} place @param {string[]} texts */
function nowhere(place, texts) {
  for (const canary of CANARIES) assert.ok(!texts.some((text) => text.includes(canary)), `${canary} is in ${place}`);
}

test("a secret that a tool server answers is in no row, frame, request, line or span", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  const socket = await thread.stream();
  /** @type {Record<string, string>} */
  const told = {};
  for (const tool of ["config", "record", "denied", "cursors"]) told[tool] = (await thread.ask(tool)).message.content;
  assert.deepEqual(told, {
    config: "told: DB_PASSWORD=[REDACTED]\nsession [REDACTED:high-entropy] is open",
    record: 'told: {"user":"ann","api_key":"[REDACTED]","note":"see [REDACTED:high-entropy]"}',
    denied: "told: http 403 from denied: no access with token=[REDACTED]",
    cursors: `told: next ${"aB3x".repeat(2)}Qx2Lm9Zt4Wv8Bk3Hs6Pd1`,
  });
  const { logs } = (await thread.send("GET", "/logs?order=asc")).json;
  const calls = logs.filter((/** @type {{ type: string }} */ { type }) => type === "tool_call");
  const counted = calls.map((/** @type {{ scrubbed?: unknown }} */ { scrubbed }) => scrubbed);
  assert.deepEqual(counted, [{ keywords: 1, entropy: 1 }, { keywords: 1, entropy: 1 }, { keywords: 1, entropy: 0 }, undefined]);
  const details = await Promise.all(logs.map((/** @type {{ id: string }} */ { id }) => thread.send("GET", `/logs/${id}`)));
  nowhere("a log", details.map(({ text }) => text));
  await until("the spans have come", () => collector.bodies.join().includes("execute_tool cursors"), { withinMs: 60_000 });
  nowhere("a span", collector.bodies);
  nowhere("a frame", socket.frames.map((/** @type {unknown} */ frame) => JSON.stringify(frame)));
  nowhere("a request to a model", clerk.model.asked.map(({ body }) => JSON.stringify(body)));
  const output = bobbin.server.output(10_000_000);
  nowhere("the terminal", [output]);
  assert.equal(output.split('taken out of the result of "config"').length, 2, "the operator is told, once");
  socket.close();
  const files = readdirSync(bobbin.server.persist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  assert.ok(files.some(({ name }) => name.endsWith(".sqlite")), "there are databases");
  for (const file of files) {
    const path = join(file.parentPath, file.name);
    nowhere(path, [readFileSync(path, "latin1")]);
  }
});
