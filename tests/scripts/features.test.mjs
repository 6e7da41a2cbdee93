// Crates that several builds have in common are compiled once: they have the same features in each build.

import assert from "node:assert/strict";
import { basename } from "node:path";
import { test } from "node:test";
import { NATIVE, TOOL } from "../../scripts/compile.mjs";
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

/** A unit of cargo's graph. @typedef {{ pkg_id: string, target: { name: string, kind: string[] }, mode: string, platform: string | null, profile: object, features: string[], dependencies: { index: number }[] }} Unit */

/**
 * The name in a package id of cargo: `path+file:///folder#name@version`, or without `name@` where the last part of the path is the name.
 *
 * @param {string} id
 */
function nameOf(id) {
  const [place = "", rest = ""] = id.split("#");
  const at = rest.lastIndexOf("@");
  return at > 0 ? rest.slice(0, at) : basename(place.split("?")[0] ?? "");
}

test("the name of a package is known wherever its folder is", () => {
  assert.equal(nameOf("path+file:///somewhere/checkout#bobbin@0.1.0"), "bobbin");
  assert.equal(nameOf("path+file:///somewhere/bobbin#0.1.0"), "bobbin");
  assert.equal(nameOf("registry+https://example.com/index#serde@1.0.0"), "serde");
  assert.equal(nameOf("git+https://example.com/made/crate?tag=v1#0.2.0"), "crate");
});

/** What `cargo test` of `args` compiles, each with its settings. @param {string[]} args */
async function compiled(args) {
  // Cargo tells it as something that may change.
  const env = { ...process.env, RUSTC_BOOTSTRAP: "1" };
  const graph = await run("cargo", ["test", "--locked", "--no-run", "-Zunstable-options", "--unit-graph", ...args], { cwd: root, env });
  /** @type {{ units: Unit[], roots: number[] }} */
  const { units, roots } = JSON.parse(graph);
  const linked = linkedUnits(units, roots);
  return units.map(({ pkg_id, target, mode, platform, profile, features }, at) => ({
    crate: nameOf(pkg_id),
    name: `${nameOf(pkg_id)} ${target.name}`,
    key: JSON.stringify([pkg_id, target.name, mode, platform, profile, features, linked.has(at)]),
  }));
}

/**
 * Those that the tests are linked with. What is used by macros alone is compiled with other flags, though its settings are the same.
 *
 * @param {Unit[]} units @param {number[]} roots
 */
function linkedUnits(units, roots) {
  const linked = new Set(roots);
  for (const at of linked) {
    for (const { index } of units[at]?.dependencies ?? []) {
      const kinds = units[index]?.target.kind ?? [];
      if (!kinds.includes("proc-macro") && !kinds.includes("custom-build")) linked.add(index);
    }
  }
  return linked;
}

test("the tests of the core find compiled what the build tool is made of", async () => {
  const [tests, tool] = [await compiled(NATIVE), await compiled(TOOL)];
  const there = new Set(tests.map(({ key }) => key));
  // The tool needs less of these than the core, and is built first, by itself, at each `npm start`.
  const ofTool = ["bobbin-build", "memchr", "syn"];
  const others = tool.filter(({ key, crate }) => !there.has(key) && !ofTool.includes(crate)).map(({ name }) => name);
  assert.ok(tool.some(({ crate }) => crate === "bobbin-definitions"));
  assert.deepEqual(others, [], "scripts/build/Cargo.toml gives them the features that they have in the tests");
});
