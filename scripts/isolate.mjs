// The isolate Worker, complete in its folder (`builtFolder`):
//
//   cargo (compile.mjs) → wasm-opt, for a release → meter      compiler.wasm, from isolate/compiler/
//   npm → meter                                                quickjs.wasm, from the package quickjs-wasi
//   esbuild                                                    index.js, with the harness in it as a script of its own
//
// The meter makes them interruptible: scripts/build/src/fuel.rs.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD_TOOL, builtFolder, profile, sandboxCompiler } from "./compile.mjs";
import { contentHash, hash, inCheckout, readIfThere } from "./files.mjs";
import { Complaint, run, step } from "./run.mjs";
import { printSize, wasmOpt } from "./wasm-opt.mjs";

/** The folder of the built isolate Worker. */
export const isolateFolder = () => builtFolder("dist-isolate");
const QUICKJS = inCheckout("node_modules/quickjs-wasi/quickjs.wasm");

const SOURCES = ["isolate", "Cargo.toml", "Cargo.lock", "package-lock.json", "scripts/build", "scripts/compile.mjs", "scripts/isolate.mjs", "scripts/rust.mjs", "scripts/wasm-opt.mjs"];

/** @param {import("./rust.mjs").Compiler} compiler */
const stampOf = (compiler) => hash(contentHash(SOURCES), compiler.sysroot, profile());

/** Whether the isolate Worker is up to date. @param {import("./rust.mjs").Compiler} compiler */
export const isIsolateBuilt = (compiler) => readIfThere(join(isolateFolder(), ".stamp")) === stampOf(compiler) && existsSync(join(isolateFolder(), "index.js"));

/** Makes the isolate Worker from its compiled crate. @param {import("./rust.mjs").Compiler} compiler */
export async function packIsolate(compiler) {
  const [stamp, folder] = [stampOf(compiler), isolateFolder()];
  // Create new files instead of changing the old ones, which running servers hold links to.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await run(BUILD_TOOL, ["fuel", await smallCompiler(), join(folder, "compiler.wasm")]);
  await run(BUILD_TOOL, ["fuel", "--quickjs", QUICKJS, join(folder, "quickjs.wasm")]);
  await bundle(join(folder, "index.js"));
  for (const name of ["compiler.wasm", "quickjs.wasm"]) printSize(join(folder, name));
  writeFileSync(join(folder, ".stamp"), stamp);
}

/** The sandbox's compiler, after wasm-opt for a release. wasm-opt runs only if cargo's output has changed. */
async function smallCompiler() {
  const made = sandboxCompiler();
  if (profile() === "quick") return made;
  const small = `${made}.small`;
  const stamp = hash(readFileSync(made, "base64"), contentHash(["package-lock.json", "scripts/wasm-opt.mjs"]));
  if (readIfThere(`${small}.stamp`) === stamp && existsSync(small)) return small;
  await step("isolate: compiler (wasm-opt)", () => wasmOpt([made, "-Os", "-o", small]));
  writeFileSync(`${small}.stamp`, stamp);
  return small;
}

/** @param {string} outfile */
async function bundle(outfile) {
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
    outfile,
    logLevel: "silent",
  });
}
