// Rust: the two wasm modules of the product, and the native build tool.

import { existsSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { contentHash, hash, inCheckout, readIfThere, root, shown } from "./files.mjs";
import { cargo, Complaint, run, step } from "./run.mjs";
import { TARGET, wasmEnv } from "./rust.mjs";

/** The purpose of a build: `release` is deployed and measured, `quick` is for development. @typedef {"release" | "quick"} Profile */

/**
 * The build profile, which BOBBIN_BUILD may name. `npm start` and `npm test` set it to `quick`: a change of one line is compiled by
 * itself, and wasm-opt does not run. The Worker is larger and slower than a release.
 *
 * @returns {Profile}
 */
export function profile() {
  const name = process.env.BOBBIN_BUILD ?? "release";
  if (name !== "release" && name !== "quick") throw new Complaint(`BOBBIN_BUILD is release or quick, not “${name}”.`);
  return name;
}

/** The folder of a built Worker. A release and the development build have folders of their own, so that one does not replace the other. @param {"dist" | "dist-isolate"} name */
export const builtFolder = (name) => inCheckout(profile() === "quick" ? `.bobbin/quick/${name}` : name);

/** Cargo's target folder, regardless of personal settings. */
export const TARGET_DIR = ["--target-dir", inCheckout("target")];
/** The Worker's crate compiles only to wasm, and so does any crate that embeds it. */
export const NATIVE = ["--workspace", "--exclude", "bobbin-worker", "--exclude", "my-worker"];

/** The sources of all Rust code, and of the scripts that compile it. */
const RUST_SOURCES = ["Cargo.toml", "Cargo.lock", "build.rs", "crates", "src", "scripts/compile.mjs", "scripts/rust.mjs"];
const TOOL_SOURCES = ["Cargo.toml", "Cargo.lock", "crates/definitions", "scripts/build", "package/compiler/Cargo.toml", "package/compiler/src"];

/** @param {string} name of a crate's library @returns {string} */
export const wasmOf = (name) => inCheckout(`target/${TARGET}/${profile()}/${name}.wasm`);
/** The compiler of code in the sandbox. */
export const sandboxCompiler = () => wasmOf("bobbin_compiler");

/**
 * The crate that becomes the Worker: the checkout's, or an application's own crate that depends on it.
 *
 * @typedef {object} Product
 * @property {string[]} crate        cargo's arguments that select it
 * @property {string} wasm           cargo's output
 * @property {string} dist           the folder of the finished Worker
 * @property {string[]} sources      its sources besides those of the checkout's Worker, relative to the checkout
 * @property {string[]} profiles     profile settings for cargo, if it is in another workspace
 */

/** @param {string} [crate]  the folder of an application's own crate @returns {Promise<Product>} */
export async function productOf(crate) {
  if (crate !== undefined) return await ownCrate(crate);
  return { crate: ["--package", "bobbin-worker"], wasm: wasmOf("bobbin_worker"), dist: builtFolder("dist"), sources: [], profiles: [] };
}

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
  /** @type {{ workspace_root: string, packages: { name: string, manifest_path: string, targets: { name: string, crate_types: string[] }[] }[] }} */
  const { packages, workspace_root: workspace } = JSON.parse(metadata);
  const own = packages.find(({ manifest_path }) => realpathSync(manifest_path) === realpathSync(manifest));
  const library = own?.targets.find(({ crate_types }) => crate_types.includes("cdylib"));
  if (own === undefined || library === undefined) {
    throw new Complaint(`${shown(manifest)} makes no library for the Worker: it needs \`[lib]\` with \`crate-type = ["cdylib"]\`.`);
  }
  const name = library.name.replaceAll("-", "_");
  // Cargo's output beside the sources is not a source, and neither are the bindings.
  const names = readdirSync(folder).filter((name) => !["target", "wrangler.toml"].includes(name) && !name.startsWith("."));
  const sources = names.map((name) => relative(root, join(folder, name)));
  const isApart = realpathSync(workspace) !== realpathSync(root);
  return {
    crate: isApart ? ["--manifest-path", manifest] : ["--package", own.name],
    wasm: wasmOf(name),
    dist: inCheckout(`.bobbin/crates/${name}-${hash(folder)}`),
    sources,
    profiles: isApart ? PROFILES : [],
  };
}

/**
 * Profile settings for a crate in another workspace. They must not be repeated within the same workspace: cargo would treat
 * the crates as different builds.
 */
const PROFILES = [
  ...["release.opt-level=3", "release.lto=true", "release.codegen-units=1", 'release.strip="debuginfo"'],
  ...['dev.lto="off"', "dev.codegen-units=64", "dev.debug=false", "dev.debug-assertions=false", "dev.overflow-checks=true"],
  ...['quick.inherits="dev"', 'quick.strip="symbols"'],
].flatMap((setting) => ["--config", `profile.${setting}`]);

/** @typedef {{ worker: Product | undefined, sandbox: boolean }} Parts  what to compile: the Worker's crate, and the compiler of the sandbox */

/**
 * Compiles the Worker's crate, the sandbox's compiler, or both for wasm. All builds use the same environment: cargo's cache depends
 * on it, and different variables would compile the shared dependencies again.
 *
 * @param {import("./rust.mjs").Compiler} compiler
 * @param {Parts} parts
 * @param {(text: string) => void} note
 */
export async function compileForWasm(compiler, { worker, sandbox }, note) {
  // One after the other: in one call, cargo would compile what both depend on with the features of both, and again for one alone.
  const calls = [...(worker ? [[...worker.profiles, ...worker.crate]] : []), ...(sandbox ? [["--package", "bobbin-compiler"]] : [])];
  for (const crates of calls) {
    await cargo(["build", "--profile", profile(), "--target", TARGET, ...TARGET_DIR, ...crates], note, { cwd: root, env: wasmEnv(compiler) });
  }
}

/** A hash of everything that the wasm modules are compiled from. @param {import("./rust.mjs").Compiler} compiler @param {Product} product */
export const rustStamp = ({ sysroot }, { sources }) => hash(contentHash([...RUST_SOURCES, "worker", "isolate/compiler", ...sources]), sysroot, profile());

/** The native program of scripts/build. */
export const BUILD_TOOL = inCheckout("target/tool/bobbin-build");
/** The file with the hash of its sources. */
const TOOL_STAMP = inCheckout("target/bobbin-build.stamp");
/** @param {string} sources  their hash */
export const isToolBuilt = (sources = toolStamp()) => readIfThere(TOOL_STAMP) === sources && existsSync(BUILD_TOOL);

export const toolStamp = () => contentHash(TOOL_SOURCES);

/** Compiles the build tool if it is out of date. */
export async function buildTool() {
  if (!isToolBuilt()) await step("build tool", compileTool);
}

/** @param {(text: string) => void} note */
export async function compileTool(note) {
  const sources = toolStamp();
  if (isToolBuilt(sources)) return;
  // The Workers take longer, and most of that in one crate: the tool fills the processor that they leave idle.
  await cargo(["build", "--profile", "tool", "--package", "bobbin-build", ...TARGET_DIR], note, { cwd: root, niceness: 10 });
  writeFileSync(TOOL_STAMP, sources);
}
