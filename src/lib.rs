//! Bobbin: an agent runtime. This crate is its pure core: it cannot name Cloudflare, opens no socket and reads no
//! clock; everything outside goes through one trait, [`thread::Host`].
//!
//! # Layout
//!
//! * [`spec`]: the definitions a developer writes (models, prompts, tools, agents), the catalog they are compiled
//!   into, its validation, and the records a thread keeps (messages, tool calls, results). Plain data.
//! * [`thread`]: the engine of one thread. Start at `thread/step.rs`: the seven-step cycle, in order.
//! * [`models`]: providers of models, and the registry that a crate which embeds this one adds its own to.
//! * [`tools`]: native tools, and the registry that a crate which embeds this one adds its own to.
//! * [`effects`], [`endpoints`], [`hooks`]: native effects, endpoints and hooks, in the same way.
//! * [`code`]: running code in the sandbox: values that cross, options, the handle.
//! * [`directory`]: which threads an owner has.
//! * [`api`]: the HTTP surface as data: routes, requests to an object, replies.
//! * [`access`]: API keys, scopes, browser tokens.
//! * [`env`]: values of variables: encrypted, changed, kept out of what is shown.
//! * [`signing`]: signatures of outgoing calls.
//! * [`http`]: requests and responses as data, as the engine hands them to its host.
//! * [`error`]: every code an API answer may carry, and the status it maps to.
//! * [`limits`]: every constant of the runtime, named once.
//!
//! The Cloudflare shell is the crate `bobbin-worker` (`worker/`); the simulated host that the engine is tested on
//! is in `tests/engine/`.

pub mod access;
pub mod api;
pub mod code;
mod dates;
pub mod directory;
pub mod effects;
pub mod endpoints;
pub mod env;
pub mod error;
pub mod hooks;
pub mod host;
pub mod http;
pub mod limits;
pub mod models;
mod page;
mod registered;
mod registry;
pub mod signing;
pub mod spec;
mod text;
pub mod thread;
pub mod tools;

pub use error::{Code, Error, Result};
pub use registered::Registered;
