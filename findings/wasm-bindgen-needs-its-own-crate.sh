#!/usr/bin/env bash
# wasm-bindgen-cli-support 0.2.130, Rust stable: a wasm module that does not use the crate wasm-bindgen.
# One would guess: a module without bindings passes through unchanged, because there is nothing to bind.
# Seen: the tool fails with "failed to find intrinsics to enable `clone_ref` function". The module's target features name
# reference types, rustc's default, and with them the tool looks for functions that only the crate wasm-bindgen brings.
# A build that runs the tool on every module breaks when the last dependency on the crate goes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
rustup --quiet target add wasm32-unknown-unknown

mkdir -p plain/src tool/src
cat >plain/Cargo.toml <<'TOML'
[package]
name = "plain"
version = "0.1.0"
edition = "2024"
[lib]
crate-type = ["cdylib"]
[workspace]
TOML
echo '#[unsafe(no_mangle)] pub extern "C" fn double(n: i32) -> i32 { n * 2 }' >plain/src/lib.rs
cat >tool/Cargo.toml <<'TOML'
[package]
name = "tool"
version = "0.1.0"
edition = "2024"
[dependencies]
wasm-bindgen-cli-support = "=0.2.130"
[workspace]
TOML
cat >tool/src/main.rs <<'RS'
fn main() {
    let input = std::env::args().nth(1).unwrap();
    let result = wasm_bindgen_cli_support::Bindgen::new().input_path(input).web(true).unwrap().generate("out");
    println!("{}", result.map_or_else(|error| format!("{error:#}"), |()| "passed".into()));
}
RS
cargo build --quiet --manifest-path plain/Cargo.toml --target wasm32-unknown-unknown
cargo build --quiet --manifest-path tool/Cargo.toml
module=plain/target/wasm32-unknown-unknown/debug/plain.wasm
seen=$(tool/target/debug/tool $module)
echo "$seen"
[[ $seen == *'failed to find intrinsics to enable `clone_ref` function'* ]]
