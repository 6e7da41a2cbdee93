// The documents: their links, the length of their lines, words of the old dialect, and the generated pages
// docs/promises.md and docs/http-reference.md. `npm test` checks them (tests/documents/documents.test.mjs).
//
//   node scripts/documents.mjs           prints what is wrong
//   node scripts/documents.mjs --write   writes docs/promises.md from docs/promises.json and docs/http-reference.md from
//                                        schemas/openapi.json, and then does the same

import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { inCheckout, root } from "./files.mjs";
import { anchor, reference } from "./http-reference.mjs";

/** @typedef {(string | Record<string, string[]>)[]} Entry  names of tests, and groups of them under a title */

const PROMISES = { page: "docs/durability.md", list: "docs/promises.json", generated: "docs/promises.md" };
const ROUTES = { description: "schemas/openapi.json", generated: "docs/http-reference.md" };
const WIDTH = 120;
/** Words of the old dialect (docs/style.md), which the prose of pages must not use. */
const DIALECT = /\b(anew|whoever|go(?:es)? on|one's own|(?:is|are|be) told|what (?:is|was) (?:asked|said))\b/gi;
/** The page that quotes these words, the page that lists names of tests, and pages that are not revised. */
const QUOTES = /^docs\/(style\.md|promises\.md|decisions\/)/;

/** @type {Map<string, string>} */
const texts = new Map();

/** Reads a file of the checkout, once. @param {string} file */
function read(file) {
  const text = texts.get(file) ?? readFileSync(inCheckout(file), "utf8");
  texts.set(file, text);
  return text;
}
const pages = () => ["README.md", "CHANGELOG.md", "package/README.md", ...filesIn(["docs"], ".md")];

/** The files below some folders with this ending. @param {string[]} folders @param {string} end */
const filesIn = (folders, end) =>
  folders.flatMap((folder) => {
    const names = readdirSync(inCheckout(folder), { recursive: true }).map(String);
    return names.filter((name) => name.endsWith(end)).sort().map((name) => join(folder, name));
  });

/** The headings of a page, outside code. @param {string} text @returns {string[]} */
const headings = (text) => [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);

/** The anchors of a page. @param {string} text */
export const headingAnchors = (text) => headings(text).map(anchor);

/** The targets of a page's links, outside code. @param {string} text @returns {string[]} */
export const links = (text) => [...withoutCode(text).matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g)].map(([, , link = ""]) => link);

const withoutCode = (/** @type {string} */ text) => text.replace(/^ *```.*?^ *```/gms, "");

/** Broken links, and links to tests whose text is not the name of a test. @param {string} file @param {string} text */
function brokenLinks(file, text) {
  /** @type {string[]} */
  const wrong = [];
  for (const [, words = "", link = ""] of withoutCode(text).matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g)) {
    if (/^(https?|mailto):/.test(link)) continue;
    const [path = "", fragment] = link.split("#");
    const target = path === "" ? file : relative(root, join(root, dirname(file), path));
    const name = words.replaceAll("`", "").replace(/\s+/g, " ");
    if (!existsSync(inCheckout(target))) wrong.push(`${file}: ${link} does not exist`);
    else if (fragment !== undefined && !headings(read(target)).some((heading) => anchor(heading) === fragment)) {
      wrong.push(`${file}: ${target} has no heading for #${fragment}`);
    } else if (/^tests\/engine\/scenarios\//.test(target) && !new RegExp(`fn ${name}\\(`).test(read(target)) && /^\w+$/.test(name)) {
      wrong.push(`${file}: ${target} has no test ${name}`);
    } else if (target.endsWith(".test.mjs") && !read(target).includes(name)) {
      wrong.push(`${file}: ${target} has no test “${name}”`);
    }
  }
  return wrong;
}

/**
 * Lines that are too long. Rows of tables, single links and program output cannot be broken.
 *
 * @param {string} file
 * @param {string} text
 */
function longLines(file, text) {
  /** @type {string[]} */
  const wrong = [];
  /** The language of the code block that contains the line. @type {string | undefined} */
  let language;
  text.split("\n").forEach((line, at) => {
    const fence = /^ *```(\w*)/.exec(line);
    if (fence) language = language === undefined ? fence[1] : undefined;
    const printed = language !== undefined && ["", "text", "console"].includes(language);
    const whole = printed || /^ *\|/.test(line) || /^ *([*-] )?(\[[^\]]+\]\([^)]+\)|\[!\[[^\]]+\]\([^)]+\)\]\([^)]+\)|`[^`]+`)$/.test(line);
    if (line.length > WIDTH && !whole) wrong.push(`${file}:${at + 1}: ${line.length} characters; a line has at most ${WIDTH}`);
  });
  return wrong;
}

/** Words of the dialect. @param {string} file @param {string} text */
function dialect(file, text) {
  const prose = withoutCode(text).replace(/`[^`\n]*`/g, "");
  return QUOTES.test(file) ? [] : [...prose.matchAll(DIALECT)].map(([word]) => `${file}: “${word}” (docs/style.md has better words)`);
}

/** Finds the files with a test of this name. */
function testFiles() {
  const rust = filesIn(["tests/engine", "tests/directory", "tests/growth"], ".rs");
  const scripts = filesIn(["worker", "interfaces", "isolate", "scripts", "cli", "cases", "release"].map((name) => `tests/${name}`), ".test.mjs");
  const tests = [...rust, ...scripts].map((file) => ({ file, text: read(file) }));
  return (/** @type {string} */ name) => {
    const rustTest = /^\w+$/.test(name) ? new RegExp(`\\bfn ${name}\\(`) : undefined;
    // If titles differ between cases, the list has their common beginning.
    const has = (/** @type {string} */ text) => rustTest?.test(text) ?? ['"', "`", "'"].some((quote) => text.includes(`${quote}${name}`));
    return tests.filter(({ text }) => has(text)).map(({ file }) => file);
  };
}

/** The page of promises, and the faults of its list. @returns {{ page: string, wrong: string[] }} */
function promises() {
  /** @type {Record<string, Entry>} */
  const list = JSON.parse(read(PROMISES.list));
  const titles = headings(read(PROMISES.page)).filter((title) => /^\d+\. /.test(title));
  const filesOf = testFiles();
  /** @type {string[]} */
  const wrong = [];
  const links = (/** @type {string[]} */ names) =>
    names.flatMap((name) => {
      const files = filesOf(name);
      if (files.length === 0) wrong.push(`${PROMISES.list}: no test is called “${name}”`);
      const text = /^\w+$/.test(name) ? `\`${name}\`` : name;
      return files.map((file) => `* [${text}](${relative("docs", file)})`);
    });
  const parts = titles.map((title) => {
    const entries = list[title.split(".")[0] ?? ""] ?? [];
    if (entries.length === 0) wrong.push(`${PROMISES.list}: there are no tests for “${title}”`);
    const plain = entries.filter((entry) => typeof entry === "string");
    const groups = entries.filter((entry) => typeof entry !== "string").flatMap((entry) => Object.entries(entry));
    const body = groups.map(([group, names]) => [`${group}:`, "", ...links(names), ""].join("\n"));
    return [`## ${title}`, "", ...links(plain), "", ...body].join("\n");
  });
  for (const key of Object.keys(list)) {
    if (!titles.some((title) => title.startsWith(`${key}. `))) wrong.push(`${PROMISES.list}: ${PROMISES.page} has no promise ${key}`);
  }
  const head = `# Tests of the promises

<!-- Generated by \`node scripts/documents.mjs --write\` from docs/promises.json. Do not edit it. -->

Look here for the tests that fail when Bobbin breaks a promise of [durability.md](durability.md). Names with underscores
are Rust tests on the simulated host; run one with \`cargo test --test engine NAME\`. The other names are titles of tests
against the built product; run one with \`node --test --test-name-pattern "TITLE" FILE\`.
[testing.md](testing.md) explains both kinds.
`;
  return { page: `${[head, ...parts].join("\n").trimEnd()}\n`, wrong };
}

/** The generated pages by file, and the faults of their sources. @returns {{ files: Record<string, string>, wrong: string[] }} */
function generated() {
  const { page, wrong } = promises();
  return { files: { [PROMISES.generated]: page, [ROUTES.generated]: reference(JSON.parse(read(ROUTES.description))) }, wrong };
}

/** Writes the generated pages. */
export function writeGenerated() {
  for (const [file, page] of Object.entries(generated().files)) {
    writeFileSync(inCheckout(file), page);
    texts.delete(file);
  }
}

/** The faults of the documents, one per line. @returns {string[]} */
export function complaints() {
  const { files, wrong } = generated();
  for (const [file, page] of Object.entries(files)) {
    const stale = !existsSync(inCheckout(file)) || read(file) !== page;
    if (stale) wrong.push(`${file} is out of date: run \`node scripts/documents.mjs --write\``);
  }
  for (const file of pages()) {
    const text = read(file);
    wrong.push(...brokenLinks(file, text), ...longLines(file, text), ...dialect(file, text));
  }
  return wrong;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes("--write")) writeGenerated();
  const wrong = complaints();
  for (const line of wrong) console.log(line);
  if (wrong.length > 0) process.exitCode = 1;
}
