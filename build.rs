//! Makes nothing. Without a build script cargo leaves out the build dependencies that Cargo.toml has for their features.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
