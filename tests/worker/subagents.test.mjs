// Each kind of subagent: the parent's results and their time, the child's messages, and the entries in the registry and
// the log.

import assert from "node:assert/strict";
import { atRest, create, direct, finishes, references, registry, resumable, sessionTools, subagent, task, told, write } from "./support/family.mjs";
import { hang, makes, offered, refuse, say, shown, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/model.mjs").Asked} Asked */
/** @typedef {import("./support/model.mjs").Script} Script */
/** @typedef {import("./support/client.mjs").Thread} Thread */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
sessionTools(bobbin);

/** Returns the log's events about a thread's children. @param {Thread} thread */
const events = async (thread) => (await thread.logged("subagent")).map(({ event }) => event);

/** Makes these calls once, then repeats the last message. @param {...import("./support/model.mjs").Call} calls @returns {Script} */
const once = (...calls) => ({ messages, last }) =>
  messages.some(({ role }) => role === "tool") ? say(`heard: ${last}`) : use(...calls);

// Blocking, called by name.

const solver = subagent(bobbin, "solver", finishes());
const asker = bobbin.agent("asker", once({ name: "solver", args: { task: "sums" } }), { tools: [direct("solver")] });

test("a blocking call gives the child's result; the child was shown its task and nothing else, and is done with", async () => {
  const thread = await bobbin.client.thread(asker.name, { user_id: "ann" });
  await thread.accepted("Do sums.");
  const [, child] = await atRest(thread);
  assert.ok(child);
  const { id } = child.thread;
  const result = `did sums\n\n[subagent ${id} (solver)]`;
  assert.deepEqual(await thread.results(), [result]);
  assert.deepEqual((await thread.messages()).at(-1).content, `heard: ${result}`);
  const [entry, ...others] = await registry(thread);
  assert.deepEqual(
    [entry?.agent_name, entry?.status, entry?.blocking, entry?.resumable, others.length],
    ["solver", "terminated", true, false, 0],
  );
  const asked = solver.model.asked.filter(({ body }) => body.user === id);
  assert.deepEqual(asked.map(shown), [["system: You are solver.", "user: sums"]]);
  const facts = await child.thread.facts();
  assert.deepEqual([facts.state, facts.user_id, facts.agent_id, facts.parent?.id ?? facts.parent], ["terminated", "ann", "solver", thread.id]);
  assert.deepEqual(await told(thread), [], "the result is told once, as the call's");
  assert.deepEqual(await events(thread), ["create", "return"]);
  const mine = (await bobbin.client.threads({ search: id })).threads;
  assert.deepEqual(mine, [], "a list of threads shows the top ones");
  await bobbin.quiet([{ thread, model: asker.model }, { thread: child.thread, model: solver.model }]);
});

// Ends of a child.

const endings = {
  fails: subagent(bobbin, "fails", () => use({ name: "give_up", args: { text: "Too hard." } })),
  talks: subagent(bobbin, "talks", ({ n }) => say(`line ${n}`), { agent: { maxSessionTurns: 2 } }),
  breaks: subagent(bobbin, "breaks", () => refuse(400)),
  loops: subagent(bobbin, "loops", () => say("on and on"), { side: { maxSteps: 1 } }),
  unbound: subagent(bobbin, "unbound", ({ last }) => say(`said ${last}`), { side: {}, agent: { maxSessionTurns: 1 } }),
  blank: subagent(bobbin, "blank", () => use({ name: "finish", args: { text: "  " } })),
};
const tries = bobbin.agent("tries", once(...Object.keys(endings).map((name) => ({ name, args: { task: "it" } }))), {
  tools: Object.keys(endings).map((name) => direct(name)),
  prompt: { parallelToolCalls: true },
});

test("each way to end is a result or an error that says why, and the parent goes on", async () => {
  const thread = await bobbin.client.thread(tries.name);
  await thread.accepted("Try all.");
  await atRest(thread);
  const rows = (await thread.messages()).filter(({ role }) => role === "tool");
  const table = rows.map(({ name, tool_status, content }) => [name, tool_status, content.split("\n\n[subagent")[0]]);
  const [fails, talks, breaks, loops, unbound, blank] = table;
  assert.deepEqual(fails, ["fails", "error", "Too hard."]);
  assert.deepEqual(talks?.slice(0, 2), ["talks", "error"]);
  assert.match(String(talks?.[2]), /^"talks" ended without a result \(max_session_turns\)/);
  assert.deepEqual(breaks?.slice(0, 2), ["breaks", "error"]);
  assert.match(String(breaks?.[2]), /^"breaks" ended without a result \(model_error\): /);
  assert.deepEqual(loops?.slice(0, 2), ["loops", "error"]);
  assert.deepEqual(unbound, ["unbound", "success", "said it"]);
  assert.deepEqual(blank, ["blank", "success", "noted"], "a blank text gives way to the tool's own result");
  assert.equal((await thread.messages()).at(-1).role, "assistant");
  const statuses = Object.fromEntries((await registry(thread)).map(({ agent_name, status }) => [agent_name, status]));
  assert.equal(statuses.unbound, "terminated");
  assert.equal(statuses.fails, "failed");
});

// Not blocking, called by name.

subagent(bobbin, "runner", finishes());
const sender = bobbin.agent("sender", once({ name: "runner", args: { task: "errands" } }), {
  tools: [direct("runner", { blocking: false })],
});

test("a call that does not block gives the reference at once; the result comes as a silent message and wakes the parent", async () => {
  const thread = await bobbin.client.thread(sender.name);
  assert.equal((await thread.ask("Run errands.")).outcome, "completed");
  const [, child] = await atRest(thread);
  assert.ok(child);
  const [result] = await thread.results();
  assert.deepEqual(references(String(result)), [child.thread.id]);
  const [message, ...more] = await told(thread);
  assert.deepEqual(more, []);
  assert.deepEqual(
    [message.role, message.silent, message.metadata.subagent_id, message.content],
    ["user", true, child.thread.id, `Subagent ${child.thread.id} (runner) has finished:\n\ndid errands`],
  );
  assert.ok(!(await thread.lines()).some(([, text]) => text === message.content), "clients that do not ask do not see it");
  // Whether the report joined the run or began another one, the model has read it and spoke last.
  assert.equal(sender.model.asked.at(-1)?.last, message.content);
  assert.equal((await thread.messages()).at(-1).content, `heard: ${message.content}`);
  assert.deepEqual(await events(thread), ["create", "return"]);
  assert.equal((await registry(thread))[0]?.status, "terminated");
});

subagent(bobbin, "careless", () => use({ name: "give_up", args: { text: "Lost it." } }));
const hopeful = bobbin.agent("hopeful", once({ name: "careless", args: { task: "errands" } }), {
  tools: [direct("careless", { blocking: false })],
});

test("so does a failure", async () => {
  const thread = await bobbin.client.thread(hopeful.name);
  await thread.accepted("Go.");
  await atRest(thread);
  const [message, ...more] = await told(thread);
  assert.deepEqual(more, []);
  const [id] = references(message.content);
  assert.equal(message.content, `Subagent ${id} (careless) has failed:\n\nLost it.`);
  assert.deepEqual(await events(thread), ["create", "failure"]);
});

// Blocking and resumable.

const clerk = subagent(bobbin, "clerk", finishes((text) => `filed ${text}`), { schema: null });
const boss = bobbin.agent(
  "boss",
  ({ messages }) => {
    const results = messages.filter(({ role }) => role === "tool").map(textOf);
    const [id] = references(results[0] ?? "");
    if (id === undefined) return use(create("clerk", "the first", { name: "Bob" }));
    return results.length < 3 ? use(write(id, `number ${results.length}`)) : say(results.join("|"));
  },
  { tools: [resumable("clerk")] },
);

test("a child that blocks and can be written to answers each message, and keeps what it knows", async () => {
  const thread = await bobbin.client.thread(boss.name);
  await thread.accepted("Go.");
  const [, child] = await atRest(thread);
  assert.ok(child);
  const { id } = child.thread;
  const end = `\n\n[subagent ${id} "Bob" (clerk)]`;
  const answers = ["filed the first", "filed number 1", "filed number 2"].map((text) => text + end);
  assert.deepEqual(await thread.results(), answers);
  const [entry] = await registry(thread);
  assert.deepEqual([entry?.status, entry?.resumable, entry?.blocking], ["idle", true, true]);
  assert.deepEqual((await child.thread.facts()).tags, ["name:Bob"]);
  assert.equal((await child.thread.facts()).state, "idle");
  assert.deepEqual(shown(clerk.model.asked.filter(({ body }) => body.user === id).at(-1)).slice(1), [
    "user: the first",
    "assistant: [finish]",
    "tool: noted",
    "user: number 1",
    "assistant: [finish]",
    "tool: noted",
    "user: number 2",
  ]);
  assert.deepEqual(await told(thread), []);
  const [first, second] = boss.model.asked.map(offered);
  assert.ok(first?.includes("subagent_create") && !first.includes("subagent_message"), "nobody is there to write to");
  assert.ok(second?.includes("subagent_message"));
  assert.deepEqual(await events(thread), ["create", "return", "message", "return", "message", "return"]);
});

// Not blocking, and resumable.

subagent(bobbin, "scout", finishes((text) => `saw ${text}`), { schema: null });
const guide = bobbin.agent(
  "guide",
  ({ messages, last }) => {
    const results = messages.filter(({ role }) => role === "tool").map(textOf);
    const [id] = references(results.join());
    if (id === undefined) return use(create("scout", "the hill"));
    return last.endsWith("saw the hill") ? use(write(id, "the lake")) : say("noted");
  },
  { tools: [resumable("scout", {}, { blocking: false })] },
);

test("one that does not block answers each message with a message", async () => {
  const thread = await bobbin.client.thread(guide.name);
  await thread.accepted("Go.");
  const [, child] = await atRest(thread);
  assert.ok(child);
  assert.deepEqual(
    (await told(thread)).map(({ content }) => content.split("\n\n")[1]),
    ["saw the hill", "saw the lake"],
  );
  assert.deepEqual([child.entry?.status, (await child.thread.facts()).state], ["idle", "idle"]);
  for (const result of await thread.results()) assert.deepEqual(references(result).at(0), child.thread.id);
});

// Explicit: silent unless code in the child sends a message.

subagent(bobbin, "mole", finishes((text) => `dug ${text}`), { schema: null });
const digger = bobbin.agent("digger", once(create("mole", "deep")), {
  tools: [resumable("mole", { parentCommunication: "explicit" }, { blocking: false })],
});

test("an explicit child ends its run without a word; the registry says that it is idle", async () => {
  const thread = await bobbin.client.thread(digger.name);
  await thread.accepted("Go.");
  await atRest(thread);
  assert.deepEqual(await told(thread), []);
  assert.equal((await registry(thread))[0]?.status, "idle");
  assert.equal(digger.model.asked.length, 2);
});

// The side that receives the parent's messages.

subagent(bobbin, "duo", finishes((_, { last }) => `A heard ${last}`), {
  schema: null,
  b: finishes((_, { last }) => `B heard ${last}`),
});
const sides = ["side_a", "side_b"].map((side) =>
  bobbin.agent(`to_${side}`, once(create("duo", "hello")), { tools: [resumable("duo", { receives_messages: side })] }),
);

test("receives_messages: the side that hears the parent acts, and sees it as the other one", async () => {
  const results = await Promise.all(
    sides.map(async ({ name }) => {
      const thread = await bobbin.client.thread(name);
      await thread.accepted("Go.");
      const [, child] = await atRest(thread);
      const [message] = (await child?.thread.messages()) ?? [];
      return [message.role, (await thread.results())[0]?.split("\n\n")[0]];
    }),
  );
  assert.deepEqual(results, [
    ["user", "A heard hello"],
    ["assistant", "B heard hello"],
  ]);
});

// Status, and the limit on instances.

const busy = subagent(
  bobbin,
  "busy",
  ({ messages, ...asked }) =>
    messages.at(-1)?.role === "tool" ? hang() : use({ name: "report", args: { text: `half of ${task({ messages, ...asked })}` } }),
  { schema: null },
);
const crowd = bobbin.agent(
  "crowd",
  makes(...["one", "two", "three"].map((name) => create("busy", name))),
  { tools: [resumable("busy", { maxInstances: 2 }, { blocking: false })], prompt: { parallelToolCalls: true } },
);

test("a status reaches the registry while the child works; one instance too many is an error that says what to do", async () => {
  const thread = await bobbin.client.thread(crowd.name);
  await thread.ask("Go.");
  await until("both have said how they are", async () => {
    const statuses = (await registry(thread)).map(({ status }) => status).sort();
    return statuses.join() === "half of one,half of two";
  });
  const results = await thread.results();
  const ids = (await registry(thread)).map(({ id }) => id);
  assert.deepEqual(results.slice(0, 2).map((text) => references(text)[0]).sort(), [...ids].sort());
  assert.match(String(results[2]), /^"busy" was not created: 2 of it are active, which is the limit\. Use subagent_message /);
  assert.deepEqual(references(String(results[2])).sort(), [...ids].sort());
  assert.equal((await events(thread)).filter((event) => event === "status").length, 2);
  await until("both hang", () => busy.model.asked.length === 4);
  assert.equal((await thread.send("POST", "/terminate")).status, 200);
  await atRest(thread);
});
