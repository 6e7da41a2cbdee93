// A parent that waits for its child: its cost, messages to it, and every way in which the wait ends without the child's
// answer.

import assert from "node:assert/strict";
import { atRest, create, direct, finishes, registry, resumable, sessionTools, subagent, told } from "./support/family.mjs";
import { after, makes, say, shown, use } from "./support/model.mjs";
import { gate, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/suite.mjs").Agent} Agent */

/** The time limit for a run to continue after a restart, without any request. */
const RESUMES_MS = 5000;
const MINUTE_US = 60e6;
const WEEK_US = 7 * 24 * 60 * MINUTE_US;

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
sessionTools(bobbin);

/**
 * Defines a parent that waits for a child. The child's model replies once the gate opens, and the parent repeats the
 * reply.
 *
 * @param {string} name
 * @param {"direct" | "resumable"} [kind]
 */
function waiting(name, kind = "direct") {
  const door = gate();
  const child = subagent(bobbin, `${name}_child`, (asked) => after(door.passed, finishes(() => "here it is")(asked)), {
    ...(kind === "direct" ? {} : { schema: null }),
  });
  const call = kind === "direct" ? { name: child.name, args: { task: "it" } } : create(child.name, "it");
  const parent = bobbin.agent(name, ({ messages, last }) => (messages.some(({ role }) => role === "tool") ? say(`re: ${last}`) : use(call)), {
    tools: [kind === "direct" ? direct(child.name) : resumable(child.name)],
  });
  return { name, door, child, parent };
}

/**
 * Posts a message and waits until the thread is parked and its child's model has a request. Returns both threads.
 * @param {ReturnType<typeof waiting>} family
 */
async function parked({ name, child }) {
  const asked = child.model.asked.length;
  const thread = await bobbin.client.thread(name);
  const { outcome, message, run } = await thread.ask("Go.");
  assert.deepEqual([outcome, message], ["parked", null]);
  assert.match(run, /^r_/);
  await child.model.request(asked + 1);
  const [entry] = await registry(thread);
  assert.ok(entry);
  const other = await bobbin.client.thread(name);
  return { thread, child: Object.assign(other, { id: entry.id, path: `/threads/${entry.id}` }) };
}

const patient = waiting("patient");

test("a parent that waits has no run in memory, no request, and no alarm but the next look and the end of the wait", async () => {
  const { thread, child } = await parked(patient);
  const state = await until("the letter is delivered", async () => {
    const seen = await thread.diagnostics();
    return seen.due.length === 1 && seen;
  });
  assert.deepEqual([state.state, state.phase, state.flow.running, state.alarm.handlerRunning], ["parked", "parked", false, false]);
  const [receipt, ...more] = state.waitingReceipts;
  assert.deepEqual([receipt.subagent, receipt.checks, more.length], [child.id, 0, 0]);
  const [begun] = (await thread.logged("tool_call")).filter(({ kind }) => kind === "subagent");
  assert.equal(begun.state, "waiting");
  assert.deepEqual(
    state.due.map((/** @type {any} */ { what, subject, at }) => [what, subject, at]),
    [["subagent", child.id, receipt.checkAt]],
  );
  assert.deepEqual([state.alarm.at, state.alarm.due], [receipt.checkAt, receipt.checkAt]);
  const began = receipt.checkAt - MINUTE_US;
  assert.ok(began <= state.now && state.now - began < MINUTE_US, JSON.stringify(receipt));
  assert.equal(receipt.expiresAt - began, WEEK_US);
  assert.deepEqual(
    state.children.map((/** @type {any} */ { reference, state: how, status }) => [reference, how, status]),
    [[child.id, "live", "running"]],
  );

  // Messages in the meantime are kept and start nothing.
  assert.equal((await thread.accepted("one")).state, "parked");
  const asked = await thread.ask("two");
  assert.deepEqual([asked.outcome, asked.message], ["parked", null]);
  const later = await thread.diagnostics();
  assert.deepEqual([later.queue.waiting, later.state, later.due], [2, "parked", state.due]);
  assert.equal((await thread.facts()).state, "parked");
  assert.equal(patient.parent.model.asked.length, 1);

  patient.door.open();
  await atRest(thread);
  const { model } = patient.parent;
  assert.deepEqual(shown(model.asked.at(-1)).slice(2), [
    `assistant: [${patient.child.name}]`,
    `tool: here it is\n\n[subagent ${child.id} (${patient.child.name})]`,
    "user: one",
    "user: two",
  ]);
  assert.equal(model.asked.length, 2, "both joined the call that the answer brought");
  await bobbin.quiet([{ thread, model }, { thread: child, model: patient.child.model }]);
});

const restarted = waiting("restarted");

test("a restart while it waits: the child goes on by itself, and its answer brings the parent back", async () => {
  const { thread, child } = await parked(restarted);
  await thread.accepted("meanwhile");
  await bobbin.server.crash();
  await restarted.child.model.request(2, RESUMES_MS);
  const state = await thread.diagnostics();
  assert.deepEqual([state.state, state.waitingReceipts.length, state.queue.waiting], ["parked", 1, 1]);
  await bobbin.server.down();
  await bobbin.server.up();
  await restarted.child.model.request(3, RESUMES_MS);
  restarted.door.open();
  await restarted.parent.model.request(2, RESUMES_MS);
  await atRest(thread);
  assert.deepEqual((await thread.lines()).slice(2), [
    ["tool", `here it is\n\n[subagent ${child.id} (${restarted.child.name})]`],
    ["user", "meanwhile"],
    ["assistant", "re: meanwhile"],
  ]);
  assert.deepEqual(await told(thread), []);
});

/** Returns the result of a thread's call. @param {Thread} thread */
const onCall = async (thread) => {
  const [row, ...more] = (await thread.messages()).filter(({ role }) => role === "tool");
  assert.deepEqual(more, []);
  return [row.tool_status, row.content];
};

const halted = waiting("halted");

test("a stop ends the wait and stops the child; what the child says later is a silent message that starts nothing", async () => {
  const { thread, child } = await parked(halted);
  assert.equal((await thread.accepted("queued")).state, "parked");
  assert.equal((await thread.send("POST", "/stop")).status, 200);
  assert.deepEqual(await onCall(thread), [
    "error",
    `The run was stopped while "${halted.child.name}" was waited for; the subagent was stopped too.`,
  ]);
  await until("the child is stopped", async () => (await child.diagnostics()).state === "stopped");
  await until("its request is given up", () => halted.child.model.asked[0]?.gone);
  const state = await thread.diagnostics();
  assert.deepEqual([state.state, state.waitingReceipts, state.queue.waiting], ["stopped", [], 1]);
  await bobbin.quiet([{ thread, model: halted.parent.model }, { thread: child, model: halted.child.model }]);
  assert.deepEqual(await told(thread), [], "the parent knows");

  // Someone continues the child.
  assert.equal((await child.send("POST", "/continue", {})).status, 202);
  await halted.child.model.request(2);
  halted.door.open();
  await atRest(thread);
  const [late, ...more] = await told(thread);
  assert.deepEqual([late.content.split("\n\n")[1], late.silent, more], ["here it is", true, []]);
  assert.deepEqual([(await thread.diagnostics()).state, halted.parent.model.asked.length], ["stopped", 1]);

  assert.equal((await thread.ask("And now?")).outcome, "completed");
  const lines = shown(halted.parent.model.asked.at(-1));
  assert.deepEqual(lines.slice(-3).sort(), [`user: ${late.content}`, "user: And now?", "user: queued"].sort());
});

const doomed = waiting("doomed");

test("termination ends the wait, and the child with it", async () => {
  const { thread, child } = await parked(doomed);
  assert.equal((await thread.send("POST", "/terminate")).status, 200);
  await until("the child is terminated", async () => (await child.facts()).state === "terminated");
  await until("its request is given up", () => doomed.child.model.asked[0]?.gone);
  const family = await atRest(thread);
  assert.deepEqual(family.map(({ entry }) => entry?.status), [undefined, "terminated"]);
  assert.equal((await thread.facts()).state, "terminated");
  for (const one of [thread, child]) assert.equal((await one.post("Still there?")).json.error.code, "terminated");
  doomed.door.open();
  await bobbin.quiet([{ thread, model: doomed.parent.model }, { thread: child, model: doomed.child.model }]);
  assert.deepEqual(await told(thread), []);
});

/** Events of the child, with the parent's result. @type {[string, string, RegExp, string][]} */
const fates = [
  ["terminated", "/terminate", /^The subagent \S+ \(terminated_child\) was terminated\.$/, "terminated"],
  ["stopped", "/stop", /"stopped_child" was stopped \(stopped_by_user\)/, "idle"],
];
const fated = fates.map(([name]) => waiting(name));

test("a child that somebody terminates or stops is an error of the call that waits, at once", async () => {
  for (const [at, family] of fated.entries()) {
    const [, path, text, status] = fates[at] ?? ["", "", /./, ""];
    const { thread, child } = await parked(family);
    assert.equal((await child.send("POST", path)).status, 200);
    await family.parent.model.request(2);
    await atRest(thread);
    const [how, said] = await onCall(thread);
    assert.equal(how, "error");
    assert.match(said, text);
    assert.equal((await registry(thread))[0]?.status, status);
    assert.deepEqual(await told(thread), []);
    family.door.open();
  }
});

const resumed = waiting("resumed", "resumable");

test("after a stop a child that can be written to is there for the next message", async () => {
  const { thread, child } = await parked(resumed);
  assert.equal((await thread.send("POST", "/stop")).status, 200);
  await until("the child is stopped", async () => (await child.diagnostics()).state === "stopped");
  const [entry] = await registry(thread);
  assert.equal(entry?.status, "idle");
  resumed.door.open();
  assert.equal((await thread.ask("Go on.")).outcome, "completed");
  await atRest(thread);
  assert.equal(resumed.child.model.asked.length, 1);
});

const aside = bobbin.agent("aside", makes({ name: "call_each", args: { tool: "patient_child", list: [{ task: "it" }] } }), {
  tools: [{ name: "call_each", options: { tools: ["patient_child"] } }],
});
bobbin.native("call_each", "call_each", {
  type: "object",
  properties: { tool: { type: "string" }, list: { type: "array", items: { type: "object", properties: { task: { type: "string" } } } } },
});

test("code that calls cannot wait for a child: it is told to queue the call, and no child is made", async () => {
  const thread = await bobbin.client.thread(aside.name);
  await thread.ask("Go.");
  const [text] = await thread.results();
  assert.match(String(text), /cannot be waited for here; queue it instead/);
  assert.deepEqual(await registry(thread), []);
});
