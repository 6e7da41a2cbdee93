//! Makes nothing. Without a build script cargo leaves out the build dependency that Cargo.toml has for its feature.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
