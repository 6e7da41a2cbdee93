// scripts/floors.mjs: what is no floor is told by file and name.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { complaints, directReads, LARGEST_CIRCLE } from "../../scripts/floors.mjs";

const LIB = `//! A crate.
//!
//! * [\`error\`]: errors.
//! * \`store\`: tables.
//! * \`engine\`: what works.
`;

/**
 * What is said of a crate with these files.
 *
 * @param {Record<string, string>} files  by path below `src`
 * @param {Record<string, string[]>} [joined]
 */
function said(files, joined = {}) {
  const root = mkdtempSync(join(tmpdir(), "floors-"));
  try {
    const always = { "lib.rs": LIB, "error.rs": "pub struct Error;\n", "store/mod.rs": "", "engine/mod.rs": "" };
    for (const [file, text] of Object.entries({ ...always, ...files })) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), text);
    }
    return complaints(root, joined).said;
  } finally {
    rmSync(root, { recursive: true });
  }
}

/** Files that import each other in a circle. @param {number} length */
const circle = (length) =>
  Object.fromEntries(
    Array.from({ length }, (_, place) => [
      `engine/f${place}.rs`,
      `use crate::engine::f${(place + 1) % length}::F${(place + 1) % length};\npub struct F${place};\n`,
    ]),
  );

test("the core keeps its floors", () => {
  assert.deepEqual(complaints(fileURLToPath(new URL("../../src", import.meta.url))).said, []);
});

test("JSON is read in one way", () => {
  const root = mkdtempSync(join(tmpdir(), "floors-"));
  const reads = "pub fn read(text: &str) -> serde_json::Result<u8> {\n    serde_json::from_str(text)\n}\n";
  writeFileSync(join(root, "rows.rs"), reads);
  writeFileSync(join(root, "json.rs"), reads);
  writeFileSync(join(root, "fine.rs"), `// not serde_json::from_str\n${reads.replace("serde_json::from_str", "crate::json::from_str")}`);
  assert.deepEqual(directReads([root]), [
    `${join(root, "rows.rs")} reads by serde_json::from_str: json.rs has a function of that name, which is compiled once for each type`,
  ]);
  rmSync(root, { recursive: true });
});

test("a module may import those below it, and none above", () => {
  const engine = "use crate::error::Error;\nuse crate::store::rows::Row;\npub struct Run(Error, Row);\n";
  assert.deepEqual(said({ "store/rows.rs": "pub struct Row;\n", "engine/run.rs": engine }), []);
  const upward = { "store/rows.rs": "pub struct Row(crate::engine::run::Run);\n", "engine/run.rs": "pub struct Run;\n" };
  assert.deepEqual(said(upward), ["src/store/rows.rs imports crate::engine::run::Run of src/engine/run.rs, a floor above it"]);
  assert.deepEqual(said({ "extra.rs": "pub struct Extra;\n" }), ["src/lib.rs does not list `extra`"]);
  const handedOn = { "store/mod.rs": "pub use crate::engine::run::Run;\n", "engine/run.rs": "pub struct Run;\n" };
  assert.deepEqual(said(handedOn), ["src/store/mod.rs hands on crate::engine::run::Run of src/engine/run.rs, a floor above it"]);
});

test("what a module hands on is imported from where it is", () => {
  const files = {
    "store/mod.rs": "pub mod rows;\npub use crate::store::rows::Row;\n",
    "store/rows.rs": "pub struct Row;\n",
    "error.rs": "pub struct Error(crate::store::Row);\n",
  };
  assert.deepEqual(said(files), ["src/error.rs imports crate::store::Row of src/store/rows.rs, a floor above it"]);
});

test("a large circle of files is told, a small one is not", () => {
  assert.deepEqual(said(circle(LARGEST_CIRCLE)), []);
  const [told, ...more] = said(circle(LARGEST_CIRCLE + 1));
  assert.ok(told?.startsWith(`${LARGEST_CIRCLE + 1} files import or call each other: engine/f0.rs, `), told);
  assert.deepEqual(more, []);
});

const THREAD = {
  "engine/thread.rs": "pub struct Thread;\nimpl Thread {\n    pub(crate) fn read(&self) {}\n}\n",
  "engine/features.rs": "handle! {\n    /// Waits.\n    pub(crate) struct Waits, waits\n}\n",
};

test("a method of a thread or of a handle is called from its own floor or above", () => {
  const below = {
    ...THREAD,
    "engine/waits.rs": "impl Waits<'_> {\n    pub(crate) fn decide(&self) { self.read(); }\n}\n",
    "engine/flow.rs": "impl Thread {\n    fn flow(&self) { self.waits().decide(); }\n}\n",
  };
  assert.deepEqual(said(below), []);
  const lib = `${LIB}//! * \`api\`: routes.\n`;
  const upward = {
    ...below,
    "lib.rs": lib,
    "api/mod.rs": "handle! {\n    /// Routes.\n    pub(crate) struct Api, api\n}\nimpl Api<'_> {\n    fn answer(&self) { self.waits().decide(); }\n}\nimpl Thread {\n    pub fn serve(&self) {}\n}\n",
    "engine/flow.rs": "impl Thread {\n    fn flow(&self) { self.api().answer(); }\n    fn turn(&self, thread: &Thread) { thread.serve(); }\n}\n",
  };
  assert.deepEqual(said(upward), ["src/engine/flow.rs calls .answer() of src/api/mod.rs, a floor above it"]);
  const byName = { ...upward, "engine/flow.rs": "impl Thread {\n    fn turn(&self, thread: &Thread) { thread.serve(); }\n}\n" };
  assert.deepEqual(said(byName), ["src/engine/flow.rs calls .serve() of src/api/mod.rs, a floor above it"]);
});

test("a handle that grows beyond its limit is a fault", () => {
  const methods = Array.from({ length: 91 }, (_, n) => `    fn m${n}(&self) {}\n`).join("");
  assert.deepEqual(said({ ...THREAD, "engine/waits.rs": `impl Waits<'_> {\n${methods}}\n` }), ["Waits has 91 methods; at most 90 are allowed"]);
});

test("a table is named by its own file or folder alone", () => {
  const files = {
    "store/logs.rs": 'pub const A: &str = "CREATE TABLE logs (id INTEGER)";\npub const B: &str = "SELECT id FROM logs";\n',
    "store/messages/mod.rs": 'pub const A: &[&str] = &["CREATE TABLE messages (id INTEGER)", "CREATE INDEX by ON messages (id)"];\n',
    "store/messages/page.rs": 'pub const A: &str = concat!("SELECT ", columns!(), " FROM messages WHERE seq > ?");\n',
    "engine/run.rs": '// FROM logs\npub const A: &str = "what FROM nowhere says ON JSON";\n',
  };
  assert.deepEqual(said(files), []);
  const stray = [
    '"DROP TABLE logs"',
    '"SELECT 1 FROM (SELECT id\\n FROM logs)"',
    'r#"INSERT INTO logs VALUES ("a")"#',
    '"UPDATE logs SET id = 1"',
    '"SELECT 1 FROM x JOIN logs"',
    'concat!("DELETE", " FROM logs")',
  ];
  for (const text of stray) {
    // A quote of a character, and an address, end no text.
    const rust = `pub const Q: char = '"'; pub const L: &str = "https://example.com"; pub const A: &str = ${text};\n`;
    assert.deepEqual(said({ ...files, "engine/run.rs": rust }), ["src/engine/run.rs names the table logs, which only src/store/logs.rs may"], text);
  }
  const twice = { ...files, "engine/run.rs": 'pub const A: &str = "CREATE VIRTUAL TABLE IF NOT EXISTS logs USING fts5(text)";\n' };
  assert.ok(said(twice).some((line) => line.includes("table logs, as src/")), said(twice).join("\n"));
});

test("a join is told unless it is listed, and so is a listed one that is none", () => {
  const files = {
    "store/logs.rs": 'pub const A: &str = "CREATE TABLE logs (id INTEGER)";\n',
    "store/bodies.rs": 'pub const A: &[&str] = &["CREATE TABLE bodies (id INTEGER)", "INSERT INTO bodies SELECT max(id) FROM logs"];\n',
  };
  assert.deepEqual(said(files), ["src/store/bodies.rs names the table logs, which only src/store/logs.rs may"]);
  assert.deepEqual(said(files, { "store/bodies.rs": ["logs"] }), []);
  assert.deepEqual(said(files, { "store/bodies.rs": ["logs"], "store/logs.rs": ["bodies"] }), [
    "scripts/floors.mjs lets src/store/logs.rs join the table bodies, which it does not",
  ]);
});
