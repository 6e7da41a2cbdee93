// The Rust tool chain that compiles the Worker.
//
// A panic must remain the error of one thread. All Durable Objects of an isolate share one wasm instance, and with the usual
// panic=abort one panic hangs them all. So the Worker is compiled with panic=unwind, which needs a standard library
// compiled for it, and rustup does not ship one. It is compiled here once per compiler into a sysroot in the cache, from the
// library's sources: the component rust-src of the active tool chain, which is added when it is missing.

import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cache, hash, makeOnce } from "./files.mjs";
import { cargo, Complaint, run, step } from "./run.mjs";

export const TARGET = "wasm32-unknown-unknown";
/** Less inlining makes the wasm smaller; docs/decisions/021 lists the cost. */
const INLINING = "-Cllvm-args=--inline-threshold=10";

const PANIC = "-Cpanic=unwind";
/** Symbol names that include the types of an instance, because the wasm is sorted by name (worker.mjs). */
const NAMES = "-Csymbol-mangling-version=v0";
// LTO needs the library's bitcode; the size of the wasm matters more than the speed of std.
const STD_FLAGS = [PANIC, "-Cembed-bitcode=yes"];
/** Optimizes for size: above all sorting, which is compiled for each type. This makes the wasm 2 % smaller. */
const STD_FEATURES = "-Zbuild-std-features=panic-unwind,optimize_for_size";
const STD_PROFILE = { CARGO_PROFILE_RELEASE_OPT_LEVEL: "s", CARGO_PROFILE_RELEASE_DEBUG: "false" };

/**
 * @typedef {object} Compiler
 * @property {string} rustc
 * @property {string} sysroot   the folder of std for wasm with panic=unwind, which may not exist yet
 */

/** The environment in which cargo compiles for wasm. Only this function sets its flags.
 *
 * @param {Compiler} compiler
 * @returns {NodeJS.ProcessEnv}
 */
export function wasmEnv(compiler) {
  return {
    RUSTC: compiler.rustc,
    ...rustflags([`--sysroot=${compiler.sysroot}`, PANIC, INLINING, NAMES]),
    // Lets wasm-bindgen's crates compile with unwinding.
    WASM_BINDGEN_USE_JS_SYS: "1",
  };
}

/** @param {string[]} flags @returns {NodeJS.ProcessEnv} */
function rustflags(flags) {
  // This variable overrides all others that the user's shell may set, and supports paths with blanks. With --target it
  // applies only to wasm, not to build scripts.
  return { CARGO_ENCODED_RUSTFLAGS: flags.join("\x1f") };
}

/** The active compiler, with the sources of its standard library. @returns {Promise<Compiler>} */
export async function wasmCompiler() {
  const home = (await run("rustc", ["--print", "sysroot"])).trim();
  // Not the proxy of that name: the environment could make it choose another tool chain each time.
  const rustc = join(home, "bin", "rustc");
  const key = hash(await run(rustc, ["-vV"]), ...STD_FLAGS, STD_FEATURES, JSON.stringify(STD_PROFILE));
  const sysroot = join(cache, `sysroot-${key}`);
  if (!existsSync(sysroot) && !existsSync(join(home, "lib/rustlib/src/rust/library/Cargo.lock"))) {
    await step("Rust: component rust-src", () => run("rustup", ["component", "add", "rust-src"], { timeoutMs: 180_000 })).catch((error) => {
      throw new Complaint(`${error.message}\nThe sources of Rust's library are missing: install Rust from https://rustup.rs, and run \`rustup component add rust-src\`.`);
    });
  }
  return { rustc, sysroot };
}

/** Compiles the compiler's standard library for wasm, unless it is there. @param {Compiler} compiler */
export async function buildStd(compiler) {
  if (existsSync(compiler.sysroot)) return;
  await makeOnce(compiler.sysroot, async (building) => {
    // An empty crate: only the libraries compiled for it are needed.
    const crate = join(building, "crate");
    mkdirSync(join(crate, "src"), { recursive: true });
    writeFileSync(join(crate, "src/lib.rs"), "");
    writeFileSync(
      join(crate, "Cargo.toml"),
      '[package]\nname = "empty"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n',
    );
    const target = join(building, "target");
    await step("Rust: standard library for wasm (once)", (note) =>
      cargo(["build", "--release", "-Zbuild-std=std,panic_unwind", STD_FEATURES, "--target", TARGET], note, {
        cwd: crate,
        env: {
          ...wasmEnv(compiler),
          ...STD_PROFILE,
          ...rustflags(STD_FLAGS),
          CARGO_TARGET_DIR: target,
          // Building std is an unstable option of a stable cargo.
          RUSTC_BOOTSTRAP: "1",
        },
      }),
    );
    const made = join(target, TARGET, "release/deps");
    const lib = join(building, `lib/rustlib/${TARGET}/lib`);
    mkdirSync(lib, { recursive: true });
    for (const name of readdirSync(made)) {
      if (name.endsWith(".rlib") && !name.startsWith("libempty-")) cpSync(join(made, name), join(lib, name));
    }
    rmSync(crate, { recursive: true });
    rmSync(target, { recursive: true });
  });
}
