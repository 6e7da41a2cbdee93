// Pages in headless Chromium. Everything that a page must not do is recorded for the test.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { http } from "../../../package/lib/node-http.mjs";
import { browser as path } from "../../../scripts/browser.mjs";
import { checkout } from "./server.mjs";

/** @typedef {import("playwright-core").Page} Page */

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// Without a GPU process: there are no graphics.
const QUIET = "--no-sandbox --disable-gpu --in-process-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";

export class Browser {
  /** @type {import("playwright-core").Browser | undefined} */
  #running;
  /** @type {import("playwright-core").BrowserContext[]} */
  #contexts = [];

  /** Output, exceptions, requests and windows of pages that should not exist. @type {string[]} */
  wrong = [];

  /** The requests of each page. @type {WeakMap<Page, string[]>} */
  #requests = new WeakMap();

  /** The responses to each page, one line each. @type {WeakMap<Page, string[]>} */
  #answers = new WeakMap();

  async up() {
    this.#running = await chromium.launch({ executablePath: await path(), args: QUIET.split(" ") });
  }

  async down() {
    await this.#running?.close();
  }

  /**
   * Opens a page with its own storage.
   *
   * @param {string} address
   * @param {import("playwright-core").BrowserContextOptions} [options]
   */
  async open(address, options = {}) {
    assert.ok(this.#running, "the browser runs");
    const context = await this.#running.newContext({ viewport: { width: 900, height: 900 }, reducedMotion: "reduce", ...options });
    this.#contexts.push(context);
    // Beside a compiler and three other servers a page may take that long to start.
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    /** @type {string[]} */
    const requests = [];
    this.#requests.set(page, requests);
    page.on("request", (request) => requests.push(request.url()));
    /** @type {string[]} */
    const answers = [];
    this.#answers.set(page, answers);
    const began = Date.now();
    const note = (/** @type {import("playwright-core").Request} */ request, /** @type {unknown} */ came) =>
      answers.push(`${Date.now() - began} ms: ${came} ${request.method()} ${request.url()}`);
    page.on("response", (response) => note(response.request(), response.status()));
    page.on("requestfailed", (request) => note(request, request.failure()?.errorText));
    page.on("pageerror", (error) => this.wrong.push(`thrown: ${error.stack}`));
    page.on("dialog", (dialog) => (this.wrong.push(`a dialog: ${dialog.message()}`), void dialog.dismiss()));
    page.on("popup", () => this.wrong.push("a window was opened"));
    page.on("console", (said) => {
      // The browser's own messages about failed requests are for the page to handle.
      if (said.type() === "error" && !said.text().startsWith("Failed to load resource")) this.wrong.push(`printed: ${said.text()}`);
    });
    await page.goto(address);
    return page;
  }

  /** Returns the URLs that a page has requested since its start. @param {Page} page */
  requests = (page) => this.#requests.get(page) ?? [];

  /**
   * Runs `body` and closes all pages. Fails if pages do something that they must not. If it fails, the message contains
   * what they showed.
   *
   * @param {() => Promise<void>} body
   */
  async watched(body) {
    try {
      await body();
      assert.deepEqual(this.wrong, [], "the page does nothing that it should not");
    } catch (error) {
      throw new Error(`${/** @type {Error} */ (error).message}\n\nThe page:\n${await this.#shown()}`, { cause: error });
    } finally {
      this.wrong.length = 0;
      await this.clear();
    }
  }

  /** Returns what the open pages show, and the last responses they received. */
  async #shown() {
    const pages = this.#contexts.flatMap((context) => context.pages());
    const texts = await Promise.all(
      pages.map(async (page) => {
        const text = await page.innerText("body", { timeout: 5_000 }).catch((error) => `(${error.message.split("\n")[0]})`);
        return `${page.url()}\n${text.slice(0, 1_500)}\n${(this.#answers.get(page) ?? []).slice(-40).join("\n")}`;
      }),
    );
    return texts.join("\n\n");
  }

  async clear() {
    for (const context of this.#contexts.splice(0)) await context.close();
  }
}

/** Checks a page for accessibility problems and insufficient contrast. @param {Page} page @param {string} state */
export async function accessible(page, state) {
  await page.evaluate(AXE);
  const found = /** @type {any} */ (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })'));
  const said = found.violations.map((/** @type {any} */ { id, help, nodes }) => `${id}: ${help}: ${nodes.map((/** @type {any} */ { html }) => html).join(" ")}`);
  assert.deepEqual(said, [], state);
}

/** Serves a page of the documentation from its own origin. */
export class PageServer {
  /** @param {string} file  relative to the checkout */
  constructor(file) {
    this.server = http.createServer((_, response) => {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(readFileSync(join(checkout, file)));
    });
  }

  /** Starts the server and returns its origin. */
  async listen() {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (this.server.address()).port}`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
