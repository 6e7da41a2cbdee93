// wasm-opt, for release builds.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { gzipSync } from "node:zlib";
import { profile } from "./compile.mjs";
import { inCheckout } from "./files.mjs";
import { print, run } from "./run.mjs";
import { wranglerNode } from "./setup.mjs";

/** The wasm features that rustc and wasm-bindgen use. wasm-opt must know them and must not use more. */
const WASM_FEATURES = [
  "--enable-bulk-memory",
  "--enable-exception-handling",
  "--enable-multivalue",
  "--enable-mutable-globals",
  "--enable-nontrapping-float-to-int",
  "--enable-reference-types",
  "--enable-sign-ext",
];

/** Runs wasm-opt with these arguments. @param {string[]} args */
export const wasmOpt = (args) => run(wranglerNode(), [inCheckout("node_modules/binaryen/bin/wasm-opt"), ...WASM_FEATURES, ...args]);

/** Prints the size of a module for a release. @param {string} path */
export function printSize(path) {
  if (profile() === "quick") return;
  const wasm = readFileSync(path);
  const kib = (/** @type {number} */ bytes) => `${(bytes / 1024).toFixed(0)} KiB`;
  print(`  ${basename(path)}: ${kib(wasm.length)}, ${kib(gzipSync(wasm, { level: 9 }).length)} gzipped`);
}
