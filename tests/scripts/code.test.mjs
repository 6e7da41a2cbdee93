// Code of an application on its way into the catalog: what is bundled, what stays as it is, and what is said of mistakes.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import * as esbuild from "esbuild";
import { bundleCode } from "../../package/compiler/code.mjs";
import { readDefinitions } from "../../package/compiler/folder.mjs";
import { inCheckout } from "../../scripts/files.mjs";

const home = mkdtempSync(join(tmpdir(), "bobbin-code-"));
after(() => rmSync(home, { recursive: true, force: true }));
let folders = 0;

/** @typedef {Record<string, import("../../package/compiler/code.mjs").Source>} Bundles */

/** @param {Record<string, string>} files @returns {string} the folder with them */
function folder(files) {
  const path = join(home, String(++folders));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

/** @param {Record<string, string>} files @returns {Promise<Bundles>} */
async function bundles(files) {
  const { bundles, findings } = await bundled(folder(files));
  assert.deepEqual(findings, []);
  return bundles;
}

/** @param {string} path */
const bundled = (path) => bundleCode(path, readDefinitions(path), { esbuild, web: inCheckout("isolate/web") });

/** What the isolate provides to modules, as a package. */
const ISOLATE = {
  "node_modules/bobbin/package.json": '{ "type": "module", "exports": { "./url": "./url.js" } }',
  "node_modules/bobbin/url.js": `export * from "${pathToFileURL(inCheckout("isolate/harness/url.js"))}";`,
};

/**
 * Runs what a bundle's default export gives, with all modules where the catalog has them.
 *
 * @param {Bundles} made
 * @param {string} file
 */
async function run(made, file) {
  const files = Object.entries(made).map(([name, { source }]) => [name.replace(/\.m?ts$/, ".mjs"), source]);
  const path = folder({ "package.json": '{ "type": "module" }', ...ISOLATE, ...Object.fromEntries(files) });
  const module = await import(pathToFileURL(join(path, file.replace(/\.m?ts$/, ".mjs"))).href);
  return module.default();
}

/** @param {Record<string, string>} files @returns {Promise<string[]>} what is complained about, without the folder */
async function complaints(files) {
  const { findings } = await bundled(folder(files));
  return findings.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`).sort();
}

test("a folder without code is left alone", async () => {
  const path = folder({ "tools/x.json": "{}", "tools/x.d.ts": "", "tools/x.test.ts": "this is no code", "stray.ts": "nor is this" });
  assert.deepEqual(await bundled(path), { bundles: {}, findings: [] });
});

test("a file that imports nothing stays as it is, so that errors name its own lines", async () => {
  const source = 'import type { ThreadState } from "bobbin";\n\nexport default async (\n  state: ThreadState,\n) => state.threadId;\n';
  const made = await bundles({ "tools/x.ts": source, "api/[day].post.ts": "export default () => 1", "hooks/x.mjs": "\uFEFFexport default () => 2" });
  assert.deepEqual(made["tools/x.ts"], { source, uses: [], exports: ["default"] });
  assert.deepEqual(made["api/[day].post.ts"], { source: "export default () => 1", uses: [], exports: ["default"] });
  assert.deepEqual(made["hooks/x.mjs"], { source: "export default () => 2", uses: [], exports: ["default"] });
});

test("names that the web has and the language has not come from modules, at the end of the file", async () => {
  const source = 'export default async () => {\n  const found: Response | URL = new URL("../x", "http://a.test/b/c");\n  return `${found}`;\n};\n';
  const made = await bundles({ "api/deep/x.ts": source });
  assert.deepEqual(made["api/deep/x.ts"], {
    source: `${source}\nimport { URL } from "../../bobbin/url.js";`,
    uses: ["bobbin/url.js"],
    exports: ["default"],
  });
  assert.deepEqual(made["bobbin/url.js"]?.uses, ["bobbin/encoding.js"]);
  assert.deepEqual(made["bobbin/http.js"]?.uses, ["bobbin/events.js", "bobbin/encoding.js", "bobbin/form.js", "bobbin/url.js"]);
});

test("a name that the file has itself, or that it asks for as a property, is what the file means", async () => {
  const made = await bundles({
    "tools/own.js": "const fetch = () => 1; export default fetch;",
    "tools/property.js": "export default () => typeof globalThis.TextEncoder + typeof globalThis.WebSocket + String(global === globalThis);",
    "tools/asks.js": 'export default () => typeof fetch === "function";',
  });
  assert.deepEqual(made["tools/own.js"]?.uses, []);
  assert.deepEqual(made["tools/property.js"]?.uses, ["bobbin/encoding.js"]);
  assert.match(made["tools/property.js"]?.source ?? "", /from "\.\.\/bobbin\/encoding\.js"/);
  assert.deepEqual(made["tools/asks.js"]?.uses, ["bobbin/http.js"]);
});

test("what is imported comes along: files, packages, texts", async () => {
  const made = await bundles({
    "tools/x.ts": `import { shout } from "../lib/shout";
      import old from "old";
      import { where } from "halves";
      import note from "../lib/note.md";
      import { answer } from "../lib/data.json";
      export default async () => [shout("a"), old.say(), where, note, answer, (await import("../lib/late.js")).late, process.env.NODE_ENV];`,
    "lib/shout.ts": "export const shout = (text: string): string => text.toUpperCase();\nexport const unused = 'not wanted';",
    "lib/late.js": "export const late = 'late';",
    "lib/note.md": "# a note",
    "lib/data.json": '{ "answer": 42 }',
    "node_modules/old/package.json": '{ "name": "old", "version": "1.0.0", "main": "old.js" }',
    "node_modules/old/old.js": "exports.say = () => new URL('http://old.test/%7Ex').pathname;",
    "node_modules/halves/package.json": '{ "name": "halves", "exports": { "node": "./node.js", "browser": "./web.js", "default": "./node.js" } }',
    "node_modules/halves/node.js": 'import "node:fs"; export const where = "node";',
    "node_modules/halves/web.js": 'export const where = "web";',
  });
  assert.deepEqual(Object.keys(made).filter((file) => !file.startsWith("bobbin/")), ["lib/late.js", "lib/shout.ts", "tools/x.ts"]);
  assert.deepEqual(made["tools/x.ts"]?.uses, ["bobbin/url.js"]);
  assert.doesNotMatch(made["tools/x.ts"]?.source ?? "", /not wanted/);
  assert.deepEqual(await run(made, "tools/x.ts"), ["A", "/%7Ex", "web", "# a note", 42, "late", "production"]);
});

test("lines of a bundle are told apart: whose they are, and which they were", async () => {
  const made = await bundles({
    "tools/x.ts": `import { deep } from "../lib/deep";
import { pack } from "pack";

interface Gone {
  one: string;
}

// Nothing is left of this.
export default (state: Gone) => {
  const url = new URL("http://x");
  deep(pack(url));
  throw new Error(\`here \${state.one}\`);
};
`,
    "lib/deep.ts": "type Gone = string;\n\nexport const deep = (text: Gone) => {\n  if (text === '') throw new Error('there');\n};\n",
    "node_modules/pack/package.json": '{ "name": "pack", "main": "x.js" }',
    "node_modules/pack/x.js": "exports.pack = (value) => {\n  return 'packed' + value;\n};\n",
  });
  const { source, lines = [] } = /** @type {import("../../package/compiler/code.mjs").Source} */ (made["tools/x.ts"]);
  /** @param {string} text  in a line of the bundle */
  const origin = (text) => {
    const line = source.split("\n").findIndex((candidate) => candidate.includes(text)) + 1;
    assert.ok(line > 0, source);
    const [from, file, first] = lines.findLast(([from]) => from <= line) ?? [0, "none", 0];
    return file === "" ? "a package" : `${file}:${first + line - from}`;
  };
  assert.equal(origin("here ${"), "tools/x.ts:12");
  assert.equal(origin("deep((0"), "tools/x.ts:11");
  assert.equal(origin("there"), "lib/deep.ts:4");
  assert.equal(origin("'packed'".replaceAll("'", '"')), "a package");
  assert.equal(made["lib/deep.ts"]?.lines, undefined, "what stays as it is needs none");
});

test("syntax that the engine does not know becomes what it knows", async () => {
  const source = `const twice = (method: () => number, _: ClassMethodDecoratorContext) => () => 2 * method();
    class Small { @twice one() { return 1; } }
    export default () => new Small().one();`;
  const made = await bundles({ "tools/x.ts": source });
  assert.doesNotMatch(made["tools/x.ts"]?.source ?? "", /@twice/);
  assert.equal(await run(made, "tools/x.ts"), 2);
});

test("every mistake is named with file, line and column, once", async () => {
  assert.deepEqual(
    await complaints({
      "tools/a.ts": 'import fs from "node:fs";\nimport { join } from "path";\nexport default () => [fs, join];\n',
      "tools/b.ts": 'import { pad } from "left-pad";\nimport { z } from "./nowhere";\nimport { defineTool } from "bobbin";\nexport default () => [pad, z, defineTool];\n',
      "lib/c.ts": "/* é日\u{1f600} */ export const c = 1 +;\n",
      "tools/d.ts": 'import { c } from "../lib/c";\nexport default () => c;\n',
      "tools/e.ts": 'import { missing } from "./f";\nexport default () => missing;\n',
      "tools/f.ts": "export const there = 1;\n",
    }),
    [
      "lib/c.ts:1:32: Unexpected \";\"",
      "tools/a.ts:1:16: \"node:fs\" is a module of Node.js, which does not exist in the sandbox",
      "tools/a.ts:2:22: \"path\" is a module of Node.js, which does not exist in the sandbox",
      'tools/b.ts:1:21: the package of "left-pad" is not installed: run `npm install` in the folder of definitions',
      'tools/b.ts:2:19: there is no file "./nowhere"',
      'tools/b.ts:3:28: "bobbin" contains only types: write `import type`',
      'tools/e.ts:1:10: No matching export in "tools/f.ts" for import "missing"',
    ],
  );
  assert.equal((await complaints({ "tools/x.js": "export default (;" })).length, 1);
});

test("a module of Node's that a package only tries is no mistake until it is asked for", async () => {
  const made = await bundles({
    "tools/x.js": 'import tries from "tries"; export default () => tries();',
    "node_modules/tries/package.json": '{ "name": "tries", "main": "x.js" }',
    "node_modules/tries/x.js": 'let fs; try { fs = require("fs"); } catch { fs = "none"; } module.exports = () => fs;',
  });
  assert.equal(await run(made, "tools/x.js"), "none");
});

test("files whose names are patterns elsewhere are bundled like all others, and alone", async () => {
  const names = ["api/c/[*].ts", "api/[x].ts", "lib/a{b,c}.ts", "lib/q?.ts", "lib/w*.ts", "lib/#h.ts", "lib/$&.ts"];
  const made = await bundles(Object.fromEntries(names.map((name) => [name, `import { one } from "${name.startsWith("api/c") ? "../../" : "../"}lib/one.js"; export default () => one + ${JSON.stringify(name)};`]).concat([["lib/one.js", "export const one = 1; export const more = () => new URL('http://x');"]])));
  for (const name of names) {
    assert.ok(made[name]?.source.includes(JSON.stringify(name)), name);
    assert.equal(made[name]?.source.match(/export \{/g)?.length, 1, name);
  }
});

test("names that a file exports are told, whether or not they are bundled", async () => {
  const made = await bundles({ "tools/a.ts": "export const execute = 1; export type T = string;", "tools/b.ts": 'export * from "./a"; export { execute as default } from "./a";', "lib/c.ts": "" });
  assert.deepEqual([made["tools/a.ts"]?.exports, made["tools/b.ts"]?.exports?.sort(), made["lib/c.ts"]?.exports], [["execute"], ["default", "execute"], []]);
});

test("what a package puts in place of its files for browsers is what is bundled", async () => {
  const made = await bundles({
    "tools/x.js": 'import { one } from "mapped"; import two from "named"; export default () => [one, two];',
    "node_modules/mapped/package.json": '{ "name": "mapped", "main": "x.js", "browser": { "./node.js": "./web.js", "fs": false } }',
    "node_modules/mapped/x.js": 'const fs = require("fs"); exports.one = require("./node.js") + Object.keys(fs).length;',
    "node_modules/mapped/node.js": 'module.exports = require("http");',
    "node_modules/mapped/web.js": 'module.exports = "web";',
    "node_modules/named/package.json": '{ "name": "named", "main": "node.js", "browser": "web.js" }',
    "node_modules/named/node.js": 'module.exports = require("stream");',
    "node_modules/named/web.js": 'module.exports = "web";',
  });
  assert.deepEqual(await run(made, "tools/x.js"), ["web0", "web"]);
});

test("what is wrong with a package is said of the file that imports it", async () => {
  const lines = await complaints({
    "tools/a.ts": '// of Node\nimport { go } from "../lib/go";\nexport default go;\n',
    "lib/go.ts": 'export { go } from "outer/deep";\n',
    "node_modules/outer/package.json": '{ "name": "outer" }',
    "node_modules/outer/deep.js": 'import inner from "inner"; export const go = inner;',
    "node_modules/inner/package.json": '{ "name": "inner", "main": "x.js" }',
    "node_modules/inner/x.js": 'import fs from "fs"; import tls from "tls"; export default [fs, tls];',
  });
  const text = `lib/go.ts:1:20: "outer/deep" cannot run in the sandbox: "fs" is a module of Node.js, which does not exist in the sandbox (node_modules/inner/x.js:1:16; and 1 more like this)`;
  assert.deepEqual(lines, [text]);
});

test("what code asks the global object for is there, as far as it is named", async () => {
  const made = await bundles({
    "tools/finds.js": 'import find from "find"; export default () => find();',
    "node_modules/find/package.json": '{ "name": "find", "main": "x.js" }',
    "node_modules/find/x.js": `var root = typeof self !== "undefined" ? self : typeof global !== "undefined" ? global : this;
      module.exports = () => [typeof root["crypto"].getRandomValues, root.btoa("a"), root === globalThis, Object.keys(root).includes("crypto")];`,
    "tools/sets.js": "globalThis.fetch ??= 1; export default () => typeof globalThis.fetch;",
  });
  assert.deepEqual(made["tools/finds.js"]?.uses, ["bobbin/crypto.js", "bobbin/encoding.js"]);
  assert.deepEqual(made["tools/sets.js"]?.uses, ["bobbin/http.js"]);
  Object.assign(globalThis, { facts: { entropy: new Uint8Array(32) } });
  assert.deepEqual(await run(made, "tools/finds.js"), ["function", "YQ==", true, false]);
});

test("a file that is saved while it is bundled is served as it was read", async () => {
  const path = folder({ "tools/x.ts": "export default () => new URL('http://a');" });
  const bundling = bundled(path);
  // It was read by then, and the bundler has not answered.
  await new Promise(setImmediate);
  writeFileSync(join(path, "tools/x.ts"), 'import { z } from "zod"; export default () => [z, fetch];');
  const { source = "", uses } = (await bundling).bundles["tools/x.ts"] ?? {};
  if (source.includes("zod")) assert.fail(`an import that nobody bundled: ${source}`);
  assert.deepEqual(uses, ["bobbin/url.js"]);
});
