// Runs as a client sees them: their outcomes, diagnostics and events.

import assert from "node:assert/strict";
import { exchange } from "./support/http.mjs";
import { inTurn, refuse, say, stallAfter, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const ADMIN = "key-of-the-admin";
const bobbin = suite({ key: ADMIN, vars: { BOBBIN_DEV: "0", BOBBIN_API_KEYS: `${ADMIN}=admin` } });
const test = bobbin.test.bind(bobbin);

const keyless = { baseUrl: undefined, apiKeyEnv: "NO_SUCH_KEY", fallbacks: ["plain_model"] };
const plain = bobbin.agent("plain", () => say("hello"));
const lax = bobbin.agent("lax", () => say("never"), { model: keyless });
const strict = bobbin.agent("strict", () => say("never"), { model: keyless, agent: { diagnostics: "strict" } });
const busy = bobbin.agent("busy", inTurn(refuse(503), use({ name: "notes", args: { n: 1 } }), say("noted")), { tools: ["notes"] });
const slow = bobbin.agent("slow", inTurn(stallAfter("half of it", 3), say("whole")));
const lost = bobbin.agent("lost", () => say("never"), { model: { ...keyless, fallbacks: ["slow_model"] } });

bobbin.definitions.push(() => {
  bobbin.folder.write({ tools: { notes: { description: "Notes.", args: { type: "object" }, run: { code: "notes.ts" } } } });
  bobbin.folder.file(
    "tools/notes.ts",
    `import type { ToolHandler } from "bobbin";
const tool: ToolHandler<{ n: number }> = async (state, { n }) => {
  state.trace("app.noted", { n });
  state.progress("noting " + n);
  return "noted";
};
export default tool;
`,
  );
});

/** @param {{ diagnostics: { code: string }[] }} run */
const codes = ({ diagnostics }) => diagnostics.map(({ code }) => code);
/** @param {{ trace: { kind: string }[] }} run */
const kinds = ({ trace }) => trace.map(({ kind }) => kind);

/** @param {import("./support/client.mjs").Thread} thread @param {string} run */
async function traced(thread, run) {
  const answer = await thread.send("GET", `/runs/${run}?trace=1`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

test("the outcome of a run is the same for whoever waits and whoever looks later", async () => {
  const thread = await bobbin.client.thread(plain.name);
  const told = await thread.ask("hi");
  assert.deepEqual(
    [told.status, told.outcome, told.reason, told.token, told.waits, told.error, told.diagnostics],
    ["ok", "completed", "stop_on_response", null, [], null, []],
  );
  assert.equal(textOf(told.artefact.message), "hello");
  assert.deepEqual([told.usage.modelCalls, told.usage.steps, told.usage.toolCalls], [1, 1, 0]);
  const { startedAt, endedAt, trace, truncated, ...later } = await traced(thread, told.run);
  assert.deepEqual(later, told);
  assert.ok(startedAt < endedAt && truncated === false);
  assert.deepEqual(trace.map((/** @type {{ kind: string }} */ { kind }) => kind), ["run.start", "agent.loop.snapshot", "model.attempt", "run.output", "run.success", "run.end"]);
  await thread.ask("again");
  const { json } = await thread.send("GET", "/runs?limit=1");
  assert.deepEqual([json.runs.length, json.runs[0].run, json.runs[0].status, json.hasMore], [1, "r_2", "ok", true]);
  assert.deepEqual((await thread.send("GET", "/runs?before=r_2")).json.runs.map((/** @type {{ run: string }} */ { run }) => run), ["r_1"]);
  assert.equal((await thread.send("GET", "/runs/r_9")).status, 404);
  assert.equal((await thread.send("GET", "/runs?before=x")).json.error.code, "bad_cursor");
});

test("a trace tells of retries, tools and what code adds, and a stream says so in one line each", async () => {
  const thread = await bobbin.client.thread(busy.name);
  const [socket, quiet] = [await thread.stream(), await thread.stream("?progress=0")];
  const told = await thread.ask("note it");
  await Promise.all([socket, quiet].map((one) => one.next("the end", ({ type }) => type === "stopped")));
  const lines = socket.frames.filter(({ type }) => type === "progress").map(({ kind, message }) => [kind, message]);
  assert.deepEqual(
    lines.map(([kind]) => kind),
    ["provider_call", "retry", "provider_call", "tool_execution", "note", "provider_call"],
    JSON.stringify(lines),
  );
  assert.deepEqual([lines[3]?.[1], lines[4]?.[1]], ["[1/250] Executing tools: notes", "noting 1"]);
  assert.equal(quiet.frames.filter(({ type }) => type === "progress").length, 0);
  const seen = kinds(await traced(thread, told.run));
  assert.deepEqual(seen, [
    "run.start",
    "agent.loop.snapshot",
    "model.attempt",
    "adapter.retry",
    "model.attempt",
    "tool.call",
    "app.noted",
    "model.attempt",
    "run.output",
    "run.success",
    "run.end",
  ]);
});

test("a model without its key: the fallback answers, and a strict run ends without any request", async () => {
  const before = plain.model.asked.length;
  const easy = await (await bobbin.client.thread(lax.name)).ask("hi");
  assert.deepEqual([easy.status, codes(easy)], ["ok", ["model.unusable"]]);
  assert.match(easy.diagnostics[0].message, /NO_SUCH_KEY is not set; "plain_model" is used/);
  const hard = await (await bobbin.client.thread(strict.name)).ask("hi");
  assert.deepEqual([hard.status, hard.reason, hard.error.code], ["error", "strict_diagnostics", "strict_diagnostics"]);
  assert.match(hard.error.message, /NO_SUCH_KEY/);
  const asked = await (await bobbin.client.thread(lax.name)).ask("hi", { diagnostics: "strict" });
  assert.equal(asked.reason, "strict_diagnostics");
  assert.deepEqual([plain.model.asked.length, lax.model.asked.length, strict.model.asked.length], [before + 1, 0, 0]);
  const odd = await (await bobbin.client.thread(lax.name)).post("hi", { diagnostics: "lax" });
  assert.deepEqual([odd.status, odd.json.error.field], [400, "diagnostics"]);
});

test("diagnostics survive a kill, and the run has one beginning and one end", async () => {
  const thread = await bobbin.client.thread(lost.name);
  await thread.accepted("hi");
  await slow.model.request(1);
  await bobbin.server.crash();
  const run = await until("the run is over", async () => {
    const run = await traced(thread, "r_1");
    return run.status === "ok" && run;
  });
  assert.deepEqual(codes(run), ["model.unusable"]);
  const seen = kinds(run);
  assert.ok(seen.includes("run.recovered"), seen.join());
  assert.deepEqual([seen[0], seen.at(-1), seen.filter((kind) => kind === "run.end").length], ["run.start", "run.end", 1]);
});

test("runs are read by whoever may read the thread, and /healthz tells an admin of warnings", async () => {
  const thread = await bobbin.client.thread(plain.name, { user_id: "ann" });
  await thread.ask("hi");
  const nobody = await exchange(bobbin.server.base, "GET", `/api${thread.path}/runs`);
  assert.equal(nobody.status, 401);
  const health = (/** @type {Record<string, string>} */ headers) => exchange(bobbin.server.base, "GET", "/healthz", { headers });
  assert.equal((await health({})).json.warnings, undefined);
  assert.equal(typeof (await health({ authorization: `Bearer ${ADMIN}` })).json.warnings, "number");
});
