// Kills the server (SIGKILL to every process) at random moments while people decide. Each question is asked and decided
// once, no call is made twice or without approval, no thread stays parked without a wait, and a strict collector
// receives one complete trace.
//
// BOBBIN_APPROVAL_KILLS sets the number of kills; the default is 12, or 3 in a sample (docs/testing.md). BOBBIN_SEED
// repeats the moments of a run.

import assert from "node:assert/strict";
import { after } from "node:test";
import { Thread } from "./support/client.mjs";
import { attribute, Collector } from "./support/collector.mjs";
import { direct, finishes, registry, sessionTools, subagent } from "./support/family.mjs";
import { say, textOf, use } from "./support/model.mjs";
import { chance, sampled, sleep, until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/http.mjs").Answer} Answer */
/** @typedef {ReturnType<typeof chance>} Chance */
/** @typedef {{ name: string, args: object }} Call */

const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";
const KILLS = Number(process.env.BOBBIN_APPROVAL_KILLS ?? sampled(12, 3));
/** How long a request is repeated until it has a response. */
const INSISTS_MS = 90_000;
/** The number of concurrent threads. */
const THREADS = 5;

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

/** The events that a kill follows. Each is chosen equally often. */
const MOMENTS = ["posted", "asked", "deciding", "called", "any"];
const happened = {
  /** @type {Map<string, (() => void)[]>} */
  waiting: new Map(),
  /** @param {string} what */
  tell(what) {
    for (const go of this.waiting.get(what)?.splice(0) ?? []) go();
  },
  /** Waits for the next such event, or briefly if there is none. @param {string} what */
  next(what) {
    const told = new Promise((/** @type {(value?: unknown) => void} */ go) => this.waiting.set(what, [...(this.waiting.get(what) ?? []), () => go()]));
    return Promise.race([told, sleep(500)]);
  },
};

const args = { type: "object", properties: { amount: { type: "number" }, to: { type: "string" } }, required: ["amount", "to"] };
const slowly = (/** @type {string} */ answer) => async () => {
  happened.tell("called");
  await sleep(10);
  return answer;
};
const tools = {
  pay: bobbin.tool("pay", slowly("paid"), { args, approval: { mode: "always", title: "Pay {{args.amount}} to {{args.to}}", edit: ["amount"] } }),
  mail: bobbin.tool("mail", slowly("sent"), { approval: "always" }),
  hasty: bobbin.tool("hasty", slowly("hurried"), { approval: { mode: "always", expiresAfterSeconds: 2 } }),
  look: bobbin.tool("look", slowly("looked")),
  careful: bobbin.tool(
    "careful",
    async ({ body }) => (body.approved ? slowly("done with care")() : { body: { status: "error", error: "Too much for me alone.", error_code: "needs_approval" } }),
    { args, approval: "on_failure" },
  ),
};
bobbin.definitions.push(() =>
  bobbin.folder.write({ tools: { locate: { description: "Where the person is.", args: { type: "object", properties: {} }, run: { client: {} } } } }),
);

const own = Object.keys(tools);
/** Makes the calls that the message lists as JSON, then repeats the result. */
const clerk = (/** @type {any} */ { messages }) => {
  const last = messages.at(-1);
  return last.role === "tool" ? say(`so: ${textOf(last)}`) : use(...JSON.parse(textOf(last)));
};
const cashier = bobbin.agent("cashier", clerk, {
  tools: [...own, "ask_user", "locate", direct("assistant"), { name: "checker", initUserMessageProperty: "what" }],
  prompt: { parallelToolCalls: true },
});
sessionTools(bobbin, { idempotent: true });
const paying = (/** @type {number} */ amount) => ({ name: "pay", args: { amount, to: "Ann" } });
// A child agent and a prompt, both of which pay.
subagent(bobbin, "assistant", (asked) => (asked.messages.at(-1)?.role === "tool" ? finishes(() => "paid for you")(asked) : use(paying(7), { name: "look", args: {} })), {
  tools: ["pay", "look"],
  prompt: { parallelToolCalls: true },
});
bobbin.prompt("checker", () => use(paying(8)), {
  tools: ["pay"],
  requiredSchema: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
});

/** The calls that the model makes, by the kind of story. @type {Record<string, (n: number) => Call[]>} */
const STORIES = {
  one: (n) => [paying(n)],
  several: (n) => [{ name: "look", args: {} }, paying(n), { name: "mail", args: {} }, { name: "look", args: {} }, paying(n + 1)],
  question: () => [{ name: "ask_user", args: { question: "Whom?", choices: ["Ann", "Bob"] } }, { name: "look", args: {} }],
  client: () => [{ name: "locate", args: {} }],
  hasty: (n) => [{ name: "hasty", args: {} }, paying(n)],
  careful: (n) => [{ name: "careful", args: { amount: n, to: "Ann" } }],
  child: (n) => [{ name: "assistant", args: { task: `Pay ${n}.` } }],
  prompt: (n) => [{ name: "checker", args: { what: `bill ${n}` } }, paying(n)],
  again: (n) => [paying(n), { name: "mail", args: {} }],
  stopped: (n) => [paying(n), { name: "mail", args: {} }],
};

/** Repeats a request until it has a response. @param {() => Promise<Answer>} send */
const insist = (send) =>
  until(
    "an answer",
    async () => {
      const answer = await send().catch(() => undefined);
      return answer !== undefined && answer.status < 500 ? answer : undefined;
    },
    { withinMs: INSISTS_MS, everyMs: 40 },
  );

/** Returns a decision about a wait. @param {any} wait @param {string} story @param {Chance} random @returns {object} */
function decisionOf(wait, story, random) {
  if (wait.kind === "question") return random.pick([{ decision: "answer", choice: 1 }, { decision: "answer", text: "Carl" }, { decision: "deny", reason: "later" }]);
  if (wait.kind === "client_tool") return random.pick([{ decision: "answer", result: { city: "Bern" } }, { decision: "answer", result: "lost", isError: true }]);
  if (story === "stopped") return { decision: "deny", reason: "stop it", stop: true };
  const edits = wait.edit ? [{ decision: "approve", args: { amount: 1 } }] : [];
  return random.pick([{ decision: "approve" }, { decision: "approve" }, ...edits, { decision: "deny" }, { decision: "deny", reason: "too much" }]);
}

/** A thread and the people who decide its waits. */
class Story {
  /** @param {Thread} root @param {string} kind @param {number} n @param {Chance} random */
  constructor(root, kind, n, random) {
    this.root = root;
    this.kind = kind;
    this.n = n;
    this.random = random;
    /** Waits that a person has taken. @type {Set<string>} */
    this.taken = new Set();
    /** The accepted decisions, by wait. @type {Map<string, { decision: any, actor: string }[]>} */
    this.winners = new Map();
    /** @type {Promise<void>[]} */
    this.people = [];
    this.over = false;
    this.restarted = false;
  }

  /** Follows the thread from the message to the end of its run, through all crashes. */
  async live() {
    const body = JSON.stringify(/** @type {any} */ (STORIES[this.kind])(this.n));
    const posted = await insist(() => this.root.post(body, {}, { headers: { "idempotency-key": `post-${this.n}` } }));
    assert.equal(posted.status, 202, posted.text);
    happened.tell("posted");
    await until(
      `the run of “${this.kind}” is over`,
      async () => {
        const run = await insist(() => this.root.send("GET", "/runs/r_1"));
        assert.equal(run.status, 200, run.text);
        if (run.json.status === "paused") assert.ok(run.json.waits.length > 0, `parked without a wait: ${run.text}`);
        if (run.json.status === "ok" || run.json.status === "error") return true;
        const { waits } = (await insist(() => this.root.send("GET", "/waits?descendants=true"))).json;
        if (waits.length > 0) happened.tell("asked");
        this.take(waits.filter((/** @type {any} */ { id }) => !this.taken.has(id)));
        return false;
      },
      { withinMs: INSISTS_MS, everyMs: 30, describe: () => [...this.taken] },
    );
    await Promise.all(this.people);
    this.over = true;
  }

  /** Assigns people to new waits: one for each or one for all, and sometimes two who disagree. @param {any[]} waits */
  take(waits) {
    for (const { id } of waits) this.taken.add(id);
    const [first] = waits;
    if (!first) return;
    if (waits.length > 1 && this.kind === "several" && this.random.between(0, 1) === 0) this.people.push(this.all(waits));
    else for (const wait of waits) this.people.push(this.one(wait));
    if (this.random.between(0, 3) === 0) this.people.push(this.one(first));
  }

  /** @param {any} wait */
  async one(wait) {
    const { random } = this;
    // Leave short waits to expire, or decide them at the last moment.
    if (wait.call?.tool === "hasty" && random.between(0, 1) === 0) return;
    await sleep(wait.call?.tool === "hasty" ? random.between(0, 2_200) : random.between(0, 250));
    const decision = /** @type {any} */ (decisionOf(wait, this.kind, random));
    if (this.kind === "again" && !this.restarted) {
      this.restarted = true;
      Object.assign(decision, { interrupt: "restart" });
    }
    const answer = await this.say(wait, decision);
    // A call of the reply has started.
    if (decision.interrupt && answer.status === 409 && !answer.json.error.details) {
      delete decision.interrupt;
      await this.say(wait, decision);
    }
  }

  /** Sends a decision until there is a response. @param {any} wait @param {any} decision */
  async say(wait, decision) {
    const actor = `person ${this.random.between(0, 1e9)}`;
    const thread = wait.threadId;
    const headers = { "idempotency-key": `${actor} of ${wait.id}` };
    const way = this.random.pick(["admin", "owner", "link"]);
    let send = () => bobbin.client.send("POST", `/threads/${thread}/waits/${wait.id}`, { ...decision, actor }, { headers });
    if (way === "owner") send = () => bobbin.as(ALICE).send("POST", `/threads/${thread}/waits/${wait.id}`, { ...decision, actor }, { headers });
    if (way === "link") {
      const minted = await insist(() => bobbin.as(ALICE).send("POST", "/tokens", { scope: `wait:${thread}/${wait.id}`, ttl: 604_800 }));
      assert.equal(minted.status, 200, minted.text);
      send = () => bobbin.as(undefined).send("POST", "/resume", { token: minted.json.token, ...decision, actor }, { headers });
    }
    happened.tell("deciding");
    const answer = await insist(send);
    assert.ok([200, 409].includes(answer.status), `${JSON.stringify(decision)}: ${answer.text}`);
    if (answer.status === 200) this.note(wait, decision, actor);
    return answer;
  }

  /** Decides all waits at once, or one by one if that is rejected. @param {any[]} waits */
  async all(waits) {
    await sleep(this.random.between(0, 250));
    const actor = `person ${this.random.between(0, 1e9)}`;
    const decisions = waits.map((wait) => ({ id: wait.id, .../** @type {any} */ (decisionOf(wait, this.kind, this.random)), actor }));
    happened.tell("deciding");
    const answer = await insist(() => this.root.send("POST", "/waits", { decisions }, { headers: { "idempotency-key": actor } }));
    if (answer.status === 200) {
      for (const [at, wait] of waits.entries()) this.note(wait, decisions[at], actor);
      return;
    }
    assert.equal(answer.status, 409, answer.text);
    for (const wait of waits) await this.one(wait);
  }

  /** @param {any} wait @param {any} decision @param {string} actor */
  note(wait, decision, actor) {
    this.winners.set(wait.id, [...(this.winners.get(wait.id) ?? []), { decision, actor }]);
  }

  /** Checks the result of each thread and of all together. */
  async check() {
    const children = await registry(this.root);
    const threads = [this.root, ...children.map(({ id }) => new Thread(this.root.client, id))];
    for (const thread of threads) {
      /** @type {any} */
      let last;
      const rests = async () => {
        last = await thread.diagnostics();
        return last.state !== "running" && last.state !== "parked" && last.alarm.at === null && last.due.length === 0;
      };
      await until(`${thread.id} rests`, rests, { withinMs: 60_000, describe: () => last });
      await this.checkThread(thread);
    }
    await this.checkTrace(threads);
  }

  /** @param {Thread} thread */
  async checkThread(thread) {
    const messages = await thread.messages({ depth: 8, includeSilent: true });
    const { waits } = (await thread.send("GET", "/waits?state=all&limit=100")).json;
    const logged = (await thread.logged("approval")).map(({ wait }) => wait);
    const closed = waits.map((/** @type {any} */ { id }) => id);
    assert.deepEqual(logged.toSorted(), closed.toSorted(), "each question is in the log with its end, once");
    for (const wait of waits) {
      assert.ok(["decided", "expired", "cancelled"].includes(wait.state), JSON.stringify(wait));
      const winners = this.winners.get(wait.id) ?? [];
      assert.equal(winners.length, wait.state === "decided" ? 1 : 0, `who decided ${JSON.stringify(wait)}: ${JSON.stringify(winners)}`);
      const [winner] = winners;
      if (winner) assert.deepEqual([wait.decision, wait.decidedBy.actor], [winner.decision.decision, winner.actor]);
      if (wait.state === "cancelled") assert.ok(this.kind === "stopped" || this.kind === "again", JSON.stringify(wait));
    }
    const asked = waits.map((/** @type {any} */ { batch, call, kind }) => `${batch} ${call.id} ${kind}`);
    assert.equal(new Set(asked).size, asked.length, `each question once: ${asked.join(", ")}`);
    for (const reply of messages.filter(({ role, tool_calls }) => role === "assistant" && tool_calls)) {
      for (const { id, function: called } of JSON.parse(reply.tool_calls)) {
        const results = messages.filter(({ role, tool_call_id }) => role === "tool" && tool_call_id === id);
        if (this.kind !== "stopped") assert.equal(results.length, 1, `${called.name} has one result`);
        assert.ok(results.length <= 1);
        const wait = waits.find((/** @type {any} */ { batch, call }) => batch === reply.id && call.id === id);
        this.checkCall(thread, { id, name: called.name, args: JSON.parse(called.arguments) }, wait, results[0]?.content ?? "");
      }
    }
  }

  /**
   * Checks that a call's result matches its decision.
   * @param {Thread} thread @param {{ id: string, name: string, args: any }} call @param {any} wait
   * @param {string} result
   */
  checkCall(thread, call, wait, result) {
    const tool = tools[/** @type {keyof typeof tools} */ (call.name)];
    const received = tool?.received.filter(({ body }) => body.threadId === thread.id && body.callId === call.id) ?? [];
    const ran = received.filter(({ body }) => call.name !== "careful" || body.approved === true);
    const lost = /restarted while/.test(result);
    const told = `${call.name} ${JSON.stringify(wait ?? null)} ran ${ran.length} times: ${result}`;
    assert.ok(ran.length <= 1 && received.length - ran.length <= 1, told);
    if (wait === undefined) {
      // Another call of a reply with approvals: it needs none, or the reply was cut off before it could ask.
      if (tool !== undefined && this.kind !== "stopped") assert.ok(["look", "careful"].includes(call.name), told);
      if (call.name === "careful") assert.ok(lost && ran.length === 0, told);
    } else if (wait.state === "decided" && wait.decision === "approve") {
      const changed = this.winners.get(wait.id)?.[0]?.decision.args;
      for (const { body } of ran) {
        assert.equal(JSON.stringify(body.args), JSON.stringify({ ...call.args, ...changed }), told);
        assert.equal(body.approved, true, told);
      }
      assert.ok(lost || (ran.length === 1 && /(paid|sent|hurried|done with care)$/.test(result)), told);
      if (changed && !lost) assert.ok(result.startsWith(`[Approved with changes: ${JSON.stringify(changed)}]`), told);
    } else if (wait.kind === "approval") {
      assert.equal(ran.length, 0, told);
      const expected = { decided: /^Denied(\.|: (too much|stop it)$)/, expired: /^Denied: Nobody answered within 2 seconds\.$/, cancelled: /^(Not run: .*)?$/ };
      assert.match(result, /** @type {any} */ (expected)[wait.state], told);
    } else {
      assert.match(result, /^(Bob|Carl|There is no answer: later|\{"city":"Bern"\}|lost)$/, told);
    }
  }

  /** Checks that the collector has one complete trace. @param {Thread[]} threads */
  async checkTrace(threads) {
    const ids = threads.map(({ id }) => id);
    assert.deepEqual(collector.problems(ids), []);
    const spans = collector.ofThreads(ids);
    const costs = (/** @type {(span: import("./support/collector.mjs").Span) => boolean} */ of) =>
      spans.filter(of).reduce((sum, span) => sum + Number(attribute(span, "bobbin.cost_usd") ?? 0), 0);
    const { total } = (await this.root.send("GET", "/cost")).json;
    const [ofRequests, ofRuns] = [costs(({ name }) => name.startsWith("chat")), costs(({ name, kind }) => name.startsWith("invoke_agent") && kind === 1)];
    assert.ok(Math.abs(ofRequests - total.cost) < 1e-9 && Math.abs(ofRuns - total.cost) < 1e-9, `${ofRequests}, ${ofRuns}, ${total.cost}`);
    for (const thread of threads) {
      const { waits } = (await thread.send("GET", "/waits?state=all&limit=100")).json;
      const told = collector.ofThreads([thread.id]).filter(({ name }) => name.startsWith("wait ")).map((span) => attribute(span, "bobbin.wait"));
      assert.deepEqual(told.toSorted(), waits.map((/** @type {any} */ { id }) => id).toSorted(), "each question has its span");
      const { runs } = (await thread.send("GET", "/runs")).json;
      for (const { run } of runs) {
        const { trace } = (await thread.send("GET", `/runs/${run}?trace=1`)).json;
        const of = (/** @type {string} */ name) => trace.filter((/** @type {any} */ { kind }) => kind === name).length;
        assert.deepEqual([of("run.start"), of("run.end")], [1, 1], JSON.stringify(trace));
        const asked = trace.filter((/** @type {any} */ { kind, data }) => kind === "run.paused" && data.pauseKind === "human");
        assert.equal(asked.length, waits.filter((/** @type {any} */ wait) => wait.run === run).length, JSON.stringify(trace));
      }
    }
  }
}

bobbin.test("killed while people decide: each question once, each decision once, no call twice, nothing left parked", async () => {
  const random = chance("decisions");
  const kinds = Object.keys(STORIES);
  const begun = Date.now();
  let [kills, inTheMiddle, threads, decided] = [0, 0, 0, 0];
  for (let n = 1_000; kills < KILLS; ) {
    const stories = await Promise.all(
      Array.from({ length: THREADS }, async () => {
        n += 10;
        const kind = kinds[(n / 10) % kinds.length] ?? "one";
        return new Story(await bobbin.as(ALICE).thread(cashier.name), kind, n, chance(`story ${n}`));
      }),
    );
    const lives = Promise.all(stories.map((story) => story.live()));
    lives.catch(() => {});
    try {
      for (const most = Math.min(KILLS, kills + 2); kills < most; kills++) {
        const moment = MOMENTS[kills % MOMENTS.length] ?? "any";
        if (moment === "any") await sleep(random.between(0, 500));
        else await happened.next(moment);
        await sleep(random.between(0, 40));
        if (stories.some(({ over }) => !over)) inTheMiddle++;
        await bobbin.server.crash();
      }
      await lives;
      for (const story of stories) await story.check();
    } catch (error) {
      throw new Error(`after ${kills} kills: ${/** @type {Error} */ (error).message}`, { cause: error });
    }
    threads += stories.length;
    decided += stories.reduce((sum, { winners }) => sum + winners.size, 0);
    if (kills % 20 < 2) console.log(`${kills} kills survived, ${inTheMiddle} in the middle, ${threads} threads, ${decided} decisions, ${Math.round((Date.now() - begun) / 1000)} s`);
  }
  assert.ok(inTheMiddle > KILLS / 3, `${kills} kills, of which ${inTheMiddle} in the middle of something, say little`);
  await until("the inbox is empty", async () => (await bobbin.client.send("GET", "/waits?user_id=alice")).json.waits.length === 0);
  for (const [name, { received }] of Object.entries(tools)) {
    const keys = received.map(({ key, body }) => `${key} ${body.approved ?? false}`);
    assert.equal(new Set(keys).size, keys.length, `no call of ${name} was made twice`);
  }
  assert.deepEqual(collector.wrong, []);
  console.log(`${kills} kills survived, ${inTheMiddle} in the middle, ${threads} threads, ${decided} decisions`);
}, 300_000 + KILLS * 60_000);
