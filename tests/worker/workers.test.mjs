// Workers led by a model: their limits, waiting for them, and their tools. Trees of workers are killed at random
// moments, and every outcome is delivered once.
//
// BOBBIN_WORKER_KILLS sets the number of kills; the default is 12, or 3 in a sample (docs/testing.md). BOBBIN_SEED
// repeats the moments of a run.

import assert from "node:assert/strict";
import { atRest, randomMoment, registry, told } from "./support/family.mjs";
import { after, offered, say, textOf, use } from "./support/model.mjs";
import { chance, gate, sampled, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/model.mjs").Asked} Asked */
/** @typedef {import("./support/model.mjs").Call} Call */

const KILLS = Number(process.env.BOBBIN_WORKER_KILLS ?? sampled(12, 3));
/** By default a slow machine makes fewer kills within the time limit, but at least this many. */
const AT_LEAST = 3;
const AT_MOST_MS = process.env.BOBBIN_WORKER_KILLS === undefined ? 150_000 : Infinity;
/** How long a tree may take to become idle after a restart. */
const RESTS_MS = 60_000;

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

/** Gates that workers wait at, by the word in their message. @type {Map<string, ReturnType<typeof gate>>} */
const doors = new Map();
/** @param {string} word */
const door = (word) => {
  const found = doors.get(word) ?? gate();
  doors.set(word, found);
  return found;
};

/** Returns whether a message is a task, not a worker's outcome. @param {Asked["messages"][number]} message */
const isTask = (message) => message.role === "user" && !textOf(message).startsWith("Subagent ");

/** Returns the results of calls since the last task. @param {Asked} asked */
const results = ({ messages }) => {
  const from = messages.findLastIndex(isTask);
  return messages.slice(from + 1).filter(({ role }) => role === "tool").map(textOf);
};

/**
 * A model that makes the calls of its script, one list for each step, and then repeats the last result.
 *
 * @param {Call[][]} steps
 */
const leads = (...steps) => (/** @type {Asked} */ asked) => {
  const got = results(asked);
  let made = 0;
  for (const step of steps) {
    if (made === got.length) return use(...step);
    made += step.length;
  }
  return say(got.at(-1) ?? "nothing");
};

/** @param {string} agent @param {string} message @param {object} [more] @returns {Call} */
const spawn = (agent, message, more = {}) => ({ name: "agent_spawn", args: { agent, message, ...more } });
/** @param {number[]} ids @param {object} [more] @returns {Call} */
const wait = (ids, more = {}) => ({ name: "agent_wait", args: { agentIds: ids.map((n) => `subagent.${n}`), ...more } });

/** Returns the outcomes of workers' runs that the parent received, in results of calls and in messages. @param {Thread} thread */
async function handedOver(thread) {
  const outcomes = [];
  for (const text of await thread.results()) {
    const result = text.startsWith("{") ? JSON.parse(text) : {};
    for (const outcome of result.outcomes ?? (result.run === undefined ? [] : [result])) {
      if (outcome.seen !== true) outcomes.push(outcome.text);
    }
  }
  return [...outcomes, ...(await told(thread)).map(({ content }) => content.split("\n\n").slice(1).join("\n\n"))];
}

const parallel = { prompt: { parallelToolCalls: true, includePastTools: true } };
/** @param {string[]} agents @param {object} [more] */
const workers = (agents, more = {}) => ({ prompt: { ...parallel.prompt, subagents: { agents, ...more } } });

// A worker that a person could talk to. It waits at the gate that its message names.
bobbin.agent("digger", ({ last }) => after(door(last).passed, say(`dug ${last}`)));
const hammer = bobbin.tool("hammer", () => "struck");
bobbin.tool("saw", () => "sawn");
bobbin.definitions.push(() => {
  const tool = (/** @type {string} */ code) => ({ description: "Calls others.", args: { type: "object" }, run: { code } });
  bobbin.folder.write({ tools: { invokes: tool("invokes.ts"), queues: tool("queues.ts") } });
  bobbin.folder.file(
    "tools/invokes.ts",
    `export default (state) => state.invokeTool("hammer", {}).then((result) => result.error ?? "it ran", (error: Error) => error.message);`,
  );
  bobbin.folder.file("tools/queues.ts", `export default (state) => void state.queueTool("hammer", {});`);
});

bobbin.agent(
  "crowd",
  leads(
    [1, 2, 3, 4, 5].map((n) => spawn("digger", `crowd ${n}`)),
    [{ name: "agent_close", args: { agentId: "subagent.2" } }],
    [spawn("digger", "crowd 6")],
  ),
  workers(["digger"]),
);

test("a fifth worker is refused with the ids of the four; one that is closed makes room", async () => {
  const thread = await bobbin.client.thread("crowd");
  const { outcome } = await thread.ask("Go.");
  assert.equal(outcome, "completed");
  const calls = (await thread.messages()).filter(({ role }) => role === "tool");
  assert.equal(calls.length, 7);
  assert.equal(calls[4].metadata.error_code, "subagent_limit_reached");
  const ids = ["subagent.1", "subagent.2", "subagent.3", "subagent.4"];
  assert.deepEqual(calls[4].metadata.error_data, { maxActive: 4, agentIds: ids });
  assert.deepEqual(JSON.parse(calls[6].content), { agentId: "subagent.5", status: "started" });
  const entries = /** @type {any[]} */ (await registry(thread)).sort((a, b) => (a.agentId < b.agentId ? -1 : 1));
  assert.deepEqual(entries.map((/** @type {any} */ { agentId, status }) => [agentId, status === "terminated"]), [
    ["subagent.1", false], ["subagent.2", true], ["subagent.3", false], ["subagent.4", false], ["subagent.5", false],
  ]);
  for (const n of [1, 2, 3, 4, 6]) door(`crowd ${n}`).open();
  await atRest(thread, RESTS_MS);
});

for (const how of ["any", "all"]) {
  const lead = bobbin.agent(
    `waits_for_${how}`,
    leads([1, 2, 3].map((n) => spawn("digger", `${how} ${n}`)), [wait([1, 2, 3], { for: how })]),
    workers(["digger"]),
  );

  test(`workers are waited for, ${how} of them, over a restart, and one request to the model follows`, async () => {
    const thread = await bobbin.client.thread(lead.name);
    const parked = await thread.ask("Go.");
    assert.deepEqual([parked.outcome, parked.status, parked.pauseKind], ["parked", "paused", "external"]);
    const [open] = parked.waits;
    assert.deepEqual([open.kind, open.for, open.allows], ["children", how, []]);
    const before = lead.model.asked.length;
    await bobbin.server.down();
    await bobbin.server.up();
    door(`${how} 2`).open();
    if (how === "all") {
      await until("the second is done", async () =>
        /** @type {any[]} */ (await registry(thread)).some(({ agentId, status }) => agentId === "subagent.2" && status === "idle"));
      await sleep(300);
      assert.equal(lead.model.asked.length, before, "nobody is asked while others work");
      door(`${how} 1`).open();
      door(`${how} 3`).open();
    }
    const result = await until("the answer", async () => {
      const last = (await thread.messages()).at(-1);
      return last.role === "assistant" && last.content !== null && !last.tool_calls?.length && JSON.parse(last.content);
    });
    assert.equal(lead.model.asked.length, before + 1);
    const texts = result.outcomes.map((/** @type {any} */ { text, status }) => `${status}: ${text}`);
    if (how === "any") {
      assert.deepEqual([texts, result.pending], [["completed: dug any 2"], ["subagent.1", "subagent.3"]]);
      door("any 1").open();
      door("any 3").open();
    } else {
      assert.deepEqual([texts, result.pending], [[1, 2, 3].map((n) => `completed: dug all ${n}`), []]);
    }
    await atRest(thread, RESTS_MS);
    assert.deepEqual((await handedOver(thread)).sort(), [1, 2, 3].map((n) => `dug ${how} ${n}`));
    const { waits } = (await thread.send("GET", "/waits?state=all")).json;
    assert.deepEqual(waits.map((/** @type {any} */ { kind, state }) => [kind, state]), [["children", "decided"]]);
  });
}

bobbin.agent("looks", leads([spawn("digger", "look"), wait([1], { timeoutSeconds: 0 })]), workers(["digger"]));

test("a wait of no seconds asks nobody and gives what is known", async () => {
  const thread = await bobbin.client.thread("looks");
  const { outcome, message } = await thread.ask("Go.");
  assert.deepEqual([outcome, JSON.parse(message.content)], ["completed", { outcomes: [], pending: ["subagent.1"] }]);
  door("look").open();
  await atRest(thread, RESTS_MS);
  assert.deepEqual(await handedOver(thread), ["dug look"]);
});

const handy = bobbin.agent("handy", leads(["hammer", "invokes", "queues", "saw"].map((name) => ({ name, args: {} }))), {
  tools: ["hammer", "saw", "invokes", "queues"],
  ...parallel,
});
bobbin.agent(
  "narrows",
  leads([spawn("handy", "Go.", { tools: ["saw", "anvil"] }), spawn("handy", "Go.", { tools: ["saw", "invokes", "queues"] }), wait([1])]),
  workers(["handy"]),
);

test("a tool that a worker was not given cannot be called, also not by code", async () => {
  const thread = await bobbin.client.thread("narrows");
  const { outcome } = await thread.ask("Go.");
  assert.ok(["completed", "parked"].includes(outcome));
  const [, child] = await atRest(thread, RESTS_MS);
  const refused = (await thread.messages()).find(({ role }) => role === "tool");
  assert.equal(refused.metadata.error_code, "subagent_invalid_input");
  assert.match(refused.metadata.error_data.problems[0], /has no tool "anvil"/);
  assert.ok(child);
  const [struck, invoked, queued, sawn] = await child.thread.results();
  const not = '"hammer" cannot be called here: it is not among the tools that this subagent was given.';
  assert.equal(struck, not);
  assert.equal(invoked, not);
  assert.ok(queued?.includes(not), queued);
  assert.equal(sawn, "sawn");
  assert.equal(hammer.received.length, 0);
  assert.deepEqual(offered(handy.model.asked[0]).sort(), ["invokes", "queues", "saw"]);
});

// A tree of one, four and eight workers, in which every model takes some time.
bobbin.agent("leaf", ({ last, n }) => after(sleep(10 + ((n * 7) % 40)), say(`leaf ${last}`)));
bobbin.agent(
  "chief",
  (asked) => {
    const name = textOf(asked.messages.findLast(isTask) ?? { role: "user", content: "" });
    const steps = leads([spawn("leaf", `${name}a`), spawn("leaf", `${name}b`)], [wait([1, 2])]);
    const got = results(asked);
    if (got.length < 3) return after(sleep(10), steps(asked));
    const texts = JSON.parse(got[2] ?? "{}").outcomes.map((/** @type {any} */ { text }) => text);
    return after(sleep(10), say(`${name}: ${texts.join(", ")}`));
  },
  workers(["leaf"]),
);
const top = bobbin.agent(
  "tree",
  leads([1, 2, 3, 4].map((n) => spawn("chief", `${n}`)), [wait([1, 2, 3, 4])]),
  workers(["chief"], { canSpawn: true }),
);

/** Checks a tree after it has become idle. @param {Thread} root */
async function checked(root) {
  const family = await atRest(root, RESTS_MS);
  const agents = family.slice(1).map(({ entry, depth }) => `${depth} ${entry?.agent_name}`);
  assert.deepEqual(agents.sort(), [...Array(4).fill("1 chief"), ...Array(8).fill("2 leaf")], "each worker was made once");
  const chief = (/** @type {number} */ n) => `${n}: leaf ${n}a, leaf ${n}b`;
  assert.deepEqual((await handedOver(root)).sort(), [1, 2, 3, 4].map(chief));
  const chiefs = family.filter(({ depth }) => depth === 1);
  const below = await Promise.all(chiefs.map(({ thread }) => handedOver(thread)));
  assert.deepEqual(below.flat().sort(), [1, 2, 3, 4].flatMap((n) => [`leaf ${n}a`, `leaf ${n}b`]));
  for (const { thread } of family) {
    const state = await thread.diagnostics();
    assert.deepEqual([state.waitingReceipts, state.queue.waiting, state.waits ?? []], [[], 0, []], JSON.stringify(state));
  }
}

test("trees of workers that are killed at random moments: every outcome is handed over once", async () => {
  const random = chance("workers");
  const asked = () => [...bobbin.models.models.values()].reduce((sum, model) => sum + model.asked.length, 0);
  const first = await bobbin.client.thread(top.name);
  const none = asked();
  await first.accepted("Go.");
  await checked(first);
  const all = asked() - none;
  const begun = Date.now();
  let kills = 0;
  let inTheMiddle = 0;
  for (; kills < KILLS && (kills < AT_LEAST || Date.now() - begun < AT_MOST_MS); kills++) {
    const root = await bobbin.client.thread(top.name);
    const moment = randomMoment(random, asked, all);
    await root.accepted("Go.");
    const when = await moment;
    await bobbin.server.down();
    const before = asked();
    await bobbin.server.up();
    try {
      await checked(root);
    } catch (error) {
      throw new Error(`kill ${kills + 1}, ${when}: ${/** @type {Error} */ (error).message}`, { cause: error });
    }
    if (asked() > before) inTheMiddle++;
    if (kills % 10 === 9) console.log(`${kills + 1} kills survived, ${inTheMiddle} in the middle, ${Math.round((Date.now() - begun) / 1000)} s`);
  }
  assert.ok(inTheMiddle > 0, `${kills} kills, none of them in the middle of anything, say nothing`);
}, 600_000 + KILLS * 60_000);
