//! Bobbin: an agent runtime. This crate is its pure core. It cannot name Cloudflare, opens no socket and
//! reads no clock; all access to the outside goes through [`host`].
//!
//! # Floors
//!
//! The modules in the order of their dependencies. Each imports only those listed above it; `npm test` checks
//! that.
//!
//! * [`json`]: JSON to and from types.
//! * [`error`]: the error codes of the API, with their statuses.
//! * [`limits`]: every constant of the runtime.
//! * [`literal`]: the macro for JSON literals.
//! * `text`: cutting and decoding of texts.
//! * [`sorted`]: maps and sets as sorted lists.
//! * `letters`: common pairs of letters.
//! * `tokens`: estimates of token counts.
//! * `registry`: native functions by name.
//! * `dates`: dates in queries and responses.
//! * `page`: pages bounded by rows and bytes.
//! * [`signing`]: signatures of outgoing calls.
//! * `trace`: trace contexts and ids of spans.
//! * [`host`]: the interface to the outside: SQLite, HTTP, the alarm, the bucket, listeners.
//! * [`spec`]: the definitions that a developer writes (models, prompts, tools, agents), the catalog that
//!   they are compiled into, and the records that a thread keeps. Plain data.
//! * `names`: validation and suggestions of names.
//! * [`access`]: API keys, scopes, browser tokens.
//! * [`request`]: the HTTP surface as data: routes, requests to an object, replies.
//! * [`models`]: providers of models, and the registry to which an embedding crate adds its own.
//! * [`env`]: values of variables: encryption, changes, redaction.
//! * `store`: the tables of a thread, one file each.
//! * [`sandbox`]: sandboxed code: values that cross, options, the handle.
//! * [`sdk`]: the thread as its code sees it.
//! * `mcp`: the client of the MCP protocol.
//! * [`work`]: the targets of `run` in definitions: native functions, HTTP calls, sandboxed code.
//! * [`validate`]: validation of a catalog.
//! * [`memory`]: memories of threads and shared ones: documents, chunks, vectors, searches.
//! * [`engine`]: the engine of one thread. Start at `engine/step.rs`: the seven-step cycle, in order.
//! * [`api`]: the responses of a thread's routes; the protocols of other systems.
//! * [`directory`]: the threads of an owner.
//! * [`growth`]: readers of untrusted input, for tests of their growth.
//!
//! The Cloudflare shell is the crate `bobbin-worker` (`worker/`). The simulated host for tests of the engine
//! is in `tests/engine/`.

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
