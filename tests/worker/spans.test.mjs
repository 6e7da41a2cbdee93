// Spans in the real product: a strict collector receives one trace for a run and everything that it causes, through
// kills.

import assert from "node:assert/strict";
import { after } from "node:test";
import { attribute, Collector } from "./support/collector.mjs";
import { direct, finishes, registry, sessionTools, subagent } from "./support/family.mjs";
import { refuse, say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const OUTSIDE = "00f067aa0ba902b7";
const SECRET = "key-of-the-collector";

const collector = new Collector();
const endpoint = await collector.listen();
const bobbin = suite({
  vars: {
    BOBBIN_OTLP_ENDPOINT: endpoint,
    BOBBIN_OTLP_HEADERS: `authorization=Bearer%20${SECRET}`,
    BOBBIN_OTLP_METRICS: "1",
    BOBBIN_API_KEYS: "root=admin,ours=owner:alice",
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens",
  },
  key: "root",
});
const test = bobbin.test.bind(bobbin);
after(() => collector.close());

/** Returns the call results that a model received. @param {import("./support/model.mjs").Asked} asked */
const results = ({ messages }) => messages.filter(({ role }) => role === "tool").map(textOf);

const look = bobbin.tool("look", () => "found");
const user = bobbin.agent("user", (asked) => (results(asked).length === 0 ? use({ name: "look", args: {} }) : say("canary done")), {
  tools: ["look"],
});

// A run with everything: its model fails and a fallback responds; two tools, a child, and a call that a person
// approves.
const args = { type: "object", properties: {} };
const act = bobbin.tool("act", () => "acted", { args });
const pay = bobbin.tool("pay", () => "paid", { args, approval: "always" });
sessionTools(bobbin);
subagent(bobbin, "helper", (asked) => (results(asked).length === 0 ? use({ name: "look", args: {} }) : finishes(() => "helped")(asked)), { tools: ["look"] });
const works = (/** @type {import("./support/model.mjs").Asked} */ asked) =>
  results(asked).length === 0
    ? use({ name: "look", args: {} }, { name: "act", args: {} }, { name: "helper", args: { task: "Help." } }, { name: "pay", args: {} })
    : say("all done");
bobbin.agent("spare", works);
const office = bobbin.agent("office", () => refuse(400), {
  tools: ["look", "act", direct("helper"), "pay"],
  model: { fallbacks: ["spare_model"] },
  prompt: { parallelToolCalls: true },
});

// A run whose code schedules an effect behind a URL.
const called = bobbin.effect("called", ({ n }) => (n === 1 ? { status: 503, body: "not now" } : "done"), { attempts: 3 });
bobbin.definitions.push(() => {
  bobbin.folder.write({ tools: { plan: { description: "Plans.", args: { type: "object" }, run: { code: "plan.ts" } } } });
  bobbin.folder.file("tools/plan.ts", "export default async (state) => await state.scheduleEffect('called', { word: 'canary' }, 500);");
});
bobbin.definitions.push(() => {
  bobbin.folder.json("api/say.post.json", { run: { code: "say.post.ts" } });
  bobbin.folder.file("api/say.post.ts", "export default async (request, state) => { await state.queueMessage({ role: 'user', content: 'go' }); return { ok: true }; };");
});
const planner = bobbin.agent("planner", (asked) => (results(asked).length === 0 ? use({ name: "plan", args: {} }) : say("planned")), { tools: ["plan"] });

/** Waits for spans of a thread outside of its runs. @param {{ id: string }} thread @param {string} name @param {number} [count] */
const beside = (thread, name, count = 1) =>
  until(
    `${name} is told of`,
    () => {
      const spans = collector.ofThreads([thread.id]).filter((span) => span.name === name);
      return spans.length >= count ? spans : undefined;
    },
    { withinMs: 60_000 },
  );

/** Waits for the root span of a thread's run. @param {{ id: string }} thread @param {number} [count] */
async function told(thread, count = 1) {
  const roots = () => collector.ofThreads([thread.id]).filter(({ name, kind }) => name.startsWith("invoke_agent") && kind === 1);
  await until("the run is told of", () => roots().length >= count, { withinMs: 60_000 });
  return collector.ofThreads([thread.id]);
}

test("a run is one trace: its steps, requests and calls, in the trace of its request", async () => {
  const thread = await bobbin.client.thread(user.name, { user_id: "alice" });
  const headers = { traceparent: `00-${TRACE}-${OUTSIDE}-01`, tracestate: "vendor=1" };
  const { outcome, run } = await thread.ask("go", {}, { headers });
  assert.equal(outcome, "completed");
  const spans = await told(thread);
  assert.deepEqual(collector.wrong, []);
  const names = spans.map(({ name }) => name.replace(/^chat .*/, "chat")).sort();
  assert.deepEqual(names, ["chat", "chat", "execute_tool look", "invoke_agent user", "step 1", "step 2"].sort());
  assert.ok(spans.every(({ traceId, traceState }) => traceId === TRACE && traceState === "vendor=1"));
  const known = new Set([OUTSIDE, ...spans.map(({ spanId }) => spanId)]);
  assert.ok(spans.every(({ parentSpanId }) => parentSpanId && known.has(parentSpanId)), "no orphan");
  const call = spans.find(({ name }) => name === "execute_tool look");
  assert.equal(look.received[0]?.headers.traceparent, `00-${TRACE}-${call?.spanId}-01`);
  assert.equal(look.received[0]?.headers.tracestate, "vendor=1");
  const usage = spans.filter(({ name }) => name.startsWith("chat")).map((span) => Number(attribute(span, "gen_ai.usage.output_tokens")));
  const whole = spans.find(({ name }) => name === "invoke_agent user");
  assert.ok(whole);
  assert.equal(Number(attribute(whole, "gen_ai.usage.output_tokens")), usage.reduce((sum, used) => sum + used, 0));

  // Owners of the thread can read the same spans without a collector.
  const shown = await thread.send("GET", `/runs/${run}/spans`);
  assert.equal(shown.status, 200, shown.text);
  const again = shown.json.resourceSpans[0].scopeSpans[0].spans;
  assert.deepEqual(new Set(again.map(JSON.stringify)), new Set(spans.map((span) => JSON.stringify(span))));
  assert.equal((await bobbin.as("ours").send("GET", `${thread.path}/runs/${run}/spans`)).status, 200);
  assert.equal((await thread.send("GET", "/runs/r_99/spans")).status, 404);
  const token = await bobbin.client.send("POST", "/tokens", { scope: `thread:${thread.id}` });
  assert.equal(token.status, 200, token.text);
  assert.equal((await bobbin.as(token.json.token).send("GET", `${thread.path}/runs/${run}/spans`)).status, 403);

  assert.ok(collector.metrics > 0);
  const sent = collector.bodies.join("\n");
  assert.ok(!sent.includes("canary"), "what was said is not told");
  assert.ok(!sent.includes(SECRET));
  assert.ok(collector.headers.every(({ authorization }) => authorization === `Bearer ${SECRET}`));
});

test("a collector that hangs, is busy or refuses holds up no run", async () => {
  const said = collector.bodies.length;
  collector.answer = (n) => (n === said ? undefined : { status: n === said + 1 ? 429 : 200 });
  const thread = await bobbin.client.thread(user.name);
  const start = Date.now();
  await thread.ask("go");
  await thread.ask("again");
  assert.ok(Date.now() - start < 9_000, "no run waits for the collector");
  await told(thread, 2);
  assert.deepEqual(collector.wrong, []);

  const before = collector.bodies.length;
  collector.answer = () => ({ status: 400, body: "no" });
  const refused = await bobbin.client.thread(user.name);
  await refused.ask("go");
  await until("it was refused", () => collector.bodies.length > before);
  await bobbin.quiet([{ thread: refused, model: user.model }]);
  assert.equal(collector.bodies.length, before + 1, "what is refused is not sent again");
  collector.answer = () => ({ status: 200 });
});

test("kill -9 while spans are sent: they arrive all the same, the same ones", async () => {
  const thread = await bobbin.client.thread(user.name);
  collector.answer = () => undefined;
  const said = collector.bodies.length;
  await thread.ask("go");
  await until("the collector is told", () => collector.bodies.length > said);
  bobbin.server.kill();
  collector.answer = () => ({ status: 200 });
  await bobbin.server.up();
  const spans = await told(thread);
  assert.equal(spans.length, 6);
  assert.deepEqual(collector.wrong, []);
});

test("one trace of two tools, a fallback, a child, an approval and kills: one root, no orphan, and it costs what the thread says", async () => {
  const thread = await bobbin.client.thread(office.name, { user_id: "alice" });
  const headers = { traceparent: `00-${TRACE.replace("4bf9", "5bf9")}-${OUTSIDE}-01` };
  assert.equal((await thread.post("go", {}, { headers })).status, 202);
  const open = async () => (await thread.send("GET", "/waits")).json.waits;
  const [wait] = await until("somebody is asked", async () => ((await open()).length > 0 ? await open() : undefined), { withinMs: 60_000 });
  await bobbin.server.crash();
  assert.equal((await thread.send("POST", `/waits/${wait.id}`, { decision: "approve" })).status, 200);
  await bobbin.server.crash();
  await thread.idle(60_000);
  await told(thread);
  const ids = [thread.id, ...(await registry(thread)).map(({ id }) => id)];
  assert.equal(ids.length, 2);
  await until("the child's run is told of, too", () => collector.ofThreads(ids).filter(({ name, kind }) => name.startsWith("invoke_agent") && kind === 1).length === 2, { withinMs: 60_000 });
  await until("nothing is owed any more", async () => (await thread.diagnostics()).due.length === 0, { withinMs: 60_000 });
  assert.deepEqual(collector.problems(ids, OUTSIDE), []);
  const spans = collector.ofThreads(ids);
  assert.ok(spans.every(({ traceId }) => traceId === TRACE.replace("4bf9", "5bf9")));
  const named = (/** @type {string} */ name) => spans.filter((span) => span.name === name);
  for (const name of ["execute_tool look", "execute_tool act", "execute_tool pay", "wait approval", "invoke_agent helper", "invoke_agent office"]) {
    assert.ok(named(name).length > 0, `${name}: ${spans.map((span) => span.name)}`);
  }
  assert.ok(spans.some(({ events }) => events?.some(({ name }) => name === "bobbin.fallback")));
  assert.ok(spans.some(({ events }) => events?.some(({ name }) => name === "bobbin.recovery")) || pay.received.length === 1, "the second kill is seen, unless it came too late");
  // The child's span is below its call's, and its calls have the trace, too.
  const [call, run] = [named("invoke_agent helper").find(({ kind }) => kind === 3), named("invoke_agent helper").find(({ kind }) => kind === 1)];
  assert.ok(call && run?.parentSpanId === call.spanId);
  for (const { headers } of [...act.received, ...pay.received, ...look.received.slice(-2)]) {
    const [, trace, parent] = String(headers.traceparent).split("-");
    assert.ok(trace === call.traceId && spans.some(({ spanId }) => spanId === parent), headers.traceparent?.toString());
  }
  const costs = (/** @type {(span: import("./support/collector.mjs").Span) => boolean} */ of) =>
    spans.filter(of).reduce((sum, span) => sum + Number(attribute(span, "bobbin.cost_usd") ?? 0), 0);
  const { total } = (await thread.send("GET", "/cost")).json;
  assert.ok(total.cost > 0);
  for (const cost of [costs(({ name }) => name.startsWith("chat")), costs(({ name, kind }) => name.startsWith("invoke_agent") && kind === 1)]) {
    assert.ok(Math.abs(cost - total.cost) < 1e-9, `${cost}, and ${total.cost}`);
  }
});

test("an effect is a trace of its own, linked to the run that has scheduled it, and told of through kills", async () => {
  const thread = await bobbin.client.thread(planner.name);
  const before = called.received.length;
  const { outcome } = await thread.ask("go");
  assert.equal(outcome, "completed");
  // Kill the server between the first and the second attempt, and again while the collector does not respond.
  await until("the first attempt", () => called.received.length > before, { withinMs: 60_000 });
  await bobbin.server.crash();
  await until("the second attempt", () => called.received.length > before + 1, { withinMs: 60_000 });
  await bobbin.server.crash();
  const [effect] = await beside(thread, "effect called");
  assert.ok(effect);
  assert.deepEqual(collector.wrong, []);
  const run = (await told(thread)).find(({ name }) => name === "invoke_agent planner");
  assert.ok(run && effect.traceId !== run.traceId && effect.parentSpanId === undefined);
  assert.deepEqual(
    effect.links?.map(({ traceId, spanId, attributes }) => [traceId, spanId, attributes[0]?.value.stringValue]),
    [[run.traceId, run.spanId, "r_1"]],
  );
  assert.equal(effect.kind, 1);
  assert.equal(attribute(effect, "bobbin.effect.status"), "completed");
  const listed = (await thread.send("GET", "/effects")).json.effects;
  assert.deepEqual(listed.map((/** @type {any} */ { id, attempts }) => [id, String(attempts)]), [[attribute(effect, "bobbin.effect"), attribute(effect, "bobbin.attempts")]]);
  // Every attempt belonged to its trace.
  const sent = called.received.slice(before).map(({ headers }) => headers.traceparent);
  assert.ok(sent.length >= 2 && sent.every((header) => header === `00-${effect.traceId}-${effect.spanId}-01`), `${sent}`);
  assert.ok(!collector.bodies.join("\n").includes("canary"), "arguments are not told");

  // An effect that a client schedules is linked to no run.
  const answer = await thread.send("POST", "/effects", { name: "called", args: { word: "x" } });
  assert.equal(answer.status, 201, answer.text);
  const [, second] = await beside(thread, "effect called", 2);
  assert.ok(second);
  const own = collector.ofThreads([thread.id]).find((span) => attribute(span, "bobbin.effect") === answer.json.effect.id);
  assert.ok(own && own.links === undefined && own.traceId !== effect.traceId);
});

test("a request to an endpoint is a span of its trace, or of its own, linked to the run that it begins", async () => {
  const thread = await bobbin.client.thread(user.name);
  const named = TRACE.replace("4bf9", "6bf9");
  const headers = { traceparent: `00-${named}-${OUTSIDE}-01` };
  for (const [given, runs] of /** @type {[Record<string, string>, number][]} */ ([[{}, 1], [headers, 2]])) {
    const answer = await thread.send("POST", "/say", {}, { headers: given });
    assert.equal(answer.status, 200, answer.text);
    await told(thread, runs);
  }
  const spans = await beside(thread, "POST /say", 2);
  assert.deepEqual(collector.wrong, []);
  const roots = collector.ofThreads([thread.id]).filter(({ name }) => name === "invoke_agent user");
  const [own, continued] = [spans.find(({ traceId }) => traceId !== named), spans.find(({ traceId }) => traceId === named)];
  assert.ok(own && continued && own.parentSpanId === undefined && continued.parentSpanId === OUTSIDE);
  for (const span of [own, continued]) {
    assert.equal(span.kind, 2);
    assert.equal(attribute(span, "http.response.status_code"), "200");
    const links = span.links?.map(({ traceId, spanId }) => `${traceId} ${spanId}`) ?? [];
    assert.equal(links.length, 1);
    assert.ok(roots.some(({ traceId, spanId }) => links[0] === `${traceId} ${spanId}`), links[0]);
  }
});
