// The types of code in the sandbox: what is right compiles, what would go wrong does not.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { checkout } from "../worker/support/server.mjs";

/** @param {string} project @returns {string} what the compiler says */
function compiled(project) {
  const tsc = join(checkout, "node_modules/typescript/bin/tsc");
  const { stdout, stderr } = spawnSync(process.execPath, [tsc, "--project", join(checkout, project), "--pretty", "false"], { encoding: "utf8" });
  return stdout + stderr;
}

test("everything that code may use is there, and mistakes in its use are found", () => {
  // Each `@ts-expect-error` there is an error by itself where there is no mistake.
  assert.equal(compiled("tests/fixtures/types"), "");
});

test("the code of the sample application is right", () => {
  assert.equal(compiled("agents"), "");
});
