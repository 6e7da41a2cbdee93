// Two servers never share a folder of threads.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkout, scratch } from "../worker/support/server.mjs";

const MODULE = join(checkout, "package/server/state-folder.mjs");

/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();

/**
 * A process that takes the folder and says so.
 *
 * @param {string} folder
 * @param {{ and?: string, then?: string }} [what]   what it does before it says so, and after
 */
function taker(folder, { and = "", then = "setInterval(() => {}, 1000)" } = {}) {
  const code = `
    const { takeStateFolder } = await import(${JSON.stringify(MODULE)});
    try {
      const taken = await takeStateFolder(${JSON.stringify(folder)}, "http://127.0.0.1:" + process.pid);
      ${and};
      console.log("taken");
      ${then};
    } catch (error) { console.log(error.message); process.exit(1); }`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], { stdio: ["ignore", "pipe", "inherit"] });
  children.add(child);
  const closed = once(child, "close");
  // What it says first; nothing if it ends without a word.
  const said = Promise.race([once(child.stdout.setEncoding("utf8"), "data"), closed.then(() => [""])]).then(([text]) => String(text).trim());
  return { child, closed, said };
}

test("a folder of threads is served by one server, however the one before ended", async () => {
  const folder = scratch("state");
  try {
    const first = taker(folder);
    assert.equal(await first.said, "taken");

    const second = taker(folder);
    const refusal = await second.said;
    assert.match(refusal, new RegExp(`Another server, http://127.0.0.1:${first.child.pid}, serves the threads in .* \\(process ${first.child.pid}\\)`));
    assert.match(refusal, /--persist DIR/);

    // Killed without a chance to say so.
    first.child.kill("SIGKILL");
    await first.closed;
    const third = taker(folder, { then: "process.exit(0)" });
    assert.equal(await third.said, "taken");
    await third.closed;
    assert.equal(existsSync(join(folder, "server.json")), false, "one that ends in order leaves nothing");

    // What a process has started goes on for a while after it was killed.
    const fourth = taker(folder, { and: `taken.add(${process.pid})` });
    assert.equal(await fourth.said, "taken");
    fourth.child.kill("SIGKILL");
    await fourth.closed;
    assert.match(await taker(folder).said, /Another server, .* serves the threads/);

    // Ten at the same moment.
    rmSync(join(folder, "server.json"));
    const ten = Array.from({ length: 10 }, () => taker(folder));
    const said = await Promise.all(ten.map(({ said }) => said));
    assert.equal(said.filter((text) => text === "taken").length, 1, said.join("\n"));
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

test("threads are not kept in a file", async () => {
  const folder = scratch("state");
  writeFileSync(join(folder, "file"), "");
  assert.match(await taker(join(folder, "file")).said, /it is a file\. Name a folder with `--persist DIR`/);
  assert.match(await taker(join(folder, "file/deeper")).said, /it is a file/);
  rmSync(folder, { recursive: true, force: true });
});
