// The documents of the npm package: every page is there and listed in llms.txt, and every link works.

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { headingAnchors, links } from "../../scripts/documents.mjs";
import { inCheckout } from "../../scripts/files.mjs";
import { writeDocs } from "../../scripts/package-docs.mjs";

const home = mkdtempSync(join(tmpdir(), "bobbin-docs-"));
after(() => rmSync(home, { recursive: true, force: true }));

/** Packed files that pages link to, by their paths in the checkout. */
const PACKED = { schemas: "schemas", "package/schemas": "schemas", types: "types", "crates/definitions/src/validate/known.json": "schemas/known-models.json", "package/test/case.schema.json": "test/case.schema.json" };

before(() => {
  for (const [from, to] of Object.entries(PACKED)) cpSync(inCheckout(from), join(home, to), { recursive: true });
  writeDocs(home);
});

const read = (/** @type {string} */ file) => readFileSync(join(home, file), "utf8");
const pages = readdirSync(inCheckout("docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);

test("llms.txt has a title, a summary, and every page once, with a description", () => {
  const text = read("llms.txt");
  assert.match(text, /^# Bobbin\n\n> An agent runtime for Cloudflare Workers: [^\n]+\n\n/);
  const listed = [...text.matchAll(/^- \[([^\]]+)\]\(([^)]+)\): (.*)$/gm)];
  const documents = listed.map(([, , path = ""]) => path).filter((path) => path.startsWith("docs/"));
  assert.deepEqual(documents.sort(), ["docs/README.md", ...pages].sort());
  for (const [, title = "", path = "", about = ""] of listed) {
    assert.ok(existsSync(join(home, path)), path);
    assert.ok(title.length > 2, path);
    assert.match(about, /^[A-Z][^]{25,250}\.$/, path);
    assert.doesNotMatch(about, /\]\(/, path);
  }
  const lists = text.slice(text.indexOf("\n## ") + 1).split("\n").filter((line) => line !== "" && !line.startsWith("## "));
  assert.equal(lists.length, listed.length, "below a heading there is only its list");
});

test("every link of a packed page leads to a packed file or heading, or out of the package", () => {
  let working = 0;
  for (const page of ["docs/README.md", ...pages]) {
    for (const link of links(read(page))) {
      if (/^(https?|mailto):/.test(link)) continue;
      const [path = "", fragment] = link.split("#");
      const target = path === "" ? page : join(dirname(page), path);
      assert.ok(!target.startsWith("..") && existsSync(join(home, target)), `${page}: ${link}`);
      if (fragment !== undefined && target.endsWith(".md")) assert.ok(headingAnchors(read(target)).includes(fragment), `${page}: ${link}`);
      working++;
    }
  }
  assert.ok(working > 300, `${working} links`);
  assert.match(read("docs/agents.md"), /\[`schemas\/`\]\(\.\.\/schemas\)/);
  assert.match(read("docs/models.md"), /\[`known\.json`\]\(\.\.\/schemas\/known-models\.json\)/);
  assert.match(read("docs/context.md"), /\[README's session\]\(README\.md#a-session\)/);
  assert.doesNotMatch(read("docs/architecture.md"), /\]\(\.\.\/src/);
});

test("a packed page is the page of the checkout, except for links and pictures", () => {
  const words = (/** @type {string} */ text) => text.replace(/!?\[([^\]]*)\]\([^)\s]+\)/g, "$1");
  for (const page of pages) assert.equal(words(read(page)), words(readFileSync(inCheckout(page), "utf8")), page);
});

test("the package contains the documents", () => {
  const { files } = JSON.parse(readFileSync(inCheckout("package/package.json"), "utf8"));
  assert.deepEqual(["docs", "llms.txt"].filter((name) => !files.includes(name)), []);
});
