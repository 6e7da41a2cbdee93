// Line ends decide where statements end. The sources of published packages, their line ends and semicolons moved by
// chance, still mean to the compiler what they mean to TypeScript.

import { readFileSync } from "node:fs";
import { test } from "node:test";
import assert from "node:assert/strict";
import { relative } from "node:path";
import ts from "typescript";
import { inCheckout } from "../../scripts/files.mjs";
import { compile, difference, OTHERWISE, reference, sampled, sources, surroundings } from "./support/compiler.mjs";

const FOLDERS = ["rxjs/src/internal", "mobx/src", "immer/src", "@trpc/server/src", "zod/src/v3", "ajv/lib/compile"];
const SEED = 20_261_122;

/** Numbers from 0 to 1, the same in each run. @param {number} seed */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Where a source has blanks and semicolons between its tokens. @param {string} source */
function gaps(source) {
  /** @type {{ at: number, end: number, semicolon: boolean }[]} */
  const found = [];
  const file = ts.createSourceFile("source.ts", source, ts.ScriptTarget.ESNext, true, ts.ScriptKind.TS);
  /** @param {import("typescript").Node} node */
  const visit = (node) => {
    if (ts.isTemplateExpression(node) || ts.isJSDoc(node)) return;
    if (node.getChildCount(file) > 0) {
      node.getChildren(file).forEach(visit);
      return;
    }
    const at = node.getFullStart();
    if (/^ +$/.test(source.slice(at, node.getStart(file)))) found.push({ at, end: node.getStart(file), semicolon: false });
    if (node.kind === ts.SyntaxKind.SemicolonToken) found.push({ at: node.getStart(file), end: node.end, semicolon: true });
  };
  visit(file);
  return found;
}

/** @param {string} source */
function isTypeScript(source) {
  const file = ts.createSourceFile("source.ts", source, ts.ScriptTarget.ESNext, false, ts.ScriptKind.TS);
  return /** @type {{ parseDiagnostics: unknown[] }} */ (/** @type {unknown} */ (file)).parseDiagnostics.length === 0;
}

for (const [name, { blanks, semicolons }] of Object.entries({
  "without semicolons": { blanks: 0, semicolons: 1 },
  "with some line ends more": { blanks: 0.02, semicolons: 0 },
  "with line ends more and semicolons less": { blanks: 0.01, semicolons: 0.5 },
})) {
  test(`sources ${name} mean what TypeScript says`, () => {
    const next = numbers(SEED);
    let compared = 0;
    const files = sampled(FOLDERS.flatMap((folder) => sources(folder)));
    for (const file of files) {
      const name = relative(inCheckout("node_modules"), file);
      if (OTHERWISE.has(name)) continue;
      const original = readFileSync(file, "utf8");
      let changed = "";
      let done = 0;
      for (const { at, end, semicolon } of gaps(original)) {
        changed += original.slice(done, at);
        const replaced = next() < (semicolon ? semicolons : blanks);
        changed += replaced ? (semicolon ? "" : "\n") : original.slice(at, end);
        done = end;
      }
      changed += original.slice(done);
      if (!isTypeScript(changed)) continue;
      const { source, modules, imports } = surroundings(changed);
      const { error, modules: compiled } = compile(source, { modules, imports });
      // What TypeScript complains of only when it checks types.
      if (error) continue;
      const found = difference(compiled?.[0]?.code ?? "", reference(`${source}\nexport function __main() {}`));
      assert.equal(found, undefined, `seed ${SEED}, ${name}\n${found}`);
      compared++;
    }
    assert.ok(compared > files.length / 2, `${compared} of ${files.length} files`);
  });
}
