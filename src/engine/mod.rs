//! The engine of one thread.
//!
//! # Layout
//!
//! Read `cycle::step` first: the seven stages of a step. The rows behind it are in `store`.
//!
//! * `thread`: one thread and its transitions. `features`: the handles of its features. `ephemeral`: state that is
//!   lost with the object. `definitions`: the definitions of the open step. `catalogs`: the catalog and its later
//!   versions. `alarm`: sets the object's one alarm; `alarm_handler`: its work. `notes`: warnings of a run.
//! * `cycle`: a run, from the message that starts it to its end. `model`: requests to the model; `context`: what
//!   they contain; `skills`: skills that a model has loaded. `calls`: calls of tools; `scrub`: removes secrets
//!   from results.
//! * `subprompt`: prompts that are called as tools. `handoff`: another agent takes over. `opening`: the first
//!   message of a called prompt or agent. `subagents`: child threads.
//! * `edit`, `cut` and `fork`: changes and copies of the conversation. `expiry`: threads that delete themselves.
//!   `diagnose`: missing values, models and tools.
//! * `handle`: the thread for code that works in it, behind [`ThreadState`].
//! * `values`: key-value pairs. `env`: variables. `files`: files. `attachments`: files that messages show.
//!   `records`: pages of messages and of the log. `effects`: scheduled effects. `hooks`: code of the application.
//!   `waits`: questions to people, and other reasons why a run is parked. `budget`: limits and costs of runs.
//!   `memory`: memories. `mcp`: calls to MCP servers.
//! * `listeners`: clients that begin to listen. `stream`: events for them. `feed`: the events of one run. `items`:
//!   the same as items. `progress`: one line about a run.
//! * `outbox`: messages to the directory, a parent and children; `delivery`: sends them. `attempt_log`: log rows of a step.
//!   `operator`: failures, for the server's terminal. `traces` and `run_trace`: trace contexts.
//! * `jobs`: work outside runs; `job_runner`: its attempts. `summary`: summaries of older messages. `spans`: runs
//!   as spans. `export`: sends spans to a collector.

pub(crate) mod alarm;
mod alarm_handler;
pub(crate) mod attachments;
mod attempt_log;
pub(crate) mod budget;
pub(crate) mod calls;
mod catalogs;
pub(crate) mod context;
mod cut;
pub(crate) mod cycle;
pub(crate) mod definitions;
mod delivery;
mod diagnose;
mod edit;
pub(crate) mod effects;
mod env;
pub(crate) mod ephemeral;
pub(crate) mod expiry;
pub(crate) mod export;
pub(crate) mod features;
pub mod feed;
pub(crate) mod files;
mod fork;
mod handle;
mod handoff;
mod hooks;
mod items;
mod job_runner;
mod jobs;
mod listeners;
mod mcp;
mod memory;
pub(crate) mod model;
mod notes;
mod opening;
pub(crate) mod operator;
pub(crate) mod outbox;
mod progress;
pub(crate) mod records;
mod run_trace;
mod scrub;
mod skills;
mod spans;
mod stream;
pub(crate) mod subagents;
mod subprompt;
pub(crate) mod summary;
pub(crate) mod thread;
mod traces;
mod values;
pub(crate) mod waits;

pub use crate::engine::effects::{NewEffect, Repetition};
pub use crate::engine::files::{
    FileChunk, FileOptions, FileRecord, FileStats, GrepMatch, GrepResult, spilled_above,
};
pub use crate::engine::hooks::HookCall;
pub use crate::engine::subagents::{RemoteThread, Subagent};
pub use crate::engine::thread::{Thread, ThreadSlot};
pub use crate::models::registry::Panic;
pub use crate::sdk::messages::{MessageUpdate, NewAttachment};
pub use crate::sdk::run_handle::{AbortSignal, RunHandle};
pub use crate::sdk::{Identity, NewMessage, ThreadState};
pub use crate::store::side::Side;
pub use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};
pub use crate::work::native::{EffectCall, NativeCall, Natives};
