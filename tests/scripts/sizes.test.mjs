// scripts/sizes.mjs: what is too long is told by file, line and name.

import assert from "node:assert/strict";
import { test } from "node:test";
import { complaints, FILE_LINES, FUNCTION_LINES } from "../../scripts/sizes.mjs";

/** @param {Record<string, string>} files @param {Record<string, Record<string, string>>} [longer] */
const said = (files, longer = {}) => complaints(new Map(Object.entries(files)), longer);

/** So many lines of something. @param {number} count @param {string} [line] */
const lines = (count, line = "    x();") => `${line}\n`.repeat(count);

test("a file may have so many lines, and none more", async () => {
  assert.deepEqual(await said({ "src/a.rs": lines(FILE_LINES, "//"), "tests/a.mjs": lines(FILE_LINES, "//") }), []);
  assert.deepEqual(await said({ "tests/a.mjs": lines(FILE_LINES + 1, "//") }), ["tests/a.mjs has 601 lines; at most 600 are allowed"]);
});

test("a long function of Rust is told, whatever is written in it", async () => {
  const whole = `pub fn whole<T>(a: [u8; 3]) -> Result<T>\nwhere\n    T: Fn() -> u8,\n{\n${lines(FUNCTION_LINES - 5)}}\n`;
  assert.deepEqual(await said({ "src/a.rs": whole }), []);
  // What looks like brackets in texts, characters and comments is none.
  const odd = lines(1, `    a("}", '}', r#"}"#, b'\\'', "\\"}"); // }`) + lines(1, "    /* } */ let x: &'a str = y;");
  const long = `// fn f() {\nimpl A {\n    async fn long(&self) {\n${odd}${lines(FUNCTION_LINES)}    }\n}\n`;
  assert.deepEqual(await said({ "src/a.rs": long }), ["src/a.rs:3: long has 64 lines; at most 60 are allowed"]);
  assert.deepEqual(await said({ "tests/a.rs": long }), [], "tests tell stories");
  assert.deepEqual(await said({ "src/a.rs": `fn a() {}\n#[cfg(test)]\nmod tests {\n${long}}\n` }), []);
  assert.deepEqual(await said({ "src/a.rs": `trait A {\n    fn a();\n}\n${whole}` }), [], "what is declared has no lines");
});

test("functions inside others count for themselves", async () => {
  const inner = (/** @type {number} */ count) => `  const inner = () => {\n${lines(count)}  };\n`;
  const outer = (/** @type {number} */ count) => `export function outer() {\n${inner(count)}${inner(count)}}\n`;
  assert.deepEqual(await said({ "scripts/a.mjs": outer(50) }), []);
  assert.deepEqual(await said({ "scripts/a.mjs": outer(59) }), [
    "scripts/a.mjs:2: (a function) has 61 lines; at most 60 are allowed",
    "scripts/a.mjs:63: (a function) has 61 lines; at most 60 are allowed",
  ]);
  const rust = `fn outer() {\n    fn inner() {\n${lines(50)}    }\n${lines(50)}}\n`;
  assert.deepEqual(await said({ "src/a.rs": rust }), []);
});

test("a table may be long if it is listed, and what is listed is one", async () => {
  const table = `fn table() {\n${lines(FUNCTION_LINES)}}\n`;
  assert.deepEqual(await said({ "src/a.rs": table }, { "src/a.rs": { table: "a table" } }), []);
  assert.deepEqual(await said({ "src/a.rs": "fn table() {}\n" }, { "src/a.rs": { table: "a table" } }), [
    "scripts/sizes.mjs lets table of src/a.rs be longer, which it is not",
  ]);
});
