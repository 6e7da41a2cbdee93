// The inspector's list of threads in a deployment with owners, and messages that are hard to render.
//
// BOBBIN_SCREENSHOTS names a folder for screenshots.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import { accessible, Browser } from "../worker/support/browser.mjs";
import { refuse, say } from "../worker/support/model.mjs";
import { suite } from "../worker/support/suite.mjs";

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
const test = (name, body) => bobbin.test(name, () => browser.watched(body));

const clerk = bobbin.agent("clerk", ({ last }) => say(`You said: ${last}`), { agent: { title: "The clerk" } });
/** A model that always fails. */
bobbin.agent("broken", () => refuse(400), { agent: { title: "The broken one" } });

/** Opens a page of the inspector with a key. @param {string} [place] @param {string} [key] */
async function opened(place = "#/", key = ADMIN) {
  const page = await browser.open(`${bobbin.server.base}/inspector${place}`, { viewport: { width: 1280, height: 900 } });
  await page.getByLabel("Key").fill(key);
  await button(page, "Open").click();
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  return page;
}

/** @param {Page | Locator} within @param {string} name */
const button = (within, name) => within.getByRole("button", { name, exact: true });
/** Returns the messages of the shown thread. @param {Page} page */
const talk = (page) => page.getByRole("log", { name: "Messages" });
/** Takes a screenshot. @param {Page} page @param {string} name */
const picture = async (page, name) => void (PICTURES && (await page.screenshot({ path: join(PICTURES, `${name}.png`) })));

test("threads of all owners are listed, with what they are about; those whose last run failed are marked and can be chosen", async () => {
  const [fine, failed] = [await bobbin.client.thread(clerk.name, { user_id: "carol" }), await bobbin.client.thread("broken", { user_id: "dave" })];
  await fine.ask("a word of Carol's");
  await failed.ask("a word of Dave's");
  const page = await opened();
  const list = page.getByRole("region", { name: "Threads" });
  const rows = [list.getByRole("link", { name: /You said: a word of Carol's/ }), list.getByRole("link", { name: /, failed.*Failed: model_error a word of Dave's/ })];
  await Promise.all(rows.map((row) => row.waitFor()));
  await accessible(page, "threads of all owners");
  await picture(page, "threads");
  await list.getByLabel("State").selectOption("failed");
  await rows[0]?.waitFor({ state: "detached" });
  await rows[1]?.waitFor();
  await list.getByLabel("State").selectOption("all");
  await list.getByLabel("Owner").selectOption("carol");
  await rows[1]?.waitFor({ state: "detached" });
  await rows[0]?.waitFor();
  await list.getByLabel("Search").fill("nothing has this");
  await list.getByText("No matching threads").waitFor();
  await list.getByText(/the newest message of each/).waitFor();
  await button(list, "Show all threads").click();
  await rows[1]?.click();
  const note = talk(page).getByRole("article", { name: /^Note: / });
  await note.getByRole("link", { name: /^Timeline/ }).click();
  await page.getByRole("region", { name: "Thread", exact: true }).getByText("broken_model").first().waitFor();

  // The agent that was used last is preselected, and the keyboard moves on from it.
  await button(list, "New thread").click();
  const chosen = page.getByRole("dialog", { name: "New thread" }).getByRole("radio", { checked: true });
  assert.equal(await chosen.getAttribute("value"), "broken");
  assert.ok(await chosen.evaluate((node) => node === node.ownerDocument.activeElement));
  await page.keyboard.press("Escape");
  const owner = await bobbin.client.send("POST", "/tokens", { scope: "owner:carol" });
  const own = await opened("#/", owner.json.token);
  await own.getByRole("region", { name: "Threads" }).getByRole("link", { name: /You said: a word of Carol's/ }).waitFor();
  assert.equal(await own.getByRole("region", { name: "Threads" }).getByText("Dave").count(), 0);
});

test("a text that is made to be slow is drawn at once", async () => {
  const thread = await bobbin.client.thread(clerk.name);
  for (const text of ["`".repeat(60_000), "**a".repeat(12_500), `# a${" ".repeat(60_000)}b`, "[".repeat(60_000)]) await thread.send("POST", "/messages", { role: "system", content: text });
  await thread.ask("last");
  const page = await opened(`#/t/${thread.id}`);
  await talk(page).getByRole("article", { name: "Assistant: You said: last" }).waitFor({ timeout: 10_000 });
});
