//! Definitions: argument schemas against the official suite and a full implementation, templates, prompts, and the
//! validation of a whole catalog.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test crate: a failed assertion is its way to speak"
)]

mod definitions;
mod graph;
mod mcp;
mod random;
mod render;
mod rng;
mod schema;
mod schemas;
mod snapshot;
mod suite;
mod template;
mod validate;
mod validate_approvals;
mod validate_callables;
mod validate_models;
