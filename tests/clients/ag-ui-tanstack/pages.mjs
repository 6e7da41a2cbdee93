// What a page with the client of TanStack AI must do, in a real browser: calm, and again with the server killed while it goes on, with
// the same assertions.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { Browser } from "../../worker/support/browser.mjs";
import { say, sayAndUse, use } from "../../worker/support/model.mjs";
import { chance, sleep, until } from "../../worker/support/poll.mjs";
import { Suite } from "../../worker/support/suite.mjs";
import { page as pageOf } from "../support/pages.mjs";

const KEY = "key-of-the-tests";
const LONG = Array.from({ length: 40 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {{ messages: any[], status: string, loading: boolean, interrupts: string[] }} Shown */

/** @param {boolean} killed */
export function pages(killed) {
  /** @type {Awaited<ReturnType<typeof pageOf>>} */
  let served;
  const browser = new Browser();
  const suite = new Suite({ key: KEY });
  const paid = suite.tool("pay", () => "paid", { approval: "always", idempotent: true });
  suite.tool("lookup", () => "found", { idempotent: true });
  suite.agent("talker", () => say(LONG, { chunks: 40, everyMs: 25 }));
  // Each attempt has other words: what was read of one that was lost does not hold.
  suite.agent("changer", ({ n }) => say(`${n}: ${LONG}`, { chunks: 40, everyMs: 25 }));
  suite.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(LONG, { chunks: 20, everyMs: 25 }) : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
    tools: ["lookup"],
  });
  suite.agent("payer", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(LONG, { chunks: 20, everyMs: 25 }) : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });

  before(async () => {
    served = await pageOf(fileURLToPath(new URL(".", import.meta.url)), "tanstack-page.js");
    suite.settings.vars = { BOBBIN_API_KEYS: `${KEY}=admin`, BOBBIN_ALLOWED_ORIGINS: served.origin, BOBBIN_SURFACES: "ag-ui" };
    await suite.up();
    await browser.up();
  });
  after(async () => {
    await browser.down();
    served?.close();
    await suite.down();
  });

  const name = (/** @type {string} */ text) => `tanstack in a browser${killed ? ", killed" : ""}: ${text}`;
  /** @param {string} text @param {() => Promise<void>} body */
  const test = (text, body) =>
    suite.test(name(text), () => browser.watched(body));
  const random = chance(name("kills"));
  /** In the twin the server dies somewhere in what follows. */
  const disturb = async () => {
    if (!killed) return;
    await sleep(random.between(0, 900));
    await suite.server.crash();
  };

  let made = 0;
  const fresh = () => `chat-${killed ? "k" : "c"}${(made += 1)}`;
  /** @param {string} agent @param {string} id */
  const open = async (agent, id) => {
    const hash = new URLSearchParams({ api: `${suite.server.base}/api/agents/${agent}/ag-ui`, id, key: KEY });
    const page = await browser.open(`${served.origin}/#${hash}`);
    await page.waitForFunction("window.shown");
    return page;
  };
  /** The page is read anew. @param {Page} page */
  const reload = async (page) => {
    await page.reload();
    await page.waitForFunction("window.shown");
  };
  const shown = (/** @type {Page} */ page) => /** @type {Promise<Shown>} */ (page.evaluate("window.shown()"));
  /** What a person does; what comes of it is looked at. @param {Page} page @param {string} what */
  const does = (page, what) => void page.evaluate(`void window.chat.${what}`).catch(() => {});
  /** @param {any[]} messages */
  const said = (messages) => messages.map(({ role, parts }) => [role, parts.map((/** @type {any} */ part) => (part.type === "text" ? part.content : part.type)).join("|")]);
  /** A page that was read while the server was down shows what it has got: it is read anew. @param {Page} page */
  const again = async (page) => {
    const { messages, loading } = await shown(page);
    if (!loading && messages.at(-1)?.role !== "assistant") await reload(page);
  };
  const thread = (/** @type {string} */ id) => `/threads/${encodeURIComponent(`key:${id}`)}`;
  /** Waits until a page shows exactly this, and nothing is under way there. @param {Page} page @param {string[][]} wanted @param {(page: Page) => Promise<void>} [meanwhile] */
  const rests = async (page, wanted, meanwhile = async () => {}) => {
    /** @type {any} */
    let last;
    await until(
      "the page shows what was said",
      async () => {
        await meanwhile(page);
        const { messages, loading, status } = await shown(page);
        last = { said: said(messages), loading, status, errors: await page.evaluate("window.errors") };
        return !loading && status === "ready" && JSON.stringify(said(messages)) === JSON.stringify(wanted);
      },
      { withinMs: 45_000, everyMs: 100, describe: () => last },
    );
  };
  /** It stays so, and it is what is stored. @param {Page} page @param {string} id @param {string[][]} wanted @param {string[]} stored @param {(page: Page) => Promise<void>} [meanwhile] */
  const settled = async (page, id, wanted, stored, meanwhile) => {
    await rests(page, wanted, meanwhile);
    if (!meanwhile) assert.deepEqual(await page.evaluate("window.errors"), [], "it has gone on by itself");
    const { json } = await suite.client.send("GET", `${thread(id)}/messages`);
    assert.deepEqual(json.messages.map((/** @type {any} */ { content }) => content ?? ""), stored, "nothing was said twice");
    await reload(page);
    await rests(page, wanted);
  };
  /** Waits until the last message has a text, of which some may be wanted. @param {Page} page @param {string} [some] */
  const begun = (page, some = "") =>
    until("it has begun", async () => said((await shown(page)).messages).at(-1)?.[1]?.includes(some) && said((await shown(page)).messages).at(-1)?.[0] === "assistant", { describe: () => some });

  test("a text grows, ends, and is what is stored", async () => {
    const id = fresh();
    const page = await open("talker", id);
    does(page, 'sendMessage("hello")');
    await begun(page);
    await disturb();
    await settled(page, id, [["user", "hello"], ["assistant", LONG]], ["hello", LONG]);
  });

  test("what was read of an attempt that was lost is taken back", async () => {
    const id = fresh();
    const page = await open("changer", id);
    does(page, 'sendMessage("hello")');
    await begun(page, "0 naïve");
    await disturb();
    const last = async () => (await suite.client.send("GET", `${thread(id)}/messages`)).json?.messages?.at(-1);
    const stored = await until("it is stored", async () => ((await last())?.role === "assistant" ? (await last()).content : ""), { withinMs: 45_000 });
    assert.match(stored, /^\d+: 0 naïve/);
    await settled(page, id, [["user", "hello"], ["assistant", stored]], ["hello", stored]);
  });

  test("a reply that is wanted anew takes the place of the other one", async () => {
    const id = fresh();
    const page = await open("changer", id);
    does(page, 'sendMessage("hello")');
    await begun(page, "39 naïve");
    const [first] = await until("it is whole", async () => ((await shown(page)).loading ? undefined : said((await shown(page)).messages).slice(1)));
    does(page, "reload()");
    await until("it is another one", async () => {
      const text = said((await shown(page)).messages)[1]?.[1] ?? "";
      return text.includes("0 naïve") && text.slice(0, 3) !== first?.[1]?.slice(0, 3);
    });
    await disturb();
    const rows = async () => (await suite.client.send("GET", `${thread(id)}/messages`)).json?.messages ?? [];
    const stored = await until("it is stored", async () => (await rows()).at(-1)?.role === "assistant" && (await rows()).at(-1).content, { withinMs: 45_000 });
    assert.notEqual(stored, first?.[1]);
    await settled(page, id, [["user", "hello"], ["assistant", stored]], ["hello", stored]);
  });

  test("a page that is read anew in the middle has one answer, the stored one", async () => {
    const id = fresh();
    const page = await open("talker", id);
    does(page, 'sendMessage("hello")');
    await begun(page);
    const disturbed = disturb();
    for (let times = 0; times < 5; times += 1) {
      await reload(page);
      await sleep(100);
    }
    await disturbed;
    await settled(page, id, [["user", "hello"], ["assistant", LONG]], ["hello", LONG], again);
  });

  test("a reply with a call goes on in its next one", async () => {
    const id = fresh();
    const page = await open("looker", id);
    does(page, 'sendMessage("look")');
    await begun(page, "One");
    await disturb();
    await settled(page, id, [["user", "look"], ["assistant", "One moment.|tool-call|tool-result"], ["assistant", LONG]], ["look", "One moment.", "found", LONG]);
  });

  test("what a person is asked is there after a reload, and the answer goes on", async () => {
    const id = fresh();
    const page = await open("payer", id);
    does(page, 'sendMessage("pay")');
    const asked = async () => (await shown(page)).interrupts.length === 1;
    await until("it is asked", asked);
    if (killed) await suite.server.crash();
    await reload(page);
    await until("it is asked still", asked);
    const calls = paid.received.length;
    does(page, "getInterrupts()[0].resolveInterrupt({ approved: true })");
    await begun(page, "0 ");
    await disturb();
    await settled(page, id, [["user", "pay"], ["assistant", "tool-call|tool-result"], ["assistant", LONG]], ["pay", "", "paid", LONG]);
    const keys = new Set(paid.received.slice(calls).map((call) => call.headers["idempotency-key"]));
    assert.equal(keys.size, 1, "it is one call");
  });
}
