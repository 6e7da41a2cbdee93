// The inspector (docs/inspector.md) in a browser, by its accessible names, on a deployment with keys.
//
// BOBBIN_SCREENSHOTS names a folder for screenshots.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { MOST_BYTES, inspector } from "../../scripts/inspector.mjs";
import { accessible, Browser } from "../worker/support/browser.mjs";
import { exchange, wholeBody } from "../worker/support/http.mjs";
import { refuse, say, textOf, use } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

/** @typedef {import("../worker/support/client.mjs").Thread} Thread */
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
  bobbin.test(name, () => browser.watched(body));

/** Makes the calls that a message lists as JSON, then repeats the result. Other texts are repeated. */
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
bobbin.tool("pay", ({ args }) => `paid ${args.amount} to ${args.to}`, {
  args: { type: "object", properties: { amount: { type: "number" }, to: { type: "string" } }, required: ["amount", "to"] },
  approval: { mode: "always", title: "Pay {{args.amount}} EUR to {{args.to}}", edit: ["amount"] },
});
const clerk = bobbin.agent("clerk", does, { tools: ["add", "tell", "pay", "ask_user"], agent: { title: "The clerk", exposeAsTool: true, toolDescription: "Takes over.", env: { MOOD: "calm" }, variables: [{ name: "MOOD", type: "text", required: true, description: "How it is." }] } });
const ring = bobbin.effect("ring", () => "rung");
bobbin.definitions.push(() => bobbin.folder.write({ agents: { duo: { type: "dual_ai", maxSessionTurns: 3, sideA: { prompt: "clerk_prompt" }, sideB: { prompt: "moody_prompt" } } } }));
/** An agent that hands off to another one. Its fallback model has no key. */
bobbin.agent("desk", does, { tools: ["clerk"], agent: { title: "The desk" }, model: { fallbacks: ["keyless"] } });
bobbin.definitions.push(() => bobbin.folder.write({ models: { keyless: { provider: "openai", model: "none", apiKeyEnv: "OTHER_KEY" } } }));
/** Fails on the first request. */
const moody = bobbin.agent("moody", ({ n, last }) => (n === 1 ? refuse(503) : say(`You said: ${last}`)), { system: "You are moody.\nYou are brief." });

/** An MCP server: `ask` sends a form, `visit` a URL. */
const peer = http.createServer(async (request, response) => {
  const { id, params } = JSON.parse(String(await wholeBody(request)));
  const asks = {
    ask: { message: "Who are you?\u202e", mode: "form", requestedSchema: { type: "object", properties: { name: { type: "string", title: "Name" }, size: { type: "string", enum: ["small", "large"], default: "small" }, sure: { type: "boolean", default: true } }, required: ["name"] } },
    visit: { message: "Confirm it there.", mode: "url", url: "https://example.com/confirm" },
  };
  const asked = { resultType: "input_required", inputRequests: { it: { method: "elicitation/create", params: asks[/** @type {"ask"} */ (params.name)] } }, requestState: "s" };
  const result = params.inputResponses ? { resultType: "complete", content: [{ type: "text", text: JSON.stringify(params.inputResponses.it) }] } : asked;
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
});
await once(peer.listen(0, "127.0.0.1"), "listening");
after(() => peer.close());
bobbin.definitions.push(() => {
  const { port } = /** @type {import("node:net").AddressInfo} */ (peer.address());
  bobbin.folder.json("mcp/peer.json", { url: `http://127.0.0.1:${port}/mcp`, approval: { visit: "never" } });
  const schema = { type: "object", properties: {} };
  bobbin.folder.json("mcp/peer.tools.json", { protocol: "2026-07-28", server: { name: "The peer", version: "1.0" }, tools: ["ask", "visit"].map((name) => ({ name, description: `It can ${name}.`, inputSchema: schema })) });
});
bobbin.agent("asker", does, { tools: ["mcp:peer"], agent: { title: "The asker" } });

/** Opens a page of the inspector with a key. @param {string} [place] */
async function opened(place = "#/") {
  const page = await browser.open(`${bobbin.server.base}/inspector${place}`, { viewport: { width: 1280, height: 900 } });
  await page.getByLabel("Key").fill(ADMIN);
  await button(page, "Open").click();
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  return page;
}

/** @param {Page | Locator} within @param {string} name */
const button = (within, name) => within.getByRole("button", { name, exact: true });
/** Returns the messages of the shown thread. @param {Page} page */
const talk = (page) => page.getByRole("log", { name: "Messages" });
/** Returns the status text of the shown thread. @param {Page} page @param {string} words */
const isSaid = (page, words) => page.getByRole("region", { name: "Thread", exact: true }).getByText(words, { exact: true }).waitFor();
/** Takes a screenshot. @param {Page} page @param {string} name */
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
  // Only a development server has the root page.
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
  await page.getByText("No messages yet", { exact: true }).first().waitFor();
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

  const head = page.getByRole("region", { name: "Thread", exact: true });
  const saved = async (/** @type {string} */ label) => {
    await head.locator("summary[aria-label=More]").click();
    const [download] = await Promise.all([page.waitForEvent("download"), button(head, label).click()]);
    await page.keyboard.press("Escape");
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
  };
  const { name, text } = await saved("Save as test");
  const { agent, model, stubs, turns } = JSON.parse(text);
  assert.deepEqual([name, agent, model.script.length, turns.length], ["clerk.test.json", "clerk", 3, 2]);
  assert.deepEqual(stubs, [{ tool: "add", match: { a: { const: 19 }, b: { const: 23 } }, outcome: { response: 42 } }]);
  assert.deepEqual(turns[1].expect, [{ called: "add", times: 1 }, { reply: { equals: "It came to 42" } }]);
  const rows = (await saved("Export")).text.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual([...new Set(rows.map(({ row }) => row))], ["thread", "message", "log"]);

  // A message that only the model reads, with a role other than user.
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
    // The page may just receive another message in this one's place, which has its own menu.
    await until(`“${act}” is chosen`, async () => {
      await menu.locator("summary").click();
      return button(menu, act).click({ timeout: 5_000 }).then(() => true, () => false);
    }, { withinMs: 60_000 });
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

test("a step shows what the model was sent, byte for byte what it was, and how it differs from the step before", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  const before = clerk.model.asked.length;
  await thread.ask("What is two and two?");
  await thread.ask(JSON.stringify([{ name: "add", args: { a: 2, b: 2 } }]));
  await thread.send("POST", "/messages", { role: "system", content: "Say it in French." });
  await thread.ask(`Thanks. ${"Very_much_".repeat(300)}`);
  const replies = (await thread.messages()).filter(({ role }) => role === "assistant");
  const sent = clerk.model.asked.slice(before);
  assert.deepEqual([replies.length, sent.length], [4, 4]);
  for (const [at, { id }] of replies.entries()) {
    const { status, json } = await thread.send("GET", `/steps/${id}/request`);
    assert.deepEqual([status, json.source, json.prompt, json.model], [200, "rebuilt", "clerk_prompt", "clerk_model"], `reply ${at}`);
    const { messages, tools } = sent[at]?.body ?? {};
    assert.deepEqual({ messages: json.body.messages, tools: json.body.tools }, { messages, tools }, `reply ${at} is what was sent`);
    assert.equal(json.messages, messages.length);
  }
  // The same size as in the next request, which has the same prompt and tools.
  const { tokens } = (await thread.send("GET", `/steps/${replies.at(-1).id}/request`)).json;
  const { parts } = (await thread.send("GET", "/context")).json;
  assert.deepEqual([tokens.system, tokens.tools], [parts.system, parts.tools]);
  assert.ok(tokens.messages > 300, JSON.stringify(tokens));
  const last = replies.at(-1).id;
  // Prompts belong to the application: owners and pages of a thread see the messages, not the prompts.
  const [told, pages] = await Promise.all(["owner:alice", `thread:${thread.id}`].map((scope) => bobbin.client.send("POST", "/tokens", { scope })));
  assert.equal((await bobbin.as(pages?.json.token).send("GET", `/threads/${thread.id}/steps/${last}/request`)).status, 403);
  assert.equal((await bobbin.as(told?.json.token).send("GET", `/threads/${thread.id}/steps/${last}/request`)).status, 404);
  const first = (await thread.messages())[0].id;
  assert.equal((await thread.send("GET", `/steps/${first}/request`)).status, 404, "nobody was asked for what a person has said");

  const page = await opened(`#/t/${thread.id}/${last}`);
  const step = page.getByRole("region", { name: "Step", exact: true });
  await step.getByText("Rebuilt", { exact: true }).waitFor();
  assert.match(await step.getByRole("region", { name: "Since the step before" }).innerText(), /3 messages more/);
  assert.equal(await step.getByRole("group", { name: "System prompt" }).innerText(), "You are clerk.");
  await step.getByText("Say it in French.").first().waitFor();
  await step.getByText("Tools", { exact: true }).last().click();
  await step.getByText("add", { exact: true }).click();
  assert.match(await step.getByRole("group", { name: "Schema of add" }).innerText(), /"required": \[\s+"a",\s+"b"/);
  assert.ok(await step.getByText(`about ${parts.tools} tokens`).isVisible());
  // The column keeps its width, however long a line of a message is.
  assert.deepEqual(await step.locator(".inside").evaluate((inside) => [inside, inside.ownerDocument.documentElement].map((part) => part.scrollWidth <= part.clientWidth)), [true, true]);
  await accessible(page, "a step");
  await picture(page, "step");
  await button(step, "The step before").click();
  await step.getByText("2 messages more").waitFor();
  assert.ok(page.url().endsWith(replies.at(-2).id), "each step has an address");
  await step.getByRole("link", { name: "Close the step" }).click();
  await step.waitFor({ state: "detached" });
});

test("attempts that failed are listed with their step, and drawn on the timeline; what was lost is a gap that says so", async () => {
  const thread = await bobbin.client.thread(moody.name);
  await thread.ask("hello");
  const [{ id }] = (await thread.messages()).filter(({ role }) => role === "assistant");
  const page = await opened(`#/t/${thread.id}/${id}`);
  const attempts = page.getByRole("list", { name: "Attempts" }).getByRole("listitem");
  await attempts.nth(1).waitFor();
  assert.deepEqual((await attempts.allInnerTexts()).map((text) => /Failed|Completed/.exec(text)?.[0]), ["Failed", "Completed"]);
  await page.getByRole("link", { name: "Timeline" }).click();
  const bars = page.getByRole("region", { name: "Thread", exact: true }).getByRole("listitem");
  await bars.filter({ hasText: "moody_model" }).nth(1).waitFor();
  await accessible(page, "a timeline");

  const slow = await bobbin.client.thread(clerk.name);
  const asked = clerk.model.asked.length;
  await slow.accepted(`slowly ${"thread ".repeat(60)}`);
  await clerk.model.request(asked + 1);
  await bobbin.server.crash();
  await slow.idle();
  await page.goto(`${bobbin.server.base}/inspector#/t/${slow.id}/timeline`);
  await page.getByText(/^recovered after [\d.]+ m?s$/).waitFor();
  await page.getByText("recovered", { exact: true }).waitFor();
  await picture(page, "timeline");
});

test("two models that talk to each other stand on two sides, each reply with its step", async () => {
  const thread = await bobbin.client.thread("duo");
  const before = [clerk, moody].map(({ model }) => model.asked.length);
  await thread.ask("Is it so?");
  const replies = (await thread.messages()).filter(({ metadata }) => metadata.prompt !== undefined);
  assert.deepEqual(replies.map(({ role }) => role), ["assistant", "user", "assistant"]);
  const sent = [clerk, moody, clerk].map(({ model }, at) => model.asked.slice(before[at % 2])[at === 2 ? 1 : 0]?.body);
  for (const [at, { id }] of replies.entries()) {
    const { json } = await thread.send("GET", `/steps/${id}/request`);
    assert.deepEqual(json.body.messages, sent[at]?.messages, `reply ${at} is what was sent`);
  }
  const page = await opened(`#/t/${thread.id}`);
  const [left, right] = [talk(page).getByRole("article", { name: /^Side A: You said: Is it so/ }), talk(page).getByRole("article", { name: /^Side B: You said: You said/ })];
  const [a, b] = [await left.boundingBox(), await right.boundingBox()];
  assert.ok(a && b && a.x + a.width <= b.x, "side B stands right of side A");
  await right.getByRole("link", { name: /^Step of/ }).click();
  await page.getByRole("region", { name: "Step", exact: true }).getByText("You are moody.").first().waitFor();
});

test("what all threads ask is listed, and answered where it is shown", async () => {
  const [thread, other] = [await bobbin.client.thread(clerk.name), await bobbin.client.thread(clerk.name, { user_id: "alice" })];
  await thread.accepted(JSON.stringify([{ name: "pay", args: { amount: 120, to: "Ann" } }]));
  await other.accepted(JSON.stringify([{ name: "ask_user", args: { question: "Tea or coffee?", choices: ["Tea", "Coffee"] } }]));
  const page = await opened("#/waiting");
  const pay = page.getByRole("article", { name: "Pay 120 EUR to Ann" });
  const question = page.getByRole("article", { name: "Tea or coffee?" });
  await Promise.all([pay.waitFor(), question.waitFor()]);
  await pay.getByText("The clerk").waitFor();
  await pay.getByRole("blockquote").getByText('"name":"pay"').waitFor();
  await question.getByText("for alice").waitFor();
  await accessible(page, "what waits");
  await picture(page, "waiting");
  await pay.getByLabel("amount").fill("80");
  await pay.getByText("was 120").waitFor();
  await button(pay, "Approve with changes").click();
  await pay.waitFor({ state: "detached" });
  await button(question, "Coffee").click();
  await question.waitFor({ state: "detached" });
  await page.getByText("Nothing is waiting").waitFor();
  await accessible(page, "nothing waits");
  await Promise.all([thread.idle(), other.idle()]);
  assert.equal((await thread.messages()).at(-1).content, `It came to [Approved with changes: {"amount":80}]\npaid 80 to Ann`);
  assert.equal((await other.messages()).at(-1).content, "It came to Coffee");

  // The open thread shows it, too, and expands it at once.
  await page.goto(`${bobbin.server.base}/inspector#/t/${thread.id}`);
  await thread.accepted(JSON.stringify([{ name: "pay", args: { amount: 7, to: "Zoe" } }]));
  const here = page.getByRole("article", { name: "Pay 7 EUR to Zoe" });
  assert.equal(await here.getByRole("link", { name: "Open its thread" }).count(), 0, "it stands in its thread");
  await button(here, "Deny …").click();
  await here.getByLabel("Why?").fill("too little");
  await button(here, "Deny").click();
  await here.waitFor({ state: "detached" });
  await talk(page).getByRole("article", { name: "Assistant: It came to Denied: too little" }).waitFor();
});

test("what a thread keeps is shown, set, uploaded and deleted; effects are run and cancelled; a variable says where its value comes from", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  await thread.send("POST", "/kv", { key: "basket", value: { yarn: 3 } });
  const page = await opened(`#/t/${thread.id}/data`);
  const values = page.getByRole("region", { name: "Values" });
  await values.getByText("basket").click();
  await values.getByLabel("Value of basket").fill('{"yarn": 4}');
  await button(values, "Save").click();
  await until("it is stored", async () => (await thread.send("GET", "/kv?key=basket")).json.value.yarn === 4);
  await values.getByText("Set a value").click();
  await values.getByLabel("Key", { exact: true }).fill("colour");
  await values.getByLabel("Value, as JSON").fill("red");
  await button(values, "Set").click();
  await values.getByRole("alert").getByText("That is no JSON").waitFor();
  await values.getByLabel("Value, as JSON").fill('"red"');
  await button(values, "Set").click();
  await values.getByText("colour").waitFor();

  const files = page.getByRole("region", { name: "Files" });
  await files.locator("input[type=file]").setInputFiles({ name: "plan.md", mimeType: "text/markdown", buffer: Buffer.from("# The plan") });
  await button(files, "plan.md").click();
  assert.equal(await files.getByRole("group", { name: "Content of plan.md" }).innerText(), "# The plan");
  await button(files, "Delete plan.md").click();
  await button(page.getByRole("dialog", { name: "Delete this?" }), "Delete").click();
  await button(files, "plan.md").waitFor({ state: "detached" });

  const effects = page.getByRole("region", { name: "Effects" });
  await thread.send("POST", "/effects", { name: "ring", args: { bell: 1 }, delay: 3_600_000 });
  await thread.send("POST", "/effects", { name: "ring", args: { bell: 2 }, delay: 3_600_000 });
  await effects.getByRole("listitem").nth(1).waitFor();
  for (const row of await effects.getByRole("listitem").all()) await row.getByText("ring").click();
  const of = (/** @type {number} */ bell) => effects.getByRole("listitem").filter({ has: page.getByRole("group", { name: "Arguments of ring" }).filter({ hasText: `"bell": ${bell}` }) });
  await button(of(1), "Run now").click();
  await until("the bell rings", () => ring.received.length === 1);
  await button(of(2), "Cancel").click();
  await of(2).getByText("Cancelled").waitFor();
  await page.getByRole("region", { name: "Variables" }).getByText("MOOD").waitFor();
  assert.match(await page.getByRole("region", { name: "Variables" }).innerText(), /MOOD.*from the deployment or a definition/s);
  await accessible(page, "data");
  await picture(page, "data");

  await page.getByRole("link", { name: "Health" }).click();
  const health = page.getByRole("region", { name: "Health" });
  assert.match(await health.innerText(), /None is under way.*There has been none|There has been none.*Nothing waits in it.*Somebody follows it/s);
  await page.getByRole("region", { name: "The next request" }).getByText(/It would ask clerk_model/).waitFor();
  await accessible(page, "health");
  await picture(page, "health");
});

test("the application is shown as the server has it: what agents are made of, what is missing, and which lead to which", async () => {
  const page = await opened("#/app");
  const graph = page.getByRole("group", { name: "Agents, and which lead to which" });
  await graph.getByRole("link", { name: "The desk" }).click();
  const desk = page.getByRole("region", { name: "The desk" });
  await desk.getByText("Side A").waitFor();
  assert.match(await desk.innerText(), /desk_prompt.*on.*desk_model.*hands the thread over to.*clerk.*OTHER_KEY is not set/s);
  await desk.getByRole("link", { name: "clerk" }).click();
  await page.getByRole("region", { name: "The clerk" }).getByText("talks to people").waitFor();
  assert.ok(page.url().endsWith("#/app/clerk"));
  await accessible(page, "the application");
  await picture(page, "application");
});

test("a thread of 5,000 messages has as few nodes as a short one, wherever one is in it", async () => {
  const history = Array.from({ length: 5_000 }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content: `message ${at + 1}: **some** words, and \`code\`` }));
  const thread = await bobbin.client.thread(clerk.name, { history });
  const page = await opened(`#/t/${thread.id}`);
  const said = (/** @type {number} */ n) => talk(page).getByRole("article").filter({ hasText: `message ${n}:` });
  await said(5_000).waitFor();
  const nodes = async () => Number(await talk(page).evaluate((log) => log.querySelectorAll("*").length));
  const few = 60 * 40;
  const shown = async (/** @type {number} */ n) => {
    await said(n).waitFor();
    assert.ok((await talk(page).getByRole("article").count()) <= 60, "no more than a window of them");
    assert.ok((await nodes()) <= few, `${await nodes()} nodes`);
  };
  await shown(5_000);
  await talk(page).hover();
  await until("what was said long ago comes into sight", async () => {
    await page.mouse.wheel(0, -3_000);
    const [top] = await talk(page).getByRole("article").allInnerTexts();
    return Number(/message (\d+):/.exec(top ?? "")?.[1]) < 4_200;
  }, { withinMs: 60_000 });
  await shown(4_190);
  const { messages } = (await thread.page({ limit: 3, order: "asc" }));
  await page.goto(`${bobbin.server.base}/inspector#/t/${thread.id}/${messages[2].id}`);
  await shown(3);
  assert.equal(await said(3).evaluate((node) => node.classList.contains("chosen")), true);
  await talk(page).evaluate((log) => log.scrollTo({ top: 0 }));
  await talk(page).getByText("The beginning").waitFor();
  await button(page, "To the newest").click();
  await shown(5_000);
  const last = said(5_000);
  await last.focus();
  await page.keyboard.press("k");
  assert.match(String(await page.locator(":focus").getAttribute("aria-label")), /message 4999/);
  await page.keyboard.press("j");
  assert.match(String(await page.locator(":focus").getAttribute("aria-label")), /message 5000/);
});

/** Texts that would have an effect if they were not treated as text. */
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

test("servers are shown as they are, and what they ask is answered", async () => {
  const threads = await Promise.all(["ask", "visit"].map(async (tool) => {
    const thread = await bobbin.client.thread("asker");
    assert.equal((await thread.ask(JSON.stringify([{ name: `peer__${tool}`, args: {} }]))).outcome, "parked");
    return thread;
  }));
  const page = await opened("#/waiting");
  const form = page.getByRole("article", { name: /^Who are you/ });
  await form.getByText("The MCP server “peer” asks this.").waitFor();
  assert.ok(!(await form.innerText()).includes("\u202e"), "what would turn the text around is shown as what it is");
  await accessible(page, "forms of servers");
  await picture(page, "waiting-servers");
  await button(form, "Send").click();
  await form.getByRole("alert").getByText("“Name” is required.").waitFor();
  await form.getByLabel("Name").fill("Bo");
  await form.getByLabel("size (optional)").selectOption("large");
  await form.getByLabel("sure").uncheck();
  await button(form, "Send").click();
  const visit = page.getByRole("article", { name: "Confirm it there." });
  const link = visit.getByRole("link", { name: "https://example.com/confirm" });
  assert.deepEqual([await link.getAttribute("href"), await link.getAttribute("rel")], ["https://example.com/confirm", "noopener noreferrer"]);
  await button(visit, "I have been there").click();
  await page.getByText("Nothing is waiting").waitFor();
  const results = await Promise.all(threads.map(async (thread) => (await thread.idle(), (await thread.results())[0])));
  assert.deepEqual(results.map((text) => JSON.parse(String(text))), [{ action: "accept", content: { name: "Bo", size: "large", sure: false } }, { action: "accept" }]);

  // A thread reports a server's status after its run.
  await until("the answer is told", async () => /** @type {any} */ (await bobbin.client.send("GET", "/mcp")).json.servers[0].last_success);
  const application = await opened("#/app");
  const servers = application.getByRole("region", { name: "MCP servers" });
  await servers.getByText("2026-07-28, without sessions").waitFor();
  await servers.getByText(/^last answer (now|\d+ (s|min) ago)$/).waitFor();
  await servers.getByText("2 tools").click();
  for (const text of ["The peer 1.0", "It can ask.", "peer__ask"]) await servers.getByText(text, { exact: false }).first().waitFor();
  await accessible(application, "servers");
  await picture(application, "servers");
});

test("what cannot be shown says so in its place, and the rest of the page goes on", async () => {
  const page = await opened("#/waiting");
  await page.route("**/api/mcp", (route) => route.fulfill({ json: { servers: [{ name: "odd" }] } }));
  const screen = (/** @type {string} */ name) => page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name }).click();
  const problem = page.getByRole("alert").filter({ hasText: "This cannot be shown: " });
  await screen("Application");
  await problem.waitFor();
  assert.equal(browser.wrong.splice(0).length, 1, "the console has it, once");
  await screen("Waiting");
  await page.getByRole("heading", { name: "Waiting" }).waitFor();
  await screen("Application");
  await problem.waitFor();
  assert.equal(browser.wrong.splice(0).length, 1);
  await page.unroute("**/api/mcp");
  await button(problem, "Try again").click();
  await page.getByRole("region", { name: "MCP servers" }).waitFor();
});
