// The compiler over real TypeScript: the sources of published packages come out as TypeScript's own compiler makes
// them, every line where it was; and over ECMAScript's own parser tests, which come out as they went in.

import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import assert from "node:assert/strict";
import { relative } from "node:path";
import { inCheckout } from "../../scripts/files.mjs";
import { code, compile, difference, hasCodeOfTypes, inPlace, OTHERWISE, reference, sampled, shape, sources, surroundings } from "./support/compiler.mjs";

/** Packages that ship their sources, and how many files are to be found at least. */
const PACKAGES = /** @type {const} */ ([
  ["rxjs/src", 240],
  ["zod/src", 300],
  ["ajv/lib", 100],
  ["mobx/src", 50],
  ["immer/src", 14],
  ["@trpc/server/src", 80],
  ["prosemirror-model/src", 12],
  ["@noble/curves/src", 20],
]);

for (const [folder, least] of PACKAGES) {
  test(`the sources of ${folder} become what TypeScript makes of them`, () => {
    const all = sources(folder);
    assert.ok(all.length >= least, `${all.length} files`);
    const files = sampled(all);
    let erased = 0;
    for (const file of files) {
      const name = relative(inCheckout("node_modules"), file);
      const { source, modules, imports } = surroundings(readFileSync(file, "utf8"));
      const ours = code(source, { modules, imports });
      const found = difference(ours, reference(source));
      const otherwise = OTHERWISE.get(name);
      if (otherwise) assert.match(found ?? "", otherwise, name);
      else assert.equal(found, undefined, `${name}\n${found}`);
      const lines = (/** @type {string} */ text) => text.split(/\r\n|[\n\r\u2028\u2029]/).length;
      assert.equal(lines(ours), lines(source), name);
      if (hasCodeOfTypes(source)) continue;
      assert.equal(inPlace(source, ours), undefined, name);
      erased++;
    }
    assert.ok(erased > files.length / 4, `${erased} of ${files.length} files were only erased`);
  });
}

test("the modules of a package link", () => {
  for (const [folder, main, imports] of /** @type {[string, string, Record<string, string[]>][]} */ ([
    ["rxjs/src", "./index", {}],
    ["immer/src", "./immer", {}],
    ["mobx/src", "./mobx", {}],
    ["zod/src", "./v4/index.js", {}],
  ])) {
    const root = inCheckout(`node_modules/${folder}`);
    const modules = sources(folder)
      .filter((file) => !/\/(tests?|benchmarks)\//.test(file))
      .map((file) => /** @type {[string, string]} */ ([`./${relative(root, file)}`, readFileSync(file, "utf8")]));
    for (const links of /** @type {const} */ (["written", "keyed"])) {
      const { error, modules: compiled } = compile(`export * from ${JSON.stringify(main)};`, { modules, imports, links });
      assert.equal(error, undefined, `${folder}: ${JSON.stringify(error)}`);
      assert.equal(compiled?.length, modules.length + 1);
      for (const { code } of compiled ?? []) shape(code);
    }
  }
});

/** The parser tests of ECMAScript that are modules, or mean the same as one. @param {string} folder */
function parserTests(folder) {
  const root = inCheckout(`node_modules/test262-parser-tests/${folder}`);
  return readdirSync(root).map((name) => ({ name, text: readFileSync(`${root}/${name}`, "utf8") }));
}

test("programs of the ECMAScript parser tests come out as they went in", () => {
  let same = 0;
  /** @type {string[]} */
  const wrong = [];
  for (const { name, text } of [...parserTests("pass"), ...parserTests("pass-explicit")]) {
    // Some are programs that are no modules: those whose strictness or own `await` forbid it.
    if (!isModule(text)) continue;
    const { error, modules } = compile(text, { language: "javascript" });
    const ours = modules?.[0]?.code.slice(0, text.length);
    if (ours === text) same++;
    else if (error?.name !== "LinkError") wrong.push(`${name}: ${JSON.stringify(error ?? ours)}: ${text}`);
  }
  assert.deepEqual(wrong, []);
  assert.ok(same > 2_500, `${same} programs`);
});

test("programs that are wrong are refused, or come out as they went in", () => {
  let refused = 0;
  for (const { name, text } of [...parserTests("fail"), ...parserTests("early")]) {
    const { error, modules } = compile(text, { language: "javascript" });
    if (error) refused++;
    else assert.equal(modules?.[0]?.code.slice(0, text.length), text, name);
  }
  assert.ok(refused > 600, `${refused} refused`);
});

/** Whether Node's own parser takes a text as a module. @param {string} text */
function isModule(text) {
  try {
    shape(text);
    new Function(`"use strict"; return async () => { ${text}\n }`);
    return true;
  } catch {
    return false;
  }
}
