// Conversations over HTTP: a client's messages, the responses, and the requests to the model.

import assert from "node:assert/strict";
import { hang, inTurn, say, textOf, use } from "./support/model.mjs";
import { gate, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const word = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };
const lookup = bobbin.tool("lookup", ({ args }) => ({ body: { status: "success", result: `${args.word}: a spool` } }), {
  args: word,
});
const count = bobbin.tool("count", ({ n }) => `count ${n}`);

const plain = bobbin.agent("plain", ({ last }) => say(`You wrote: ${last}`, { chunks: 5 }));
const looking = bobbin.agent(
  "looking",
  ({ messages, last }) =>
    messages.at(-1)?.role === "tool" ? say(`Found ${last}`) : use({ name: "lookup", args: { word: "bobbin" } }),
  { tools: ["lookup"] },
);

test("the session of the documentation: create, post, wait, read", async () => {
  const created = await bobbin.client.send("POST", "/threads", { agent_id: "plain", tags: ["demo"] });
  assert.equal(created.status, 200, created.text);
  assert.match(created.headers["content-type"] ?? "", /^application\/json/);
  const { threadId, ...rest } = created.json;
  assert.match(threadId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/, "a random UUID");
  assert.deepEqual(rest, { agent_id: "plain", message: "Thread created" });

  const posted = await bobbin.client.send("POST", `/threads/${threadId}/messages`, {
    role: "user",
    content: "What is a bobbin?",
  });
  assert.equal(posted.status, 202, posted.text);
  const { status, queueId, messageId, message, state } = posted.json;
  assert.deepEqual({ status, state }, { status: "queued", state: "running" });
  assert.equal(queueId, messageId);
  assert.equal(message.id, messageId);
  assert.deepEqual([message.role, message.content], ["user", "What is a bobbin?"]);

  const waited = await bobbin.client.send("POST", `/threads/${threadId}/messages?wait=true`, {
    role: "user",
    content: "And a loom?",
  });
  assert.equal(waited.status, 200, waited.text);
  assert.equal(waited.json.outcome, "completed");
  assert.equal(waited.json.reason, "stop_on_response");
  assert.equal(typeof waited.json.run, "string");
  assert.deepEqual([waited.json.message.role, waited.json.message.content], ["assistant", "You wrote: And a loom?"]);

  const { messages, total, hasMore } = (await bobbin.client.send("GET", `/threads/${threadId}/messages`)).json;
  assert.equal(hasMore, false);
  assert.equal(total, messages.length);
  const asked = messages.filter((/** @type {any} */ { role }) => role === "user");
  assert.deepEqual(
    asked.map((/** @type {any} */ { content }) => content),
    ["What is a bobbin?", "And a loom?"],
  );
});

test("a message has the fields of the specification", async () => {
  const thread = await bobbin.client.thread("plain");
  const { message } = await thread.ask("hello");
  const before = Date.now() * 1000;
  for (const [field, value] of Object.entries({
    role: "assistant",
    content: "You wrote: hello",
    name: null,
    tool_calls: null,
    tool_call_id: null,
    parent_id: null,
    depth: 0,
    silent: false,
    subagent_id: null,
  })) {
    assert.deepEqual(message[field], value, `${field} in ${JSON.stringify(message)}`);
  }
  assert.equal(typeof message.metadata, "object");
  assert.ok(Math.abs(message.created_at - before) < 60e6, "created_at is in microseconds");
});

test("the model is sent the system prompt, the history and the new message", async () => {
  const thread = await bobbin.client.thread("plain");
  await thread.ask("first");
  await thread.ask("second");
  const { messages, body } = await plain.model.request(plain.model.asked.length);
  assert.deepEqual(
    messages.map((message) => [message.role, textOf(message).trim()]),
    [
      ["system", "You are plain."],
      ["user", "first"],
      ["assistant", "You wrote: first"],
      ["user", "second"],
    ],
  );
  assert.equal(body.model, "plain");
  assert.equal(body.tools, undefined);
});

test("any text survives the way to the model and back", async () => {
  const thread = await bobbin.client.thread("plain");
  const text = "naïve 🧵 \u0000 \u2028 \"quoted\" \\ back\n\tnew line — 日本語 \u{10ffff}";
  const { message } = await thread.ask(text);
  assert.equal(message.content, `You wrote: ${text}`);
  assert.deepEqual(await thread.lines(), [
    ["user", text],
    ["assistant", `You wrote: ${text}`],
  ]);
});

test("a tool call: arguments go out, the result comes back, both are in the history", async () => {
  const thread = await bobbin.client.thread("looking");
  const { message, outcome } = await thread.ask("look it up");
  assert.equal(outcome, "completed");
  assert.equal(message.content, "Found bobbin: a spool");

  const call = await lookup.call(1);
  assert.deepEqual(call.args, { word: "bobbin" });
  assert.equal(call.body.threadId, thread.id);
  assert.equal(call.body.agentId, "looking");
  assert.equal(call.body.name, "lookup");
  assert.deepEqual(call.body.options, {});

  const messages = await thread.messages();
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant", "tool", "assistant"],
  );
  const [made] = JSON.parse(messages[1].tool_calls);
  assert.deepEqual(
    { type: made.type, name: made.function.name, args: JSON.parse(made.function.arguments) },
    { type: "function", name: "lookup", args: { word: "bobbin" } },
  );
  assert.equal(made.id, call.body.callId);
  assert.equal(messages[2].tool_call_id, made.id);
  assert.equal(messages[2].name, "lookup");

  const offered = looking.model.asked[0]?.body.tools;
  assert.deepEqual(
    offered.map((/** @type {any} */ tool) => [tool.function.name, tool.function.description]),
    [["lookup", "The test tool lookup."]],
  );
});

const fifty = bobbin.agent(
  "fifty",
  ({ messages }) => {
    const done = messages.filter(({ role }) => role === "tool").length;
    return done < 50 ? use({ name: "count", args: {} }) : say("counted to fifty");
  },
  { tools: ["count"], side: { maxSteps: 60 } },
);

test("fifty tool steps in one turn", async () => {
  const thread = await bobbin.client.thread("fifty");
  const { message, outcome } = await thread.ask("count");
  assert.equal(outcome, "completed");
  assert.equal(message.content, "counted to fifty");
  assert.equal(count.received.length, 50);
  assert.equal(new Set(count.received.map(({ key }) => key)).size, 50, "every call has its own key");
  assert.equal(fifty.model.asked.length, 51);
  assert.equal((await thread.messages()).length, 1 + 50 * 2 + 1);
});

bobbin.agent("several", ({ messages }) => {
  const results = messages.filter(({ role }) => role === "tool").map(textOf);
  return results.length === 0
    ? use({ name: "lookup", args: { word: "a" } }, { name: "count", args: {} }, { name: "lookup", args: { word: "b" } })
    : say(results.join(" | "));
}, { tools: ["lookup", "count"], prompt: { parallelToolCalls: true } });

test("several calls in one reply run one after another, in the order of the reply", async () => {
  const before = count.received.length;
  const thread = await bobbin.client.thread("several");
  const { message } = await thread.ask("go");
  assert.equal(message.content, `a: a spool | count ${before + 1} | b: a spool`);
  const [a, b] = lookup.received.slice(-2);
  const [between] = count.received.slice(-1);
  assert.ok(a && b && between && a.at <= between.at && between.at <= b.at);
});

const door = gate();
const slow = bobbin.agent("slow", (asked) =>
  asked.n === 1
    ? async (out) => {
        await out.text("thinking");
        await door.passed;
        await out.call({ name: "count", args: {} });
        await out.end();
      }
    : say("done"),
{ tools: ["count"] });

test("messages sent while a turn runs join it, in order, in one history", async () => {
  const thread = await bobbin.client.thread("slow");
  await thread.accepted("one");
  await slow.model.request(1);
  const sent = ["two", "three", "four"];
  for (const content of sent) assert.equal((await thread.accepted(content)).state, "running");
  door.open();
  await thread.idle();
  const second = await slow.model.request(2);
  assert.deepEqual(
    second.messages.filter(({ role }) => role === "user").map(textOf),
    ["one", ...sent],
  );
  const messages = await thread.messages();
  assert.deepEqual(
    messages.map(({ role, content }) => (role === "user" ? content : role)),
    ["one", "assistant", "tool", "two", "three", "four", "assistant"],
  );
  assert.equal(slow.model.asked.length, 2);
});

const burst = bobbin.agent("burst", ({ messages }) =>
  say(`heard ${messages.filter(({ role }) => role === "user").length}`, { beforeMs: 30 }),
);

test("messages sent at the same time are all answered for, none lost, none twice", async () => {
  const thread = await bobbin.client.thread("burst");
  const sent = Array.from({ length: 12 }, (_, at) => `message ${at}`);
  const answers = await Promise.all(sent.map((content) => thread.ask(content)));
  for (const { outcome } of answers) assert.equal(outcome, "completed");
  const stored = (await thread.messages()).filter(({ role }) => role === "user").map(({ content }) => content);
  assert.deepEqual([...stored].sort(), [...sent].sort());
  const last = await burst.model.request(burst.model.asked.length);
  assert.deepEqual(last.messages.filter(({ role }) => role === "user").map(textOf), stored);
});

const waitedFor = gate();
bobbin.agent("waited", ({ n }) =>
  n === 1
    ? async (out) => {
        await waitedFor.passed;
        await out.call({ name: "count", args: {} });
        await out.end();
      }
    : say("for all"),
{ tools: ["count"] });

test("every waiter of a run gets the run's answer, and one that leaves changes nothing", async () => {
  const thread = await bobbin.client.thread("waited");
  const leaving = new AbortController();
  const left = thread.ask("leaving", {}, { signal: leaving.signal });
  await until("the run has begun", async () => (await thread.diagnostics()).state === "running");
  const staying = [thread.ask("staying"), thread.ask("staying too")];
  await until("all three are stored", async () => (await thread.page()).total >= 3);
  leaving.abort();
  await assert.rejects(left, { name: "AbortError" });
  waitedFor.open();
  const [one, two] = await Promise.all(staying);
  assert.deepEqual([one.outcome, one.message.content], ["completed", "for all"]);
  assert.equal(one.run, two.run);
  assert.deepEqual(one.message, two.message);
  await thread.idle();
  assert.equal((await thread.messages()).filter(({ role }) => role === "user").length, 3);
});

test("a system message is stored, starts nothing, and the model reads it", async () => {
  const thread = await bobbin.client.thread("plain");
  const before = plain.model.asked.length;
  const stored = await thread.accepted("Answer politely.", { role: "system" });
  assert.equal(stored.message.role, "system");
  await sleep(300);
  assert.equal(plain.model.asked.length, before, "nothing was started");
  await thread.ask("hello");
  const { messages } = await plain.model.request(before + 1);
  assert.ok(messages.some((message) => message.role === "system" && textOf(message).includes("Answer politely.")));
});

test("a silent message is hidden unless asked for, and the model reads it", async () => {
  const thread = await bobbin.client.thread("plain");
  const { message } = await thread.ask("between us", { silent: true });
  assert.equal(message.content, "You wrote: between us");
  assert.deepEqual(await thread.lines(), [["assistant", "You wrote: between us"]]);
  const all = await thread.messages({ includeSilent: true });
  assert.deepEqual(
    all.map(({ content, silent }) => [content, silent]),
    [
      ["between us", true],
      ["You wrote: between us", false],
    ],
  );
});

test("pages of messages: limit, cursors, order, ids", async () => {
  const thread = await bobbin.client.thread("plain");
  for (let at = 0; at < 5; at++) await thread.accepted(`note ${at}`, { role: "system" });
  const texts = (/** @type {{ messages: any[] }} */ { messages }) => messages.map(({ content }) => content);
  const newest = await thread.page({ limit: 2 });
  assert.deepEqual(texts(newest), ["note 3", "note 4"], "newest slice, oldest first");
  assert.deepEqual([newest.total, newest.hasMore], [5, true]);
  const before = await thread.page({ limit: 2, before: newest.messages[0].id });
  assert.deepEqual([texts(before), before.hasMore], [["note 1", "note 2"], true]);
  const first = await thread.page({ limit: 2, before: before.messages[0].id });
  assert.deepEqual([texts(first), first.hasMore], [["note 0"], false]);
  const after = await thread.page({ after: before.messages[1].id });
  assert.deepEqual(texts(after), ["note 3", "note 4"]);
  assert.deepEqual(texts(await thread.page({ order: "asc", limit: 2 })), ["note 0", "note 1"]);
  assert.deepEqual(texts(await thread.page({ offset: 1, limit: 2 })), ["note 2", "note 3"]);
  const one = await thread.send("GET", `/messages/${newest.messages[0].id}`);
  assert.equal(one.status, 200);
  assert.equal(one.json.content, "note 3");
});

test("a repeated message with the same idempotency key is the same message", async () => {
  const thread = await bobbin.client.thread("plain");
  const before = plain.model.asked.length;
  const headers = { "idempotency-key": "once" };
  const first = await thread.post("only once", {}, { headers });
  const second = await thread.post("only once", {}, { headers });
  assert.deepEqual([second.status, second.json], [first.status, first.json]);
  await thread.idle();
  const third = await thread.post("only once", {}, { headers });
  assert.deepEqual([third.status, third.json.messageId], [202, first.json.messageId]);
  assert.deepEqual(await thread.lines(), [
    ["user", "only once"],
    ["assistant", "You wrote: only once"],
  ]);
  assert.equal(plain.model.asked.length, before + 1);

  const other = await thread.post("something else", {}, { headers });
  assert.deepEqual([other.status, other.json.error.code], [422, "idempotency_mismatch"]);
  assert.equal((await thread.page()).total, 2, "nothing was stored for it");
  const elsewhere = await (await bobbin.client.thread("plain")).post("something else", {}, { headers });
  assert.equal(elsewhere.status, 202, "keys are per thread");
});

test("a repeated wait=true waits for the same run", async () => {
  const thread = await bobbin.client.thread("plain");
  const options = { headers: { "idempotency-key": "wait" } };
  const [first, second] = await Promise.all([thread.ask("hello", {}, options), thread.ask("hello", {}, options)]);
  assert.deepEqual(second, first);
  const later = await thread.ask("hello", {}, options);
  assert.deepEqual(later, first);
  assert.equal((await thread.page()).total, 2);
});

test("idempotency keys on threads: one thread, however often and however fast it is asked for", async () => {
  const headers = { "idempotency-key": `thread-${Math.random()}` };
  const create = (/** @type {object} */ body) => bobbin.client.send("POST", "/threads", body, { headers });
  const answers = await Promise.all(Array.from({ length: 5 }, () => create({ agent_id: "plain", tags: ["one"] })));
  for (const answer of answers) assert.equal(answer.status, 200, answer.text);
  assert.equal(new Set(answers.map(({ json }) => json.threadId)).size, 1);
  const other = await create({ agent_id: "plain", tags: ["two"] });
  assert.deepEqual([other.status, other.json.error.code], [422, "idempotency_mismatch"]);
});

bobbin.agent("twice", inTurn(say("first run"), say("second run")));

test("a message after the end of a run starts the next one", async () => {
  const thread = await bobbin.client.thread("twice");
  const first = await thread.ask("a");
  const second = await thread.ask("b");
  assert.notEqual(first.run, second.run);
  assert.deepEqual([first.message.content, second.message.content], ["first run", "second run"]);
});

const forever = bobbin.agent("forever", hang);

test("threads do not wait for each other", async () => {
  const stuck = await bobbin.client.thread("forever");
  await stuck.accepted("hang");
  await forever.model.request(1);
  const free = await bobbin.client.thread("plain");
  assert.equal((await free.ask("hello")).outcome, "completed");
  assert.equal((await stuck.send("POST", "/stop")).status, 200);
  await until("the stuck request was given up", () => forever.model.asked[0]?.gone);
});
