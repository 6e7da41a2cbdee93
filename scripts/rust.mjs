// The Rust tool chain that compiles the Worker.
//
// A panic must remain the error of one thread. All Durable Objects of an isolate share one wasm instance, and with the usual
// panic=abort one panic hangs them all. So the Worker is compiled with panic=unwind, which needs a standard library
// compiled for it, and rustup does not ship one. It is compiled here once per compiler, from the library's sources, into a
// sysroot in the cache. The sources come from:
//
//   rustup    the active tool chain with the component rust-src (added when missing)
//   debian    a compiler and its sources from Debian's packages, unpacked without root into the cache; for
//             machines where rustup cannot download
//
// BOBBIN_TOOLCHAIN=rustup or =debian allows only that source.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { debianTools } from "./debian.mjs";
import { cache, hash, inCheckout, makeOnce } from "./files.mjs";
import { cargoProgress, Complaint, run, step } from "./run.mjs";

export const TARGET = "wasm32-unknown-unknown";
/** Less inlining makes the wasm smaller; docs/decisions/021 lists the cost. */
const INLINING = "-Cllvm-args=--inline-threshold=10";

/**
 * The LLVM passes for quick builds, instead of those of `opt-level = 1`. The core takes three quarters of the time, and its
 * tests 9 % more (docs/decisions/022). For native builds clippy-light.sh applies them.
 */
const PASSES = "cgscc(inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg))";
const FEW_PASSES = ["-Cno-prepopulate-passes", `-Cpasses=${PASSES}`];

const PANIC = "-Cpanic=unwind";
/** Symbol names that include the types of an instance, because the wasm is sorted by name (build.mjs). */
const NAMES = "-Csymbol-mangling-version=v0";
// LTO needs the library's bitcode; the size of the wasm matters more than the speed of std.
const STD_FLAGS = [PANIC, "-Cembed-bitcode=yes"];
/** Optimizes for size: above all sorting, which is compiled for each type. This makes the wasm 2 % smaller. */
const STD_FEATURES = "-Zbuild-std-features=panic-unwind,optimize_for_size";
const STD_PROFILE = { CARGO_PROFILE_RELEASE_OPT_LEVEL: "s", CARGO_PROFILE_RELEASE_DEBUG: "false" };

/**
 * @typedef {object} Compiler
 * @property {"rustup" | "debian"} from
 * @property {string} rustc
 * @property {string} clippy    the driver that belongs to this rustc
 * @property {string[]} flags   additional flags for this compiler
 * @property {string} sysroot   the folder of std for wasm with panic=unwind, which may not exist yet
 */

/** The purpose of a Worker's build: deployment or development. @typedef {"release" | "quick"} Profile */

/** The environment in which cargo compiles for wasm. Only this function sets its flags.
 *
 * @param {Compiler} compiler
 * @param {Profile} profile
 * @returns {NodeJS.ProcessEnv}
 */
export function wasmEnv(compiler, profile = "release") {
  return {
    RUSTC: compiler.rustc,
    ...rustflags([`--sysroot=${compiler.sysroot}`, PANIC, INLINING, NAMES, ...(profile === "quick" ? FEW_PASSES : []), ...compiler.flags]),
    // Lets wasm-bindgen's crates compile with unwinding.
    WASM_BINDGEN_USE_JS_SYS: "1",
  };
}

/**
 * Makes `cargo check` in that environment run clippy on the requested crates. `cargo clippy` would use the driver beside
 * itself, which may belong to another compiler.
 *
 * @param {Compiler} compiler
 * @returns {NodeJS.ProcessEnv}
 */
export const clippyEnv = (compiler) => ({ RUSTC_WORKSPACE_WRAPPER: compiler.clippy, ...clippyArgs(ONLY_ASKED, "-D", "warnings") });

/** Makes clippy check only the crates that cargo was asked to build, not their dependencies. */
const ONLY_ASKED = "--no-deps";

/** Arguments for clippy's driver, in the format of `cargo clippy`. @param {string[]} args @returns {NodeJS.ProcessEnv} */
const clippyArgs = (...args) => ({ CLIPPY_ARGS: args.map((arg) => `${arg}__CLIPPY_HACKERY__`).join("") });

/**
 * Runs clippy on the Worker's own crate during its compilation for wasm: a separate check would start from nothing. Clippy's
 * driver skips some optimizations, so the result is slower, and only for tests. The core is the same code as natively, and
 * is checked there with its unit tests. An existing wrapper of the user stays in place.
 *
 * @param {Compiler} compiler
 * @returns {NodeJS.ProcessEnv}
 */
export const lintedWasm = ({ clippy }) =>
  process.env.RUSTC_WRAPPER === undefined && existsSync(clippy) ? { RUSTC_WRAPPER: clippy, ...clippyArgs(ONLY_ASKED) } : {};

/** @type {NodeJS.ProcessEnv | undefined} */
let linted;

/**
 * The same for native builds. Clippy checks a whole crate after any change (11 seconds for the core), so the core is checked
 * once, when its unit tests are compiled. To cargo this is another build than one without clippy. If clippy is missing, the
 * crates compile without it.
 *
 * @returns {NodeJS.ProcessEnv}
 */
export function lintedNative() {
  // Windows cannot run a shell script as a program.
  const driver = process.platform === "win32" ? "clippy-driver" : inCheckout("scripts/clippy-light.sh");
  const wrapper = { RUSTC_WORKSPACE_WRAPPER: driver, BOBBIN_PASSES: PASSES, ...clippyArgs(ONLY_ASKED) };
  linted ??= spawnSync("clippy-driver", ["--version"]).status === 0 ? wrapper : {};
  return linted;
}

/** @param {string[]} flags @returns {NodeJS.ProcessEnv} */
function rustflags(flags) {
  // This variable overrides all others that the user's shell may set, and supports paths with blanks. With --target it
  // applies only to wasm, not to build scripts.
  return { CARGO_ENCODED_RUSTFLAGS: flags.join("\x1f") };
}

/** Finds or creates a compiler with a standard library for wasm that unwinds.
 *
 * @returns {Promise<Compiler>}
 */
export async function wasmCompiler() {
  const only = process.env.BOBBIN_TOOLCHAIN;
  if (only !== undefined && only !== "rustup" && only !== "debian") {
    throw new Complaint("BOBBIN_TOOLCHAIN is either rustup or debian.");
  }
  const rustup = only === "debian" ? undefined : await rustupCompiler();
  if (rustup && existsSync(rustup.sysroot)) return rustup;
  const ready = only === "rustup" ? undefined : await debianCompiler({ download: false });
  if (ready && existsSync(ready.sysroot)) return ready;
  if (rustup && (await haveRustupSource(rustup))) {
    await buildStd(rustup);
    return rustup;
  }
  if (only === "rustup") {
    throw new Complaint("rust-src is missing: run `rustup component add rust-src`.");
  }
  const debian = ready ?? (await debianCompiler({ download: true }));
  if (!debian) {
    throw new Complaint("Rust's sources are missing: run `rustup component add rust-src` with a network connection.");
  }
  await buildStd(debian);
  return debian;
}

/** @param {Omit<Compiler, "sysroot">} compiler @returns {Promise<Compiler>} */
async function withSysroot(compiler) {
  const version = await run(compiler.rustc, ["-vV"]);
  const key = hash(version, ...STD_FLAGS, STD_FEATURES, JSON.stringify(STD_PROFILE));
  return { ...compiler, sysroot: join(cache, `sysroot-${key}`) };
}

/** @returns {Promise<Compiler>} */
async function rustupCompiler() {
  const home = (await run("rustc", ["--print", "sysroot"])).trim();
  return withSysroot({
    from: "rustup",
    // Not the proxy of that name: the environment could make it choose another tool chain each time.
    rustc: join(home, "bin", "rustc"),
    clippy: join(home, "bin", "clippy-driver"),
    flags: [],
  });
}

/** @param {{ download: boolean }} how @returns {Promise<Compiler | undefined>} */
async function debianCompiler(how) {
  const tools = await debianTools(how);
  return tools && withSysroot({ from: "debian", ...tools });
}

/** @param {Compiler} compiler */
async function haveRustupSource(compiler) {
  const lock = join(compiler.rustc, "../../lib/rustlib/src/rust/library/Cargo.lock");
  if (existsSync(lock)) return true;
  try {
    await step("Rust: component rust-src", () =>
      run("rustup", ["component", "add", "rust-src"], { timeoutMs: 180_000 }),
    );
  } catch {
    console.log("  rustup cannot download rust-src here.");
  }
  return existsSync(lock);
}

/** @param {Compiler} compiler */
async function buildStd(compiler) {
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
    await step("Rust: standard library for wasm (once, about a minute)", (note) =>
      run("cargo", ["build", "--release", "-Zbuild-std=std,panic_unwind", STD_FEATURES, "--target", TARGET], {
        cwd: crate,
        onLine: cargoProgress(note),
        env: {
          ...wasmEnv(compiler),
          ...STD_PROFILE,
          ...rustflags([...STD_FLAGS, ...compiler.flags]),
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
