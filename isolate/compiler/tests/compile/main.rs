//! Tests of the compile step through its public interface.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test crate: a failed assertion is its way to speak"
)]

mod bodies;
mod classes;
mod enums;
mod erase;
mod globals;
mod imports;
mod keyed;
mod links;
mod mistakes;
mod namespaces;
mod options;
mod places;
mod resolution;
mod robust;
mod separation;
mod support;
