// A Rust compiler with its library's sources from Debian's packages, for machines where rustup cannot download. Nothing is
// installed and no root is needed: package lists, packages and their contents are kept in the cache. The lists are fetched
// again, because the machine's own are often old or missing.

import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { arch } from "node:os";
import { join } from "node:path";
import { cache, makeOnce, oldestRust } from "./files.mjs";
import { Complaint, run, step } from "./run.mjs";

const HOME = join(cache, "debian-1");
const PACKAGES = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];

/** @returns {Promise<{ rustc: string, flags: string[] } | undefined>} undefined on other systems */
export async function debianTools() {
  if (!existsSync("/usr/bin/apt-get")) return undefined;
  await makeOnce(HOME, unpack);
  const llvm = readdirSync(join(HOME, "usr/lib")).find((name) => name.startsWith("llvm-"));
  return {
    rustc: join(HOME, "bin/rustc"),
    flags: [`-Clinker=${join(HOME, "usr/lib", llvm ?? "llvm", "bin/wasm-ld")}`],
  };
}

/** @param {string} building */
async function unpack(building) {
  const apt = join(building, "apt");
  mkdirSync(join(apt, "lists/partial"), { recursive: true });
  mkdirSync(join(apt, "cache/archives/partial"), { recursive: true });
  const options = [
    ["Dir::State::lists", join(apt, "lists")],
    ["Dir::Cache", join(apt, "cache")],
    ["Debug::NoLocking", "1"],
    ["APT::Sandbox::User", ""],
    ["Acquire::Languages", "none"],
  ].flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  await step("Rust: Debian's package lists", () => run("apt-get", [...options, "update"]));

  /** @param {string} name @param {RegExp} pattern */
  const dependency = async (name, pattern) => {
    const found = pattern.exec(await run("apt-cache", [...options, "depends", name]))?.[1];
    if (!found) throw new Complaint(`Debian's package ${name} is not as expected; use rustup with its component rust-src.`);
    return found;
  };
  const std = await dependency("libstd-rust-web-dev", /Depends: (libstd-rust-web-1\.\d+)$/m);
  const [, oldest] = oldestRust();
  if (Number(std.split(".").at(-1)) < oldest) {
    throw new Complaint(`Debian's ${std} is too old here (1.${oldest} is needed); use rustup with its component rust-src.`);
  }
  const llvm = await dependency("rust-web-llvm", /Depends: llvm-(\d+)$/m);
  await step("Rust: Debian's packages (140 MB)", () =>
    run("apt-get", [...options, "download", ...PACKAGES, std, `lld-${llvm}`, `libllvm${llvm}`], { cwd: apt }),
  );
  await step("Rust: unpacking", async () => {
    for (const name of readdirSync(apt).filter((name) => name.endsWith(".deb"))) {
      await run("dpkg-deb", ["-x", join(apt, name), building]);
    }
  });
  rmSync(apt, { recursive: true });
  // The package has all sources of rustc; only the library's are needed.
  const sources = join(building, "usr/src");
  for (const rust of readdirSync(sources)) {
    for (const name of readdirSync(join(sources, rust))) {
      if (name !== "library") rmSync(join(sources, rust, name), { recursive: true, force: true });
    }
  }
  rmSync(join(building, "usr/share"), { recursive: true, force: true });
  mkdirSync(join(building, "bin"));
  const wrapper = join(building, "bin/rustc");
  writeFileSync(
    wrapper,
    `#!/bin/sh
home=$(dirname "$0")/..
LD_LIBRARY_PATH="$home/usr/lib/${triple()}" exec "$home/usr/bin/rustc" "$@"
`,
  );
  chmodSync(wrapper, 0o755);
}

/** Debian's name for this machine in its library paths. */
function triple() {
  return arch() === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
}
