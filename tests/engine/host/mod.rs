//! The simulated host: real SQLite, virtual time, a scripted outside, and two failures at any point: a *crash* (the
//! process is gone; what it wrote since the last await is lost, or kept) and a *panic* (the process lives on).
//!
//! * `executor`: tasks, timers, the clock; the seed decides the order.
//! * `world`: the objects' process, and what is around it. `member`: one object: what of it survives a crash, and what
//!   does not. `family`: how they call each other; `pipe`: an answer on its way between two of them.
//! * `fault`: the points, and the plan that says where the process fails.
//! * `database`: the platform's limits and coalesced writes; counters. `statement`: what the words of a statement say.
//! * `alarm`: the one alarm of an object.
//! * `sim_host`: the `Host` itself.
//! * `outside`, `answer`: models, http and native tools, other objects, as the test scripts them. `mcp`: MCP servers. `issuer`: who gives
//!   tokens for them.
//! * `sandbox`: code, as the test scripts it.
//! * `upload`: bodies that clients send. `bucket`: objects beside the database.
//! * `collector`: where spans are sent.
//! * `strict`: what a provider would refuse. `claude`: the same for Anthropic's format, and its answers.

mod alarm;
pub mod answer;
mod bucket;
pub mod claude;
pub mod collector;
pub mod database;
pub mod embeddings;
pub mod executor;
mod family;
#[cfg(test)]
mod family_toys;
pub mod fault;
pub mod issuer;
pub mod mcp;
mod member;
pub mod outside;
mod pipe;
pub mod rng;
pub mod sandbox;
mod sim_bucket;
mod sim_host;
mod sim_sql;
mod sim_work;
mod statement;
mod strict;
#[cfg(test)]
mod toys;
pub mod upload;
pub mod world;

pub use answer::{Answer, Say};
pub use claude::Claude;
pub use collector::COLLECTOR_URL;
pub use database::Counters;
pub use embeddings::EMBED_URL;
pub use fault::{At, Fault};
pub use mcp::MCP_URL;
pub use member::{Listener, Member, Object};
pub use outside::{Handler, MODEL_URL, Native, TOOL_URL};
pub use sim_host::{SimHost, open, open_memory};
pub use world::{Lost, ROOT, World};

/// One second, microseconds.
pub const SECOND_US: i64 = 1_000_000;
/// One day, microseconds.
pub const DAY_US: i64 = 24 * 3600 * SECOND_US;
