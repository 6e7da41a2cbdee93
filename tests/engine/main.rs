//! The engine of one thread on a simulated host: real SQLite, virtual time, and a failure at every point.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test crate: nothing is exported, and a failed assertion is its way to speak"
)]

mod books;
mod contract;
mod family;
mod files;
mod host;
mod memory;
mod sample;
mod scenarios;
mod sim;
mod sweep;
mod watcher;

#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;
