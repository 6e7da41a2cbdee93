// Families of threads: several levels, many children at once, and operations on all of them.

import assert from "node:assert/strict";
import { atRest, create, direct, finishes, members, references, registry, resumable, sessionTools, subagent, task, told, write } from "./support/family.mjs";
import { after, hang, makes, say, textOf, use } from "./support/model.mjs";
import { gate, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/model.mjs").Asked} Asked */
/** @typedef {import("./support/model.mjs").Call} Call */
/** @typedef {import("./support/model.mjs").Script} Script */
/** @typedef {import("./support/family.mjs").Member} Member */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
sessionTools(bobbin);
const parallel = { prompt: { parallelToolCalls: true } };

/** Returns the call results that a model received. @param {Asked} asked */
const results = ({ messages }) => messages.filter(({ role }) => role === "tool").map(textOf);

/** Makes the calls first, then finishes with all results. @param {(task: string) => Call[]} calls @returns {Script} */
const delegates = (calls) => (asked) => {
  const found = results(asked);
  return found.length === 0 ? use(...calls(task(asked))) : finishes(() => found.map((text) => text.split("\n\n")[0]).join("+"))(asked);
};

/** Counts the requests of each thread to its model. @param {Asked[]} asked */
function requests(asked) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { body } of asked) counts.set(body.user, (counts.get(body.user) ?? 0) + 1);
  return counts;
}

const worker = subagent(bobbin, "worker", finishes());
const lead = subagent(
  bobbin,
  "lead",
  delegates((text) => ["a", "b"].map((part) => ({ name: "worker", args: { task: `${text}${part}` } }))),
  { tools: [direct("worker")], ...parallel },
);
const chief = bobbin.agent("chief", makes(...["1", "2"].map((text) => ({ name: "lead", args: { task: text } }))), {
  tools: [direct("lead")],
  ...parallel,
});

test("three levels that wait for each other: every thread works once, and each result arrives once", async () => {
  const thread = await bobbin.client.thread(chief.name);
  await thread.accepted("Go.");
  const family = await atRest(thread);
  assert.deepEqual(family.map(({ depth }) => depth).sort(), [0, 1, 1, 2, 2, 2, 2]);
  assert.deepEqual((await thread.results()).map((text) => text.split("\n\n")[0]), ["did 1a+did 1b", "did 2a+did 2b"]);
  for (const member of family.slice(1)) {
    assert.equal(member.entry?.status, "terminated");
    const model = member.depth === 1 ? lead.model : worker.model;
    assert.equal(requests(model.asked).get(member.thread.id), member.depth === 1 ? 2 : 1);
    assert.deepEqual(await told(member.thread), []);
    assert.equal((await member.thread.facts()).user_id, null);
  }
});

// Twenty at once.

const runner = subagent(bobbin, "runner", finishes());
const TWENTY = Array.from({ length: 20 }, (_, n) => `errand ${n}`);
const sender = bobbin.agent(
  "sender",
  (asked) => (results(asked).length > 0 ? say("noted") : use(...TWENTY.map((text) => ({ name: "runner", args: { task: text } })))),
  { tools: [direct("runner", { blocking: false })], ...parallel },
);

test("twenty children that nobody waits for: all results come, each once", async () => {
  const thread = await bobbin.client.thread(sender.name);
  await thread.ask("Send all.");
  const family = await atRest(thread, 60_000);
  assert.equal(family.length, 21);
  const messages = await told(thread);
  const ids = family.slice(1).map(({ thread: { id } }) => id);
  assert.deepEqual(messages.map(({ metadata }) => metadata.subagent_id).sort(), [...ids].sort());
  assert.deepEqual(messages.map(({ content }) => content.split("\n\n")[1]).sort(), TWENTY.map((text) => `did ${text}`).sort());
  assert.deepEqual((await thread.results()).map((text) => references(text)[0]).sort(), [...ids].sort());
  for (const { entry } of family.slice(1)) assert.equal(entry?.status, "terminated");
  const groups = new Set((await thread.send("GET", "/subagents")).json.subagents.map((/** @type {any} */ row) => row.spawnGroupId));
  assert.equal(groups.size, 1, "they were made by one message");
  assert.deepEqual(ids.map((id) => requests(runner.model.asked).get(id)), TWENTY.map(() => 1));
  // The model has read all of them.
  const read = String(sender.model.asked.at(-1)?.messages.map(textOf));
  for (const id of ids) assert.ok(read.includes(`Subagent ${id}`), id);
});

// At the same time.

const doors = Array.from({ length: 8 }, gate);
subagent(bobbin, "twin", (asked) => {
  const [, door = "0"] = /door (\d+)/.exec(task(asked)) ?? [];
  return after(doors[Number(door)]?.passed ?? Promise.resolve(), finishes()(asked));
});
const holder = bobbin.agent(
  "holder",
  ({ messages, last }) => {
    const text = textOf(messages.find(({ role }) => role === "user"));
    if (messages.at(-1)?.role !== "user" || last !== text) return say("noted");
    return use(...["x", "y", "z"].map((part) => ({ name: "twin", args: { task: `${text} ${part}` } })));
  },
  { tools: [direct("twin", { blocking: false })], ...parallel },
);
const waiter = bobbin.agent(
  "waiter",
  ({ messages, last }) => {
    const text = textOf(messages.find(({ role }) => role === "user"));
    if (messages.at(-1)?.role !== "user" || last !== text) return say("noted");
    return use({ name: "runner_up", args: { task: `${text} free` } }, { name: "twin", args: { task: `${text} held` } });
  },
  { tools: [direct("twin"), direct("runner_up", { blocking: false })], ...parallel },
);
subagent(bobbin, "runner_up", (asked) => {
  const [, door = "0"] = /door (\d+)/.exec(task(asked)) ?? [];
  return after(doors[Number(door)]?.passed ?? Promise.resolve(), finishes()(asked));
});

test("children that answer at the same instant: no answer is lost, whether the parent rests or waits for one of them", async () => {
  const rounds = doors.map((door, n) => ({ door, n, agent: n % 2 === 0 ? holder : waiter }));
  await Promise.all(
    rounds.map(async ({ door, n, agent }) => {
      const thread = await bobbin.client.thread(agent.name);
      await thread.ask(`door ${n}`);
      const count = n % 2 === 0 ? 3 : 2;
      const models = () => [...(bobbin.models.models.get("twin")?.asked ?? []), ...(bobbin.models.models.get("runner_up")?.asked ?? [])];
      await until("all models are asked", () => models().filter((asked) => task(asked).startsWith(`door ${n} `)).length === count);
      door.open();
      const family = await atRest(thread);
      assert.equal(family.length, count + 1);
      const texts = (await told(thread)).map(({ content }) => content.split("\n\n")[1]).sort();
      const own = (await thread.results()).map((text) => text.split("\n\n")[0]).filter((text) => text?.startsWith("did"));
      if (n % 2 === 0) assert.deepEqual([texts, own], [["x", "y", "z"].map((part) => `did door ${n} ${part}`), []]);
      else assert.deepEqual([texts, own], [[`did door ${n} free`], [`did door ${n} held`]]);
      const seen = String(agent.model.asked.findLast(({ body }) => body.user === thread.id)?.messages.map(textOf));
      for (const { thread: child } of family.slice(1)) assert.ok(seen.includes(child.id), "the model knows of each");
    }),
  );
});

// Operations on a whole tree.

subagent(bobbin, "leaf", hang);
subagent(bobbin, "branch", (asked) => (results(asked).length > 0 ? hang() : use({ name: "leaf", args: { task: "hang" } })), {
  tools: [direct("leaf")],
});
const tree = bobbin.agent(
  "tree",
  makes({ name: "other", args: { task: "hang" } }, { name: "branch", args: { task: "hang" } }),
  { tools: [direct("branch"), direct("other", { blocking: false })], ...parallel },
);
subagent(bobbin, "other", (asked) => (results(asked).length > 0 ? hang() : use({ name: "leaf", args: { task: "hang" } })), {
  tools: [direct("leaf", { blocking: false })],
});

/** Creates a tree of three levels in which every leaf works. */
async function grown() {
  const thread = await bobbin.client.thread(tree.name);
  await thread.ask("Grow.");
  return until("the tree has grown", async () => {
    const family = await members(thread);
    const alive = await Promise.all(family.map(async (member) => (await member.thread.send("GET")).status === 200));
    return family.length === 5 && alive.every(Boolean) ? family : undefined;
  });
}

/** @param {Member[]} family */
const states = async (family) => (await Promise.all(family.map(({ thread }) => thread.facts()))).map(({ state }) => state);

test("a stop reaches every level, and so does a termination; nothing of the tree asks a model again", async () => {
  for (const [path, state] of /** @type {const} */ ([["/stop", "stopped"], ["/terminate", "terminated"]])) {
    const family = await grown();
    const [root] = family;
    assert.equal((await root.thread.send("POST", path)).status, 200);
    await until(`all are ${state}`, async () => (await states(family)).every((now) => now === state));
    await atRest(root.thread);
    const models = ["leaf", "branch", "other", "tree"].map((name) => bobbin.models.models.get(name));
    await bobbin.quiet(models.flatMap((model) => (model ? family.map(({ thread }) => ({ thread, model })) : [])));
    const ids = new Set(family.map(({ thread: { id } }) => id));
    const asked = models.flatMap((model) => model?.asked ?? []).filter(({ body }) => ids.has(body.user));
    await until("their requests are given up", () => asked.every(({ gone, messages }) => gone || messages.at(-1)?.role !== "tool"));
    if (state === "terminated") {
      const entries = (await members(root.thread)).slice(1).map(({ entry }) => entry?.status);
      assert.deepEqual(entries, ["terminated", "terminated", "terminated", "terminated"]);
    }
  }
});

// Depth.

subagent(bobbin, "deep", (asked) => {
  const [text] = results(asked);
  if (text === undefined) return use({ name: "deep", args: { task: "deeper" } });
  return finishes(() => text.split("\n\n[subagent")[0] ?? "")(asked);
}, { tools: [direct("deep")] });
const top = bobbin.agent("top", makes({ name: "deep", args: { task: "deeper" } }), { tools: [direct("deep")] });

test("children within children go eight deep; the next one is an error that says so", async () => {
  const thread = await bobbin.client.thread(top.name);
  await thread.accepted("Down.");
  const family = await atRest(thread, 30_000);
  assert.deepEqual(family.map(({ depth }) => depth), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.match(String((await thread.results())[0]), /^"deep" was not created: subagents within subagents go 8 deep at most/);
});

// Invalid arguments.

const keeper = subagent(bobbin, "keeper", finishes(), { schema: null });
subagent(bobbin, "picky", finishes());
const REF = "00000000-0000-4000-8000-000000000000";

/** Calls, and the results for the model. @type {[Call, RegExp][]} */
const mistakes = [
  [{ name: "subagent_create", args: "{" }, /arguments/i],
  [{ name: "subagent_create", args: {} }, /`agent` must name the subagent to create\. Available: keeper, picky/],
  [create("nobody", "x"), /No subagent "nobody" can be created here\. Available: keeper, picky/],
  [create("worker", "x"), /"worker" is not created with subagent_create: call it by its name/],
  [create("keeper", "  ", { name: "n" }), /`message` must be a text that is not blank/],
  [create("keeper", "x", { name: " " }), /`name` must be a text that is not blank/],
  [create("keeper", "x", { attachments: "a" }), /`attachments` must be a list/],
  [create("keeper", "x", { attachments: ["/nothing"] }), /do not exist here: \/nothing/],
  [create("keeper", "x", { arguments: [] }), /`arguments` must be an object/],
  [create("picky", "x", { arguments: {} }), /`arguments` do not fit "picky": task: required but missing/],
  [{ name: "keeper", args: { task: "x" } }, /create it with subagent_create/],
  [{ name: "worker", args: {} }, /Invalid arguments for "worker": task: required but missing/],
  [write(REF, "x"), /no active subagent "00000000-0000-4000-8000-000000000000"/],
  [write("", "x"), /`referenceId` must be the reference that subagent_create gave/],
];
const clumsy = bobbin.agent("clumsy", makes(...mistakes.map(([call]) => call)), {
  tools: [resumable("keeper"), resumable("picky"), direct("worker")],
  ...parallel,
});

test("calls that make no sense are errors that say what to do, and make nothing", async () => {
  const thread = await bobbin.client.thread(clumsy.name);
  await thread.ask("Go.");
  const rows = (await thread.messages()).filter(({ role }) => role === "tool");
  assert.deepEqual(rows.map(({ tool_status }) => tool_status), mistakes.map(() => "error"));
  for (const [at, [, expected]] of mistakes.entries()) assert.match(rows[at].content, expected);
  assert.deepEqual(await registry(thread), []);
  assert.equal(keeper.model.asked.length, 0);
  await bobbin.quiet([{ thread, model: clumsy.model }]);
});

test("threads tell each other things by no route of the API", async () => {
  const thread = await bobbin.client.thread(clumsy.name);
  const letter = { from: REF, n: 1, what: "terminate" };
  for (const path of ["/letter", "/letters"]) assert.equal((await thread.send("POST", path, letter)).status, 404);
  const nobody = await bobbin.client.send("GET", `/threads/${REF}/subagents`);
  assert.deepEqual([nobody.status, nobody.json.error.code], [404, "thread_not_found"]);
  assert.equal((await thread.send("POST", "/subagents", {})).status, 405);
  assert.equal((await thread.facts()).state, "idle");
});
