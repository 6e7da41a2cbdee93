// The page of docs/approvals.md in a browser, by its accessible names, while others decide, the server crashes, and
// models send hostile texts.
//
// BOBBIN_SCREENSHOTS names a folder for screenshots.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import { accessible, Browser, PageServer } from "../worker/support/browser.mjs";
import { direct, finishes, sessionTools, subagent } from "../worker/support/family.mjs";
import { say, textOf, use } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";
import { callsOf } from "../worker/support/tool.mjs";

/** @typedef {import("../worker/support/client.mjs").Thread} Thread */
/** @typedef {import("playwright-core").Page} Page */
/** @typedef {import("playwright-core").Locator} Locator */

const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";
const PICTURES = process.env.BOBBIN_SCREENSHOTS;

const pages = new PageServer("docs/approvals.html");
const origin = await pages.listen();
const browser = new Browser();
const bobbin = suite({
  key: ADMIN,
  vars: {
    BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice`,
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
    BOBBIN_ALLOWED_ORIGINS: origin,
  },
});
before(() => browser.up());
after(async () => {
  await browser.down();
  pages.close();
});

/** @param {string} name @param {() => Promise<void>} body */
const test = (name, body) =>
  bobbin.test(name, () => browser.watched(body));

const args = { type: "object", properties: { amount: { type: "number" }, to: { type: "string" }, note: { type: "string" } }, required: ["amount", "to"] };
const pay = bobbin.tool("pay", ({ args }) => `paid ${args.amount} to ${args.to}`, {
  args,
  approval: { mode: "always", title: "Pay {{args.amount}} EUR to {{args.to}}", reason: "Payments are looked at by a person.", edit: ["amount", "note"] },
});
bobbin.tool("mail", () => "sent", {
  args: { type: "object", properties: {} },
  approval: { mode: "always", title: "Send {{args.subject}}", reason: "<b>Mails</b> leave the house & cannot be called back." },
});
bobbin.definitions.push(() =>
  bobbin.folder.write({ tools: { locate: { description: "Where the person is.", args: { type: "object", properties: {} }, run: { client: {} } } } }),
);

/** Makes the calls that the message lists as JSON, then repeats the result. */
const clerk = (/** @type {any} */ { messages }) => {
  const last = messages.at(-1);
  if (last.role === "tool") return say(`so: ${textOf(last)}`);
  return use(...JSON.parse(textOf(last)));
};
const cashier = bobbin.agent("cashier", clerk, { tools: ["pay", "mail", "ask_user", "locate", direct("assistant")], prompt: { parallelToolCalls: true } });
sessionTools(bobbin);
subagent(bobbin, "assistant", (asked) => (asked.messages.at(-1)?.role === "tool" ? finishes(() => textOf(asked.messages.at(-1)))(asked) : use({ name: "pay", args: { amount: 7, to: "Zoe" } })), {
  tools: ["pay"],
});

bobbin.tool("look", () => "seen");
const spender = bobbin.agent("spender", ({ body }) => (body.tools === undefined ? say("That is all.") : use({ name: "look", args: {} })), {
  tools: ["look"],
  agent: { budget: { run: { maxModelCalls: 2 } } },
});

const paying = (/** @type {number} */ amount, to = "Ann", more = {}) => ({ name: "pay", args: { amount, to, ...more } });

/** Creates a thread of Alice, and the address of its page. */
async function begun() {
  const thread = await bobbin.as(ALICE).thread(cashier.name);
  const minted = await bobbin.as(ALICE).send("POST", "/tokens", { scope: "owner:alice" });
  assert.equal(minted.status, 200, minted.text);
  return { thread, address: address({ thread: thread.id }, minted.json.token) };
}

/** @param {Record<string, string>} query @param {string} token */
const address = (query, token) => `${origin}/?${new URLSearchParams({ url: bobbin.server.base, ...query })}#token=${token}`;

/** @param {Thread} thread @param {...object} calls */
const asks = (thread, ...calls) => thread.accepted(JSON.stringify(calls));

/** @param {Page | Locator} within @param {string} name */
const button = (within, name) => within.getByRole("button", { name, exact: true });

/** Returns the open wait with this title. @param {Page} page @param {string} title */
const card = (page, title) => page.getByRole("article", { name: title, exact: true });

/** Returns the texts of closed waits. @param {Page} page */
const overs = (page) => page.getByRole("region", { name: "Over" }).getByRole("listitem").allInnerTexts();

/** @param {Thread} thread */
const waits = async (thread, query = "?state=all") => (await thread.send("GET", `/waits${query}`)).json.waits;

/** Waits until the thread has open waits, and returns them. @param {Thread} thread */
const asked = (thread) => until("somebody is asked", async () => ((await waits(thread, "")).length > 0 ? await waits(thread, "") : undefined));

test("a page lists what is asked; what is approved runs as it was changed, and what is denied does not", async () => {
  const { thread, address } = await begun();
  await asks(thread, paying(120, "Ann", { note: "rent" }));
  const page = await browser.open(address);
  const first = card(page, "Pay 120 EUR to Ann");
  await first.waitFor();
  assert.equal(await page.title(), "(1) Waiting for you");
  assert.match(await first.innerText(), /Approval.*ends in 7 days.*just now.*Payments are looked at by a person\..*Tool pay.*to\s+Ann/s);
  await page.getByLabel("Your name").fill("Bea");
  await page.getByLabel("Your name").blur();
  await first.getByRole("spinbutton", { name: "amount" }).fill("80");
  await first.getByText("was 120").waitFor();
  await button(first, "Approve with changes").click();
  await first.waitFor({ state: "detached" });
  await page.getByText("Nothing is waiting").waitFor();
  await thread.idle();
  assert.deepEqual(callsOf(pay, thread).map(({ args }) => args), [{ amount: 80, to: "Ann", note: "rent" }]);
  assert.match((await overs(page)).join(), /Approved\s*Pay 120 EUR to Ann\s*by you/);

  await asks(thread, paying(500, "Eve"));
  const second = card(page, "Pay 500 EUR to Eve");
  await second.getByRole("spinbutton", { name: "amount" }).fill("");
  await button(second, "Approve with changes").click();
  await second.getByRole("alert").getByText("is nothing of the kind").waitFor();
  await button(second, "Deny …").click();
  await second.getByRole("textbox", { name: "Why?" }).fill("too much");
  await button(second, "Deny").click();
  await second.waitFor({ state: "detached" });
  await thread.idle();
  assert.equal((await thread.messages()).at(-1).content, "so: Denied: too much");
  assert.equal(callsOf(pay, thread).length, 1);
  assert.deepEqual((await waits(thread)).map((/** @type {any} */ { decidedBy }) => [decidedBy.scope, decidedBy.actor]), [["owner:alice", "Bea"], ["owner:alice", "Bea"]]);
});

test("a page answers questions, by choice and in words, and carries out what is a client's", async () => {
  const { thread, address } = await begun();
  const page = await browser.open(address);
  await page.getByText("Nothing is waiting").waitFor();
  const says = async (/** @type {string} */ text) => {
    await thread.idle();
    assert.equal((await thread.messages()).at(-1).content, `so: ${text}`);
  };
  await asks(thread, { name: "ask_user", args: { question: "Tea or coffee?", choices: ["Tea", "Coffee"] } });
  await button(card(page, "Tea or coffee?"), "Coffee").click();
  await page.getByText("Nothing is waiting").waitFor();
  await says("Coffee");
  await asks(thread, { name: "ask_user", args: { question: "What else?", choices: ["Cake"] } });
  await card(page, "What else?").getByLabel("Or in your words").fill("Two pieces of\nbread");
  await button(card(page, "What else?"), "Answer").click();
  await page.getByText("Nothing is waiting").waitFor();
  await says("Two pieces of\nbread");
  await asks(thread, { name: "ask_user", args: { question: "And now?" } });
  await button(card(page, "And now?"), "Decline …").click();
  await button(card(page, "And now?"), "Decline").click();
  await page.getByText("Nothing is waiting").waitFor();
  await says("There is no answer: it was declined.");
  await asks(thread, { name: "locate", args: {} });
  await card(page, "Where the person is.").getByLabel("Result, as JSON or text").fill('{"city": "Bern"}');
  await button(card(page, "Where the person is."), "Send the result").click();
  await page.getByText("Nothing is waiting").waitFor();
  await says('{"city":"Bern"}');
});

test("a page shows what a budget has used, extends it, and ends the run otherwise", async () => {
  const minted = await bobbin.as(ALICE).send("POST", "/tokens", { scope: "owner:alice" });
  for (const [decided, said, outcome] of [["One last answer", "Finishing", "budget_finished"], ["Deny", "Denied", "budget_exceeded"]]) {
    const thread = await bobbin.as(ALICE).thread(spender.name);
    await thread.accepted("hello");
    const page = await browser.open(address({ thread: thread.id }, minted.json.token));
    const asked = card(page, "The budget of the run is used up");
    await asked.waitFor();
    assert.match(await asked.innerText(), /Budget.*ends|the run fails/s);
    assert.equal(await asked.getByRole("group", { name: "Limit" }).innerText(), "2 requests to models");
    assert.equal(await asked.getByRole("group", { name: "Used" }).innerText(), "2 requests to models");
    const add = asked.getByRole("spinbutton", { name: "Add, in requests to models" });
    assert.equal(await add.inputValue(), "2");
    await accessible(page, "a budget");
    await add.fill("0");
    await button(asked, "Extend").click();
    await asked.getByRole("alert").getByText("maxModelCalls").waitFor();
    await add.fill("1");
    await button(asked, "Extend").click();
    await page.getByText("Extended", { exact: true }).waitFor();
    // After another request it asks again.
    await until("it was asked", async () => (await waits(thread)).length === 2, { withinMs: 20_000 });
    await asked.waitFor();
    assert.equal(await asked.getByRole("group", { name: "Limit" }).innerText(), "3 requests to models");
    await button(asked, decided ?? "").click();
    await page.getByText("Nothing is waiting").waitFor();
    assert.match((await overs(page)).join("|"), new RegExp(`${said}.*Extended`, "s"));
    await thread.idle();
    assert.equal((await thread.send("GET", "/runs")).json.runs[0].reason, outcome);
    await browser.clear();
  }
});

test("a page is live over one stream: what opens appears, what others decide goes, and what was typed stays", async () => {
  const { thread, address } = await begun();
  const page = await browser.open(address);
  await page.getByText("Nothing is waiting").waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await asks(thread, paying(1), paying(2), { name: "ask_user", args: { question: "Which?" } });
  await card(page, "Which?").waitFor();
  const titles = await page.getByRole("article").getByRole("heading").allInnerTexts();
  assert.deepEqual(titles, ["Pay 1 EUR to Ann", "Pay 2 EUR to Ann", "Which?"]);
  const note = card(page, "Pay 2 EUR to Ann").getByRole("textbox", { name: "note" });
  await note.fill("half a th");
  const [which, , one] = await asked(thread);
  for (const [wait, decision] of /** @type {[any, object][]} */ ([[one, { decision: "approve" }], [which, { decision: "answer", text: "both" }]])) {
    assert.equal((await thread.send("POST", `/waits/${wait.id}`, decision)).status, 200);
  }
  await card(page, "Pay 1 EUR to Ann").waitFor({ state: "detached" });
  await card(page, "Which?").waitFor({ state: "detached" });
  assert.equal(await note.inputValue(), "half a th");
  assert.equal(await page.locator(":focus").inputValue(), "half a th", "who types is not interrupted");
  const said = (await overs(page)).join("|");
  assert.match(said, /Approved\s*Pay 1 EUR to Ann\s*by somebody else/);
  assert.match(said, /Answered\s*Which\?\s*by somebody else/);
  await note.pressSequentially("ought");
  await button(card(page, "Pay 2 EUR to Ann"), "Approve with changes").click();
  await page.getByText("Nothing is waiting").waitFor();
  await thread.idle();
  assert.equal(callsOf(pay, thread).at(-1)?.args.note, "half a thought");
  assert.equal(browser.requests(page).filter((url) => url.includes("/events")).length, 1, "one stream");

  // Two pages decide at the same time. One succeeds, and the other shows the decision.
  const other = await browser.open(address);
  await other.route(/\/events/, (route) => route.abort());
  await other.reload();
  await asks(thread, paying(3));
  await card(page, "Pay 3 EUR to Ann").waitFor();
  await other.reload();
  await card(other, "Pay 3 EUR to Ann").waitFor();
  await button(card(page, "Pay 3 EUR to Ann"), "Approve").click();
  await card(page, "Pay 3 EUR to Ann").waitFor({ state: "detached" });
  await button(card(other, "Pay 3 EUR to Ann"), "Approve").click();
  await card(other, "Pay 3 EUR to Ann").waitFor({ state: "detached" });
  assert.match((await overs(other)).join(), /Approved\s*Pay 3 EUR to Ann\s*by somebody else/);
  await thread.idle();
  assert.equal(callsOf(pay, thread).filter(({ args }) => args.amount === 3).length, 1);
});

test("a page decides all calls of one reply together, and those of a thread below", async () => {
  const { thread, address } = await begun();
  const page = await browser.open(address);
  await asks(thread, paying(10), paying(20), paying(30));
  await page.getByText("3 calls of one reply").waitFor();
  await card(page, "Pay 20 EUR to Ann").getByRole("spinbutton", { name: "amount" }).fill("25");
  await button(page, "Approve all").click();
  await page.getByText("Nothing is waiting").waitFor();
  await thread.idle();
  assert.deepEqual(callsOf(pay, thread).map(({ args }) => args.amount), [10, 25, 30]);
  await asks(thread, paying(11), paying(12));
  await button(page, "Deny all").click();
  await page.getByText("Nothing is waiting").waitFor();
  await thread.idle();
  assert.equal(callsOf(pay, thread).length, 3);

  await asks(thread, { name: "assistant", args: { task: "Pay Zoe." } });
  const child = card(page, "Pay 7 EUR to Zoe");
  // The stream of the parent thread reports it. The page does not poll.
  await child.waitFor();
  await button(child, "Approve").click();
  await page.getByText("Nothing is waiting").waitFor();
  await until("the child has answered", async () => (await thread.messages()).at(-1).content?.startsWith("so: "), { withinMs: 20_000 });
  assert.equal(pay.received.filter(({ args }) => args.to === "Zoe").length, 1);
});

/** Texts that would have an effect if they were not treated as text. */
const CORPUS = [
  "<script>hit()</script>",
  "<img src=x onerror=hit()>",
  "<svg onload=hit()><animate onbegin=hit() attributeName=x></svg>",
  "\"><iframe srcdoc='<script>parent.hit()</script>'>",
  "'onmouseover=hit() autofocus onfocus=hit() x='",
  "</h2></article></main><form action=javascript:hit()><button>Approve</button></form>",
  "<a href=\"javascript:hit()\">click</a>",
  "javascript:hit()",
  "{{constructor.constructor('hit()')()}} ${hit()} `${hit()}`",
  "<style>*{display:none}</style><link rel=stylesheet href=//evil.example/x>",
  "<template><img src=//evil.example/y></template><!--",
  "&lt;b&gt; &amp; &#x3c;script&#x3e;hit()",
  "<math><mi xlink:href=javascript:hit()>",
  "__proto__",
];

test("whatever models, tools and people write is shown as text", async () => {
  const { thread, address } = await begun();
  const page = await browser.open(address);
  await page.evaluate(() => Object.assign(globalThis, { hits: 0, hit: () => /** @type {any} */ (globalThis).hits++ }));
  for (const text of CORPUS) {
    // A title, and arguments by name and value, one of them editable; and a question with its choices.
    await asks(thread, paying(1, text, { note: text }), { name: "mail", args: { subject: text, [text]: { [text]: [text] } } }, { name: "ask_user", args: { question: text, choices: [text, "no"] } });
    const paid = card(page, `Pay 1 EUR to ${text}`);
    await paid.waitFor();
    assert.equal(await paid.getByRole("group", { name: "to", exact: true }).innerText(), text);
    assert.equal(await paid.getByRole("textbox", { name: "note" }).inputValue(), text);
    const sent = card(page, `Send ${text}`);
    assert.match(await sent.innerText(), /<b>Mails<\/b> leave the house & cannot be called back\./);
    assert.ok((await sent.innerText()).includes(JSON.stringify({ [text]: [text] }, null, 2)), text);
    const question = page.getByRole("article").filter({ has: button(page, "no") });
    assert.equal(await question.getByRole("heading").innerText(), text);
    assert.equal(await question.getByRole("group").getByRole("button").first().innerText(), text);
    const inside = await page.locator("main").locator("script, img, iframe, a, style, link, template, math, object, embed").count();
    assert.equal(inside, 0, `${text} became elements`);
    await button(question, "no").click();
    await question.waitFor({ state: "detached" });
    await button(page, "Deny all").click();
    await page.getByText("Nothing is waiting").waitFor();
    assert.ok((await overs(page)).some((line) => line.includes(`Pay 1 EUR to ${text}`)), text);
    await thread.idle();
  }
  // A payment must not be disguised as another one.
  await asks(thread, paying(1, "\u202e001 EUR to Bob\u202c \u200bAnn\u0007"));
  await card(page, "Pay 1 EUR to ⟨U+202E⟩001 EUR to Bob⟨U+202C⟩ ⟨U+200B⟩Ann⟨U+0007⟩").waitFor();
  assert.equal(await page.evaluate(() => /** @type {any} */ (globalThis).hits), 0);
  const strangers = browser.requests(page).filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith(`${bobbin.server.base}/`) && !url.startsWith("data:"));
  assert.deepEqual(strangers, [], "nobody else was asked for anything");
});

test("the server dies and comes back while a page is open: it goes on by itself, and what is decided is decided once", async () => {
  const { thread, address } = await begun();
  const page = await browser.open(address);
  await asks(thread, paying(41), paying(42), paying(43));
  const [third, second, first] = ["Pay 43 EUR to Ann", "Pay 42 EUR to Ann", "Pay 41 EUR to Ann"].map((title) => card(page, title));
  assert.ok(first && second && third);
  await third.waitFor();
  await second.getByRole("textbox", { name: "note" }).fill("kept");
  await bobbin.server.down();
  await page.getByText("Reconnecting …").waitFor();
  await button(first, "Approve").click();
  await first.getByRole("alert").getByText("The server cannot be reached.").waitFor();
  await bobbin.server.up();
  // Someone else decides before the stream reports the wait.
  const [last] = await asked(thread);
  assert.equal((await thread.send("POST", `/waits/${last.id}`, { decision: "deny" })).status, 200);
  await third.waitFor({ state: "detached" });
  await page.getByText("Live", { exact: true }).waitFor();
  assert.equal(await second.getByRole("textbox", { name: "note" }).inputValue(), "kept");
  assert.match((await overs(page)).join(), /Denied\s*Pay 43 EUR to Ann/);
  assert.equal(await first.count(), 1);
  await button(first, "Approve").click();
  await first.waitFor({ state: "detached" });
  // Kill the server during the decision. Without a response the decision is sent again.
  await Promise.all([bobbin.server.crash(), button(second, "Approve with changes").click()]);
  await page.getByText("Live", { exact: true }).waitFor();
  if ((await second.count()) > 0) await button(second, "Approve with changes").click({ timeout: 5_000 }).catch(() => {});
  await second.waitFor({ state: "detached" });
  await page.getByText("Nothing is waiting").waitFor();
  await thread.idle(60_000);
  const found = (await waits(thread)).map((/** @type {any} */ { state, decision }) => [state, decision]);
  assert.deepEqual(found, [["decided", "deny"], ["decided", "approve"], ["decided", "approve"]]);
  const amounts = callsOf(pay, thread).map(({ args }) => args.amount);
  assert.deepEqual(amounts, [...new Set(amounts)], "no call twice");
  // Its stream works, too.
  await asks(thread, paying(44));
  await card(page, "Pay 44 EUR to Ann").waitFor();
});

test("a link shows one question and decides it, days later, and says so when it is over or not valid", async () => {
  const { thread } = await begun();
  await asks(thread, paying(9), paying(8));
  const [eight, nine] = await asked(thread);
  const link = async (/** @type {any} */ wait) => {
    const minted = await bobbin.as(ALICE).send("POST", "/tokens", { scope: `wait:${thread.id}/${wait.id}`, ttl: 604_800 });
    return minted.json.token;
  };
  const [ours, other] = [await link(nine), await link(eight)];
  await bobbin.server.crash();
  const page = await browser.open(address({ thread: thread.id, wait: nine.id }, ours));
  await card(page, "Pay 9 EUR to Ann").waitFor();
  assert.equal(await page.getByRole("article").count(), 1);
  await button(card(page, "Pay 9 EUR to Ann"), "Approve").click();
  await page.getByText("This question is over.").waitFor();
  await page.reload();
  await page.getByText("This question is over.").waitFor();
  assert.match((await overs(page)).join(), /Approved\s*Pay 9 EUR to Ann/);
  for (const [token, says] of [[`${ours}x`, "token"], [other, "There is no such thread"]]) {
    const refused = await browser.open(address({ thread: thread.id, wait: nine.id }, token ?? ""));
    await refused.getByRole("alert").getByText(says ?? "").waitFor();
    assert.equal(await refused.getByRole("article").count(), 0);
  }
  // A token for the thread may see a wait of its owner but not decide it.
  const minted = await bobbin.as(ALICE).send("POST", "/tokens", { scope: `thread:${thread.id}` });
  const guest = await browser.open(address({ thread: thread.id }, minted.json.token));
  await button(card(guest, "Pay 8 EUR to Ann"), "Approve").click();
  await card(guest, "Pay 8 EUR to Ann").getByRole("alert").getByText("This is for the thread's owner to decide.").waitFor();
  assert.equal((await waits(thread, "")).length, 1);
});

/** Takes a screenshot. @param {Page} page @param {string} name */
const picture = async (page, name) => void (PICTURES && (await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true })));

test("a page can be used without a mouse, by who hears it, in the dark, and on a small screen", async () => {
  const { thread, address } = await begun();
  await asks(
    thread,
    paying(120, "Ann", { note: "Rent for November, with the deposit for the keys that were lost in spring, as agreed on the phone" }),
    { name: "mail", args: { subject: "the minutes of the meeting", to: ["ann@example.com", "bob@example.com"], attachments: { "minutes.pdf": { pages: 12 } }, link: `https://example.com/${"long/".repeat(30)}` } },
    { name: "ask_user", args: { question: "Which of the two offers should I accept?", choices: ["The cheaper one, which comes in three weeks", "The one that is there tomorrow"] } },
    { name: "locate", args: {} },
  );
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    for (const width of [320, 768, 1280]) {
      const page = await browser.open(address, { colorScheme, viewport: { width, height: 900 } });
      await card(page, "Where the person is.").waitFor();
      await button(card(page, "Send the minutes of the meeting"), "Deny …").click();
      await card(page, "Pay 120 EUR to Ann").getByRole("spinbutton", { name: "amount" }).fill("80");
      const wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
      assert.equal(wide, 0, `at ${width} pixels nothing has to be moved to the side`);
      await accessible(page, `${colorScheme}, ${width}`);
      await picture(page, `${colorScheme}-${width}`);
      await browser.clear();
    }
    const connect = await browser.open(`${origin}/`, { colorScheme, viewport: { width: 768, height: 700 } });
    await connect.getByLabel("Thread").waitFor();
    await accessible(connect, `${colorScheme}, no thread`);
    await picture(connect, `${colorScheme}-connect`);
    await connect.getByLabel("Thread").fill(thread.id);
    await connect.getByLabel("Server").fill(bobbin.server.base);
    await connect.getByLabel("Token").fill("bbt_nonsense");
    await button(connect, "Show").click();
    await connect.getByRole("alert").getByText("The token is not valid.").waitFor();
    await accessible(connect, `${colorScheme}, refused`);
    await picture(connect, `${colorScheme}-refused`);
    // The page asks for another token.
    await connect.getByLabel("Token").fill(new URL(address).hash.replace("#token=", ""));
    await button(connect, "Show").click();
    await card(connect, "Where the person is.").waitFor();
  }

  const page = await browser.open(address);
  const first = card(page, "Pay 120 EUR to Ann");
  await first.getByRole("spinbutton", { name: "amount" }).focus();
  const focused = () => page.locator(":focus").textContent();
  const reach = async (/** @type {string} */ name) => {
    for (let presses = 0; presses < 12; presses++) {
      await page.keyboard.press("Tab");
      if ((await focused()) === name) return;
    }
    assert.fail(`no way to “${name}” with the keyboard`);
  };
  await reach("Deny …");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  assert.equal(await focused(), "Deny …", "back where it was");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await first.waitFor({ state: "detached" });
  assert.equal(await focused(), "Send the minutes of the meeting", "on to the next one");
  for (const title of ["Send the minutes of the meeting", "Where the person is."]) {
    await button(card(page, title), title.startsWith("Send") ? "Deny …" : "Decline …").click();
    await button(card(page, title), title.startsWith("Send") ? "Deny" : "Decline").press("Enter");
    await card(page, title).waitFor({ state: "detached" });
  }
  await button(card(page, "Which of the two offers should I accept?"), "The one that is there tomorrow").press("Enter");
  await page.getByText("Nothing is waiting").waitFor();
  await accessible(page, "nothing is open");
  await picture(page, "nothing");
  await thread.idle();
});
