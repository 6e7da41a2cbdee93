// Hooks behind a URL and native hooks in the built product: when each runs, the effect of its response, failures, and
// that a kill in the middle transforms nothing twice.

import assert from "node:assert/strict";
import { say, textOf, use } from "./support/model.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/tool.mjs").Received} Received */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

/** The calls of all hooks, in order of arrival. @type {Received[]} */
const told = [];

/**
 * Answers `{ value }` and records the call.
 * @param {(received: Received) => unknown} value @returns {import("./support/tool.mjs").Answering}
 */
const gives = (value) => async (received) => {
  told.push(received);
  const given = await value(received);
  return given === undefined ? "" : { body: { value: given } };
};

const first = (/** @type {Received} */ { body }) => body.args[0];
const second = (/** @type {Received} */ { body }) => body.args[1];
const of = (/** @type {Thread} */ thread) => told.filter(({ body }) => body.threadId === thread.id);

bobbin.hook("created", "after_thread_created", gives(() => undefined));
bobbin.hook("dated", "after_system_message", gives((call) => `${first(call)} Today.`));
bobbin.hook("filtered", "filter_messages", gives((call) => first(call).filter((/** @type {any} */ { content }) => content !== "secret!")));
bobbin.hook(
  "prefiltered",
  "prefilter_llm_history",
  gives((call) => {
    const blocked = first(call).some((/** @type {any} */ { content }) => String(content).startsWith("forbidden"));
    return blocked ? { error: "Not here.", block: true } : null;
  }),
);
bobbin.hook("marked", "before_create_message", gives((call) => ({ ...first(call), content: `${first(call).content ?? ""}!` })));
bobbin.hook("stored", "after_create_message", gives(() => undefined));
bobbin.hook("changing", "before_update_message", gives((call) => ({ content: `${second(call).content}?` })));
bobbin.hook("changed", "after_update_message", gives(() => undefined));
bobbin.hook("kept", "before_store_tool_result", gives((call) => ({ ...second(call), result: `[${second(call).result}]` })));
bobbin.hook("worked", "after_tool_call_success", gives((call) => (second(call).result === "drop me" ? null : second(call))));
bobbin.hook("failed", "after_tool_call_failure", gives((call) => ({ status: "success", result: `turned: ${second(call).error}` })));
const ALL = ["created", "dated", "filtered", "prefiltered", "marked", "stored", "changing", "changed", "kept", "worked", "failed"];

bobbin.tool("look", ({ args }) => String(args.word));
bobbin.tool("broken", () => ({ status: 500, body: "no luck" }));
const every = bobbin.agent(
  "every",
  ({ messages, last }) => {
    const [, tool = "", word = ""] = /^call (\w+) (.*)!$/.exec(last) ?? [];
    return messages.at(-1)?.role === "user" && tool ? use({ name: tool, args: { word } }) : say("done");
  },
  { tools: ["look", "broken"], agent: { hooks: ALL } },
);

test("each hook runs in its place, and is given what it is for", async () => {
  const thread = await bobbin.client.thread(every.name);
  await thread.ask("call look here");
  const names = of(thread).map(({ body }) => body.hook);
  const request = ["after_system_message", "filter_messages", "prefilter_llm_history"];
  const message = ["before_create_message", "after_create_message"];
  const result = ["after_tool_call_success", "before_store_tool_result", ...message];
  assert.deepEqual(names, ["after_thread_created", ...message, ...request, ...message, ...result, ...request, ...message]);
  const ids = of(thread).map(({ body }) => body.hookCallId);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(of(thread).every(({ body }) => body.agentId === every.name && body.hookCallId.startsWith(`${thread.id}/h`)));

  const asked = every.model.asked.at(-1);
  assert.deepEqual(
    asked?.messages.map((message) => [message.role, textOf(message)]),
    [
      ["system", "You are every. Today."],
      ["user", "call look here!"],
      ["assistant", "!"],
      ["tool", "[here]!"],
    ],
  );
  assert.deepEqual(
    (await thread.messages()).map(({ role, content }) => [role, content]),
    [
      ["user", "call look here!"],
      ["assistant", "!"],
      ["tool", "[here]!"],
      ["assistant", "done!"],
    ],
  );
});

test("a request is filtered and what is stored is not; a hook may stop the run", async () => {
  const thread = await bobbin.client.thread(every.name);
  await thread.ask("secret");
  await thread.ask("hello");
  const users = every.model.asked.at(-1)?.messages.filter(({ role }) => role === "user").map(textOf);
  assert.deepEqual(users, ["hello!"]);
  assert.deepEqual((await thread.messages()).map(({ content }) => content), ["secret!", "done!", "hello!", "done!"]);
  const asked = every.model.asked.length;
  const answer = await thread.ask("forbidden");
  assert.deepEqual([answer.outcome, answer.reason], ["failed", "hook_blocked"]);
  assert.match(answer.error.message, /Not here\.$/);
  assert.equal(every.model.asked.length, asked);
});

test("a call may be dropped, a failure turned into a success", async () => {
  const thread = await bobbin.client.thread(every.name);
  await thread.ask("call broken x");
  const results = (await thread.messages()).filter(({ role }) => role === "tool");
  assert.deepEqual(
    results.map(({ content, tool_status }) => [content, tool_status]),
    [["[turned: http 500 from broken: no luck]!", "success"]],
  );
  const other = await bobbin.client.thread(dropping.name);
  await other.ask("go");
  const messages = await other.messages();
  assert.deepEqual(messages.map(({ role, tool_calls }) => [role, tool_calls]), [
    ["user", null],
    ["assistant", null],
    ["assistant", null],
  ]);
  const { logs } = (await other.send("GET", "/logs")).json;
  assert.deepEqual(
    logs.filter((/** @type {any} */ { type }) => type === "tool_call").map((/** @type {any} */ { state }) => state),
    ["dropped"],
  );
  const [, again] = dropping.model.asked;
  assert.deepEqual(again?.messages.map(({ role }) => role), ["system", "user"]);
});

const dropping = bobbin.agent("dropping", ({ n }) => (n === 1 ? use({ name: "look", args: { word: "drop me" } }) : say("fine")), {
  tools: ["look"],
  agent: { hooks: ["worked"] },
});

test("an edit passes its hooks", async () => {
  const thread = await bobbin.client.thread(every.name);
  await thread.ask("hello");
  const [message] = await thread.messages();
  const answer = await thread.send("PATCH", `/messages/${message?.id}`, { content: "other" });
  assert.equal(answer.status, 200, answer.text);
  assert.equal((await thread.messages())[0]?.content, "other?");
  const edits = of(thread).filter(({ body }) => body.hook.includes("update"));
  assert.deepEqual(edits[0]?.body.args, [message?.id, { content: "other" }]);
  assert.equal(first(/** @type {Received} */ (edits[1])).content, "other?");
});

const breaking = bobbin.hook("breaking", "before_create_message", ({ n }) => {
  if (n === 1) return { status: 500, body: "broken" };
  if (n === 2) return { body: { value: 7 } };
  return new Promise((resolve) => setTimeout(() => resolve({ body: { value: null } }), 3000));
}, { timeoutMs: 1000 });
const plain = bobbin.agent("plain", () => say("fine"), { agent: { hooks: ["breaking"] } });

test("a hook that fails is logged and has changed nothing", async () => {
  const thread = await bobbin.client.thread(plain.name);
  await thread.ask("one");
  await thread.ask("two");
  assert.deepEqual((await thread.messages()).map(({ content }) => content), ["one", "fine", "two", "fine"]);
  const { logs } = (await thread.send("GET", "/logs?order=asc")).json;
  const failures = logs.filter((/** @type {any} */ { type }) => type === "hook");
  assert.deepEqual(
    failures.map((/** @type {any} */ { hook_id, hook, error }) => [hook_id, hook, error]),
    [
      "http 500 from breaking: broken",
      "it gave a number, not a message or null",
      "it did not answer within 1 s",
      "it did not answer within 1 s",
    ].map((error) => ["breaking", "before_create_message", error]),
  );
  assert.equal(breaking.received.length, 4);
});

bobbin.definitions.push(() =>
  bobbin.folder.write({
    hooks: {
      newest: { hook: "filter_messages", run: { native: "keep_last_20" } },
      today: { hook: "after_system_message", run: { native: "date_in_prompt" } },
      short: { hook: "before_store_tool_result", run: { native: "limit_results" } },
    },
  }),
);
bobbin.tool("long", () => "x".repeat(20_000));
const native = bobbin.agent(
  "native",
  ({ messages, last }) => (last === "long" && messages.at(-1)?.role === "user" ? use({ name: "long", args: {} }) : say("fine")),
  { tools: ["long"], prompt: { hooks: ["newest", "today", "short"] }, agent: { hooks: ["marked"] } },
);

test("native hooks do what they say, and a prompt's list replaces the agent's", async () => {
  const thread = await bobbin.client.thread(native.name);
  for (let n = 0; n < 15; n++) await thread.ask(`m${n}`);
  await thread.ask("long");
  const asked = native.model.asked.at(-1);
  assert.ok(Number(asked?.messages.length) <= 23, `${asked?.messages.length} messages`);
  assert.match(String(asked && textOf(/** @type {any} */ (asked.messages[0]))), /\nToday is \d{4}-\d\d-\d\d \(UTC\)\.$/);
  const result = (await thread.messages()).find(({ role }) => role === "tool");
  assert.ok(result?.content.endsWith("\n[cut here: 8000 of 20000 bytes are kept]"));
});

const slow = bobbin.hook("slow", "before_store_tool_result", async ({ n, closed, body }) => {
  if (n === 1) await closed;
  return { body: { value: { ...body.args[1], result: `${body.args[1].result}!` } } };
});
const lookOnce = bobbin.tool("once", () => "found");
const killed = bobbin.agent(
  "killed",
  ({ messages }) => (messages.at(-1)?.role === "user" ? use({ name: "once", args: {} }) : say("fine")),
  { tools: ["once"], agent: { hooks: ["slow"] } },
);

test("kill -9 in the middle of a hook: it is asked again about the original, and transforms once", async () => {
  const thread = await bobbin.client.thread(killed.name);
  await thread.accepted("go");
  await slow.call(1);
  bobbin.server.kill();
  await bobbin.server.up();
  await slow.call(2);
  await thread.idle();
  assert.deepEqual((await thread.messages()).map(({ content }) => content), ["go", "", "found!", "fine"]);
  const [before, after] = slow.received;
  assert.deepEqual([after?.body.args, after?.key], [before?.body.args, before?.key]);
  assert.equal(lookOnce.received.length, 1, "the tool was not called again");
  await bobbin.quiet([{ thread, model: killed.model }]);
});
