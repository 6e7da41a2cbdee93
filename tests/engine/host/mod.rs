//! The simulated host: real SQLite, virtual time, a scripted outside, and two failures at any point: a *crash* (the
//! process is gone; what it wrote since the last await is lost, or kept) and a *panic* (the process lives on).
//!
//! * `executor`: tasks, timers, the clock; the seed decides the order.
//! * `world`: what survives a crash, what does not, and the platform's alarm around it.
//! * `fault`: the points, and the plan that says where the process fails.
//! * `database`: the platform's limits and coalesced writes; counters.
//! * `alarm`: the one alarm of an object.
//! * `sim_host`: the `Host` itself.
//! * `outside`, `answer`: models, http and native tools, other objects, as the test scripts them.
//! * `upload`: bodies that clients send. `bucket`: objects beside the database.
//! * `strict`: what a provider would refuse. `claude`: the same for Anthropic's format, and its answers.

mod alarm;
pub mod answer;
mod bucket;
pub mod claude;
pub mod database;
pub mod executor;
pub mod fault;
pub mod outside;
pub mod rng;
mod sim_host;
mod strict;
#[cfg(test)]
mod toys;
pub mod upload;
pub mod world;

pub use answer::{Answer, Say};
pub use claude::Claude;
pub use database::Counters;
pub use fault::{At, Fault};
pub use outside::{Handler, MODEL_URL, Native, TOOL_URL};
pub use sim_host::SimHost;
pub use world::{Listener, Lost, Object, World};

/// One second, microseconds.
pub const SECOND_US: i64 = 1_000_000;
/// One day, microseconds.
pub const DAY_US: i64 = 24 * 3600 * SECOND_US;
