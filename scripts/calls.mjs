// The calls between files that need no import: methods of `Thread` and of the handles of its features (src/engine/features.rs).

/** @typedef {{ type: string, file: string, from: number, to: number }} Block */

/** The end of the braces that open at `open`. @param {string} text @param {number} open */
function closing(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "{") depth++;
    else if (text[at] === "}" && --depth === 0) return at;
  }
  return text.length;
}

/** The `impl` blocks of these types in a file. @param {string} text @param {Set<string>} types */
function* implBlocks(text, types) {
  for (const match of text.matchAll(/^impl(?:<[^>]*>)?\s+(\w+)(?:<[^>]*>)?\s*\{/gm)) {
    const [head, type = ""] = match;
    const from = match.index + head.length - 1;
    if (types.has(type)) yield { type, from, to: closing(text, from) };
  }
}

/** The handles that files declare, by their accessors. @param {Map<string, string>} files */
function handles(files) {
  const declared = /\bhandle!\s*\{[^}]*?\bstruct\s+(\w+),\s*(\w+)\s*\}/g;
  return new Map([...files.values()].flatMap((text) => [...text.matchAll(declared)].map(([, type = "", accessor = ""]) => /** @type {const} */ ([accessor, type]))));
}

/**
 * The calls of these methods: which file calls what of which other file.
 *
 * @param {Map<string, string>} files  their code without comments and texts, by path
 */
export function methodCalls(files) {
  const accessors = handles(files);
  const types = new Set(["Thread", ...accessors.values()]);
  /** @type {Block[]} */
  const blocks = [];
  /** The files of methods, by type and name. @type {Map<string, string>} */
  const methods = new Map();
  /** How many functions have a name. @type {Map<string, number>} */
  const named = new Map();
  for (const [file, text] of files) {
    for (const [, name = ""] of text.matchAll(/\bfn\s+(\w+)/g)) named.set(name, (named.get(name) ?? 0) + 1);
    for (const block of implBlocks(text, types)) {
      blocks.push({ ...block, file });
      for (const [, name = ""] of text.slice(block.from, block.to).matchAll(/\bfn\s+(\w+)/g)) methods.set(`${block.type} ${name}`, file);
    }
  }
  /** @type {Map<string, Map<string, string>>} */
  const edges = new Map();
  for (const [file, text] of files) {
    /** @type {Map<string, string>} */
    const to = new Map();
    edges.set(file, to);
    const own = blocks.filter((block) => block.file === file);
    const calls = /(?:\.(\w+)\(\)\s*|\b(self)\s*)?\.\s*(\w+)\s*(?:::<[^>]*>)?\(/g;
    for (const { 1: accessor, 2: self, 3: name = "", index } of text.matchAll(calls)) {
      const inside = own.find(({ from, to }) => from < index && index < to)?.type;
      const type = accessor !== undefined ? accessors.get(accessor) : self && inside;
      // Without the type, a name says whose method it is where only one function has it. Below the engine there are no threads.
      const byName = /^(api|engine)\//.test(file) && named.get(name) === 1 ? anyOf(methods, types, name) : undefined;
      const called = (type && methods.get(`${type} ${name}`)) ?? byName;
      if (called !== undefined && called !== file && !to.has(called)) to.set(called, `.${name}()`);
    }
  }
  return edges;
}

/** @param {Map<string, string>} methods @param {Set<string>} types @param {string} name */
const anyOf = (methods, types, name) => [...types].map((type) => methods.get(`${type} ${name}`)).find((file) => file !== undefined);

/** How many methods each of these types has. @param {Map<string, string>} files */
export function methodCounts(files) {
  const types = new Set(["Thread", ...handles(files).values()]);
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const text of files.values()) {
    for (const { type, from, to } of implBlocks(text, types)) {
      const found = text.slice(from, to).match(/^ {4}(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?fn \w+/gm)?.length ?? 0;
      counts.set(type, (counts.get(type) ?? 0) + found);
    }
  }
  // Each handle has an accessor on `Thread`.
  counts.set("Thread", (counts.get("Thread") ?? 0) + types.size - 1);
  return counts;
}
