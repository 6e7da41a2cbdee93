//! Bobbin: an agent runtime. This crate is its pure core. It cannot name Cloudflare, opens no socket and
//! reads no clock; all access to the outside goes through [`host`].
//!
//! # Floors
//!
//! Four crates lie below this one, in `crates/`, and are re-exported here: `bobbin-definitions` ([`json`],
//! [`error`], [`limits`], [`definitions`], [`validate`], …), `bobbin-models` ([`models`]), `bobbin-redaction`
//! (in [`env`]) and `bobbin-protocols` ([`protocols`], [`request`], [`access`]).
//!
//! The modules of this crate in the order of their dependencies. Each imports only those listed above it;
//! `npm test` checks that.
//!
//! * [`host`]: the interface to the outside: SQLite, HTTP, the alarm, the bucket, listeners.
//! * [`env`]: values of variables: encryption, changes, redaction.
//! * `store`: the tables of a thread, one file or folder each.
//! * [`sandbox`]: sandboxed code: values that cross, options, the handle.
//! * [`sdk`]: the thread as its code sees it.
//! * [`work`]: the targets of `run` in definitions: native functions, HTTP calls, sandboxed code.
//! * [`memory`]: memories of threads and shared ones: documents, chunks, vectors, searches.
//! * [`engine`]: the engine of one thread. Start at `engine/cycle/step.rs`: the stages of a step, in order.
//! * [`api`]: the responses of a thread's routes.
//! * [`directory`]: the threads of an owner.
//! * [`growth`]: readers of untrusted input, for tests of their growth.
//!
//! The Cloudflare shell is the crate `bobbin-worker` (`worker/`). The simulated host for tests of the engine
//! is in `tests/engine/`.

#![forbid(unsafe_code)]

pub mod api;
pub mod directory;
pub mod engine;
pub mod env;
pub mod growth;
pub mod host;
pub mod memory;
pub mod sandbox;
pub mod sdk;
mod store;
pub mod work;

pub use bobbin_definitions::{
    Code, Error, Fault, Result, definitions, error, json, json_fields, json_items, limits, literal, signing,
    validate,
};
pub(crate) use bobbin_definitions::{dates, json_text, page, text, tokens};
pub use bobbin_models as models;
pub use bobbin_protocols as protocols;
pub use bobbin_protocols::{access, request};
pub(crate) use bobbin_protocols::{mcp_client, trace};

pub use crate::work::native::registered::{Registered, natives};
pub use crate::work::native::{effects, endpoints, hooks, tools};
