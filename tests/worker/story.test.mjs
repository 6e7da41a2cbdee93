// One story that uses all features. A foreman with 0.05 USD and four researchers search the thirty documents of their
// owner at the same time, cite them, and are summarized after some turns. One of them wants to send a mail, and the
// owner approves it by a link after a crash of the server. The budget runs out in a subagent of a subagent, and the
// owner extends it once. At the end a strict collector has one trace with one root, its costs match the charged
// amounts, the number of model requests matches the trace, and no secret of the documents has leaked. A second test
// adds kills at random moments. All guarantees except “once” hold there, too.
//
// BOBBIN_STORY_KILLS sets the number of kills; the default is 4, or 2 in a sample (docs/testing.md). The story is
// repeated until that many kills were made. BOBBIN_SEED repeats the moments of a run.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { Thread } from "./support/client.mjs";
import { attribute, Collector } from "./support/collector.mjs";
import { atRest, members } from "./support/family.mjs";
import { textOf } from "./support/model.mjs";
import { chance, sampled, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/http.mjs").Answer} Answer */
/** @typedef {import("./support/model.mjs").Asked} Asked */
/** @typedef {import("./support/model.mjs").Call} Call */
/** @typedef {import("./support/model.mjs").Reply} Reply */
/** @typedef {import("./support/family.mjs").Member} Member */

const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";
const KILLS = Number(process.env.BOBBIN_STORY_KILLS ?? sampled(4, 2));
/** The number of kills per telling. Lost attempts are charged at their maximum, and the owner extends the budget for them. */
const KILLS_EACH = 4;
/** How long a request is repeated until it has a response, and the time limit of a telling. */
const PATIENCE_MS = 180_000;
/** The amount that the owner adds, in USD. */
const MORE = 0.05;

const collector = new Collector();
const bobbin = suite({
  key: ADMIN,
  vars: {
    BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice`,
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
    BOBBIN_OTLP_ENDPOINT: await collector.listen(),
  },
});
after(() => collector.close());

// The researchers' knowledge: thirty documents, some of which contain secrets.
const PLACES = "Aldmoor Brackwater Cindervale Dunmarch Eastrey Fallowmere Grimsby Hollowden Ironhythe Juniperton".split(" ");
const THINGS = ["lighthouse", "windmill", "aqueduct"];
const SECRETS = ["f00ba4-5tory-canary-1234", "ghp_4eC39HqLyjWDarjtT1zdp7dcQ9aBcDeFgHiJ", "4eC39HqLyjWDarjtT1zdp7dcQ9"];
const LEAKS = [`api_key: ${SECRETS[0]}`, `The keeper pushes with ${SECRETS[1]} every night.`, `Its session is ${SECRETS[2]} until spring.`];
const documents = PLACES.flatMap((place, p) =>
  THINGS.map((thing, t) => ({
    key: `${place}/${thing}`,
    title: `The ${thing} of ${place}`,
    text: [
      `The ${thing} of ${place} was built by the guild of masons, and is open from ${6 + t} until ${17 + t}. Visitors pay ${p + t + 2} coins.`,
      LEAKS[(p + t) % 5] ?? "Nobody lives there now, and the door is open.",
      `Whoever comes to ${place} asks for the ${thing} first. ${"It was painted white again in the year of the flood. ".repeat(6)}`,
    ].join("\n\n"),
  })),
);

bobbin.definitions.push(() => {
  bobbin.folder.json("models/embed.json", { kind: "embedding", provider: "demo", model: "demo" });
  bobbin.folder.json("memories/library.json", { description: "What is known of towns.", scope: "owner", embedding: "embed", retrieval: { topK: 4 } });
});

/** The costs at the model server in millionths of a dollar, by thread. @type {Map<string, number>} */
const given = new Map();
/** The number of requests in progress, and its maximum. */
let underway = 0;
let atOnce = 0;
let lastAsked = 0;

/** Counts the tokens of a request. The result is below any estimate. @param {Asked} asked */
const inputOf = ({ messages }) => Math.floor(messages.reduce((sum, message) => sum + textOf(message).length, 0) / 5);

/**
 * A reply with its cost. Whatever was sent is charged, even if it does not arrive.
 *
 * @param {number} inputPrice
 * @param {string} text
 * @param {Call[]} [calls]
 * @returns {Reply}
 */
const paid = (inputPrice, text, calls = []) => async (out, asked) => {
  const thread = String(asked.body.user);
  const give = (/** @type {number} */ micro) => given.set(thread, (given.get(thread) ?? 0) + micro);
  const input = inputOf(asked);
  underway++;
  atOnce = Math.max(atOnce, underway);
  try {
    out.open();
    give(input * inputPrice);
    await Promise.race([sleep(30), out.closed]);
    const words = text.split(/(?<= )/);
    for (const word of words) {
      if (!out.response.writable) return;
      await out.text(word);
      give(2);
    }
    for (const call of calls) await out.call(call);
    const output = words.length + 10 * calls.length;
    if (!out.response.writable) return;
    give(20 * calls.length);
    await out.chunk({}, calls.length > 0 ? "tool_calls" : "stop");
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
    await out.line({ id: out.id, object: "chat.completion.chunk", model: asked.body.model, choices: [], usage });
    if (out.response.writable) out.response.end("data: [DONE]\n\n");
  } finally {
    underway--;
    lastAsked = Date.now();
  }
};

/** Returns the last task from the foreman or another leader, and the results of calls since then. @param {Asked} asked */
function task({ messages }) {
  const from = messages.findLastIndex(({ role }) => role === "user");
  const results = messages.slice(from + 1).filter(({ role }) => role === "tool").map(textOf);
  return { wanted: textOf(messages[from]), results };
}

/**
 * A model that makes the calls of its steps, one list for each step, and then replies.
 *
 * @param {number} inputPrice
 * @param {Call[][]} steps
 * @param {(results: string[]) => string} says
 */
const leads = (inputPrice, steps, says) => (/** @type {Asked} */ asked) => {
  const { results } = task(asked);
  let made = 0;
  for (const step of steps) {
    if (made === results.length) return paid(inputPrice, "", step);
    made += step.length;
  }
  return paid(inputPrice, says(results));
};

const small = { capabilities: { maxOutputTokens: 300, maxContextTokens: 16_000 } };
const ALL = [1, 2, 3, 4];
const ROUNDS = [2, 3];
const waits = { name: "agent_wait", args: { agentIds: ALL.map((n) => `subagent.${n}`) } };
/** Returns the question to worker n in a round. @param {number} n @param {number} round */
const question = (n, round) => `Part ${round}: what is known of the ${THINGS[round % 3]} of ${PLACES[(n + round * 2) % 10]}?`;
const DIG = "Part 4: dig until nothing is left.";

const foreman = bobbin.agent(
  "foreman",
  leads(
    1,
    [
      ALL.map((n) => ({ name: "agent_spawn", args: { agent: "researcher", message: question(n, 1) } })),
      [waits],
      ...ROUNDS.flatMap((round) => [
        ALL.map((n) => ({ name: "agent_send", args: { agentId: `subagent.${n}`, message: question(n, round), wait: false } })),
        [waits],
      ]),
      [{ name: "agent_send", args: { agentId: "subagent.4", message: DIG } }],
    ],
    (results) => `All is found: ${JSON.parse(results.at(-1) ?? "{}").text}`,
  ),
  {
    prompt: { parallelToolCalls: true, subagents: { agents: ["researcher"], maxActive: 4, canSpawn: true } },
    model: small,
    agent: { budget: { run: { maxCostUsd: 0.05 } } },
  },
);

/** @param {Asked} asked @returns {Reply} */
function researches(asked) {
  const { wanted } = task(asked);
  if (wanted === DIG) {
    const steps = [[{ name: "agent_spawn", args: { agent: "digger", message: "Dig." } }], [{ name: "agent_wait", args: { agentIds: ["subagent.1"] } }]];
    return leads(1, steps, (dug) => JSON.parse(dug.at(-1) ?? "{}").outcomes[0].text)(asked);
  }
  const search = { name: "memory_search", args: { query: wanted.replace(/^.*what is known of /, ""), top_k: 3 } };
  const mail = wanted === question(2, 2) ? [[{ name: "send_mail", args: { to: "ann@example.com", about: wanted } }]] : [];
  return leads(1, [[search], ...mail], ([found = ""]) => `As it is written ${/\[m\d+\]/.exec(found)?.[0] ?? "nowhere"}, it is open.`)(asked);
}
bobbin.agent("researcher", researches, {
  tools: ["send_mail"],
  model: small,
  prompt: {
    memory: [{ name: "library", tools: ["search"] }],
    subagents: { agents: ["digger"] },
    context: { triggerRatio: 0.4, maxInputTokens: 2_500 },
    summary: { model: "scribe_model", minTurns: 1, maxTokens: 200 },
  },
});
bobbin.agent("scribe", () => paid(1, "They asked what is known of some buildings, and were told."), { model: small });

/** Twelve steps of 0.004 USD each, which exceed the foreman's budget. */
const STEPS = 12;
bobbin.agent(
  "digger",
  leads(40, Array.from({ length: STEPS }, () => [{ name: "dig", args: {} }]), (results) => `dug ${results.length} times`),
  { tools: ["dig"], system: `You dig. ${"Deeper, and with care. ".repeat(20)}`, model: { ...small, inputPrice: 40 } },
);
bobbin.tool("dig", () => "sand");
const mail = bobbin.tool("send_mail", () => "sent", {
  args: { type: "object", properties: { to: { type: "string" }, about: { type: "string" } }, required: ["to", "about"] },
  approval: { mode: "always", title: "Send a mail to {{args.to}}" },
});

/** Repeats a request until it has a response. @param {() => Promise<Answer>} send */
const insist = (send) =>
  until(
    "an answer",
    async () => {
      const answer = await send().catch(() => undefined);
      return answer !== undefined && answer.status < 500 ? answer : undefined;
    },
    { withinMs: PATIENCE_MS, everyMs: 50 },
  );

/** Adds the documents to the memory of all the owner's threads. */
async function fillLibrary() {
  for (const document of documents) {
    const answer = await insist(() => bobbin.as(ALICE).send("POST", "/memory/library/documents", document));
    assert.equal(answer.status, 202, answer.text);
  }
  const ready = async () => {
    const { json } = await insist(() => bobbin.as(ALICE).send("GET", "/memory/library"));
    return json.state === "ready" && json.documents === documents.length;
  };
  await until("the library is ready", ready, { withinMs: PATIENCE_MS, everyMs: 100 });
}

/** One telling of the story, with the owner's decisions. */
class Telling {
  /** @param {Thread} root @param {number} n */
  constructor(root, n) {
    this.root = root;
    this.n = n;
    this.over = false;
    /** The decisions, by wait. @type {Map<string, any>} */
    this.decided = new Map();
    /** Everything that clients of the streams received. @type {string} */
    this.heard = "";
  }

  /** @param {number} n */
  static async begin(n) {
    const root = await bobbin.as(ALICE).thread(foreman.name);
    const telling = new Telling(root, n);
    const headers = { "idempotency-key": `story ${n}` };
    const posted = await insist(() => root.post("Find out about the buildings.", {}, { headers }));
    assert.equal(posted.status, 202, posted.text);
    return telling;
  }

  /** Returns the owner's inbox for all threads of the telling. @returns {Promise<any[]>} */
  async inbox() {
    const answer = await insist(() => bobbin.as(ALICE).send("GET", "/waits?user_id=alice"));
    assert.equal(answer.status, 200, answer.text);
    return answer.json.waits;
  }

  /** Returns a function that decides a wait through a link in a mail. @param {any} wait */
  async link(wait) {
    const scope = `wait:${wait.threadId}/${wait.id}`;
    const minted = await insist(() => bobbin.as(ALICE).send("POST", "/tokens", { scope, ttl: 604_800 }));
    assert.equal(minted.status, 200, minted.text);
    return (/** @type {object} */ decision) => {
      this.decided.set(wait.id, decision);
      const headers = { "idempotency-key": `the owner on ${wait.id}` };
      return insist(() => bobbin.as(undefined).send("POST", "/resume", { token: minted.json.token, ...decision }, { headers }));
    };
  }

  /** Returns the foreman's run. @returns {Promise<any>} */
  async run() {
    const run = await insist(() => this.root.send("GET", "/runs/r_1"));
    assert.equal(run.status, 200, run.text);
    return run.json;
  }

  /** The owner decides all waits until the run has ended. */
  async live() {
    /** @type {any} */
    let last;
    await until(
      "the run is over",
      async () => {
        last = await this.run();
        if (last.status === "ok" || last.status === "error") return true;
        const { waits } = (await insist(() => this.root.send("GET", "/waits?descendants=true"))).json;
        for (const wait of waits) {
          if (this.decided.has(wait.id) || wait.allows.length === 0) continue;
          const decide = await this.link(wait);
          const answer = await decide(wait.kind === "budget" ? { decision: "extend", add: { maxCostUsd: MORE } } : { decision: "approve" });
          assert.ok(answer.status === 200 || answer.status === 409, answer.text);
        }
        return false;
      },
      { withinMs: PATIENCE_MS, everyMs: 60, describe: () => last },
    );
    this.over = true;
  }

  /** Checks what must hold in every telling, whatever was killed. */
  async check() {
    const family = await atRest(this.root, 60_000);
    const agents = family.slice(1).map(({ entry, depth }) => `${depth} ${entry?.agent_name}`);
    assert.deepEqual(agents.sort(), [...ALL.map(() => "1 researcher"), "2 digger"], "each worker was made once");
    const run = await this.run();
    assert.deepEqual([run.status, run.outcome], ["ok", "completed"], JSON.stringify(run));
    assert.equal(run.message?.content ?? (await this.root.messages()).at(-1).content, `All is found: dug ${STEPS} times`);
    await this.checkWork(family);
    const sums = await this.checkMoney(family);
    await this.checkSecrets(family);
    const ids = family.map(({ thread }) => thread.id);
    await until("nothing of it is in the inbox", async () => !(await this.inbox()).some(({ threadId }) => ids.includes(threadId)));
    return { family, sums };
  }

  /** Checks that the researchers' answers come from the documents, and that one mail was sent. @param {Member[]} family */
  async checkWork(family) {
    const ids = family.map(({ thread }) => thread.id);
    for (const { thread, entry } of family.filter(({ depth }) => depth === 1)) {
      const messages = await thread.messages();
      const replies = messages.filter(({ role, content }) => role === "assistant" && /^As it is written/.test(content ?? ""));
      const n = Number(/** @type {any} */ (entry).agentId.split(".")[1]);
      assert.equal(replies.length, 3, `each question of researcher ${n} was answered once: ${JSON.stringify(messages.map(({ role, content }) => [role, content]))}`);
      for (const [at, { content, metadata }] of replies.entries()) {
        const [citation] = metadata.citations ?? [];
        assert.equal(content, `As it is written [${citation?.label}], it is open.`);
        assert.match(question(n, at + 1), new RegExp(citation.title.replace(/^The (\w+) of (\w+)$/, "($1|$2)")), `what was cited is about ${question(n, at + 1)}`);
      }
    }
    const keys = mail.received.filter(({ body }) => ids.includes(body.threadId)).map(({ key }) => key);
    assert.ok(keys.length <= 1, `mails: ${keys.join(", ")}`);
    const results = (await Promise.all(family.map(({ thread }) => thread.results()))).flat().filter((text) => /^sent$|restarted while "send_mail"/.test(text));
    assert.equal(results.length, 1, results.join(", "));
    if (results[0] === "sent") assert.equal(keys.length, 1, "the mail was sent once");
  }

  /** Compares the costs of the trace, the logs, the charged amounts and the model server. @param {Member[]} family */
  async checkMoney(family) {
    const ids = family.map(({ thread }) => thread.id);
    assert.deepEqual(collector.problems(ids), []);
    const spans = collector.ofThreads(ids);
    const micro = (/** @type {unknown} */ usd) => Math.round(Number(usd ?? 0) * 1e6);
    const chats = spans.filter(({ name }) => name.startsWith("chat "));
    const traced = chats.reduce((sum, span) => sum + micro(attribute(span, "bobbin.cost_usd")), 0);
    const { total } = (await this.root.send("GET", "/cost")).json;
    const books = (await this.root.send("GET", "/budget")).json;
    const out = ids.reduce((sum, id) => sum + (given.get(id) ?? 0), 0);
    const sums = { traced, logged: micro(total.cost), booked: micro(books.spent.thread?.costUsd ?? books.spent.run.costUsd), out, chats: chats.length };
    assert.deepEqual([books.lent.costUsd, books.lent.children], [0, []], "what was lent is back");
    assert.equal(sums.traced, sums.logged, JSON.stringify(sums));
    assert.ok(sums.booked >= sums.traced && sums.booked >= out, JSON.stringify(sums));
    return sums;
  }

  /** Checks that no secret has left the documents. @param {Member[]} family */
  async checkSecrets(family) {
    const told = [];
    for (const { thread } of family) {
      const messages = await thread.messages({ includeSilent: true, depth: 8 });
      const logs = (await thread.send("GET", "/logs?limit=500")).text;
      told.push(JSON.stringify(messages), logs);
    }
    noSecretIn("messages and logs", told.join());
    noSecretIn("the streams", this.heard);
  }
}

/** @param {string} where @param {string} text */
function noSecretIn(where, text) {
  for (const secret of SECRETS) assert.ok(!text.includes(secret), `${where}: ${text.slice(Math.max(0, text.indexOf(secret) - 200), text.indexOf(secret) + 60)}`);
}

/** Checks everything that all tellings have sent, printed and stored. */
function noSecretAnywhere() {
  for (const { asked } of bobbin.models.models.values()) noSecretIn("requests to models", JSON.stringify(asked.map(({ body }) => body)));
  for (const { name, received } of bobbin.tools.tools.values()) noSecretIn(`calls of ${name}`, JSON.stringify(received.map(({ body }) => body)));
  noSecretIn("traces", collector.bodies.join());
  noSecretIn("what the server printed", bobbin.server.output(Infinity));
  let files = 0;
  for (const entry of readdirSync(bobbin.server.persist, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    files++;
    noSecretIn(entry.name, readFileSync(join(entry.parentPath, entry.name), "latin1"));
  }
  assert.ok(files > 10, `${files} files hold the state`);
}

/** Waits until no model has received a request for a second. */
const quiet = () => until("no model is asked", () => underway === 0 && Date.now() - lastAsked > 1_000, { withinMs: 30_000 });

/** Returns the requests to models from these threads. @param {Member[]} family */
const askedBy = (family) => {
  const ids = new Set(family.map(({ thread }) => thread.id));
  return [...bobbin.models.models.values()].flatMap(({ asked }) => asked).filter(({ body }) => ids.has(String(body.user)));
};

bobbin.test("a foreman, four researchers, a mail that is approved after a restart, and a budget that is extended once", async () => {
  await fillLibrary();
  const telling = await Telling.begin(0);
  const asking = async (/** @type {string} */ kind) => {
    const told = async () => {
      for (const { id, threadId } of (await telling.inbox()).filter((wait) => wait.kind === kind)) {
        const { wait } = (await bobbin.as(ALICE).send("GET", `/threads/${threadId}/waits/${id}`)).json;
        // A subagent that waits for its parent's answer asks no person, and may be visible before its parent has asked.
        if (wait.budget?.asks !== "parent") return wait;
      }
      return undefined;
    };
    return until(`the owner is asked: ${kind}`, told, { withinMs: 60_000, describe: () => bobbin.models.refused });
  };
  const listens = await telling.root.events();
  const approval = await asking("approval");
  assert.deepEqual([approval.title, approval.call.tool], ["Send a mail to ann@example.com", "send_mail"]);
  const approve = await telling.link(approval);
  await quiet();
  // Only stored data remains, and two days may pass: nothing runs, and the only alarm is for the expiry of the wait.
  await bobbin.server.crash();
  await sleep(1_500);
  assert.equal(mail.received.length, 0);
  const approved = await approve({ decision: "approve" });
  assert.equal(approved.status, 200, approved.text);
  const budget = await asking("budget");
  const family = await members(telling.root);
  const digs = family.find(({ depth }) => depth === 2);
  assert.deepEqual([budget.threadId, budget.budget.unit, budget.budget.forChild], [telling.root.id, "costUsd", digs?.thread.id], "the question of the subagent's subagent is asked at the top");
  const extend = await telling.link(budget);
  const extended = await extend({ decision: "extend", add: { maxCostUsd: MORE } });
  assert.equal(extended.status, 200, extended.text);
  await telling.live();
  assert.deepEqual([...telling.decided.keys()].sort(), [approval.id, budget.id].sort(), "nothing else was asked");
  telling.heard = JSON.stringify(listens.events);
  const checked = await telling.check();
  const { sums } = checked;
  assert.deepEqual([sums.booked, sums.out], [sums.traced, sums.traced], `to the millionth of a dollar: ${JSON.stringify(sums)}`);
  const asked = askedBy(checked.family);
  assert.equal(sums.chats, asked.length, "the models were asked as often as the trace says");
  assert.ok(atOnce > 1, "the researchers worked at the same time");
  for (const { thread } of checked.family.filter(({ depth }) => depth === 1)) {
    const { summary } = (await thread.send("GET", "/context")).json;
    assert.ok(summary?.epoch >= 1, `${thread.id} was summarised`);
  }
  noSecretAnywhere();
}, 300_000);

bobbin.test("killed at random moments of it: everything but the number of questions is as before", async () => {
  const random = chance("story");
  const begun = Date.now();
  let [kills, inTheMiddle, tellings] = [0, 0, 0];
  while (kills < KILLS) {
    tellings++;
    const telling = await Telling.begin(tellings);
    const life = telling.live();
    life.catch(() => {});
    try {
      for (const most = Math.min(KILLS, kills + KILLS_EACH); kills < most && !telling.over; kills++) {
        await sleep(random.between(0, 900));
        if (telling.over) break;
        inTheMiddle++;
        await bobbin.server.crash();
      }
      await life;
      const { family, sums } = await telling.check();
      const asked = askedBy(family).length;
      assert.ok(asked <= sums.chats, `each of ${asked} requests is one of ${sums.chats} in the trace`);
      noSecretAnywhere();
    } catch (error) {
      throw new Error(`telling ${tellings}, after ${kills} kills: ${/** @type {Error} */ (error).message}`, { cause: error });
    }
    if (kills === KILLS || kills % 20 < KILLS_EACH) console.log(`${kills} kills survived in ${tellings} tellings, ${Math.round((Date.now() - begun) / 1000)} s`);
  }
  assert.ok(inTheMiddle > 0, "kills of what is over say nothing");
}, 300_000 + KILLS * 120_000);
