// The Worker, complete in its folder (`builtFolder`):
//
//   cargo (compile.mjs) → wasm-bindgen (scripts/build/) → wasm-opt, for a release    index_bg.wasm
//   worker/shim.js → esbuild                                                         index.js

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD_TOOL, profile, rustStamp, toolStamp } from "./compile.mjs";
import { contentHash, hash, inCheckout, readIfThere } from "./files.mjs";
import { INSPECTOR_SOURCES, writeInspector } from "./inspector.mjs";
import { Complaint, run, step } from "./run.mjs";
import { printSize, wasmOpt } from "./wasm-opt.mjs";

/** @typedef {import("./compile.mjs").Product} Product */

/** The description of the HTTP API, which the Worker serves. */
const OPENAPI = "schemas/openapi.json";
const SOURCES = [OPENAPI, ...INSPECTOR_SOURCES, "package-lock.json", "scripts/wasm-opt.mjs", "scripts/worker.mjs"];

/**
 * Sorts functions by name. This puts instances of the same source for different types side by side, within the 32 KB in
 * which gzip finds repetitions: the gzipped wasm is 6 % smaller.
 */
const IN_ORDER = ["--reorder-functions-by-name"];

/** @param {import("./rust.mjs").Compiler} compiler @param {Product} product */
const stampOf = (compiler, product) => hash(rustStamp(compiler, product), contentHash(SOURCES), toolStamp());

/** Whether the Worker is up to date. @param {import("./rust.mjs").Compiler} compiler @param {Product} product */
export const isWorkerBuilt = (compiler, product) => readIfThere(join(product.dist, ".stamp")) === stampOf(compiler, product) && existsSync(join(product.dist, "index.js"));

/** Makes the Worker from its compiled crate. @param {import("./rust.mjs").Compiler} compiler @param {Product} product */
export async function packWorker(compiler, product) {
  const stamp = stampOf(compiler, product);
  await pack("Worker", { wasm: product.wasm, shim: inCheckout("worker/shim.js"), out: product.dist });
  printSize(join(product.dist, "index_bg.wasm"));
  writeFileSync(join(product.dist, ".stamp"), stamp);
}

/** Turns a compiled Worker into the files for the platform: index.js and index_bg.wasm.
 *
 * @param {string} name                                          for the progress
 * @param {{ wasm: string, shim: string, out: string }} files    `shim` imports wasm-bindgen's output as "bobbin-wasm"
 */
export async function pack(name, { wasm, shim, out }) {
  const glue = `${wasm}.glue`;
  rmSync(glue, { recursive: true, force: true });
  // Create new files instead of changing the old ones, which running servers hold links to.
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  await step(`${name} (wasm-bindgen)`, () => run(BUILD_TOOL, ["bindgen", wasm, glue]));
  const bound = join(glue, "index_bg.wasm");
  // wasm-opt would take seven seconds only to read and write it.
  if (profile() === "quick") cpSync(bound, join(out, "index_bg.wasm"));
  else {
    await step(`${name} (wasm-opt)`, () =>
      // LLVM has already optimized: higher levels take four times as long, and the result is neither faster nor,
      // compressed, smaller.
      wasmOpt(["-O1", ...IN_ORDER, bound, "-o", join(out, "index_bg.wasm")]),
    );
  }
  await bundle(shim, join(glue, "index.js"), out);
}

/** @param {string} shim @param {string} glue @param {string} out */
async function bundle(shim, glue, out) {
  // Without its formatting.
  const openapi = `${glue}.openapi.json`;
  writeFileSync(openapi, JSON.stringify(JSON.parse(readFileSync(inCheckout(OPENAPI), "utf8"))));
  const inspector = `${glue}.inspector.js`;
  await writeInspector(inspector);
  // Imported late: on a fresh machine the set-up installs it first.
  const { build } = await import("esbuild");
  const result = await build({
    entryPoints: [shim],
    alias: { "bobbin-wasm": glue, "bobbin-openapi": openapi, "bobbin-inspector": inspector },
    loader: { ".json": "text" },
    external: ["cloudflare:*", "./index_bg.wasm", "./catalog.json"],
    bundle: true,
    format: "esm",
    target: "esnext",
    write: false,
    logLevel: "silent",
  });
  const text = result.outputFiles[0]?.text ?? "";
  // The platform does not support wasm-bindgen's syntax for importing the module. An ordinary import has the same
  // meaning there.
  const bundled = text.replace(/^import source (\w+ from "\.\/index_bg\.wasm")/m, "import $1");
  if (bundled === text) throw new Complaint("The bundle does not import index_bg.wasm as expected.");
  writeFileSync(join(out, "index.js"), bundled);
}
