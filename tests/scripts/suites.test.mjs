// What `npm test` does with a file of tests that fails: once more, alone, and it says so.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { nodeTest } from "../../scripts/suites.mjs";

const quiet = { note: () => {}, minutes: 1 };
/** The runner of these tests tells its children that they are part of it. */
const env = { NODE_TEST_CONTEXT: undefined };
/** @type {string} */
let folder;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "bobbin-suites-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** @param {string} name @param {string} body */
function file(name, body) {
  const path = join(folder, name);
  writeFileSync(path, `import { test } from "node:test";\nimport { existsSync, writeFileSync } from "node:fs";\n${body}\n`);
  return path;
}

const steady = (/** @type {string} */ name) => file(name, `test("a", () => {}); test("b", () => {}); test.skip("c", () => {});`);
const failing = (/** @type {string} */ name) => file(name, `test("a", () => {}); test("b", () => { throw new Error("no"); });`);
/** Fails as long as its mark is not there. @param {string} name */
const unsteady = (name) => {
  const mark = JSON.stringify(join(folder, `${name}.ran`));
  return file(name, `test("a", () => {}); test("b", () => { if (existsSync(${mark})) return; writeFileSync(${mark}, ""); throw new Error("no"); });`);
};

test("a file that passes the second time is counted as passed, and named", async () => {
  const counts = await nodeTest(process.execPath, [steady("steady.test.mjs"), unsteady("unsteady.test.mjs")], { ...quiet, env });
  assert.deepEqual(counts, { passed: 4, failed: 0, skipped: 1, unsteady: ["unsteady.test.mjs"] });
});

test("tests that a helper has made are those of the file that asked for them", async () => {
  writeFileSync(join(folder, "helper.mjs"), `import { test } from "node:test"; export const make = (name, body) => test(name, body);`);
  const made = (/** @type {string} */ name, /** @type {string} */ body) => {
    const path = join(folder, name);
    writeFileSync(path, `import { make } from "./helper.mjs"; make("a", () => {}); make("b", () => { ${body} });`);
    return path;
  };
  const files = [made("right.test.mjs", ""), made("wrong.test.mjs", `throw new Error("no");`)];
  const counts = await nodeTest(process.execPath, files, { ...quiet, env });
  assert.deepEqual(counts, { passed: 3, failed: 1, skipped: 0, unsteady: [] });
});

test("a file that fails twice has failed", async () => {
  const counts = await nodeTest(process.execPath, [steady("steady.test.mjs"), failing("failing.test.mjs")], { ...quiet, env });
  assert.deepEqual(counts, { passed: 3, failed: 1, skipped: 1, unsteady: [] });
});

test("when many files fail, none is run again", async () => {
  const files = ["a", "b", "c", "d"].map((name) => unsteady(`${name}.test.mjs`));
  const counts = await nodeTest(process.execPath, files, { ...quiet, env });
  assert.deepEqual(counts, { passed: 4, failed: 4, skipped: 0, unsteady: [] });
});

test("a file that ends without its tests, or prints what looks like a report, is no success", async () => {
  const silent = file("silent.test.mjs", `console.log("null"); console.log("17"); process.exit(0);`);
  const { passed, failed, unsteady } = await nodeTest(process.execPath, [silent], { ...quiet, env });
  assert.deepEqual({ passed, unsteady }, { passed: 0, unsteady: [] });
  assert.ok(failed > 0);
});
