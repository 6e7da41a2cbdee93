// Spans and metrics as protobuf, read with OpenTelemetry's own definitions.

import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { say, textOf, use } from "../../worker/support/model.mjs";
import { until } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";
import { missing, python } from "../support/python.mjs";

const folder = fileURLToPath(new URL(".", import.meta.url));
const kept = await mkdtemp(join(tmpdir(), "bobbin-otlp-"));
/** Requests, as `traces` or `metrics`. @type {string[]} */
const got = [];
/** @type {(string | undefined)[]} */
const types = [];
const collector = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const kind = String(request.url).split("/").pop() ?? "";
  types.push(request.headers["content-type"]);
  await writeFile(join(kept, `${String(got.length).padStart(3, "0")}-${kind}`), Buffer.concat(parts));
  got.push(kind);
  // Metrics are refused in part: `partial_success` with three data points and a text.
  const answer = kind === "metrics" ? "\x0a\x0b\x08\x03\x12\x07too old" : "";
  response.writeHead(200, { "content-type": "application/x-protobuf" }).end(answer);
});
await new Promise((listening) => collector.listen(0, "127.0.0.1", () => listening(undefined)));
const { port } = /** @type {import("node:net").AddressInfo} */ (collector.address());
after(() => collector.close());

const bobbin = suite({
  vars: {
    BOBBIN_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    BOBBIN_OTLP_PROTOCOL: "http/protobuf",
    BOBBIN_OTLP_METRICS: "1",
    BOBBIN_OTLP_CONTENT: "1",
  },
});
bobbin.tool("look", () => "found ü 🧵");
const results = (/** @type {import("../../worker/support/model.mjs").Asked} */ { messages }) => messages.filter(({ role }) => role === "tool").map(textOf);
const user = bobbin.agent("user", (asked) => (results(asked).length === 0 ? use({ name: "look", args: {} }) : say("done")), { tools: ["look"] });

if (missing) console.log(`skipped: ${missing}`);
else {
  bobbin.test("otlp-py: what is sent as protobuf says what the API says in JSON", async () => {
    const thread = await bobbin.client.thread(user.name);
    await thread.ask("look it up");
    await until("spans and metrics are sent", () => got.includes("traces") && got.includes("metrics"), { withinMs: 60_000 });
    assert.deepEqual([...new Set(types)], ["application/x-protobuf"]);
    const requests = (await python(folder, "check.py", kept)).trim().split("\n").map((line) => JSON.parse(line));
    const sent = requests.flatMap((request) => request.resourceSpans ?? []).flatMap(({ scopeSpans }) => scopeSpans).flatMap(({ spans }) => spans);
    const shown = await thread.send("GET", "/runs/r_1/spans");
    const [{ spans }] = shown.json.resourceSpans[0].scopeSpans;
    const byId = (/** @type {any[]} */ list) => Object.fromEntries(list.map((span) => [span.spanId, span]));
    assert.deepEqual(byId(sent), byId(spans));
    const metrics = requests.flatMap((request) => request.resourceMetrics ?? []).flatMap(({ scopeMetrics }) => scopeMetrics).flatMap((scope) => scope.metrics);
    const duration = metrics.find(({ name }) => name === "gen_ai.execute_tool.duration");
    assert.equal(duration.histogram.dataPoints[0].count, "1");
    await until("the terminal says so", () => bobbin.server.output().includes("the collector did not take 3 of the metrics: too old"));
  });
}
