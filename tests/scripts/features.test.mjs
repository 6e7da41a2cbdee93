// Crates that several builds have in common are compiled once: they have the same features in each build.

import assert from "node:assert/strict";
import { test } from "node:test";
import { root } from "../../scripts/files.mjs";
import { run } from "../../scripts/run.mjs";
import { TARGET } from "../../scripts/rust.mjs";

/** Packages with their features, as a build of `args` has them. @param {...string} args */
async function features(...args) {
  const lines = await run("cargo", ["tree", "--locked", "--prefix", "none", "--no-dedupe", "--format", "{p} [{f}]", ...args], { cwd: root });
  return [...new Set(lines.split("\n").map((line) => line.replace(" (proc-macro)", "")))].filter((line) => line !== "");
}

test("a crate of one's own finds compiled what the Worker is made of", async () => {
  const wasm = ["--target", TARGET, "--edges", "normal,build"];
  const [ours, own] = [await features(...wasm, "--package", "bobbin-worker"), await features(...wasm, "--package", "my-worker")];
  assert.ok(ours.some((line) => line.startsWith("serde_json v")), ours.join("\n"));
  const others = ours.filter((line) => !line.startsWith("bobbin-worker v") && !own.includes(line));
  assert.deepEqual(others, [], "Cargo.toml names what a crate of one's own switches on");
});
