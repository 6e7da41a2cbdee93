// What a server's terminal says of a full disk, from lines as workerd prints them (1.20261023.1).

import assert from "node:assert/strict";
import { test } from "node:test";
import { namingFullDisk } from "../../package/server/full-disk.mjs";

const FAILED = [
  "workerd/io/io-context.c++:609: error: e = workerd/util/sqlite.c++:1757: failed: SQLite failed; dbErrorMessage(err, db) = database or disk is full: SQLITE_FULL",
  "stack: /opt/workerd@3bd3cfb /opt/workerd@3be3ce5; sentryErrorContext = jsgInternalError; sentryTag = SENTRY_DO",
];

test("a full disk is one line a minute, and whatever else the runtime prints stays", () => {
  /** @type {string[]} */
  const lines = [];
  let now = 0;
  const take = namingFullDisk("/data", (line) => void lines.push(line), () => now);
  const other = ["a call to an object was lost: internal error; reference = x", "stack: of another error"];
  for (; now < 90_000; now += 10_000) for (const line of [...FAILED, ...other]) take(line);
  const full = lines.filter((line) => line.includes("/data is full"));
  assert.equal(full.length, 2);
  assert.deepEqual(lines.filter((line) => !full.includes(line)), Array.from({ length: 9 }, () => other).flat());
});
