// How long it takes to compile and to test hangs on settings that drift apart unseen.
//
// What the engine of the tests is linked with is optimised, all of it: up to level 1 rustc takes what a crate has made of the standard
// library for whoever is compiled after it. One that was forgotten cost the sweeps a quarter of their time. And what several builds
// have in common has the same features in each, or it is compiled for each of them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { test } from "node:test";
import { TOOL } from "../../scripts/build.mjs";
import { inCheckout, root } from "../../scripts/files.mjs";
import { run } from "../../scripts/run.mjs";
import { TARGET } from "../../scripts/rust.mjs";
import { CORE, TESTS, UNITS } from "../../scripts/sections.mjs";

/** They are names of what others have, and no code. */
const WITHOUT_CODE = ["cfg-if", "futures"];
/** They are compiled for the sweeps, and so at a level of their own. */
const OURS = [...CORE, "bobbin-tests"];

/** @param {...string} args */
async function tree(...args) {
  const lines = await run("cargo", ["tree", "--locked", "--prefix", "none", "--edges", "normal,dev,no-proc-macro", ...args], { cwd: root });
  return new Set(lines.split("\n").map((line) => line.split(" ")[0] ?? "").filter((name) => name !== ""));
}

test("every crate that the tests of the engine are linked with is optimised", async () => {
  // The schemas' own library is used by other tests than the sweeps.
  const linked = await tree("--package", "bobbin-tests", "--package", "bobbin-definitions", "--features", "bobbin-definitions/schema", "--prune", "jsonschema");
  assert.ok(linked.has("rusqlite") && linked.has("schemars"), [...linked].join(" "));
  const manifest = readFileSync(inCheckout("Cargo.toml"), "utf8");
  const optimised = new Set([...manifest.matchAll(/^\[profile\.dev\.package\.([\w-]+)\]\nopt-level = 2$/gm)].map(([, name]) => name));
  const forgotten = [...linked].filter((name) => ![...WITHOUT_CODE, ...OURS].includes(name) && !optimised.has(name));
  assert.deepEqual(forgotten, [], "Cargo.toml names them in [profile.dev.package.…]");
});

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

test("the units of the core find compiled what other tests are made of", async () => {
  const [tests, units] = [await compiled(TESTS), await compiled(UNITS)];
  const there = new Set(tests.map(({ key }) => key));
  const others = units.filter(({ key, crate }) => !there.has(key) && !CORE.includes(crate)).map(({ name }) => name);
  assert.ok(units.length > 50);
  assert.deepEqual(others, [], "Cargo.toml gives them the features and settings that they have in the others");
});

test("the tests of the core find compiled what the build tool is made of", async () => {
  const [tests, tool] = [await compiled(TESTS), await compiled(TOOL)];
  const there = new Set(tests.map(({ key }) => key));
  // The tool needs less of these than the core, and is built first, by itself, at each `npm start`.
  const ofTool = ["bobbin-build", "memchr", "syn"];
  const others = tool.filter(({ key, crate }) => !there.has(key) && !ofTool.includes(crate)).map(({ name }) => name);
  assert.ok(tool.some(({ crate }) => crate === "bobbin-definitions"));
  assert.deepEqual(others, [], "scripts/build/Cargo.toml gives them the features that they have in the tests");
});

test("macros have the same features in all builds of the core", async () => {
  const native = await features("--edges", "normal,build", "--package", "bobbin", "--features", "bobbin-definitions/schema");
  const wasm = await features("--edges", "normal,build", "--package", "bobbin-worker", "--target", TARGET);
  const ofMacros = (/** @type {string[]} */ lines) => lines.filter((line) => line.startsWith("syn v")).sort();
  assert.ok(ofMacros(native).length > 0);
  assert.deepEqual(ofMacros(native), ofMacros(wasm), "Cargo.toml names the features of `syn`");
});

test("the sandbox's compiler finds compiled what the Worker has, too", async () => {
  const of = (/** @type {string} */ name) => features("--edges", "normal,build", "--package", name, "--target", TARGET);
  const shared = (/** @type {string[]} */ lines) => lines.filter((line) => /^(syn|serde|serde_core|serde_derive|thiserror) v/.test(line)).sort();
  const [worker, compiler] = [shared(await of("bobbin-worker")), shared(await of("bobbin-compiler"))];
  assert.ok(compiler.length > 0);
  assert.deepEqual(compiler, worker, "isolate/compiler/Cargo.toml names the features that the core switches on");
});
