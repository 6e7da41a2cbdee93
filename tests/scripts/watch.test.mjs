// What `npm start` notices of the folder of definitions.

import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { watchFolder } from "../../package/server/watch.mjs";
import { until } from "../worker/support/poll.mjs";
import { scratch } from "../worker/support/server.mjs";

test("every change is noticed, in folders of later too, but for those of packages", async () => {
  const home = scratch("watch");
  mkdirSync(join(home, "agents/tools"), { recursive: true });
  mkdirSync(join(home, "agents/node_modules/x"), { recursive: true });
  const folder = join(home, "agents");
  let changes = 0;
  const end = watchFolder(folder, () => changes++);
  /** @param {string} what @param {() => void} change */
  const noticed = async (what, change) => {
    // Events of the change before this one.
    for (let before = -1; before !== changes; await sleep(50)) before = changes;
    const before = changes;
    change();
    await until(what, () => changes > before);
  };
  const write = (/** @type {string} */ name) => writeFileSync(join(folder, name), String(Math.random()));
  try {
    await noticed("a new file", () => write("tools/a.ts"));
    await noticed("a change", () => write("tools/a.ts"));
    // As `sed -i`, `git checkout` and most editors write: another file takes the name.
    for (let round = 1; round <= 3; round++) {
      await noticed(`a file is replaced, ${round}`, () => {
        write("tools/.a.ts.tmp");
        renameSync(join(folder, "tools/.a.ts.tmp"), join(folder, "tools/a.ts"));
      });
      await noticed(`the new one is changed, ${round}`, () => write("tools/a.ts"));
    }
    await noticed("settings", () => write("bobbin.json"));
    await noticed("a new folder", () => mkdirSync(join(folder, "lib/deep"), { recursive: true }));
    await noticed("a file in it", () => write("lib/b.ts"));
    await noticed("one further down", () => write("lib/deep/c.ts"));
    mkdirSync(join(home, "other"));
    await noticed("a folder is replaced", () => {
      renameSync(join(folder, "tools"), join(home, "gone"));
      renameSync(join(home, "other"), join(folder, "tools"));
    });
    await noticed("a file in the new one", () => write("tools/d.ts"));
    await noticed("a folder is removed", () => rmSync(join(folder, "lib"), { recursive: true }));
    for (let before = -1; before !== changes; await sleep(50)) before = changes;
    const before = changes;
    write("node_modules/x/index.js");
    await sleep(200);
    assert.equal(changes, before);
  } finally {
    end();
    rmSync(home, { recursive: true, force: true });
  }
});
