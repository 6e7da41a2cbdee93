// Limits on the length of files and functions, which `npm test` checks. A function is counted without nested functions, and
// tests are not counted. Tables may be longer and are listed here. `node scripts/sizes.mjs` prints the results.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { inCheckout, root } from "./files.mjs";
import { run } from "./run.mjs";

/** The maximum number of lines of a file. */
export const FILE_LINES = 600;

/** The maximum number of lines of a function. */
export const FUNCTION_LINES = 60;

/**
 * Functions that may be longer, by file and name, with the reason.
 *
 * @type {Record<string, Record<string, string>>}
 */
export const LONGER = {
  "isolate/harness/pack.js": { pack: "what its functions share" },
  "scripts/build/src/fuel.rs": { of: "a table of opcodes" },
  "src/api/mod.rs": { answer: "a table of routes" },
  "src/store/meta.rs": { read: "a table of columns" },
  "src/store/runs/mod.rs": { read: "a table of columns" },
  "src/work/code/bridge/mod.rs": { method_of: "a table of methods" },
  "worker/src/router.rs": { route: "a table of routes" },
};

/** @typedef {{ name: string, line: number, lines: number }} Measured */

/** Replaces comments, strings and characters of a Rust file by blanks, and keeps the lines. @param {string} rust */
function bare(rust) {
  const token =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|r(#*)"[\s\S]*?"\1|"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\\n]|\\(?:u\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|.))'/g;
  return rust.replace(token, (text) => text.replace(/[^\n]/g, " "));
}

/** The position of the bracket that closes the one at `open`. @param {string} text @param {number} open */
function closing(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if ("({[".includes(text[at] ?? "")) depth++;
    else if (")}]".includes(text[at] ?? "") && --depth === 0) return at;
  }
  return text.length;
}

/** The start of the body of the function at `head`; undefined for a declaration. @param {string} text @param {number} head */
function bodyOf(text, head) {
  for (let at = head; at < text.length; at++) {
    if (text[at] === "{") return at;
    if (text[at] === ";") return undefined;
    if ("([".includes(text[at] ?? "")) at = closing(text, at);
  }
  return undefined;
}

/** The functions of a Rust file, except its tests. @param {string} rust @returns {Measured[]} */
export function rustFunctions(rust) {
  const text = bare(rust);
  const tests = [...text.matchAll(/#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{/g)].map((match) => {
    const open = match.index + match[0].length - 1;
    return [match.index, closing(text, open)];
  });
  const lineAt = (/** @type {number} */ at) => text.slice(0, at).split("\n").length;
  const found = [...text.matchAll(/\bfn\s+(\w+)/g)].flatMap((match) => {
    const at = match.index;
    if (tests.some(([from = 0, to = 0]) => from <= at && at < to)) return [];
    const open = bodyOf(text, at + match[0].length);
    return open === undefined ? [] : [{ name: match[1] ?? "", from: lineAt(at), to: lineAt(closing(text, open)) }];
  });
  return own(found);
}

/** The functions of a JavaScript or TypeScript file. @param {string} name @param {string} text @returns {Promise<Measured[]>} */
export async function scriptFunctions(name, text) {
  // Imported late: on a fresh machine the set-up installs it first.
  const { default: ts } = await import("typescript");
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const lineAt = (/** @type {number} */ at) => source.getLineAndCharacterOfPosition(at).line + 1;
  /** @type {{ name: string, from: number, to: number }[]} */
  const found = [];
  const visit = (/** @type {import("typescript").Node} */ node) => {
    if (ts.isFunctionLike(node) && "body" in node && node.body) {
      found.push({ name: node.name?.getText() ?? "(a function)", from: lineAt(node.getStart()), to: lineAt(node.end) });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return own(found);
}

/** The lines of each function without those of nested functions. @param {{ name: string, from: number, to: number }[]} found */
function own(found) {
  /** @typedef {typeof found[number]} One */
  const holds = (/** @type {One} */ a, /** @type {One} */ b) => a.from <= b.from && b.to <= a.to && a.to - a.from > b.to - b.from;
  return found.map((one) => {
    const inside = found.filter((other) => holds(one, other));
    const outermost = inside.filter((inner) => !inside.some((other) => holds(other, inner)));
    const inner = outermost.reduce((sum, { from, to }) => sum + to - from, 0);
    return { name: one.name, line: one.from, lines: one.to - one.from + 1 - inner };
  });
}

/**
 * The files and functions that are too long.
 *
 * @param {Map<string, string>} files
 * @param {Record<string, Record<string, string>>} [longer]
 */
export async function complaints(files, longer = LONGER) {
  const said = [];
  const long = new Set();
  for (const [path, text] of files) {
    const lines = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
    if (lines > FILE_LINES) said.push(`${path} has ${lines} lines; at most ${FILE_LINES} are allowed`);
    if (/(^|\/)tests?(\/|\.)/.test(path)) continue;
    const functions = path.endsWith(".rs") ? rustFunctions(text) : await scriptFunctions(path, text);
    for (const { name, line, lines } of functions.filter((one) => one.lines > FUNCTION_LINES)) {
      if (longer[path]?.[name] !== undefined) long.add(`${path} ${name}`);
      else said.push(`${path}:${line}: ${name} has ${lines} lines; at most ${FUNCTION_LINES} are allowed`);
    }
  }
  for (const [path, names] of Object.entries(longer)) {
    for (const name of Object.keys(names)) {
      if (!long.has(`${path} ${name}`)) said.push(`scripts/sizes.mjs lets ${name} of ${path} be longer, which it is not`);
    }
  }
  return said;
}

/** The source files of the checkout. @returns {Promise<Map<string, string>>} */
export async function sources() {
  const listed = await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  const names = listed.split("\0").filter((name) => /\.(rs|m?js|ts)$/.test(name));
  return new Map(names.filter((name) => existsSync(inCheckout(name))).map((name) => [name, readFileSync(inCheckout(name), "utf8")]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const said = await complaints(await sources());
  for (const line of said) console.log(line);
  process.exitCode = said.length > 0 ? 1 : 0;
}
