// scripts/run.mjs: programs that the scripts run.

import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test } from "node:test";
import { run, stopPrograms } from "../../scripts/run.mjs";

test("programs that are stopped fail at once", async () => {
  const started = performance.now();
  const programs = [run("sleep", ["30"]), run("sleep", ["30"])];
  stopPrograms();
  await Promise.all(programs.map((program) => assert.rejects(program, /sleep 30 failed \(SIGKILL\)/)));
  assert.ok(performance.now() - started < 10_000);
});
