// What a chat of the AI SDK must do with Bobbin, in a real browser, for one major of its packages: calm, and again with the server
// killed while it goes on, with the same assertions.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { Browser } from "../../worker/support/browser.mjs";
import { inTurn, say, use } from "../../worker/support/model.mjs";
import { chance, sleep, until } from "../../worker/support/poll.mjs";
import { Suite } from "../../worker/support/suite.mjs";
import { page as pageOf } from "./pages.mjs";

const KEY = "key-of-the-tests";
const LONG = Array.from({ length: 40 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {{ major: number, folder: string, features: string }} Client */

/** A message without what the page alone knows of it. @param {any} message */
const told = ({ id, role, parts }) => ({ id, role, parts: parts.map((/** @type {any} */ { state, ...part }) => (part.type === "text" || part.type === "reasoning" ? part : { state, ...part })) });

/** @param {Client} client @param {boolean} killed */
export function chats({ major, folder, features }, killed) {
  /** @type {Awaited<ReturnType<typeof pageOf>>} */
  let served;
  const browser = new Browser();
  /** @type {Suite} */
  let bobbin;

  const suite = new Suite({ key: KEY });
  bobbin = suite;
  const paid = bobbin.tool("pay", () => '{"paid":true}', { approval: "always", idempotent: true });
  bobbin.tool("lookup", () => "found");
  bobbin.definitions.push(() => {
    suite.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
  });
  const talker = bobbin.agent("talker", () => say(LONG, { chunks: 40, everyMs: 25 }));
  bobbin.agent("counter", ({ n }) => say(`answer ${n}`, { chunks: 4, everyMs: 50 }));
  const payer = bobbin.agent("payer", ({ messages }) => (messages.some(({ role }) => role === "tool") ? say("It is done.") : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });
  bobbin.agent("finder", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`You are in ${messages.at(-1)?.content}.`) : use({ name: "locate", args: {} })), {
    tools: ["locate"],
  });
  bobbin.agent("pointer", () => use({ name: "locate", args: {} }), { tools: ["locate"], side: { stopTool: "locate" } });
  const ender = bobbin.agent("ender", inTurn(use({ name: "lookup", args: {} })), { tools: ["lookup"], side: { stopTool: "lookup" } });

  before(async () => {
    served = await pageOf(folder);
    suite.settings.vars = { BOBBIN_API_KEYS: `${KEY}=admin`, BOBBIN_ALLOWED_ORIGINS: served.origin };
    await suite.up();
    await browser.up();
  });
  after(async () => {
    await browser.down();
    served.close();
    await suite.down();
  });

  const name = (/** @type {string} */ text) => `ai-sdk-${major}${killed ? ", killed" : ""}: ${text}`;
  /** @param {string} text @param {() => Promise<void>} body */
  const test = (text, body) => {
    suite.test(name(text), async () => {
      try {
        await body();
      } finally {
        await browser.clear();
      }
    });
  };

  let chat = 0;
  const fresh = () => `chat/${major}-${killed ? "k" : "c"}${(chat += 1)}`;

  /** @param {string} agent @param {string} id @param {string} [automatic] */
  const open = async (agent, id, automatic = "") => {
    const api = `${suite.server.base}/api/agents/${agent}/chat`;
    const hash = new URLSearchParams({ api, id, key: KEY, automatic, query: features === "" ? "" : `?features=${features}` });
    const page = await browser.open(`${served.origin}/#${hash}`);
    await page.waitForFunction("window.shown");
    return page;
  };
  /** The page is read anew. @param {Page} page */
  const reload = async (page) => {
    await page.reload();
    await page.waitForFunction("window.shown");
  };
  const shown = (/** @type {Page} */ page) => /** @type {Promise<{ messages: any[], status: string }>} */ (page.evaluate("window.shown"));
  const errors = (/** @type {Page} */ page) => /** @type {Promise<string[]>} */ (page.evaluate("window.errors"));
  /** What a person does; what comes of it is looked at. @param {Page} page @param {string} what */
  const does = (page, what) => void page.evaluate(`void window.chat.${what}`).catch(() => {});
  /** Texts that a page has shown before it was read anew. @type {WeakMap<Page, string[]>} */
  const earlier = new WeakMap();
  const grown = async (/** @type {Page} */ page) => [...(earlier.get(page) ?? []), .../** @type {string[]} */ (await page.evaluate("window.grown"))];
  /** What a person does whose page says that the connection was lost: pages that know what is resumed resume, others are read anew. @param {Page} page */
  const reconnect = async (page) => {
    if ((await shown(page)).status !== "error") return;
    if (features.includes("replay")) return void (await page.evaluate("window.chat.clearError(), window.chat.resumeStream()").catch(() => {}));
    earlier.set(page, await grown(page));
    await reload(page);
  };
  /** @param {Page} page @param {number} messages */
  const ready = async (page, messages) =>
    until(
      `the page has ${messages} messages and is ready`,
      async () => {
        await reconnect(page);
        const { messages: all, status } = await shown(page);
        return all.length === messages && status === "ready" && all.at(-1);
      },
      { withinMs: 45_000, describe: async () => ({ shown: await shown(page), errors: await errors(page) }) },
    );
  const send = (/** @type {string} */ method, /** @type {string} */ path, /** @type {any} */ body) => suite.client.send(method, path, body);
  const pathOf = (/** @type {string} */ agent, /** @type {string} */ id) => `/agents/${agent}/chat/${encodeURIComponent(id)}`;
  const history = async (/** @type {string} */ agent, /** @type {string} */ id) => {
    const answer = await send("GET", pathOf(agent, id));
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  /** The page shows what the thread has. @param {Page} page @param {string} agent @param {string} id */
  const same = async (page, agent, id) => {
    const { messages, activeRun } = await history(agent, id);
    assert.equal(activeRun, null);
    assert.deepEqual((await shown(page)).messages.map(told), messages.map(told));
    return messages;
  };
  const random = chance(name("kills"));
  /** In the twin the server dies somewhere in what follows. */
  const disturb = async () => {
    if (!killed) return;
    await sleep(random.between(0, 800));
    await suite.server.crash();
  };
  const textOf = (/** @type {any} */ message) => (message?.parts ?? []).filter((/** @type {any} */ { type }) => type === "text").map((/** @type {any} */ { text }) => text).join("");
  /** Waits until the last message has a part like that. @param {Page} page @param {string} what @param {(part: any) => boolean} is */
  const part = (page, what, is) =>
    until(what, async () => (await shown(page)).messages.at(-1)?.parts?.find(is), { withinMs: 30_000, describe: () => shown(page) });
  const isAsked = (/** @type {any} */ { state }) => state === "approval-requested";
  /** Who is asked still, because the answer was lost on its way, answers again. @param {Page} page @param {string} text @param {string} answer */
  const goneOn = async (page, text, answer) => {
    await sleep(300);
    await until(
      "it has gone on",
      async () => {
        await reconnect(page);
        const { messages, status } = await shown(page);
        if (status === "ready" && messages.at(-1).parts.some(isAsked)) does(page, answer);
        return textOf(messages.at(-1)).includes(text);
      },
      { withinMs: 45_000, describe: async () => ({ shown: await shown(page), errors: await errors(page) }) },
    );
  };
  const stored = (/** @type {string} */ agent, /** @type {string} */ id, /** @type {number} */ messages) =>
    until(`${messages} messages are stored`, async () => (await history(agent, id)).messages.length >= messages);

  test("a text grows, ends, and is what the history has", async () => {
    const id = fresh();
    const page = await open("talker", id);
    does(page, 'sendMessage({ text: "hello" })');
    await until("it has begun", async () => textOf((await shown(page)).messages[1]) !== "");
    await disturb();
    const last = await ready(page, 2);
    assert.equal(textOf(last), LONG);
    const texts = await grown(page);
    assert.ok(texts.length >= 3, `${texts.length} steps`);
    await same(page, "talker", id);
  });

  test("a page that is read anew in the middle has one answer, the stored one", async () => {
    const id = fresh();
    const page = await open("talker", id);
    does(page, 'sendMessage({ text: "hello" })');
    await until("it has begun", async () => (await shown(page)).messages.length === 2);
    const disturbed = disturb();
    for (let times = 0; times < 5; times += 1) {
      await reload(page);
      await sleep(100);
    }
    await disturbed;
    await ready(page, 2);
    const [, last] = await same(page, "talker", id);
    assert.equal(textOf(last), LONG);
  });

  test("two pages show the same, and what is said in one is in the other", async () => {
    const id = fresh();
    const [one, two] = [await open("talker", id), await open("talker", id)];
    does(one, 'sendMessage({ text: "hello" })');
    await until("it has begun", async () => (await shown(one)).messages.length === 2);
    await reload(two);
    await disturb();
    await ready(one, 2);
    await ready(two, 2);
    await same(one, "talker", id);
    await same(two, "talker", id);
    does(two, 'sendMessage({ text: "and?" })');
    await until("it has begun", async () => (await shown(two)).messages.length === 4);
    await reload(one);
    await ready(one, 4);
    await ready(two, 4);
    await same(one, "talker", id);
    await same(two, "talker", id);
  });

  test("a stop stops the run, and the next message is answered", async () => {
    const id = fresh();
    const page = await open("talker", id);
    does(page, 'sendMessage({ text: "hello" })');
    await until("text is shown", async () => textOf((await shown(page)).messages.at(-1)).length > 10);
    const stopped = await send("POST", `${pathOf("talker", id)}/stop`, {});
    assert.deepEqual([stopped.status, stopped.json?.status], [200, "stopped"], stopped.text);
    await until("it is over", async () => (await shown(page)).status === "ready");
    const text = textOf((await shown(page)).messages.at(-1));
    const again = await send("POST", `${pathOf("talker", id)}/stop`, {});
    assert.equal(again.status, 204);
    const { threadId } = await history("talker", id);
    const thread = `/threads/${threadId}`;
    const requests = async () => (await send("GET", `${thread}/logs?limit=100`)).json.logs.filter((/** @type {any} */ { type }) => type === "llm_request").length;
    const asked = [talker.model.asked.length, await requests()];
    await sleep(1500);
    assert.deepEqual([talker.model.asked.length, await requests()], asked, "nothing is asked any more");
    assert.equal((await send("GET", thread)).json.thread.state, "stopped");
    assert.equal(textOf((await shown(page)).messages.at(-1)), text, "what was read stays");
    does(page, 'sendMessage({ text: "go on" })');
    await until("it has begun", async () => (await shown(page)).messages.length === 4);
    await disturb();
    // A page that is read anew does not have what the stopped run has said: only whole replies are stored.
    const answered = async () => {
      await reconnect(page);
      const { messages, status } = await shown(page);
      const last = messages.at(-1);
      return status === "ready" && last.role === "assistant" && messages.filter(({ role }) => role === "user").length === 2 && last;
    };
    const last = await until("the next message is answered", answered, { withinMs: 45_000, describe: () => shown(page) });
    assert.equal(textOf(last), LONG);
  });

  test("a call that a person approves of runs once, and the message goes on", async () => {
    const id = fresh();
    const page = await open("payer", id, "approvals");
    does(page, 'sendMessage({ text: "pay" })');
    const asked = await part(page, "it is asked about", isAsked);
    assert.deepEqual([asked.type, asked.input], ["tool-pay", { amount: 5 }]);
    await suite.server.crash();
    await reload(page);
    await part(page, "it is asked about still", isAsked);
    const calls = paid.received.length;
    const approves = `addToolApprovalResponse({ id: ${JSON.stringify(asked.approval.id)}, approved: true })`;
    does(page, approves);
    await disturb();
    await goneOn(page, "It is done.", approves);
    const last = await ready(page, 2);
    assert.equal(textOf(last), "It is done.");
    const keys = new Set(paid.received.slice(calls).map(({ headers }) => headers["idempotency-key"]));
    assert.equal(keys.size, 1, "it is one call");
    assert.ok(killed || paid.received.length === calls + 1, "it ran once");
    assert.deepEqual(last.parts.find((/** @type {any} */ { type }) => type === "tool-pay").output, { paid: true });
    await same(page, "payer", id);
  });

  test("a call that a person denies does not run, and of two answers one counts", async () => {
    const id = fresh();
    const page = await open("payer", id, "approvals");
    does(page, 'sendMessage({ text: "pay" })');
    const asked = await part(page, "it is asked about", isAsked);
    const other = await open("payer", id, "approvals");
    await part(other, "it is asked about there, too", isAsked);
    // What it resumes would tell it of what is decided from now on.
    const resumed = "performance.getEntriesByType('resource').some(({ name, responseEnd }) => name.includes('/stream') && responseEnd > 0)";
    await until("it has resumed", async () => (await other.evaluate(resumed)) && (await shown(other)).status === "ready");
    const [calls, models] = [paid.received.length, payer.model.asked.length];
    const denies = `addToolApprovalResponse({ id: ${JSON.stringify(asked.approval.id)}, approved: false, reason: "no" })`;
    does(page, denies);
    await disturb();
    await goneOn(page, "It is done.", denies);
    const last = await ready(page, 2);
    assert.equal(last.parts.find((/** @type {any} */ { type }) => type === "tool-pay").state, "output-denied");
    assert.equal(textOf(last), "It is done.");
    await same(page, "payer", id);
    does(other, `addToolApprovalResponse({ id: ${JSON.stringify(asked.approval.id)}, approved: true })`);
    await until("the other page is told", async () => (await errors(other)).length);
    assert.match((await errors(other)).at(-1) ?? "", /otherwise/);
    assert.equal(paid.received.length, calls, "nothing ran");
    assert.ok(payer.model.asked.length > models, "the model goes on");
  });

  test("an answer counts where it stands, in an earlier message too", async () => {
    const id = fresh();
    const page = await open("payer", id, "approvals");
    does(page, 'sendMessage({ text: "pay" })');
    const asked = await part(page, "it is asked about", isAsked);
    does(page, 'sendMessage({ text: "and hurry" })');
    await stored("payer", id, 3);
    await until("the page is ready", async () => (await shown(page)).status === "ready");
    const calls = paid.received.length;
    await disturb();
    does(page, `addToolApprovalResponse({ id: ${JSON.stringify(asked.approval.id)}, approved: true })`);
    // Majors that send only for the last message are told to.
    await sleep(500);
    if (paid.received.length === calls) does(page, "sendMessage()");
    await until("it ran", () => paid.received.length > calls, { withinMs: 30_000, describe: () => errors(page) });
    await until("all is answered", async () => {
      const { messages, activeRun } = await history("payer", id);
      return activeRun === null && textOf(messages.at(-1)) === "It is done.";
    }, { withinMs: 30_000, describe: () => history("payer", id) });
    await reload(page);
    const messages = await same(page, "payer", id);
    assert.equal(messages[1].parts.find((/** @type {any} */ { type }) => type === "tool-pay").state, "output-available");
  });

  test("a reply is written anew, and a message is changed", async () => {
    const id = fresh();
    const page = await open("counter", id);
    const lines = async () => {
      const { messages, threadId } = await history("counter", id);
      const stored = (await send("GET", `/threads/${threadId}/messages`)).json.messages;
      assert.deepEqual(messages.map(textOf), stored.map((/** @type {any} */ { content }) => content), "the thread has what the page has");
      return messages.map(textOf);
    };
    const runs = async () => (await send("GET", `/threads/${(await history("counter", id)).threadId}/runs`)).json.runs?.length ?? 0;
    /** @param {string} what @param {number} number  of runs there are then @param {number} messages */
    const then = async (what, number, messages) => {
      does(page, what);
      await until("a run has begun", async () => (await runs()) === number);
      await disturb();
      await ready(page, messages);
      await until("it is over", async () => (await history("counter", id)).activeRun === null);
      await reconnect(page);
      await same(page, "counter", id);
      return lines();
    };
    const first = await then('sendMessage({ text: "one" })', 1, 2);
    const anew = await then("regenerate()", 2, 2);
    assert.equal(anew[0], "one");
    assert.notEqual(anew[1], first[1], "another answer");
    const further = await then('sendMessage({ text: "two" })', 3, 4);
    assert.deepEqual(further.slice(0, 3), [...anew, "two"]);
    const { messages } = await shown(page);
    const again = await then(`regenerate({ messageId: ${JSON.stringify(messages[1].id)} })`, 4, 2);
    assert.equal(again[0], "one");
    const changed = await then(`sendMessage({ text: "one, changed", messageId: ${JSON.stringify(messages[0].id)} })`, 5, 2);
    assert.equal(changed[0], "one, changed");
    assert.notEqual(changed[1], again[1]);
    await reload(page);
    await same(page, "counter", id);
  });

  test("a tool of the page is carried out by it, once", async () => {
    const id = fresh();
    const page = await open("finder", id, "tools");
    does(page, 'sendMessage({ text: "where am I?" })');
    const call = await part(page, "the page is asked", ({ type, state }) => type === "tool-locate" && state === "input-available");
    await until("it is ready", async () => (await shown(page)).status === "ready");
    assert.deepEqual(await page.evaluate("window.called"), ["locate"]);
    does(page, `addToolOutput({ tool: "locate", toolCallId: ${JSON.stringify(call.toolCallId)}, output: "Lisbon" })`);
    const { threadId } = await history("finder", id);
    await until("the answer has arrived", async () => (await send("GET", `/threads/${threadId}/waits?state=all`)).json.waits[0].state === "decided");
    await disturb();
    await goneOn(page, "Lisbon", "clearError()");
    const last = await ready(page, 2);
    assert.match(textOf(last), /Lisbon/);
    assert.deepEqual(await page.evaluate("window.called"), ["locate"], "it is asked once");
    await same(page, "finder", id);
  });

  test("a run that ends with a tool is not sent again by itself", async () => {
    for (const [agent, posts] of /** @type {const} */ ([["ender", 1], ["pointer", 2]])) {
      const id = fresh();
      const page = await open(agent, id, "tools");
      const posted = () => browser.requests(page).filter((address) => /\/chat(\?.*)?$/.test(address)).length;
      does(page, 'sendMessage({ text: "look" })');
      await stored(agent, id, 1);
      await disturb();
      if (agent === "pointer") {
        const call = await part(page, "the page is asked", ({ type }) => type === "tool-locate");
        await until("it is ready", async () => (await reconnect(page), (await shown(page)).status === "ready"));
        does(page, `addToolOutput({ tool: "locate", toolCallId: ${JSON.stringify(call.toolCallId)}, output: "Lisbon" })`);
        await part(page, "the answer is there", ({ state }) => state === "output-available");
      }
      await ready(page, 2);
      await sleep(1500);
      assert.equal(posted(), posts);
      await same(page, agent, id);
    }
    assert.ok(ender.model.asked.length >= 1);
  });

  test("the same request twice is one message and one run", async () => {
    const id = fresh();
    const body = { id, trigger: "submit-message", messages: [{ id: "u1", role: "user", parts: [{ type: "text", text: "hello" }] }] };
    const post = () => send("POST", "/agents/counter/chat", body);
    /** Until it is answered: a client whose connection is lost sends it again. */
    const posted = () => until("it is answered", () => post().catch(() => undefined), { withinMs: 30_000 });
    const [one, two] = await Promise.all([posted(), posted(), disturb()]);
    assert.deepEqual([one.status, two.status], [200, 200], one.text + two.text);
    const last = await post();
    const deltas = (/** @type {string} */ text) => [...text.matchAll(/"delta":"([^"]*)"/g)].map(([, delta]) => delta).join("");
    assert.equal(deltas(last.text), textOf((await history("counter", id)).messages.at(-1)));
    assert.match(String(last.headers["x-bobbin-run"]), /^r_1$/);
    const { messages, threadId } = await history("counter", id);
    assert.deepEqual(messages.map((/** @type {any} */ { role }) => role), ["user", "assistant"]);
    assert.equal(messages[0].id, "u1");
    const runs = await send("GET", `/threads/${threadId}/runs`);
    assert.equal(runs.json.runs.length, 1);
  });
}
