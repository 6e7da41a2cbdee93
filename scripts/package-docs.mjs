// The documents in the npm package: docs/ with links that work there, and llms.txt (llmstxt.org), which lists the pages for
// programs that write code.

import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { inCheckout } from "./files.mjs";
import { Complaint } from "./run.mjs";

/** Names of pages by section of llms.txt. "Optional" is a name of the format: readers with little space skip that section. */
const SECTIONS = {
  "First steps": ["start", "agents", "models", "tools", "run-code", "testing-agents", "recipes"],
  "Clients and people": ["clients", "api-client", "approvals", "inspector", "mcp", "mcp-server"],
  Features: ["budgets", "context", "effects", "endpoints", "hooks", "memory", "native-tools", "scrubbing", "sides", "subagents", "variables"],
  HTTP: ["http", "access", "files", "streams", "runs"],
  Production: ["durability", "observability", "self-hosting"],
  Reference: ["command-line", "errors", "http-reference", "limits"],
  Optional: ["README", "architecture", "performance", "promises", "style", "testing"],
};

/** Other files of the package that help a program. */
const FILES = {
  "types/bobbin.d.ts": "Types for code in `agents/`, with every member of `state`.",
  "schemas/": "JSON Schemas of the definition files, `schemas/*.schema.json`.",
  "schemas/openapi.json": "The HTTP API as OpenAPI 3.1.",
  "schemas/cli.json": "The JSON that `bobbin COMMAND --json` prints.",
  "test/case.schema.json": "The JSON Schema of test cases.",
};

const NOTES = `In a project, \`AGENTS.md\` says where everything is. After a change, \`npx bobbin check --json\` reports every mistake with
file, line and column, and \`npm test\` plays the test cases without a network.`;

/** Paths of the checkout with other paths in the package. Longer paths come first. */
const MOVED = { "README.md": "docs/README.md", "crates/definitions/src/validate/known.json": "schemas/known-models.json", "package/": "" };
/** Folders of the checkout that are in the package under the same path. */
const SAME = /^(docs|schemas|types)(\/|$)/;
/** Files of docs/ that are packed besides the pages. */
const MORE = ["docs/approvals.html", "docs/recipes"];
/** A page is packed without its pictures. Their descriptions stay. */
const PICTURE = /!\[([^\]]*)\]\([^)\s]+\)/g;
const LINK = /`[^`]*`|\[([^\]]+)\]\(([^)\s]+)\)/g;
const FENCE = /(^ *```.*?^ *```)/ms;
/** A description with fewer characters has a second sentence. */
const SHORT = 50;

/** @typedef {{ name: string, from: string, to: string, text: string }} Page   `from`: in the checkout; `to`: in the package */

/** The pages in the order of their names. @returns {Page[]} */
function pages() {
  const names = readdirSync(inCheckout("docs")).filter((file) => file.endsWith(".md")).map((file) => `docs/${file}`);
  return ["README.md", ...names].map((from) => ({ name: posix.basename(from, ".md"), from, to: packedPath(from) ?? from, text: readFileSync(inCheckout(from), "utf8") }));
}

/** Writes the documents into a package that has all its other files already. @param {string} folder */
export function writeDocs(folder) {
  const all = pages();
  mkdirSync(join(folder, "docs"), { recursive: true });
  for (const path of MORE) cpSync(inCheckout(path), join(folder, path), { recursive: true });
  for (const { to, text } of all) writeFileSync(join(folder, to), text);
  for (const page of all) writeFileSync(join(folder, page.to), linked(page, folder));
  writeFileSync(join(folder, "llms.txt"), llms(all));
}

/** The path in the package of a file or folder of the checkout, if it is packed. @param {string} path @returns {string | undefined} */
function packedPath(path) {
  for (const [from, to] of Object.entries(MOVED)) {
    if (path === from || (from.endsWith("/") && path.startsWith(from))) return to + path.slice(from.length);
  }
  return SAME.test(path) ? path : undefined;
}

/**
 * The text of a page with the links as they are in the package. A link to a file that is not packed becomes its words.
 *
 * @param {Page} page @param {string} folder   the package
 */
function linked({ from, to, text }, folder) {
  const link = (/** @type {string} */ whole, /** @type {string | undefined} */ words, /** @type {string | undefined} */ target) => {
    if (words === undefined || target === undefined || /^(https?:|mailto:|#)/.test(target)) return whole;
    const [path = "", fragment] = target.split("#");
    const packed = packedPath(posix.join(dirname(from), path));
    if (packed === undefined || !existsSync(join(folder, packed))) return words;
    return `[${words}](${posix.relative(dirname(to), packed)}${fragment === undefined ? "" : `#${fragment}`})`;
  };
  const parts = text.split(FENCE);
  return parts.map((part, at) => (at % 2 === 1 ? part : part.replace(PICTURE, "$1").replace(LINK, link))).join("");
}

/** The text of llms.txt. @param {Page[]} all */
function llms(all) {
  const listed = Object.values(SECTIONS).flat();
  const wrong = [...all.map(({ name }) => name).filter((name) => !listed.includes(name)), ...listed.filter((name) => !all.some((page) => page.name === name))];
  if (wrong.length > 0) throw new Complaint(`SECTIONS in scripts/package-docs.mjs and docs/*.md differ: ${wrong.join(", ")}.`);
  const line = (/** @type {string} */ name) => {
    const { to, text } = /** @type {Page} */ (all.find((page) => page.name === name));
    return `- [${/^# (.*)$/m.exec(text)?.[1] ?? name}](${to}): ${description(text)}`;
  };
  const sections = Object.entries(SECTIONS).map(([title, names]) => [title, names.map(line)]);
  const files = Object.entries(FILES).map(([path, about]) => `- [${path}](${path}): ${about}`);
  const lists = [...sections.slice(0, -1), ["Files for programs", files], ...sections.slice(-1)].map(([title, lines]) => `## ${title}\n\n${[lines].flat().join("\n")}\n`);
  const summary = paragraph(readFileSync(inCheckout("package/README.md"), "utf8"));
  return [`# Bobbin\n`, `> ${summary}\n`, `${NOTES}\n`, ...lists].join("\n");
}

/** The first paragraph of a page, in one line and without links. @param {string} text */
function paragraph(text) {
  const [, first = ""] = /^# .*\n+(?:<!--[^]*?-->\n+)?([^]*?)\n\n/.exec(text) ?? [];
  return first.replace(LINK, (whole, words) => words ?? whole).replace(/\s+/g, " ").trim();
}

/** The first sentence of a page, or two if it is short. @param {string} text */
function description(text) {
  const [first = "", second = ""] = paragraph(text).split(/(?<=\.)\s+(?=[A-Z`])/);
  return first.length < SHORT ? `${first} ${second}`.trim() : first;
}
