// The inspector (docs/inspector.md), as people use it: in a browser, by what its parts are called, on a deployment with keys.
//
// BOBBIN_SCREENSHOTS names a folder for pictures of it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import { MOST_BYTES, inspector } from "../../scripts/inspector.mjs";
import { accessible, Browser } from "./support/browser.mjs";
import { exchange } from "./support/http.mjs";
import { say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */
/** @typedef {import("playwright-core").Page} Page */
/** @typedef {import("playwright-core").Locator} Locator */

const ADMIN = "key-of-the-admin";
const PICTURES = process.env.BOBBIN_SCREENSHOTS;

const browser = new Browser();
const bobbin = suite({
  key: ADMIN,
  vars: {
    BOBBIN_DEV: "0",
    BOBBIN_SURFACES: "chat, inspector",
    BOBBIN_API_KEYS: `${ADMIN}=admin`,
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-0123456789abcdef",
  },
});
before(() => browser.up());
after(() => browser.down());

/** @param {string} name @param {() => Promise<void>} body */
const test = (name, body) =>
  bobbin.test(name, async () => {
    try {
      await body();
      assert.deepEqual(browser.wrong, [], "the page does nothing that it should not");
    } finally {
      browser.wrong.length = 0;
      await browser.clear();
    }
  });

/** Does what a message says as JSON: calls, and then what came of them; other texts are said again. */
const does = (/** @type {any} */ { messages }) => {
  const last = messages.at(-1);
  if (last.role === "tool") return say(`It came to ${textOf(last)}`);
  const text = textOf(last);
  return text.startsWith('[{"') ? use(...JSON.parse(text)) : say(text.startsWith("slowly ") ? text.slice(7) : `You said: ${text}`, text.startsWith("slowly ") ? { chunks: 40, everyMs: 60 } : {});
};
const add = bobbin.tool("add", ({ args }) => String(Number(args.a) + Number(args.b)), {
  args: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
});
bobbin.tool("tell", ({ args }) => String(args.text), { args: { type: "object", properties: { text: { type: "string" } } } });
const clerk = bobbin.agent("clerk", does, { tools: ["add", "tell"], agent: { title: "The clerk" } });

/** A page of the inspector, with a key. @param {string} [place] @param {import("playwright-core").BrowserContextOptions} [options] */
async function opened(place = "#/", options = {}) {
  const page = await browser.open(`${bobbin.server.base}/inspector${place}`, { viewport: { width: 1280, height: 900 }, ...options });
  await page.getByLabel("Key").fill(ADMIN);
  await button(page, "Open").click();
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  return page;
}

/** @param {Page | Locator} within @param {string} name */
const button = (within, name) => within.getByRole("button", { name, exact: true });
/** The messages of the thread that is shown. @param {Page} page */
const talk = (page) => page.getByRole("log", { name: "Messages" });
/** What the shown thread is up to. @param {Page} page @param {string} words */
const isSaid = (page, words) => page.getByRole("region", { name: "Thread", exact: true }).getByText(words, { exact: true }).waitFor();
/** What the page looks like. @param {Page} page @param {string} name */
const picture = async (page, name) => void (PICTURES && (await page.screenshot({ path: join(PICTURES, `${name}.png`) })));

test("the page is one document without a foreign part, which lets nothing else in, and is small", async () => {
  const { html, policy, gzipped } = await inspector();
  assert.ok(gzipped <= MOST_BYTES, `${gzipped} bytes`);
  const answer = await exchange(bobbin.server.base, "GET", "/inspector");
  assert.equal(answer.status, 200);
  assert.equal(answer.text, html, "what is served is what the sources make");
  assert.equal(answer.headers["content-security-policy"], policy);
  for (const part of ["default-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]) assert.ok(policy.includes(part), part);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  assert.doesNotMatch(html.replace(/<script>.*<\/script>/s, ""), /<(?:script|link|img|iframe)[^>]*\s(?:src|href)=(?!"data:)/);
  const again = await exchange(bobbin.server.base, "GET", "/inspector", { headers: { "if-none-match": String(answer.headers.etag) } });
  assert.equal(again.status, 304);
  assert.equal((await exchange(bobbin.server.base, "POST", "/inspector", { body: "{}" })).status, 405);
  // The root is a development server's.
  assert.equal((await exchange(bobbin.server.base, "GET", "/", { headers: { accept: "text/html" } })).status, 404);
});

test("a page asks for a key where there are keys, keeps it for as long as the tab is open, and asks again when it is refused", async () => {
  const page = await browser.open(`${bobbin.server.base}/inspector`);
  await page.getByRole("heading", { name: "This server wants a key" }).waitFor();
  await accessible(page, "the door");
  await page.getByLabel("Key").fill("nonsense");
  await button(page, "Open").click();
  await page.getByRole("alert").getByText("The server does not take this key.").waitFor();
  await page.getByLabel("Key").fill(ADMIN);
  await button(page, "Open").click();
  await page.getByRole("heading", { name: "Threads" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Threads" }).waitFor();
  assert.equal(await page.evaluate("localStorage.length"), 0);
  assert.ok(browser.requests(page).every((url) => !url.includes(ADMIN)), "no address has the key");
});

test("a thread is begun, written to and followed; a call is folded into the reply that makes it", async () => {
  const page = await opened();
  await page.getByText("No threads yet").waitFor();
  await accessible(page, "no threads");
  await picture(page, "threads-empty");
  await button(page, "Begin a thread").click();
  const asked = page.getByRole("dialog", { name: "New thread" });
  await asked.getByRole("radio", { name: /The clerk/ }).check();
  await asked.getByLabel("Tags").fill("first, test");
  await accessible(page, "a new thread");
  await button(asked, "Begin").click();
  await page.getByRole("heading", { name: "The clerk" }).waitFor();
  await page.getByText("Nothing was said yet", { exact: true }).first().waitFor();
  await page.getByLabel("Message", { exact: true }).fill("hello **there**");
  await page.keyboard.press("Enter");
  await talk(page).getByRole("article", { name: "Assistant: You said: hello **there**" }).waitFor();
  assert.equal(await talk(page).getByRole("article").getByText("there", { exact: true }).first().evaluate((node) => node.tagName), "STRONG");

  await page.getByLabel("Message", { exact: true }).fill(JSON.stringify([{ name: "add", args: { a: 19, b: 23 } }]));
  await button(page, "Send").click();
  await talk(page).getByRole("article", { name: "Assistant: It came to 42" }).waitFor();
  const call = talk(page).getByRole("group").filter({ hasText: "add" }).first();
  await call.getByText("done").click();
  assert.match(await call.getByRole("group", { name: "Arguments of add" }).innerText(), /"a": 19,\s+"b": 23/);
  assert.equal(await call.getByRole("group", { name: "Result of add" }).innerText(), "42");
  assert.equal(add.received.length, 1);
  const listed = page.getByRole("region", { name: "Threads" }).getByRole("link", { name: /The clerk/ });
  await listed.getByText("It came to 42").waitFor();
  assert.equal(await listed.getAttribute("aria-current"), "true");
  await accessible(page, "a conversation");
  await picture(page, "conversation");

  // What only the model reads, and what is no user's.
  await page.getByLabel("As", { exact: true }).selectOption("system");
  await page.getByLabel("silent").check();
  await page.getByLabel("Message", { exact: true }).fill("Be brief.");
  await button(page, "Send").click();
  await talk(page).getByRole("article", { name: "System: Be brief." }).getByText("silent").waitFor();
});

test("a reply is shown as it is written, and stopped by a key; messages are edited, answered anew, deleted, and threads copied, terminated and deleted", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  const page = await opened(`#/t/${thread.id}`);
  await page.getByLabel("Message", { exact: true }).fill(`slowly ${"word ".repeat(40)}`);
  await button(page, "Send").click();
  await talk(page).getByRole("article", { name: "Reply being written" }).getByText("word word").waitFor();
  await isSaid(page, "Running");
  await talk(page).press(".");
  await isSaid(page, "Stopped");
  await thread.idle();

  await page.getByLabel("Message", { exact: true }).fill("one");
  await button(page, "Send").click();
  const said = (/** @type {string} */ name) => talk(page).getByRole("article", { name, exact: true });
  await said("Assistant: You said: one").waitFor();
  const more = async (/** @type {string} */ message, /** @type {string} */ act) => {
    const menu = said(message).getByRole("group").filter({ hasText: "Fork here" });
    await menu.locator("summary").click();
    await button(menu, act).click();
  };
  await more("User: one", "Edit");
  await said("User: one").getByLabel("Text of the message").fill("two");
  await button(said("User: one"), "Save, and answer anew").click();
  await said("Assistant: You said: two").waitFor();
  assert.equal(await said("Assistant: You said: one").count(), 0);
  await more("Assistant: You said: two", "Answer anew");
  await until("it is answered anew", async () => clerk.model.asked.filter(({ last }) => last === "two").length === 2);
  await thread.idle();
  await more("Assistant: You said: two", "Delete …");
  await button(page.getByRole("dialog", { name: "Delete this message?" }), "Delete").click();
  await said("Assistant: You said: two").waitFor({ state: "detached" });
  await more("User: two", "Fork here");
  await until("the page is at the copy", async () => !page.url().includes(thread.id));
  await said("User: two").waitFor();

  const act = async (/** @type {string} */ name) => {
    await page.getByRole("region", { name: "Thread", exact: true }).locator("summary[aria-label=More]").click();
    await button(page, name).click();
  };
  await act("Terminate …");
  await button(page.getByRole("dialog", { name: "Terminate this thread?" }), "Terminate").click();
  await page.getByText("This thread is terminated: it takes no more messages.").waitFor();
  await act("Delete …");
  await button(page.getByRole("dialog", { name: "Delete this thread?" }), "Delete").click();
  await page.getByRole("heading", { name: "The clerk" }).waitFor({ state: "detached" });
  await page.goto(`${bobbin.server.base}/inspector#/t/00000000-0000-4000-8000-000000000000`);
  await page.getByText("There is no such thread").waitFor();
});

/** Texts that would do something if they were anything but text. */
const CORPUS = [
  "<script>hit()</script>",
  "<img src=x onerror=hit()>",
  "<svg onload=hit()><animate onbegin=hit() attributeName=x></svg>",
  "\"><iframe srcdoc='<script>parent.hit()</script>'>",
  "'onmouseover=hit() autofocus onfocus=hit() x='",
  "[click](javascript:hit())",
  "[click](JaVaScRiPt:hit())",
  "[click](data:text/html,<script>hit()</script>)",
  "![x](https://evil.example/pixel.png)",
  "<https://evil.example/\"onclick=hit()>",
  "[a](https://evil.example/\"onmouseover=\"hit())",
  "```html\n<script>hit()</script>\n```",
  "| <img src=x onerror=hit()> | b |\n|---|---|\n| [x](vbscript:hit()) | <b>c</b> |",
  "> <style>*{display:none}</style>\n\n- <link rel=stylesheet href=//evil.example/x>",
  "{{constructor.constructor('hit()')()}} ${hit()} `${hit()}`",
  "&lt;b&gt; &amp; &#x3c;script&#x3e;hit()",
  "__proto__ **constructor** _toString_",
];

test("whatever models, tools and people write is text, in messages, results, tags and keys of threads", async () => {
  await bobbin.client.send("POST", "/threads", { agent_id: clerk.name, key: "<img/src=x/onerror=hit()>" });
  const thread = await bobbin.client.thread(clerk.name, { tags: CORPUS.slice(0, 5) });
  for (const text of CORPUS) {
    await thread.ask(text);
    await thread.ask(JSON.stringify([{ name: "tell", args: { text, [text]: text } }]));
  }
  const page = await opened(`#/t/${thread.id}`);
  await page.evaluate(() => Object.assign(globalThis, { hits: 0, hit: () => /** @type {any} */ (globalThis).hits++ }));
  await talk(page).getByRole("article", { name: /It came to __proto__/ }).waitFor();
  for (const fold of await talk(page).getByText("done", { exact: true }).all()) await fold.click();
  await page.getByRole("region", { name: "Threads" }).getByText(CORPUS[0] ?? "", { exact: true }).waitFor();
  const inside = await page.locator("main").locator("script, img, iframe, style, link, template, math, object, embed, [onclick], [onmouseover], [onerror]").count();
  assert.equal(inside, 0);
  const links = await talk(page).getByRole("link").evaluateAll((nodes) => nodes.map((node) => /** @type {any} */ (node)).filter(({ target }) => target === "_blank").map(({ protocol, rel }) => `${protocol} ${rel}`));
  assert.ok(links.length > 0 && links.every((link) => link === "https: noopener noreferrer nofollow"), links.join());
  const shown = await talk(page).innerText();
  for (const text of ["<script>hit()</script>", "<img src=x onerror=hit()>", "[click](javascript:hit())", "<b>c</b>", "&#x3c;script&#x3e;hit()"]) assert.ok(shown.includes(text), text);
  assert.equal(await page.evaluate(() => /** @type {any} */ (globalThis).hits), 0);
  const strangers = browser.requests(page).filter((url) => !url.startsWith(`${bobbin.server.base}/`) && !url.startsWith("data:"));
  assert.deepEqual(strangers, [], "nobody else was asked for anything");
});

test("the server is killed while a page is open: it connects again, the reply is made anew, and each message is there once", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  const page = await opened(`#/t/${thread.id}`);
  await page.getByLabel("Message", { exact: true }).fill(`slowly ${"thread ".repeat(40)}end`);
  await button(page, "Send").click();
  await talk(page).getByRole("article", { name: "Reply being written" }).getByText("thread thread").waitFor();
  await bobbin.server.down();
  await page.getByText("Connecting again …").waitFor();
  await bobbin.server.up();
  await talk(page).getByRole("article", { name: /^Assistant: thread thread/ }).waitFor();
  await page.getByText("Connecting again …").waitFor({ state: "detached" });
  await isSaid(page, "Idle");
  const names = await talk(page).getByRole("article").evaluateAll((nodes) => nodes.map((node) => node.getAttribute("aria-label")?.split(":")[0]));
  assert.deepEqual(names, ["User", "Assistant"]);
  await page.getByLabel("Message", { exact: true }).fill("still there?");
  await button(page, "Send").click();
  await talk(page).getByRole("article", { name: "Assistant: You said: still there?" }).waitFor();
});
