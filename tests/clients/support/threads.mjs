// What a page with `useThread` must do, in a real browser: calm, and again with the server killed while it goes on, with the same
// assertions.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Browser } from "../../worker/support/browser.mjs";
import { say, use } from "../../worker/support/model.mjs";
import { chance, sleep, until } from "../../worker/support/poll.mjs";
import { Suite } from "../../worker/support/suite.mjs";
import { buildClient } from "./client-build.mjs";
import { page as pageOf } from "./pages.mjs";

const KEY = "key-of-the-tests";
const LONG = Array.from({ length: 40 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");
/** How long a machine sleeps whose lid is closed. */
const ASLEEP_MS = 30_000;

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {{ messages: any[], partial: any, state: string | null, pending: any[], connected: boolean, error?: string }} Shown */

/** The client, with the page's React. @param {string} folder @returns {Promise<Record<string, string>>} */
async function packages(folder) {
  const { dist } = await buildClient();
  return { "bobbin-client": join(dist, "index.js"), "bobbin-client/react": join(dist, "react.js"), react: join(folder, "node_modules/react") };
}

/** @param {string} folder @param {boolean} killed */
export function threads(folder, killed) {
  /** @type {Awaited<ReturnType<typeof pageOf>>} */
  let served;
  const browser = new Browser();
  const suite = new Suite({ key: KEY });
  const paid = suite.tool("pay", () => "paid", { approval: "always", idempotent: true });
  suite.agent("talker", () => say(LONG, { chunks: 40, everyMs: 25 }));
  suite.agent("counter", ({ n }) => say(`answer ${n}`));
  suite.agent("payer", ({ messages }) => (messages.some(({ role }) => role === "tool") ? say("It is done.") : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });

  before(async () => {
    served = await pageOf(folder, "thread-page.jsx", await packages(folder));
    suite.settings.vars = { BOBBIN_API_KEYS: `${KEY}=admin`, BOBBIN_ALLOWED_ORIGINS: served.origin };
    await suite.up();
    await browser.up();
  });
  after(async () => {
    await browser.down();
    served?.close();
    await suite.down();
  });

  const name = (/** @type {string} */ text) => `useThread${killed ? ", killed" : ""}: ${text}`;
  /** @param {string} text @param {() => Promise<void>} body */
  const test = (text, body) =>
    suite.test(name(text), () => browser.watched(body));
  const random = chance(name("kills"));
  /** In the twin the server dies somewhere in what follows. */
  const disturb = async () => {
    if (!killed) return;
    await sleep(random.between(0, 800));
    await suite.server.crash();
  };

  let made = 0;
  const fresh = () => `thread/${killed ? "k" : "c"}${(made += 1)}`;
  /** @param {string} agent @param {string} id */
  const open = async (agent, id) => {
    const hash = new URLSearchParams({ url: suite.server.base, key: KEY, agent, id });
    const page = await browser.open(`${served.origin}/#${hash}`);
    await until("the page follows the thread", async () => (await shown(page))?.connected);
    return page;
  };
  const shown = (/** @type {Page} */ page) => /** @type {Promise<Shown>} */ (page.evaluate("window.shown"));
  /** What a person does; what comes of it is looked at. @param {Page} page @param {string} what */
  const does = (page, what) => page.evaluate(`window.thread.${what}`);
  const said = (/** @type {any[]} */ messages) => messages.map(({ role, content }) => [role, content]);
  /** Waits until a page shows a thread at rest, as it is stored. @param {Page} page @param {string} id @param {number} count */
  const rests = async (page, id, count) => {
    /** @type {any} */
    let last;
    return until(
      `${count} messages as they are stored, and nothing under way`,
      async () => {
        const { messages, partial, pending, state } = await shown(page);
        const stored = await suite.client.send("GET", `/threads/${encodeURIComponent(`key:${id}`)}/messages?limit=100`).catch(() => undefined);
        last = { state, partial, pending, messages: said(messages), stored: said(stored?.json?.messages ?? []) };
        const isSame = isDeepStrictEqual(messages, stored?.json?.messages);
        return isSame && messages.length === count && state === "idle" && partial === null && pending.length === 0 && messages;
      },
      { withinMs: 45_000, everyMs: 100, describe: () => last },
    );
  };

  test("a text grows, ends, and is what is stored", async () => {
    const id = fresh();
    const page = await open("talker", id);
    await does(page, 'send("hello")');
    await until("it has begun", async () => (await shown(page)).partial);
    await disturb();
    const messages = await rests(page, id, 2);
    assert.deepEqual(said(messages), [["user", "hello"], ["assistant", LONG]]);
    const grown = /** @type {string[]} */ (await page.evaluate("window.grown"));
    assert.ok(grown.length >= 3, `${grown.length} steps`);
    assert.ok(grown.every((text) => LONG.startsWith(text)), "each is a beginning of it");
  });

  test("what is sent while the server is down is stored once", async () => {
    const id = fresh();
    const page = await open("talker", id);
    await does(page, 'send("one")');
    await until("it has begun", async () => (await shown(page)).partial);
    await suite.server.kill();
    const sent = does(page, 'send("two")');
    await sleep(500);
    await suite.server.up();
    await sent;
    await disturb();
    const messages = await rests(page, id, 4);
    assert.deepEqual(messages.filter(({ role }) => role === "user").map(({ content }) => content), ["one", "two"]);
  });

  test("two pages show the same, and what is said in one is in the other", async () => {
    const id = fresh();
    const [one, two] = [await open("talker", id), await open("talker", id)];
    await does(one, 'send("hello")');
    await until("both see it begin", async () => (await shown(one)).partial && (await shown(two)).partial);
    await disturb();
    assert.deepEqual(await rests(one, id, 2), await rests(two, id, 2));
    await does(two, 'send("and?")');
    await disturb();
    assert.deepEqual(await rests(one, id, 4), await rests(two, id, 4));
  });

  test("a page that has slept for half a minute shows what happened meanwhile", async () => {
    const id = fresh();
    const page = await open("talker", id);
    await does(page, 'send("hello")');
    await until("it has begun", async () => (await shown(page)).partial);
    const machine = await page.context().newCDPSession(page);
    await page.context().setOffline(true);
    await machine.send("Page.setWebLifecycleState", { state: "frozen" });
    const slept = sleep(ASLEEP_MS);
    await disturb();
    const thread = `/threads/${encodeURIComponent(`key:${id}`)}`;
    await until("the run ends", async () => (await suite.client.send("GET", thread)).json.thread.state === "idle", { withinMs: 45_000 });
    const more = await suite.client.send("POST", `${thread}/messages?wait=true`, { role: "user", content: "from elsewhere" });
    assert.equal(more.status, 200, more.text);
    await slept;
    await machine.send("Page.setWebLifecycleState", { state: "active" });
    await page.context().setOffline(false);
    const messages = await rests(page, id, 4);
    assert.deepEqual(said(messages), [["user", "hello"], ["assistant", LONG], ["user", "from elsewhere"], ["assistant", LONG]]);
  });

  test("what a person is asked is shown in all pages, and decided once", async () => {
    const id = fresh();
    const [one, two] = [await open("payer", id), await open("payer", id)];
    await does(one, 'send("pay")');
    const asks = async (/** @type {Page} */ page) => (await until("it is asked", async () => (await shown(page)).pending[0]));
    const [wait, other] = [await asks(one), await asks(two)];
    assert.deepEqual([wait.kind, wait.call.tool, other.id], ["approval", "pay", wait.id]);
    const calls = paid.received.length;
    const decided = does(one, "approve(window.thread.pending[0])");
    await disturb();
    await decided;
    const refused = await two.evaluate(`window.thread.deny(${JSON.stringify(wait.id)}, "no").then(() => "decided", (error) => error.code)`);
    assert.equal(refused, "conflict");
    const messages = await rests(one, id, 4);
    assert.deepEqual(await rests(two, id, 4), messages);
    assert.equal(messages.at(-1).content, "It is done.");
    const keys = new Set(paid.received.slice(calls).map(({ headers }) => headers["idempotency-key"]));
    assert.equal(keys.size, 1, "it is one call");
    assert.ok(killed || paid.received.length === calls + 1, "it ran once");
  });

  test("what was said is answered anew, and changed and answered, in all pages", async () => {
    const id = fresh();
    const [one, two] = [await open("counter", id), await open("counter", id)];
    await does(one, 'send("first")');
    const [asked, before] = await rests(one, id, 2);
    await does(one, "regenerate()");
    await disturb();
    await until("it is another answer", async () => (await shown(two)).messages[1]?.id !== before.id);
    const anew = await rests(one, id, 2);
    assert.deepEqual(await rests(two, id, 2), anew);
    assert.ok(anew[0].id === asked.id && anew[1].content !== before.content);
    const edited = does(two, `edit(${JSON.stringify(asked.id)}, "second")`);
    await disturb();
    await edited;
    await until("it is changed", async () => (await shown(one)).messages[0]?.content === "second");
    const changed = await rests(one, id, 2);
    assert.deepEqual(await rests(two, id, 2), changed);
    assert.notEqual(changed[1].content, anew[1].content);
  });

  test("a stop stops, and the next message is answered", async () => {
    const id = fresh();
    const page = await open("talker", id);
    await does(page, 'send("hello")');
    await until("it has begun", async () => (await shown(page)).partial);
    await does(page, "stop()");
    await until("it is stopped", async () => (await shown(page)).state === "stopped");
    assert.equal((await shown(page)).partial, null);
    await does(page, 'send("go on")');
    await disturb();
    const messages = await rests(page, id, 3);
    assert.equal(messages.at(-1).content, LONG);
  });
}
