// What the tools of official servers ask of people, what goes on for long, and what is told of servers.

import assert from "node:assert/strict";
import { missing } from "../support/python.mjs";
import { until } from "../../worker/support/poll.mjs";
import { fast } from "./peers/fast.mjs";
import { modern } from "./peers/modern.mjs";
import { FORM } from "./peers/tools.mjs";
import { asked, came, decide, ended, Peers, waits } from "./support.mjs";

const TOKEN = "a-token-of-the-peer";
/** @type {import("./peers/serve.mjs").Peer} */
let server;

process.env["PEER_TOKEN"] = TOKEN;
const peers = new Peers({ vars: { PEER_TOKEN: TOKEN } }).use(
  { modern: async () => (server = await modern({ token: TOKEN })), ...(missing ? {} : { fast }) },
  { modern: { headers: { authorization: "Bearer {{env PEER_TOKEN}}" }, variables: [{ name: "PEER_TOKEN", type: "secret" }], approval: { add: "always" } } },
);

peers.test("servers are told of to administrators, without their keys", async () => {
  await peers.call("modern", "echo", { text: "hi" });
  const told = async () => (await peers.suite.client.send("GET", "/mcp")).json.servers.find((/** @type {any} */ { name }) => name === "modern");
  const server = await until("its answer is told", async () => ((one) => one.last_success !== null && one)(await told()), { withinMs: 20_000 });
  assert.deepEqual([server.list, server.protocol, server.server, server.agents, server.last_error], ["pinned", "2026-07-28", { name: "modern-peer", version: "1.0.0" }, ["modern"], null]);
  assert.deepEqual(server.tools.find((/** @type {any} */ { tool }) => tool === "add").approval, "always");
  assert.ok(!JSON.stringify(server).includes(TOKEN));
});

peers.test("a form is asked, and its answer repeats the call", async () => {
  const { thread, outcome } = await peers.ask("modern", ["ask", {}]);
  assert.equal(outcome, "parked");
  const [wait] = await waits(thread);
  assert.deepEqual([wait.kind, wait.title, wait.server, wait.call.tool], ["elicitation", "Who are you?", "modern", "modern__ask"]);
  assert.deepEqual(wait.form, FORM);
  const wrong = await thread.send("POST", `/waits/${wait.id}`, { decision: "answer", content: { name: "Bo", count: "three" } });
  assert.equal(wrong.status, 422, wrong.text);
  await decide(thread, wait, { decision: "answer", content: { name: "Bo", count: 3 } });
  assert.equal(await ended(thread), "completed");
  assert.match((await came(thread)).result, /^accept: .*"name":"Bo"/);
  const [first, second] = server.books.calls.filter(({ tool }) => tool === "ask").slice(-2);
  assert.deepEqual([first?.state, second?.state], [undefined, "the first state"]);
});

peers.test("a form is declined", async () => {
  const { thread } = await peers.ask("modern", ["ask", {}]);
  await decide(thread, await asked(thread), { decision: "deny", reason: "no" });
  assert.equal(await ended(thread), "completed");
  assert.match((await came(thread)).result, /decline/);
});

peers.test("a server may ask again, ask for an address, or want to be asked again", async () => {
  const { thread } = await peers.ask("modern", ["ask_twice", {}]);
  await decide(thread, await asked(thread), { decision: "answer", content: { first: "one" } });
  const second = await until("it asks the second", async () => (await waits(thread)).find(({ title }) => title === "The second?"), { withinMs: 20_000 });
  await decide(thread, second, { decision: "answer", content: { second: "two" } });
  assert.equal(await ended(thread), "completed");
  assert.equal((await came(thread)).result, "one, then two");
  const visit = (await peers.ask("modern", ["visit", {}])).thread;
  const wait = await asked(visit);
  assert.deepEqual([wait.kind, wait.url], ["elicitation", "https://example.com/confirm?id=1"]);
  await decide(visit, wait, { decision: "answer" });
  assert.equal(await ended(visit), "completed");
  assert.equal((await came(visit)).result, "accept");
  assert.equal((await peers.call("modern", "later")).result, "again with: once more");
});

peers.test("tasks are looked after until they end, ask, fail or are stopped", async () => {
  const job = await peers.begin("modern", "job", { ms: 1500 });
  assert.equal(await ended(job), "completed");
  assert.equal((await came(job)).result, "The job is done.");
  assert.equal(server.books.count("job"), 1);
  const bad = await peers.begin("modern", "bad_job", { ms: 500 });
  assert.equal(await ended(bad), "completed");
  assert.deepEqual(await came(bad).then(({ ok, result }) => [ok, result.includes("The machine is broken.")]), [false, true]);
  const asking = await peers.begin("modern", "asking_job", { ms: 300 });
  const wait = await until("it asks", async () => (await waits(asking)).find(({ kind }) => kind === "elicitation"), { withinMs: 30_000 });
  await decide(asking, wait, { decision: "answer", content: { colour: "red" } });
  assert.equal(await ended(asking), "completed");
  assert.equal((await came(asking)).result, 'The answer is accept: {"colour":"red"}');
  const endless = await peers.begin("modern", "endless_job", {});
  const task = await until("it is polled", () => [...server.books.tasks.values()].find(({ polls, status }) => status === "working" && polls > 0), { withinMs: 30_000 });
  await endless.send("POST", "/stop");
  await until("it is cancelled at the server", () => task.status === "cancelled", { withinMs: 20_000 });
});

if (missing) console.log(`skipped: ${missing}`);
else {
  peers.test("fastmcp: forms", async () => {
    const { thread, outcome } = await peers.ask("fast", ["ask", {}]);
    assert.equal(outcome, "parked");
    await decide(thread, await asked(thread), { decision: "answer", content: { name: "Bo" } });
    assert.equal(await ended(thread), "completed");
    assert.match((await came(thread)).result, /^accept: \{'name': 'Bo'\} with the state of Python$/);
  });
}
