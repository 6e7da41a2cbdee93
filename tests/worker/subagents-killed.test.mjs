// Families that are killed (SIGKILL to every process) at random moments and restarted. They become idle without any
// request, and then nothing is lost, duplicated, orphaned or still waiting.
//
// BOBBIN_FAMILY_KILLS sets the number of kills; the default is 20, or 3 in a sample (docs/testing.md). BOBBIN_SEED
// repeats the moments of a run.

import assert from "node:assert/strict";
import { atRest, create, direct, finishes, randomMoment, resumable, sessionTools, subagent, task, told } from "./support/family.mjs";
import { say, textOf, use } from "./support/model.mjs";
import { chance, sampled, sleep } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("./support/model.mjs").Asked} Asked */
/** @typedef {import("./support/model.mjs").Call} Call */
/** @typedef {import("./support/model.mjs").Reply} Reply */
/** @typedef {import("./support/family.mjs").Member} Member */

const KILLS = Number(process.env.BOBBIN_FAMILY_KILLS ?? sampled(20, 3));
/** By default a slow machine makes fewer kills within the time limit, but at least this many. */
const AT_LEAST = 3;
const AT_MOST_MS = process.env.BOBBIN_FAMILY_KILLS === undefined ? 150_000 : Infinity;
/** How long a family may take to become idle after a restart. */
const RESTS_MS = 60_000;

const bobbin = suite();
const test = bobbin.test.bind(bobbin);
// Calls that a kill leaves undecided run again: these tools only end a session.
sessionTools(bobbin, { idempotent: true });
const step = bobbin.tool("step", async ({ args }) => {
  await sleep(15);
  return `stepped ${args.word}`;
});

/** Every model takes some time, so that kills can hit it. @param {Reply} reply @returns {Reply} */
const slowly = (reply) => async (out, asked) => {
  await sleep(10 + ((asked.n * 7) % 30));
  await reply(out, asked);
};

/** @param {Asked} asked */
const results = ({ messages }) => messages.filter(({ role }) => role === "tool").map(textOf);

/** Returns the texts of children that were not waited for. @param {Asked} asked */
const heard = ({ messages }) => messages.map(textOf).filter((text) => /^Subagent \S+ .*has (finished|failed):/.test(text));

/** Returns a child's own text in a result or message. @param {string} text */
const own = (text) => text.replace(/^Subagent .* has finished:\n\n/, "").split("\n\n[subagent")[0] ?? "";

/** Makes the calls, then ends the session with all results. @param {(task: string) => Call[]} calls */
const delegates = (calls) => (/** @type {Asked} */ asked) => {
  const found = results(asked).filter((text) => text !== "noted");
  return slowly(found.length === 0 ? use(...calls(task(asked))) : finishes(() => found.map(own).join("+"))(asked));
};

const parallel = { prompt: { parallelToolCalls: true } };
// The leaves: one replies at once, the other first calls a tool.
subagent(bobbin, "quick", (asked) => slowly(finishes()(asked)));
subagent(
  bobbin,
  "steady",
  (asked) => slowly(results(asked).length === 0 ? use({ name: "step", args: { word: task(asked) } }) : finishes()(asked)),
  { tools: ["step"] },
);
// The middle: waits for two leaves.
subagent(bobbin, "middle", delegates((text) => [{ name: "quick", args: { task: `${text}a` } }, { name: "steady", args: { task: `${text}b` } }]), {
  tools: [direct("quick"), direct("steady")],
  ...parallel,
});
// Stays alive: starts two leaves and receives a report of each.
subagent(
  bobbin,
  "keeper",
  (asked) => {
    const back = heard(asked).map(own).sort();
    if (results(asked).length > 0) return slowly(finishes(() => `back: ${back.join(",")}`)(asked));
    return slowly(use(...["c", "d"].map((part) => ({ name: "quick", args: { task: `${task(asked)}${part}` } }))));
  },
  { schema: null, tools: [direct("quick", { blocking: false })], ...parallel },
);
const top = bobbin.agent(
  "top",
  (asked) => {
    if (results(asked).length > 0) return slowly(say(`heard ${heard(asked).length}`));
    return slowly(
      use(
        { name: "quick", args: { task: "1" } },
        { name: "steady", args: { task: "2" } },
        { name: "middle", args: { task: "3" } },
        create("keeper", "4"),
        { name: "steady_too", args: { task: "5" } },
      ),
    );
  },
  {
    tools: [
      direct("quick", { blocking: false }),
      direct("steady"),
      direct("middle"),
      direct("steady_too", { blocking: false }),
      resumable("keeper", {}, { blocking: false }),
    ],
    ...parallel,
  },
);
subagent(bobbin, "steady_too", delegates((text) => [{ name: "step", args: { word: text } }]), { tools: ["step"] });

/** Describes each child's task and its relation to its parent. @param {Member} member */
function outcome({ thread, entry, parent }) {
  return { id: thread.id, agent: entry?.agent_name ?? "", blocking: entry?.blocking, resumable: entry?.resumable, of: parent };
}

/** Checks a family after it has become idle. @param {Thread} root */
async function checked(root) {
  const family = await atRest(root, RESTS_MS);
  const agents = family.slice(1).map(({ entry, depth }) => `${depth} ${entry?.agent_name}`);
  assert.deepEqual(
    agents.sort(),
    ["1 keeper", "1 middle", "1 quick", "1 steady", "1 steady_too", "2 quick", "2 quick", "2 quick", "2 steady"],
    "each child was made once",
  );
  for (const member of family) {
    const state = await member.thread.diagnostics();
    assert.deepEqual([state.waitingReceipts, state.queue.waiting], [[], 0], `nothing waits: ${JSON.stringify(state)}`);
    const facts = await member.thread.facts();
    const lives = member.depth === 0 || member.entry?.resumable;
    assert.equal(facts.state, lives ? "idle" : "terminated", member.entry?.agent_name);
    assert.equal(member.entry?.status ?? "idle", lives ? "idle" : "terminated", member.entry?.agent_name);
    await heardOnce(member);
  }
  // The texts show that each child has done its own task.
  const answers = (await root.results()).map(own);
  assert.deepEqual([answers[1], answers[2]], ["did 2", "did 3a+did 3b"]);
  const messages = (await told(root)).map(({ content }) => own(content));
  const unknown = 'The runtime restarted while "step" was running.';
  for (const texts of [["did 1"], ["stepped 5", unknown]]) {
    const said = messages.filter((message) => texts.some((text) => message.startsWith(text)));
    assert.equal(said.length, 1, `${texts}: ${messages}`);
  }
  const keeper = messages.filter((said) => said.startsWith("back:"));
  assert.ok(keeper.includes("back: did 4c,did 4d"), `the keeper has heard both: ${messages}`);
  const [last] = (await root.messages()).slice(-1);
  assert.deepEqual([last.role, last.content], ["assistant", `heard ${messages.length}`], "the model has read all");
  return family;
}

/** Checks that every run of every child was reported once, as a call's result or as a message. @param {Member} member */
async function heardOnce({ thread, children }) {
  const calls = await thread.results();
  const messages = await told(thread);
  for (const child of children.map(outcome)) {
    const asResult = calls.filter((text) => text.includes(`[subagent ${child.id}`)).length;
    const asMessage = messages.filter(({ metadata }) => metadata.subagent_id === child.id).length;
    const runs = (await logs(child.id)).length;
    if (child.blocking) assert.deepEqual([asResult, asMessage], [1, 0], `${child.agent}: ${calls.join("|")}`);
    else assert.deepEqual([asResult, asMessage], [0, runs], `${child.agent}: ${messages.map(({ content }) => content).join("|")}`);
    if (!child.resumable) assert.equal(runs, 1, child.agent);
  }
}

/** Returns a child's reports to its parent, from the child's log. @param {string} id @returns {Promise<any[]>} */
const logs = async (id) => {
  const answer = await bobbin.client.send("GET", `/threads/${id}/logs?limit=500&order=asc`);
  return answer.json.logs.filter((/** @type {any} */ row) => row.type === "subagent_report");
};

/** Returns all threads in the directory, with their parents. */
async function listed() {
  /** @type {any[]} */
  const rows = [];
  for (;;) {
    const { threads, hasMore } = await bobbin.client.threads({ include_children: true, limit: 500, offset: rows.length });
    rows.push(...threads);
    if (!hasMore) return rows;
  }
}

test("killed at random moments: no result of a child is lost or doubled, nobody is orphaned, nobody waits", async () => {
  const random = chance("families");
  /** The threads of all families so far, with their parents. @type {Map<string, string | undefined>} */
  const known = new Map();
  const know = async (/** @type {Thread} */ root) => {
    for (const { thread, parent } of await checked(root)) known.set(thread.id, parent?.thread.id);
  };
  /** Returns the number of requests to all models so far. */
  const asked = () => [...bobbin.models.models.values()].reduce((sum, model) => sum + model.asked.length, 0);
  const first = await bobbin.client.thread(top.name);
  const none = asked();
  await first.accepted("Go.");
  await know(first);
  const all = asked() - none;
  const begun = Date.now();
  let kills = 0;
  /** The number of kills after which models received further requests. */
  let inTheMiddle = 0;
  for (; kills < KILLS && (kills < AT_LEAST || Date.now() - begun < AT_MOST_MS); kills++) {
    const roots = await Promise.all(Array.from({ length: random.between(1, 3) }, () => bobbin.client.thread(top.name)));
    const moment = randomMoment(random, asked, all * roots.length);
    await Promise.all(roots.map((thread) => thread.accepted("Go.")));
    const when = await moment;
    await bobbin.server.down();
    const before = asked();
    await bobbin.server.up();
    try {
      for (const root of roots) await know(root);
    } catch (error) {
      throw new Error(`kill ${kills + 1}, ${when}: ${/** @type {Error} */ (error).message}`, { cause: error });
    }
    if (asked() > before) inTheMiddle++;
    if (kills % 10 === 9) {
      console.log(`${kills + 1} kills survived, ${inTheMiddle} in the middle, ${known.size} threads, ${Math.round((Date.now() - begun) / 1000)} s`);
    }
  }
  assert.ok(inTheMiddle > 0, `${kills} kills, none of them in the middle of anything, say nothing`);
  const rows = await listed();
  for (const { id, parent } of rows) {
    assert.ok(known.has(id), `the directory has ${id}, which no registry knows`);
    assert.equal(parent ?? undefined, known.get(id), `the parent of ${id}`);
  }
  assert.equal(rows.length, known.size, "and all of them are in the directory");
  const keys = step.received.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, "no tool was called twice");
}, 600_000 + KILLS * 60_000);
