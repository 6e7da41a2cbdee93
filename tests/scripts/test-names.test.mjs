// scripts/test-names.mjs: `npm test -- NAME` finds the tests with this text in their names.

import assert from "node:assert/strict";
import { test } from "node:test";
import { testsOf } from "../../scripts/test-names.mjs";

test("a test of Rust is found by a part of its function's name, in its package", () => {
  assert.deepEqual(testsOf("the_fields_of_a_wait_are_in").packages, ["bobbin-protocols"]);
  assert.deepEqual(testsOf("scenarios::no_such_story").packages, []);
});

test("a test of Node is found by a part of its title, and a file by its path", () => {
  const title = "is found by a part of its title, and a file";
  const here = ["tests/scripts/test-names.test.mjs"];
  assert.deepEqual(testsOf(title), { packages: [], files: [], titled: here });
  assert.deepEqual(testsOf("scripts/test-names"), { packages: [], files: here, titled: [] });
});
