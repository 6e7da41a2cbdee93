// Checks the floors of the core. `src/lib.rs` lists its modules from the ground up, and each may import and call only those
// listed above it (method calls: calls.mjs). Also finds cycles between files, tables that are named outside their own file, and JSON that is read without
// json.rs. `node scripts/floors.mjs` prints the results that `npm test` checks.

import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { methodCalls, methodCounts } from "./calls.mjs";

/** The maximum numbers of methods of `Thread`, and of the handle of a feature (src/engine/features.rs). */
const THREAD_METHODS = 220;
const HANDLE_METHODS = 90;
/** The maximum size of a cycle of imports and method calls, in files. Lower it with each feature that leaves the cycle. */
export const LARGEST_CIRCLE = 38;

/**
 * Files whose statements join a table of another file. They own the rows, and know only the join of the other table.
 *
 * @type {Record<string, string[]>}
 */
export const JOINED = {
  "store/messages/mod.rs": ["calls"],
  "store/logs.rs": ["calls"],
  "store/bodies.rs": ["logs"],
  "store/files/mod.rs": ["objects"],
  "store/files/tree.rs": ["file_texts"],
  "store/memory/chunks.rs": ["mem_docs"],
  "store/memory/texts.rs": ["mem_docs"],
  "store/objects.rs": ["files"],
  "directory/store/threads.rs": ["state"],
};

/** @typedef {{ file: string, module: string[], text: string, children: Map<string, string[]>, exports: Map<string, string[][]>, defines: Set<string> }} Module */

/** @param {string} folder @returns {string[]} */
const rustFiles = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return rustFiles(path);
    return entry.name.endsWith(".rs") ? [path] : [];
  });

/** The relevant code of a file: without comments, strings and tests. @param {string} text */
function code(text) {
  const bare = text
    .replace(/\/\/[^\n]*/g, "")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/r#"[\s\S]*?"#/g, '""')
    .replace(/"(?:[^"\\]|\\[\s\S])*"/g, '""');
  const tests = bare.search(/#\[cfg\(test\)\]\s*mod \w+\s*\{/);
  return tests < 0 ? bare : bare.slice(0, tests);
}

/** The paths of a `use`: `a::{b, c::d}` has two. @param {string} tree @returns {string[][]} */
function paths(tree) {
  const open = tree.indexOf("{");
  if (open < 0) {
    const path = tree.trim().split(/\s+as\s+/)[0] ?? "";
    return [path.split("::").map((part) => part.trim()).filter(Boolean)];
  }
  const before = tree.slice(0, open).split("::").map((part) => part.trim()).filter(Boolean);
  const inside = tree.slice(open + 1, tree.lastIndexOf("}"));
  const parts = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at <= inside.length; at++) {
    const letter = inside[at];
    if (letter === "{") depth++;
    else if (letter === "}") depth--;
    else if ((letter === "," && depth === 0) || at === inside.length) {
      parts.push(inside.slice(from, at));
      from = at + 1;
    }
  }
  return parts.filter((part) => part.trim()).flatMap((part) => paths(part).map((path) => [...before, ...path]));
}

/** @param {string} root the folder of `lib.rs` */
export function readModules(root) {
  /** @type {Map<string, Module>} */
  const modules = new Map();
  for (const path of rustFiles(root)) {
    const file = relative(root, path).replaceAll("\\", "/");
    const module = file.replace(/\.rs$/, "").split("/").filter((part) => part !== "mod" && part !== "lib");
    const text = code(readFileSync(path, "utf8"));
    const defines = new Set(
      [...text.matchAll(/\b(?:struct|enum|trait|fn|type|const|static|mod|macro_rules!)\s+(\w+)/g)].map((match) => match[1] ?? ""),
    );
    modules.set(module.join("::"), { file, module, text, children: new Map(), exports: new Map(), defines });
  }
  for (const module of modules.values()) {
    for (const [, tree] of module.text.matchAll(/\bpub(?:\([^)]*\))?\s+use\s+([^;]+);/g)) {
      for (const path of paths(tree ?? "")) {
        const name = path.at(-1) ?? "";
        const known = module.exports.get(name) ?? [];
        module.exports.set(name, [...known, path]);
      }
    }
  }
  return modules;
}

/**
 * The file that defines the target of a path, following re-exports.
 * @param {Map<string, Module>} modules @param {Module} from @param {string[]} path @param {number} [depth]
 * @returns {Module | undefined}
 */
function target(modules, from, path, depth = 0) {
  if (depth > 8) return undefined;
  let [first, ...rest] = path;
  /** @type {string[]} */
  let at;
  if (first === "crate") at = [];
  else if (first === "self") at = from.module;
  else if (first === "super") {
    at = from.module.slice(0, -1);
    while (rest[0] === "super") {
      at = at.slice(0, -1);
      rest = rest.slice(1);
    }
  } else {
    const child = [...from.module, first ?? ""];
    if (!modules.has(child.join("::"))) return undefined;
    at = child;
  }
  while (rest.length > 0 && modules.has([...at, rest[0] ?? ""].join("::"))) {
    at = [...at, rest[0] ?? ""];
    rest = rest.slice(1);
  }
  const found = modules.get(at.join("::"));
  const name = rest[0];
  if (!found || name === undefined) return found;
  if (found.defines.has(name) && !found.exports.has(name)) return found;
  for (const exported of found.exports.get(name) ?? []) {
    const origin = target(modules, found, [...exported, ...rest.slice(1)], depth + 1);
    if (origin) return origin;
  }
  if (!found.defines.has(name)) {
    for (const exported of found.exports.get("*") ?? []) {
      const origin = target(modules, found, [...exported.slice(0, -1), ...rest], depth + 1);
      if (origin?.defines.has(name)) return origin;
    }
    // A private `use` of the module itself.
    for (const [, tree] of found.text.matchAll(/\buse\s+([^;]+);/g)) {
      for (const used of paths(tree ?? "")) {
        if (used.at(-1) === name && used[0] !== name) {
          const origin = target(modules, found, used, depth + 1);
          if (origin) return origin;
        }
      }
    }
  }
  return found;
}

/** The imports between files. @param {Map<string, Module>} modules */
export function imports(modules) {
  /** @type {Map<string, Map<string, string>>} */
  const edges = new Map();
  for (const module of modules.values()) {
    /** @type {Map<string, string>} */
    const to = new Map();
    edges.set(module.file, to);
    const note = (/** @type {string[]} */ path) => {
      const found = target(modules, module, path);
      if (found && found.file !== module.file && !to.has(found.file)) to.set(found.file, path.join("::"));
    };
    const uses = /\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);/g;
    for (const [, shown, tree] of module.text.matchAll(uses)) {
      // A re-export counts as an import of the module that uses it.
      if (!shown) for (const path of paths(tree ?? "")) note(path);
    }
    const rest = module.text.replace(uses, "");
    for (const [path] of rest.matchAll(/\b(?:crate|super)(?:::\w+)+/g)) note(path.split("::"));
    const children = [...rest.matchAll(/(?<![:\w])(\w+)((?:::\w+)+)/g)];
    for (const [path, first] of children) {
      if (modules.has([...module.module, first ?? ""].join("::"))) note(path.split("::"));
    }
  }
  return edges;
}

/** Re-exports (`pub use`) of other modules. @param {Map<string, Module>} modules */
function handedOn(modules) {
  return [...modules.values()].flatMap((module) =>
    [...module.exports.values()].flat().flatMap((path) => {
      const found = target(modules, module, path);
      return found && found.file !== module.file ? [{ from: module.file, to: found.file, path: path.join("::") }] : [];
    }),
  );
}

/** The import cycles, the largest first. @param {Map<string, Map<string, string>>} edges @returns {string[][]} */
export function circles(edges) {
  let counter = 0;
  /** @type {Map<string, number>} */
  const index = new Map();
  /** @type {Map<string, number>} */
  const low = new Map();
  /** @type {string[]} */
  const stack = [];
  /** @type {string[][]} */
  const found = [];
  const visit = (/** @type {string} */ node) => {
    index.set(node, counter);
    low.set(node, counter++);
    stack.push(node);
    for (const next of edges.get(node)?.keys() ?? []) {
      if (!index.has(next)) {
        visit(next);
        low.set(node, Math.min(low.get(node) ?? 0, low.get(next) ?? 0));
      } else if (stack.includes(next)) {
        low.set(node, Math.min(low.get(node) ?? 0, index.get(next) ?? 0));
      }
    }
    if (low.get(node) === index.get(node)) {
      const members = stack.splice(stack.indexOf(node));
      if (members.length > 1) found.push(members.sort());
    }
  };
  for (const node of edges.keys()) if (!index.has(node)) visit(node);
  return found.sort((a, b) => b.length - a.length);
}

/** The string literals in a Rust file, including tests. @param {string} rust */
const texts = (rust) => {
  const token =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|r(#*)"([\s\S]*?)"\1|"((?:[^"\\]|\\[\s\S])*)"|'(?:[^'\\\n]|\\(?:u\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|.))'/g;
  return [...rust.matchAll(token)].map(([, , raw, text]) => raw ?? text ?? "").filter(Boolean);
};

/** The names that follow the given words in SQL. @param {string} text @param {RegExp} words @returns {string[]} */
const named = (text, words) => [...text.matchAll(words)].map(([, name]) => name ?? "");

/**
 * Tables that are named outside the file that creates them and outside the folder that this file heads.
 *
 * @param {Map<string, string>} files  contents by path
 * @param {Record<string, string[]>} joined  other tables that a file may name
 */
export function strayTables(files, joined) {
  /** @type {Map<string, string>} */
  const makers = new Map();
  const said = [];
  const all = [...files].map(([file, rust]) => ({ file, texts: texts(rust) }));
  const made = /\bCREATE\s+(?:VIRTUAL\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)/g;
  for (const { file, texts } of all) {
    for (const table of texts.flatMap((text) => named(text, made))) {
      const other = makers.get(table);
      if (other !== undefined && other !== file) said.push(`src/${file} makes the table ${table}, as src/${other} does`);
      else makers.set(table, file);
    }
  }
  const used = /\b(?:FROM|INTO|UPDATE|JOIN|TABLE|ON|EXISTS)\s+(\w+)/g;
  const joins = new Set();
  for (const { file, texts } of all) {
    for (const table of new Set(texts.flatMap((text) => named(text, used)))) {
      const maker = makers.get(table);
      if (maker === undefined || file === maker) continue;
      if (maker.endsWith("/mod.rs") && file.startsWith(maker.slice(0, -"mod.rs".length))) continue;
      if (joined[file]?.includes(table)) joins.add(`${file} ${table}`);
      else said.push(`src/${file} names the table ${table}, which only src/${maker} may`);
    }
  }
  for (const [file, tables] of Object.entries(joined)) {
    for (const table of tables) {
      if (!joins.has(`${file} ${table}`)) said.push(`scripts/floors.mjs lets src/${file} join the table ${table}, which it does not`);
    }
  }
  return said;
}

/** Rust files that read JSON without `json.rs`, which is compiled once for each type. @param {string[]} folders */
export const directReads = (folders) =>
  folders.flatMap(rustFiles).flatMap((path) => {
    const [reads] = /\bserde_json::from_(str|slice|value)\b/.exec(code(readFileSync(path, "utf8"))) ?? [];
    return reads && !path.endsWith("json.rs") ? [`${path} reads by ${reads}: json.rs has a function of that name, which is compiled once for each type`] : [];
  });

/** The modules that `lib.rs` lists, from the ground up. @param {string} lib */
export const listed = (lib) => [...lib.matchAll(/^\/\/! (?:\d+\. |\* )\[`(\w+)`\]|^\/\/! \* `(\w+)`/gm)].map(([, a, b]) => a ?? b ?? "");

/** The faults of the floors. @param {string} root @param {Record<string, string[]>} [joined] */
export function complaints(root, joined = JOINED) {
  const modules = readModules(root);
  const edges = imports(modules);
  const order = listed(readFileSync(join(root, "lib.rs"), "utf8"));
  const floor = (/** @type {string} */ file) => order.indexOf((file.split("/")[0] ?? "").replace(/\.rs$/, ""));
  const said = [];
  const tops = new Set([...edges.keys()].map((file) => (file.split("/")[0] ?? "").replace(/\.rs$/, "")));
  for (const top of tops) if (top !== "lib" && !order.includes(top)) said.push(`src/lib.rs does not list \`${top}\``);
  for (const [file, to] of edges) {
    if (file === "lib.rs") continue;
    for (const [other, path] of to) {
      if (other !== "lib.rs" && floor(other) > floor(file)) said.push(`src/${file} imports ${path} of src/${other}, a floor above it`);
    }
  }
  for (const { from, to, path } of handedOn(modules)) {
    if (from !== "lib.rs" && floor(to) > floor(from)) said.push(`src/${from} hands on ${path} of src/${to}, a floor above it`);
  }
  const codes = new Map([...modules.values()].map(({ file, text }) => /** @type {const} */ ([file, text])));
  for (const [file, to] of methodCalls(codes)) {
    for (const [other, call] of to) {
      if (floor(other) > floor(file)) said.push(`src/${file} calls ${call} of src/${other}, a floor above it`);
      const known = edges.get(file);
      if (known && !known.has(other)) known.set(other, call);
    }
  }
  for (const [type, count] of methodCounts(codes)) {
    const most = type === "Thread" ? THREAD_METHODS : HANDLE_METHODS;
    if (count > most) said.push(`${type} has ${count} methods; at most ${most} are allowed`);
  }
  for (const circle of circles(edges)) {
    if (circle.length > LARGEST_CIRCLE) said.push(`${circle.length} files import or call each other: ${circle.join(", ")}`);
  }
  const files = rustFiles(root).map((path) => /** @type {const} */ ([relative(root, path).replaceAll("\\", "/"), readFileSync(path, "utf8")]));
  said.push(...strayTables(new Map(files), joined));
  return { said, edges };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = join(dirname(fileURLToPath(import.meta.url)), "..", "src");
  const { said, edges } = complaints(root);
  said.push(...directReads([root, join(root, "../crates")]));
  for (const line of said) console.log(line);
  console.log(`circles: ${circles(edges).map((circle) => circle.length).join(", ") || "none"}`);
  if (process.argv.includes("--circle")) {
    const [circle = []] = circles(edges);
    for (const file of circle) {
      const inside = [...(edges.get(file) ?? [])].filter(([other]) => circle.includes(other));
      console.log(`${file}: ${inside.map(([other, path]) => `${other} (${path})`).join(", ")}`);
    }
  }
  process.exitCode = said.length > 0 ? 1 : 0;
}
