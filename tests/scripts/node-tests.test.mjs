// scripts/node-tests.mjs: the counts of test files. A file that crashed, hung or ran nothing never counts as a success.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { nodeTests } from "../../scripts/node-tests.mjs";

const folder = mkdtempSync(join(tmpdir(), "bobbin-counted-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const IMPORTS = 'import { test, suite } from "node:test"; import { existsSync, writeFileSync } from "node:fs";';

/** @param {string} name @param {string} body */
function file(name, body) {
  const path = join(folder, `${name}.test.mjs`);
  writeFileSync(path, `${IMPORTS}\n${body}`);
  return path;
}

/** The runner refuses to run within a test of itself. @param {string[]} files @param {import("../../scripts/node-tests.mjs").Options} [options] */
async function counted(files, options) {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  delete process.env.NODE_TEST_CONTEXT;
  try {
    return await nodeTests(files, options);
  } finally {
    Object.assign(process.env, env, NODE_TEST_CONTEXT !== undefined && { NODE_TEST_CONTEXT });
  }
}

test("tests are counted, and not the suites around them", async () => {
  const fine = file("fine", 'suite("s", () => { test("a", () => {}); test("b", { skip: true }, () => {}); });');
  const wrong = file("wrong", 'test("outer", async (t) => { await t.test("inner", () => { throw new Error("no"); }); });');
  assert.deepEqual(await counted([fine, wrong]), { passed: 1, failed: 1, skipped: 1 });
  assert.deepEqual(await counted([fine, wrong], { name: "^a$" }), { passed: 1, failed: 0, skipped: 0 });
});

test("a file that fails beside others and passes alone is named", async () => {
  const flag = JSON.stringify(join(folder, "flag"));
  const unsteady = file("unsteady", `test("a", () => { if (!existsSync(${flag})) { writeFileSync(${flag}, ""); throw new Error("once"); } });`);
  const { unsteady: named, ...counts } = await counted([unsteady]);
  assert.deepEqual(counts, { passed: 1, failed: 0, skipped: 0 });
  assert.match(String(named), /unsteady\.test\.mjs$/);
});

for (const [what, body] of [
  ["throws outside its tests", 'throw new Error("no");'],
  ["exits before its tests", "process.exit(0);"],
  ["exits within a test", 'test("a", () => process.exit(0)); test("b", () => {});'],
  ["has no tests", ""],
]) {
  test(`a file that ${what} has failed`, async () => {
    const counts = await counted([file(`broken-${what?.replaceAll(" ", "-")}`, body ?? "")]);
    assert.deepEqual([counts.passed, counts.failed], [0, 1]);
  });
}
