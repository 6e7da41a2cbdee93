//! Bobbin: an agent runtime. This crate is its pure core: it cannot name Cloudflare, opens no socket and reads no clock;
//! everything outside goes through [`host`].
//!
//! # Floors
//!
//! From the ground up. Each module imports only those listed above it; `npm test` checks that.
//!
//! * [`json`]: JSON as types.
//! * [`error`]: every code an API answer may carry, and the status it maps to.
//! * [`limits`]: every constant of the runtime, named once.
//! * [`literal`]: JSON as it is written in code.
//! * `text`: texts that are cut.
//! * [`sorted`]: maps and sets that are sorted lists.
//! * `letters`: which letters follow one another in words.
//! * `tokens`: how many tokens a text has, about.
//! * `registry`: functions by name.
//! * `dates`: dates as people and headers have them.
//! * `page`: pages that end by bytes.
//! * [`signing`]: signatures of outgoing calls.
//! * `trace`: which trace a run belongs to, and the ids of its spans.
//! * [`host`]: the door to the outside: SQLite, HTTP, the alarm, the bucket, listeners.
//! * [`spec`]: the definitions a developer writes (models, prompts, tools, agents), the catalog they are compiled into, and
//!   the records a thread keeps. Plain data.
//! * `names`: what was probably meant by a name.
//! * [`access`]: API keys, scopes, browser tokens.
//! * [`request`]: the HTTP surface as data: routes, requests to an object, replies.
//! * [`models`]: providers of models, and the registry that a crate which embeds this one adds its own to.
//! * [`env`]: values of variables: encrypted, changed, kept out of what is shown.
//! * `store`: the tables of a thread, one file each: its rows, its statements.
//! * [`sandbox`]: code in the sandbox: values that cross, options, the handle.
//! * [`sdk`]: the thread as the code sees it that works in it.
//! * `mcp`: the protocol of MCP servers, as a client speaks it.
//! * [`work`]: what definitions name with `run`: native functions, HTTP calls, code in the sandbox.
//! * [`validate`]: what is wrong with a catalog.
//! * [`memory`]: memories, whoever holds their tables: documents, chunks, vectors, what is found.
//! * [`engine`]: the engine of one thread. Start at `engine/step.rs`: the seven-step cycle, in order.
//! * [`api`]: what the routes of a thread answer; the protocols of other systems.
//! * [`directory`]: which threads an owner has.
//! * [`growth`]: readers of what strangers send, for the tests of their growth.
//!
//! The Cloudflare shell is the crate `bobbin-worker` (`worker/`); the simulated host that the engine is tested on is in
//! `tests/engine/`.

pub mod access;
pub mod api;
mod dates;
pub mod directory;
pub mod engine;
pub mod env;
pub mod error;
pub mod growth;
pub mod host;
pub mod json;
mod letters;
pub mod limits;
pub mod literal;
mod mcp;
pub mod memory;
pub mod models;
mod names;
mod page;
mod registry;
pub mod request;
pub mod sandbox;
pub mod sdk;
pub mod signing;
pub mod sorted;
pub mod spec;
mod store;
mod text;
mod tokens;
mod trace;
pub mod validate;
pub mod work;

pub use crate::error::{Code, Error, Fault, Result};
pub use crate::work::native::registered::Registered;
pub use crate::work::native::{effects, endpoints, hooks, tools};
