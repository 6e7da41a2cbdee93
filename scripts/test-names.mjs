// Finds tests by a part of their names: in the Rust sources by `#[test]`, and in the test files of Node by `test("…")`.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { execFileSync } from "node:child_process";
import { root } from "./files.mjs";

/** The folders whose test files the groups of package.json run. */
const NODE_TESTS = /^tests\/(?!clients\/|local-model\/)[^/]+\/[^/]+\.test\.mjs$/;

/**
 * @typedef {object} Found
 * @property {string[]} packages   those with such tests in Rust
 * @property {string[]} files      Node's test files whose path has the text
 * @property {string[]} titled     other test files of Node, with such a test
 */

/** @param {string} name @returns {Found} */
export function testsOf(name) {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  const paths = [...new Set(listed.split("\0"))].filter((path) => path !== "" && existsSync(join(root, path)));
  const text = (/** @type {string} */ path) => readFileSync(join(root, path), "utf8");
  const rust = paths.filter((path) => path.endsWith(".rs") && rustTests(path, text(path)).some((test) => test.includes(name)));
  const byPath = paths.filter((path) => NODE_TESTS.test(path) && path.includes(name));
  const byName = paths.filter((path) => NODE_TESTS.test(path) && nodeTests(text(path)).some((test) => test.includes(name)));
  return { packages: [...new Set(rust.map(packageOf))], files: byPath, titled: byName.filter((path) => !byPath.includes(path)) };
}

/** The names of tests as cargo prints them, after the name of their file. @param {string} path @param {string} text */
function rustTests(path, text) {
  const modules = path.replace(/(\/mod|\/main|\/lib)?\.rs$/, "").replaceAll("/", "::");
  return [...text.matchAll(/#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)/g)].map(([, test]) => `${modules}::${test}`);
}

/** The names of Node's tests that are written as texts. @param {string} text */
const nodeTests = (text) => [...text.matchAll(/\btest\(\s*(["'`])(.*?)\1/g)].map(([, , test = ""]) => test);

/** The package of a Rust file: that of the nearest Cargo.toml above it. @param {string} path @returns {string} */
function packageOf(path) {
  const folder = dirname(path);
  const manifest = join(root, folder, "Cargo.toml");
  const name = existsSync(manifest) && /^\[package\][^[]*?^name = "(.*?)"/ms.exec(readFileSync(manifest, "utf8"))?.[1];
  return name || packageOf(folder);
}
