// Threads: lists, details, changes, deletion, logs, diagnostics, the catalog; and the guard of a development server
// without keys.

import assert from "node:assert/strict";
import { exchange } from "./support/http.mjs";
import { after, hang, refuse, say, textOf, use } from "./support/model.mjs";
import { gate, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

bobbin.tool("lookup", () => "found");
const plain = bobbin.agent("plain", ({ last }) => say(`You wrote: ${last}`), { agent: { title: "Plain", description: "Echoes." } });
bobbin.agent("other", () => say("I am the other one"), { system: "You are the other one." });
bobbin.agent(
  "looking",
  ({ messages }) => (messages.at(-1)?.role === "tool" ? say("done") : use({ name: "lookup", args: { word: "bobbin" } })),
  { tools: ["lookup"] },
);
bobbin.agent("refusing", () => refuse(503));
const stuck = bobbin.agent("stuck", hang);
const door = gate();
bobbin.agent("gated", () => after(door.passed, say("through the door")));

/**
 * Waits until the thread's entry in the list matches, and returns it.
 * @param {Thread} thread @param {string} what @param {(item: any) => unknown} matches
 */
function listed(thread, what, matches) {
  /** @type {any} */
  let last;
  return until(
    `the list shows ${what}`,
    async () => {
      const { threads } = await bobbin.client.threads({ limit: 100 });
      last = threads.find(({ id }) => id === thread.id);
      return last && matches(last) ? last : undefined;
    },
    { describe: () => last },
  );
}

test("the list shows what a thread is and what it does", async () => {
  const start = Date.now() / 1000;
  const thread = await bobbin.client.thread("gated", { tags: ["a", "b"] });
  const item = await listed(thread, "the new thread", () => true);
  assert.deepEqual(
    { ...item, created_at: 0, last_activity_at: 0, agent: { name: item.agent.name, type: item.agent.type } },
    {
      ...item,
      id: thread.id,
      agent_id: "gated",
      origin_agent_id: "gated",
      user_id: null,
      tags: ["a", "b"],
      parent: null,
      terminated: null,
      created_at: 0,
      last_activity_at: 0,
      executing: false,
      last_message_preview: null,
      last_message_at: null,
      agent: { name: "gated", type: "ai_human" },
    },
  );
  assert.ok(Math.abs(item.created_at - start) < 60, "created_at is in seconds");
  await thread.accepted("let me through");
  const running = await listed(thread, "that it runs", ({ executing }) => executing === true);
  assert.equal(running.last_message_preview, "let me through", "what was asked, until there is an answer");
  assert.ok((await bobbin.client.threads({ executing: true })).threads.some(({ id }) => id === thread.id));
  door.open();
  const done = await listed(thread, "that it is done", ({ executing }) => executing === false);
  assert.equal(done.last_message_preview, "through the door");
  assert.ok(done.last_message_at >= item.created_at && done.last_activity_at >= item.created_at);
});

test("the list shows that the last run failed, and what a thread began with", async () => {
  const thread = await bobbin.client.thread("refusing");
  await thread.ask("try");
  const failed = await listed(thread, "the failure", (item) => item.failed === "model_error");
  assert.equal(failed.executing, false);
  assert.ok((await bobbin.client.threads({ failed: true, limit: 100 })).threads.some(({ id }) => id === thread.id));
  const history = [{ role: "user", content: "What was before?" }, { role: "assistant", content: "This was." }];
  const { json } = await bobbin.client.send("POST", "/threads", { agent_id: "plain", history });
  const { threads } = await bobbin.client.threads({ limit: 100 });
  const begun = threads.find(({ id }) => id === json.threadId);
  assert.deepEqual([begun?.last_message_preview, begun?.failed], ["This was.", null]);
});

test("lists: order, pages, filters, search", async () => {
  const tag = `t${Math.random().toString(36).slice(2)}`;
  /** @type {Thread[]} */
  const made = [];
  for (let at = 0; at < 5; at++) {
    made.push(await bobbin.client.thread(at % 2 === 0 ? "plain" : "other", { user_id: `lister-${tag}`, tags: [`${tag}-${at}`] }));
  }
  const ids = made.map(({ id }) => id);
  const list = (/** @type {Record<string, string | number | boolean>} */ query) =>
    bobbin.client.threads({ user_id: `lister-${tag}`, ...query });
  await until("all are listed", async () => (await list({})).total === 5);
  const names = async (/** @type {Record<string, string | number | boolean>} */ query) =>
    (await list(query)).threads.map(({ id }) => ids.indexOf(id));
  assert.deepEqual(await names({ sort: "oldest" }), [0, 1, 2, 3, 4]);
  assert.deepEqual(await names({ sort: "created" }), [4, 3, 2, 1, 0]);
  assert.deepEqual(await names({ sort: "oldest", limit: 2, offset: 1 }), [1, 2]);
  assert.deepEqual([(await list({ limit: 2 })).total, (await list({ limit: 2 })).hasMore], [5, true]);
  assert.equal((await list({ limit: 2, offset: 3 })).hasMore, false);
  assert.deepEqual((await names({ agent_id: "other" })).sort(), [1, 3]);
  assert.deepEqual(await names({ search: `${tag}-3` }), [3]);

  const [first] = made;
  assert.ok(first);
  await first.ask("I was active last");
  await until("activity sorts", async () => (await names({ sort: "activity" }))[0] === 0);
  assert.deepEqual(await names({ search: "active last" }), [0]);
  assert.equal((await first.send("POST", "/terminate")).status, 200);
  await until("it is listed as terminated", async () => (await names({ terminated: true })).join() === "0");
  assert.deepEqual((await names({ terminated: false })).sort(), [1, 2, 3, 4]);
});

test("a thread in detail", async () => {
  const thread = await bobbin.client.thread("plain", { tags: ["x"], properties: { color: "red" } });
  await thread.ask("hello");
  const { thread: info, agent, stats } = (await thread.send("GET")).json;
  assert.deepEqual(
    { id: info.id, agent_id: info.agent_id, user_id: info.user_id, tags: info.tags, properties: info.properties, parent: info.parent, terminated: info.terminated },
    { id: thread.id, agent_id: "plain", user_id: null, tags: ["x"], properties: { color: "red" }, parent: null, terminated: null },
  );
  assert.deepEqual([agent.name, agent.title, agent.type, agent.description], ["plain", "Plain", "ai_human", "Echoes."]);
  assert.equal(stats.messageCount, 2);
  assert.ok(stats.logCount >= 1);
  assert.ok(Math.abs(stats.lastActivity - Date.now() / 1000) < 60);
});

test("changes of a thread: tags and properties, each replaced as a whole", async () => {
  const thread = await bobbin.client.thread("plain", { tags: ["old"], properties: { a: 1, b: 2 } });
  const answer = await thread.send("PATCH", "", { tags: ["new"], properties: { a: 3 } });
  assert.equal(answer.status, 200, answer.text);
  const { id, agent_id, user_id, tags } = answer.json;
  assert.deepEqual({ id, agent_id, user_id, tags }, { id: thread.id, agent_id: "plain", user_id: null, tags: ["new"] });
  const { thread: info } = (await thread.send("GET")).json;
  assert.deepEqual([info.tags, info.properties], [["new"], { a: 3 }]);
  await listed(thread, "the new tags", (item) => item.tags.join() === "new");
});

test("a changed message is what the model reads; a deleted one is gone with its results", async () => {
  const thread = await bobbin.client.thread("plain");
  const { message } = await thread.ask("hello");
  const changed = await thread.send("PATCH", `/messages/${message.id}`, { content: "something else" });
  assert.deepEqual([changed.status, changed.json.success], [200, true], changed.text);
  await thread.ask("and now?");
  const asked = await plain.model.request(plain.model.asked.length);
  assert.deepEqual(asked.messages.slice(1).map(textOf), ["hello", "something else", "and now?"]);

  const tooled = await bobbin.client.thread("looking");
  await tooled.ask("go");
  const [, call] = await tooled.messages();
  const deleted = await tooled.send("DELETE", `/messages/${call.id}`);
  assert.deepEqual([deleted.status, deleted.json.success], [200, true], deleted.text);
  assert.deepEqual(await tooled.lines(), [
    ["user", "go"],
    ["assistant", "done"],
  ]);
  assert.equal((await tooled.send("DELETE", `/messages/${call.id}`)).status, 404);
  // The strict model would reject a history with unpaired calls.
  assert.equal((await tooled.ask("again")).outcome, "completed");
});

test("messages of the open step cannot be changed", async () => {
  const thread = await bobbin.client.thread("stuck");
  await thread.accepted("go");
  await stuck.model.request(1);
  const { partial, messages } = await thread.events().then(async (reader) => {
    const { data } = await reader.next("a snapshot", () => true);
    reader.close();
    return data;
  });
  const open = messages.find((/** @type {any} */ { role }) => role === "assistant")?.id ?? partial?.message_id;
  if (open !== undefined) {
    const answer = await thread.send("PATCH", `/messages/${open}`, { content: "meddled" });
    assert.ok([404, 409].includes(answer.status), answer.text);
  }
  const answer = await thread.send("DELETE", "");
  assert.equal(answer.status, 200, answer.text);
  await until("its request is given up", () => stuck.model.asked[0]?.gone);
});

test("a deleted thread is gone everywhere", async () => {
  const thread = await bobbin.client.thread("plain");
  await thread.ask("hello");
  await listed(thread, "it", () => true);
  const answer = await thread.send("DELETE");
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(
    { ...answer.json, message: "" },
    { success: true, threadId: thread.id, deletedThreadIds: [thread.id], deletedCount: 1, message: "" },
  );
  for (const [method, path, body] of /** @type {[string, string, unknown][]} */ ([
    ["GET", "", undefined],
    ["GET", "/messages", undefined],
    ["POST", "/messages", { role: "user", content: "still there?" }],
    ["GET", "/events", undefined],
    ["DELETE", "", undefined],
  ])) {
    const again = await thread.send(method, path, body);
    assert.deepEqual([again.status, again.json.error.code], [404, "thread_not_found"], `${method} ${path}`);
  }
  await until("it is not listed", async () =>
    !(await bobbin.client.threads({ limit: 100 })).threads.some(({ id }) => id === thread.id),
  );
});

test("logs: one row per model request and per tool call", async () => {
  const thread = await bobbin.client.thread("looking");
  await thread.ask("go");
  const answer = await thread.send("GET", "/logs?order=asc");
  assert.equal(answer.status, 200, answer.text);
  const { logs, total, hasMore } = answer.json;
  assert.deepEqual([logs.length, total, hasMore], [4, 4, false]);
  assert.deepEqual(logs.map((/** @type {any} */ { type }) => type), ["snapshot", "llm_request", "tool_call", "llm_request"]);
  assert.ok(!answer.text.includes("model-key-of-the-tests"));
  const [, request, call] = logs;
  assert.match(JSON.stringify(request), /looking_model/);
  assert.match(JSON.stringify(request), /100/, "input tokens");
  assert.match(JSON.stringify(call), /lookup/);
  for (const log of logs) {
    assert.ok(Math.abs(log.created_at / 1e6 - Date.now() / 1000) < 60, "created_at is in microseconds");
    const one = await thread.send("GET", `/logs/${log.id}`);
    assert.equal(one.status, 200, one.text);
  }
  const filtered = async (/** @type {string} */ query) => {
    const { logs, total } = (await thread.send("GET", `/logs?${query}`)).json;
    assert.equal(total, logs.length);
    return logs.map((/** @type {any} */ { id }) => id);
  };
  assert.deepEqual(await filtered(`order=asc&ids=${call.id},${request.id},l_999,nonsense`), [request.id, call.id]);
  assert.deepEqual(await filtered(`order=asc&messageIds=${request.message_id}`), [request.id, call.id]);
  assert.deepEqual(await filtered(`messageIds=${call.result_message_id}`), [call.id]);
  assert.deepEqual(await filtered("messageIds=nonsense"), []);
  const many = await thread.send("GET", `/logs?ids=${Array(101).fill("l_1").join(",")}`);
  assert.deepEqual([many.status, many.json.error.field], [400, "ids"]);
  const failed = await bobbin.client.thread("refusing");
  await failed.ask("go");
  const rows = (await failed.send("GET", "/logs?order=asc")).json.logs;
  assert.deepEqual(
    rows.map((/** @type {any} */ { type, status_code }) => [type, status_code]),
    [
      ["snapshot", undefined],
      ["llm_request", 503],
      ["llm_request", 503],
      ["failure", undefined],
    ],
  );
});

test("diagnostics of a running and of an idle thread", async () => {
  const thread = await bobbin.client.thread("stuck");
  await thread.accepted("go");
  await until("the model is asked", () => stuck.model.asked.some(({ gone }) => !gone));
  await thread.accepted("and this waits");
  const running = await thread.diagnostics();
  assert.equal(running.state, "running");
  assert.equal(running.queue.waiting, 1);
  assert.equal(running.alarm.handlerRunning || running.alarm.at !== null, true, "a run that works has its alarm");
  assert.equal((await thread.send("POST", "/stop")).status, 200);
  const idle = await thread.idle();
  assert.deepEqual([idle.alarm.at, idle.alarm.handlerRunning], [null, false]);
  assert.deepEqual(idle.due, []);
  assert.ok(idle.bytes > 0 && idle.schema >= 1, JSON.stringify(idle));
});

test("the catalogue of agents", async () => {
  const answer = await bobbin.client.send("GET", "/agents");
  assert.equal(answer.status, 200);
  assert.match(answer.text, /"gated"/);
  const one = await bobbin.client.send("GET", "/agents/plain");
  assert.equal(one.status, 200);
  assert.match(one.text, /Echoes\./);
  const explained = await bobbin.client.send("GET", "/agents/looking/explain");
  assert.equal(explained.status, 200, explained.text);
  assert.deepEqual(explained.json.missing, []);
  assert.ok(explained.json.uses.some((/** @type {any} */ { kind, file }) => kind === "tool" && file === "tools/lookup.json"), explained.text);
  assert.equal((await bobbin.client.send("GET", "/agents/nobody/explain")).status, 404);
});

test("a development server answers this machine only: other hosts and origins are refused", async () => {
  const port = new URL(bobbin.server.base).port;
  const as = (/** @type {Record<string, string>} */ headers) =>
    exchange(bobbin.server.base, "POST", "/api/threads", {
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ agent_id: "plain" }),
    });
  assert.equal((await as({})).status, 200);
  assert.equal((await as({ host: `localhost:${port}` })).status, 200);
  assert.equal((await as({ origin: bobbin.server.base })).status, 200);
  // A page of another server on this machine, which developers often have.
  for (const origin of ["http://localhost:5173", "http://127.0.0.1:3000"]) {
    const answer = await as({ origin });
    assert.deepEqual([answer.status, answer.headers["access-control-allow-origin"]], [200, origin]);
  }
  const { total } = await bobbin.client.threads();
  for (const headers of [{ host: "evil.example" }, { host: `evil.example:${port}` }, { origin: "https://evil.example" }, { origin: "null" }]) {
    const answer = await as(headers);
    assert.equal(answer.status, 403, `${JSON.stringify(headers)}: ${answer.text}`);
    assert.equal(answer.json.error.code, "forbidden");
  }
  await sleep(200);
  assert.equal((await bobbin.client.threads()).total, total);
  const told = bobbin.server.output().match(/A page of "https:\/\/evil\.example" was refused\..*BOBBIN_ALLOWED_ORIGINS=https:\/\/evil\.example/g);
  assert.equal(told?.length, 1, bobbin.server.output());
});

test("a client gives a thread at rest another agent, and the list and the next answer are that one's", async () => {
  const thread = await bobbin.client.thread("plain");
  await thread.ask("hello");
  const refused = await thread.send("PATCH", "", { agent_id: "nobody" });
  assert.equal(refused.status, 404);
  assert.equal(refused.json.error.code, "agent_not_found");
  const changed = await thread.send("PATCH", "", { agent_id: "other" });
  assert.equal(changed.status, 200);
  assert.equal(changed.json.agent_id, "other");
  await listed(thread, "its new agent", (item) => item.agent_id === "other" && item.origin_agent_id === "plain");
  const { message } = await thread.ask("who are you?");
  assert.equal(message.content, "I am the other one");
});
