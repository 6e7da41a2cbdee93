// What `npm test` need not run again, and the order in which it runs the rest.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Passed } from "../../scripts/passed.mjs";
import { schedule } from "../../scripts/schedule.mjs";

const FILES = { "src/lib.rs": "1", "docs/http.md": "2", "scripts/suites.mjs": "3" };

/** @param {Record<string, string>} [changed] @param {string} [outside] */
const inputs = (changed = {}, outside = "node 24") =>
  new Passed(new Map(Object.entries({ ...FILES, ...changed })), outside).inputs(/^(docs|scripts)\//);

test("a section runs again when a file that it reads, a script that runs it, or the machine has changed", () => {
  assert.equal(inputs(), inputs());
  assert.equal(inputs(), inputs({ "docs/http.md": "other" }));
  const other = [
    inputs({ "src/lib.rs": "other" }),
    inputs({ "src/new.rs": "" }),
    inputs({ "scripts/suites.mjs": "other" }),
    inputs({}, "node 26"),
  ];
  assert.equal(new Set([inputs(), ...other]).size, 5);
});

/** @param {string} id @param {string[]} needs */
const job = (id, ...needs) => ({ what: id, id, needs });

test("two sections run at a time, each after what it needs, and learn whether that went well", async () => {
  /** @type {string[]} */
  const seen = [];
  let running = 0;
  await schedule([job("a"), job("b", "a"), job("c"), job("d", "b"), job("e", "not there")], 2, async (id, ready) => {
    running += 1;
    assert.ok(running <= 2);
    seen.push(`${id} ${ready}`);
    await sleep(id === "a" ? 20 : 5);
    running -= 1;
    return ready && id !== "b";
  });
  assert.deepEqual(seen, ["a true", "c true", "e true", "b true", "d false"]);
  await assert.rejects(schedule([job("f", "g"), job("g", "f")], 2, async () => true), /need each other: f, g/);
});
