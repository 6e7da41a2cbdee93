// What the engine of the tests is linked with is optimised, all of it: up to level 1 rustc takes what a crate has made of the standard
// library for whoever is compiled after it. One that was forgotten cost the sweeps a quarter of their time.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inCheckout, root } from "../../scripts/files.mjs";
import { run } from "../../scripts/run.mjs";

/** They are names of what others have, and no code. */
const WITHOUT_CODE = ["cfg-if", "futures"];
/** They are compiled for the sweeps, and so at a level of their own. */
const OURS = ["bobbin", "bobbin-tests"];

/** @param {...string} args */
async function tree(...args) {
  const lines = await run("cargo", ["tree", "--locked", "--prefix", "none", "--edges", "normal,dev,no-proc-macro", ...args], { cwd: root });
  return new Set(lines.split("\n").map((line) => line.split(" ")[0] ?? "").filter((name) => name !== ""));
}

test("every crate that the tests of the engine are linked with is optimised", async () => {
  // The schemas' own library is used by other tests than the sweeps.
  const linked = await tree("--package", "bobbin-tests", "--features", "bobbin/schema", "--prune", "jsonschema");
  assert.ok(linked.has("rusqlite") && linked.has("schemars"), [...linked].join(" "));
  const manifest = readFileSync(inCheckout("Cargo.toml"), "utf8");
  const optimised = new Set([...manifest.matchAll(/^\[profile\.dev\.package\.([\w-]+)\]\nopt-level = 2$/gm)].map(([, name]) => name));
  const forgotten = [...linked].filter((name) => ![...WITHOUT_CODE, ...OURS].includes(name) && !optimised.has(name));
  assert.deepEqual(forgotten, [], "Cargo.toml names them in [profile.dev.package.…]");
});
