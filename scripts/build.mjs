// `npm run build`: the Worker, complete in dist/, and the isolate Worker in dist-isolate/ (isolate.mjs).
//
//   cargo (wasm) → wasm-bindgen (scripts/build/) → wasm-opt → esbuild, and the catalog of the agents folder
//                                                                    with its code (package/compiler/)
//
// Each step is skipped while its sources are unchanged.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { compile as compileDefinitions, line, refusal } from "../package/compiler/compile.mjs";
import { writeWhole } from "../package/lib/files.mjs";
import { contentHash, hash, inCheckout, locked, readIfThere, root, shown } from "./files.mjs";
import { INSPECTOR_SOURCES, writeInspector } from "./inspector.mjs";
import { cargoProgress, Complaint, main, print, run, step } from "./run.mjs";
import { lintedNative, lintedWasm, TARGET, wasmEnv } from "./rust.mjs";
import { setUp } from "./setup.mjs";

/** The folder of the built Worker. */
export const DIST = inCheckout("dist");
/**
 * The build profile: `release`, which is deployed and measured, or `quick`, which rebuilds in a third of the time but is a
 * little slower and twice as large. Set BOBBIN_BUILD to choose.
 */
export const profile = () => /** @type {import("./rust.mjs").Profile} */ (process.env.BOBBIN_BUILD ?? "release");
/** The program of scripts/build/. */
export const BUILD_TOOL = inCheckout("target/debug/bobbin-build");
/** The Worker's crate compiles only to wasm, and so does any crate that embeds it. */
export const NATIVE = ["--workspace", "--exclude", "bobbin-worker", "--exclude", "my-worker"];
/** Cargo's target folder, regardless of personal settings. */
export const TARGET_DIR = ["--target-dir", inCheckout("target")];

/** The wasm features that rustc and wasm-bindgen use. wasm-opt must know them and must not use more. */
export const WASM_FEATURES = [
  "--enable-bulk-memory",
  "--enable-exception-handling",
  "--enable-multivalue",
  "--enable-mutable-globals",
  "--enable-nontrapping-float-to-int",
  "--enable-reference-types",
  "--enable-sign-ext",
];

/**
 * Sorts functions by name. This puts instances of the same source for different types side by side, within the 32 KB in
 * which gzip finds repetitions: the gzipped wasm is 6 % smaller.
 */
const IN_ORDER = ["--reorder-functions-by-name"];

/** The common sources of both Rust builds. */
const RUST_SOURCES = ["Cargo.toml", "Cargo.lock", "build.rs", "crates", "src"];
/** The description of the HTTP API, which the Worker serves. */
const OPENAPI = "schemas/openapi.json";
const WORKER_SOURCES = [...RUST_SOURCES, "worker", OPENAPI, ...INSPECTOR_SOURCES, "package-lock.json", "scripts/build.mjs", "scripts/rust.mjs"];
const TOOL_SOURCES = ["Cargo.toml", "Cargo.lock", "crates/definitions", "scripts/build", "package/compiler/Cargo.toml", "package/compiler/src"];

/**
 * The crate to compile: the Worker of the checkout, or an application's own crate that depends on it.
 *
 * @typedef {object} Product
 * @property {string} manifest        its Cargo.toml
 * @property {string} wasm            cargo's output
 * @property {string} dist            the folder of the result
 * @property {string[]} sources       its sources besides those of the Worker, relative to the checkout
 * @property {string[]} profiles      profile settings for cargo, if its workspace has none
 */

/**
 * Builds the Worker if it is out of date. Returns the folder with index.js and index_bg.wasm.
 *
 * @param {import("./setup.mjs").Tools} tools
 * @param {string} [crate]                       the folder of an application's own crate
 */
export async function buildWorker(tools, crate) {
  const product = crate === undefined ? worker() : await ownCrate(crate);
  const { dist } = product;
  if (!["release", "quick"].includes(profile())) throw new Complaint(`BOBBIN_BUILD is release or quick, not “${profile()}”.`);
  // Checked before locking, so that nobody waits for another build.
  if (isToolBuilt() && isBuilt(product, stampOf(tools, product))) return dist;
  await locked(inCheckout(".bobbin/build.lock"), async () => {
    await buildTool();
    const stamp = stampOf(tools, product);
    if (isBuilt(product, stamp)) return;
    await buildDist(tools, product);
    writeFileSync(join(dist, ".stamp"), stamp);
  });
  return dist;
}

/** Compiles the Worker of the checkout; `buildWorker` then continues with the result. @param {import("./setup.mjs").Tools} tools */
export async function compileWorker(tools) {
  const product = worker();
  if (!isBuilt(product, stampOf(tools, product))) await compile(tools, product);
}

/** @param {import("./setup.mjs").Tools} tools @param {Product} product */
function stampOf({ compiler }, { sources }) {
  return hash(contentHash([...WORKER_SOURCES, ...sources]), contentHash(TOOL_SOURCES), compiler.sysroot, profile());
}

/** @param {Product} product @param {string} stamp */
const isBuilt = ({ dist }, stamp) => readIfThere(join(dist, ".stamp")) === stamp && existsSync(join(dist, "index.js"));

/** @param {string} name of a crate's library @returns {string} */
export const wasmOf = (name) => inCheckout(`target/${TARGET}/${profile()}/${name}.wasm`);

/** @returns {Product} */
const worker = () => ({ manifest: inCheckout("worker/Cargo.toml"), wasm: wasmOf("bobbin_worker"), dist: DIST, sources: [], profiles: [] });

/**
 * An application's own crate: a `cdylib` library that depends on `bobbin-worker`.
 *
 * @param {string} folder
 * @returns {Promise<Product>}
 */
async function ownCrate(folder) {
  const manifest = join(folder, "Cargo.toml");
  if (!existsSync(manifest)) throw new Complaint(`There is no crate in ${shown(folder)}: ${shown(manifest)} is missing.`);
  const metadata = await run("cargo", ["metadata", "--no-deps", "--format-version", "1", "--manifest-path", manifest]);
  /** @type {{ workspace_root: string, packages: { manifest_path: string, targets: { name: string, crate_types: string[] }[] }[] }} */
  const { packages, workspace_root: workspace } = JSON.parse(metadata);
  const targets = packages.find(({ manifest_path }) => realpathSync(manifest_path) === realpathSync(manifest))?.targets ?? [];
  const library = targets.find(({ crate_types }) => crate_types.includes("cdylib"));
  if (library === undefined) {
    throw new Complaint(`${shown(manifest)} makes no library for the Worker: it needs \`[lib]\` with \`crate-type = ["cdylib"]\`.`);
  }
  const name = library.name.replaceAll("-", "_");
  // Cargo's output beside the sources is not a source, and neither are the bindings.
  const names = readdirSync(folder).filter((name) => !["target", "wrangler.toml"].includes(name) && !name.startsWith("."));
  const sources = names.map((name) => relative(root, join(folder, name)));
  const isApart = realpathSync(workspace) !== realpathSync(root);
  return { manifest, wasm: wasmOf(name), dist: inCheckout(`.bobbin/crates/${name}-${hash(folder)}`), sources, profiles: isApart ? PROFILES : [] };
}

/**
 * Profile settings for a crate in another workspace. They must not be repeated within the same workspace: cargo would treat
 * the crates as different builds.
 */
const PROFILES = [
  ...["release.opt-level=3", "release.lto=true", "release.codegen-units=1", 'release.strip="debuginfo"'],
  ...['quick.inherits="release"', "quick.opt-level=1", 'quick.lto="off"', "quick.codegen-units=32", "quick.incremental=true", 'quick.strip="symbols"'],
].flatMap((setting) => ["--config", `profile.${setting}`]);

/** The file with the hash of the build tool's sources. */
const TOOL_STAMP = inCheckout("target/bobbin-build.stamp");

/** @param {string} sources  their hash */
export const isToolBuilt = (sources = contentHash(TOOL_SOURCES)) => readIfThere(TOOL_STAMP) === sources && existsSync(BUILD_TOOL);

/** Cargo's arguments for the build tool. */
export const TOOL = ["--package", "bobbin-build"];

/** Builds the native build tool, which the scripts run as a program. */
export async function buildTool() {
  if (!isToolBuilt()) await step("build tool", compileTool);
}

/** Compiles the build tool if it is out of date. @param {(text: string) => void} note */
export async function compileTool(note) {
  const sources = contentHash(TOOL_SOURCES);
  if (isToolBuilt(sources)) return;
  await run("cargo", ["build", ...TOOL, ...TARGET_DIR], { cwd: inCheckout("."), env: lintedNative(), onLine: cargoProgress(note) });
  writeFileSync(TOOL_STAMP, sources);
}

/** @param {import("./setup.mjs").Tools} tools @param {Product} product */
async function compile(tools, product) {
  await step("Worker (Rust)", async (note) => {
    // Clippy checks only the crates that cargo was asked to build, not their dependencies.
    if (linted(tools).RUSTC_WRAPPER !== undefined && product.manifest !== worker().manifest) await buildForWasm(tools, worker(), [], note);
    await buildForWasm(tools, product, [], note);
  });
}

/**
 * The messages of clippy and the compiler about the Worker, a line of JSON each; cargo replays them. Undefined if clippy does
 * not check this build.
 *
 * @param {import("./setup.mjs").Tools} tools
 * @param {(text: string) => void} note
 * @returns {Promise<string | undefined>}
 */
export async function saidOfWorker(tools, note) {
  if (linted(tools).RUSTC_WRAPPER === undefined) return undefined;
  return await buildForWasm(tools, worker(), ["--message-format", "json"], note);
}

/**
 * All quick builds use clippy: cargo would reuse a crate that was compiled without it, and never check that crate.
 *
 * @param {import("./setup.mjs").Tools} tools
 */
const linted = ({ compiler }) => (profile() === "quick" ? lintedWasm(compiler) : {});

/**
 * Compiles a crate for wasm. All crates use the same environment: cargo's cache depends on it, and different variables would
 * recompile the shared dependencies for each crate.
 *
 * @param {import("./setup.mjs").Tools} tools
 * @param {Pick<Product, "manifest" | "profiles">} product
 * @param {string[]} args
 * @param {(text: string) => void} note
 */
export function buildForWasm(tools, { manifest, profiles }, args, note) {
  const env = { ...wasmEnv(tools.compiler, profile()), ...linted(tools) };
  const all = ["build", "--profile", profile(), ...profiles, "--target", TARGET, "--manifest-path", manifest, ...TARGET_DIR, ...args];
  return run("cargo", all, { cwd: inCheckout("."), env, onLine: cargoProgress(note) });
}

/** @param {import("./setup.mjs").Tools} tools @param {Product} product */
async function buildDist(tools, product) {
  const { wasm: made, dist } = product;
  await compile(tools, product);
  await pack(tools, "Worker", { wasm: made, shim: inCheckout("worker/shim.js"), out: dist });
  const wasm = readFileSync(join(dist, "index_bg.wasm"));
  const kib = (/** @type {number} */ bytes) => `${(bytes / 1024).toFixed(0)} KiB`;
  console.log(`  index_bg.wasm: ${kib(wasm.length)}, ${kib(gzipSync(wasm, { level: 9 }).length)} gzipped`);
}

/** Turns a compiled Worker into the files for the platform: index.js and index_bg.wasm.
 *
 * @param {import("./setup.mjs").Tools} tools
 * @param {string} name                                          for the progress
 * @param {{ wasm: string, shim: string, out: string }} files    `shim` imports wasm-bindgen's output as "bobbin-wasm"
 */
export async function pack(tools, name, { wasm, shim, out }) {
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
      run(tools.node, [
        inCheckout("node_modules/binaryen/bin/wasm-opt"),
        // LLVM has already optimized: higher levels take four times as long, and the result is neither faster nor,
        // compressed, smaller.
        ...["-O1", ...IN_ORDER, ...WASM_FEATURES, bound],
        ...["-o", join(out, "index_bg.wasm")],
      ]),
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

/** Compiles the definitions in `agents` into the file `out`. Invalid ones cause a complaint with file and field.
 *
 * @param {string} agents
 * @param {string} out
 * @param {{ ownNatives?: boolean }} [settings]  ownNatives: the application's own crate registers some
 */
export async function compileCatalog(agents, out, settings = {}) {
  // Imported late: on a fresh machine the set-up installs it first.
  const esbuild = await import("esbuild");
  // `npm run build` and every server write separate files, so no lock is needed.
  const compiled = await compileDefinitions(agents, { esbuild, web: inCheckout("isolate/web"), compiler: (request) => natively(request, out) }, settings);
  if (compiled.catalog === null) throw refusal(agents, compiled);
  // Warnings.
  if (compiled.findings.length > 0) print(compiled.findings.map((finding) => line(agents, finding)).join("\n"));
  writeWhole(out, compiled.catalog);
}

/** Runs the build tool's catalog compiler. @param {string} request @param {string} out  the file that the result is for */
export async function natively(request, out) {
  const [asked, answer] = [`${out}.request`, `${out}.answer`];
  mkdirSync(dirname(out), { recursive: true });
  try {
    writeFileSync(asked, request);
    await run(BUILD_TOOL, ["catalog", asked, answer]);
    return readFileSync(answer, "utf8");
  } finally {
    for (const path of [asked, answer]) rmSync(path, { force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // Not awaited: isolate.mjs imports this module, whose evaluation must be finished by then.
  void main(async () => {
    const tools = await setUp();
    const dist = await buildWorker(tools);
    const { buildIsolate } = await import("./isolate.mjs");
    await buildIsolate(tools);
    await compileCatalog(inCheckout("agents"), join(dist, "catalog.json"));
  });
}
