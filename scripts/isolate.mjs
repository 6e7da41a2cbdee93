// The isolate Worker, complete in dist-isolate/:
//
//   cargo (wasm) → wasm-opt → meter      compiler.wasm, from isolate/compiler/
//   npm → meter                          quickjs.wasm, from the package quickjs-wasi
//   esbuild                              index.js, with the harness in it as a script of its own
//
// The meter makes them interruptible: scripts/build/src/fuel.rs.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { BUILD_TOOL, buildTool, isToolBuilt, profile, buildForWasm, WASM_FEATURES, wasmOf } from "./build.mjs";
import { contentHash, hash, inCheckout, locked, readIfThere } from "./files.mjs";
import { Complaint, run, step } from "./run.mjs";

/** The folder of the built isolate Worker. */
export const DIST = inCheckout("dist-isolate");
/** Cargo's output for the compiler. */
export const compilerWasm = () => wasmOf("bobbin_compiler");
const QUICKJS = inCheckout("node_modules/quickjs-wasi/quickjs.wasm");

/** The meter, a part of the build tool, does not depend on the core. */
const SOURCES = ["isolate", "Cargo.toml", "Cargo.lock", "package-lock.json", "scripts/build", "scripts/build.mjs", "scripts/isolate.mjs", "scripts/rust.mjs"];

/**
 * Builds the isolate Worker if it is out of date. Returns the folder with index.js, quickjs.wasm and compiler.wasm.
 *
 * @param {import("./setup.mjs").Tools} tools
 */
export async function buildIsolate(tools) {
  if (isToolBuilt() && isBuilt(stampOf(tools))) return DIST;
  await locked(inCheckout(".bobbin/build-isolate.lock"), async () => {
    await buildTool();
    const stamp = stampOf(tools);
    if (isBuilt(stamp)) return;
    await buildDist(tools);
    writeFileSync(join(DIST, ".stamp"), stamp);
  });
  return DIST;
}

/** Compiles the compiler; `buildIsolate` then continues with the result. @param {import("./setup.mjs").Tools} tools */
export async function compileCompiler(tools) {
  if (!isBuilt(stampOf(tools))) await compile(tools);
}

/** @param {import("./setup.mjs").Tools} tools */
const stampOf = ({ compiler }) => hash(contentHash(SOURCES), compiler.sysroot, profile());

/** @param {string} stamp */
const isBuilt = (stamp) => readIfThere(join(DIST, ".stamp")) === stamp && existsSync(join(DIST, "index.js"));

/** @param {import("./setup.mjs").Tools} tools */
async function compile(tools) {
  await step("isolate: compiler (Rust)", (note) => buildForWasm(tools, { manifest: inCheckout("isolate/compiler/Cargo.toml"), profiles: [] }, [], note));
}

/** @param {import("./setup.mjs").Tools} tools */
async function buildDist(tools) {
  await compile(tools);
  // Create new files instead of changing the old ones, which running servers hold links to.
  rmSync(DIST, { recursive: true, force: true });
  mkdirSync(DIST, { recursive: true });
  await run(BUILD_TOOL, ["fuel", await smallCompiler(tools), join(DIST, "compiler.wasm")]);
  await run(BUILD_TOOL, ["fuel", "--quickjs", QUICKJS, join(DIST, "quickjs.wasm")]);
  await bundle();
  for (const name of ["compiler.wasm", "quickjs.wasm"]) {
    const wasm = readFileSync(join(DIST, name));
    console.log(`  ${name}: ${kib(wasm.length)}, ${kib(gzipSync(wasm, { level: 9 }).length)} gzipped`);
  }
}

/**
 * The compiler after wasm-opt, which runs only if cargo's output has changed, and not for a quick build.
 *
 * @param {import("./setup.mjs").Tools} tools
 */
async function smallCompiler(tools) {
  const made = compilerWasm();
  if (profile() === "quick") return made;
  const small = `${made}.small`;
  const stamp = hash(readFileSync(made, "base64"), contentHash(["package-lock.json", "scripts/build.mjs"]));
  if (readIfThere(`${small}.stamp`) === stamp && existsSync(small)) return small;
  await step("isolate: compiler (wasm-opt)", () =>
    run(tools.node, [inCheckout("node_modules/binaryen/bin/wasm-opt"), made, "-Os", ...WASM_FEATURES, "-o", small]),
  );
  writeFileSync(`${small}.stamp`, stamp);
  return small;
}

/** @param {number} bytes */
const kib = (bytes) => `${(bytes / 1024).toFixed(0)} KiB`;

async function bundle() {
  // Imported late: on a fresh machine the set-up installs it first.
  const { build } = await import("esbuild");
  const harness = await build({
    entryPoints: [inCheckout("isolate/harness/quickjs.js")],
    bundle: true,
    format: "iife",
    globalName: "harness",
    // The value of the script is the function `start`; it defines no global name.
    banner: { js: "(() => {" },
    footer: { js: "return harness.start; })()" },
    target: "es2022",
    write: false,
    logLevel: "silent",
  });
  const script = harness.outputFiles[0]?.text ?? "";
  // QuickJS builds a template's text by calling a method that the caller's code may have replaced.
  const template = script.split("\n").find((line) => line.includes("`") && !/^\s*(\/\/|\*|\/\*)/.test(line));
  if (template !== undefined) throw new Complaint(`The harness must not use templates: ${template.trim()}`);
  // The harness for the engine `v8`, as the main module of a Worker.
  const worker = await build({
    entryPoints: [inCheckout("isolate/harness/worker.js")],
    external: ["cloudflare:*", "sandbox-values"],
    bundle: true,
    format: "esm",
    target: "es2022",
    write: false,
    logLevel: "silent",
  });
  const texts = { "sandbox-harness": script, "sandbox-worker": worker.outputFiles[0]?.text ?? "" };
  await build({
    entryPoints: [inCheckout("isolate/index.js")],
    external: ["cloudflare:*"],
    plugins: [
      {
        name: "parts",
        setup(build) {
          build.onResolve({ filter: /^sandbox-/ }, ({ path }) => ({ path, namespace: "harness" }));
          build.onLoad({ filter: /./, namespace: "harness" }, ({ path }) => ({ contents: texts[/** @type {keyof typeof texts} */ (path)], loader: "text" }));
          // Modules beside the bundle, wherever they are imported from.
          build.onResolve({ filter: /\.wasm$/ }, ({ path }) => ({ path: `./${path.split("/").at(-1)}`, external: true }));
        },
      },
    ],
    bundle: true,
    format: "esm",
    target: "esnext",
    outfile: join(DIST, "index.js"),
    logLevel: "silent",
  });
}
