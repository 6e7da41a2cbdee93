//! The engine of one thread.
//!
//! # Layout
//!
//! Read `step` first: the cycle of seven steps. `flow` drives a run from step to step and resumes it after a
//! crash. The rows behind it are in `store`.
//!
//! * `thread`: one thread and its transitions. `features`: the handles of its features. `ephemeral`: state that is
//!   lost with the object. `definitions`: the definitions of the open step. `catalogs`: the catalog and its later
//!   versions.
//! * `flow`: one flow per thread, recovery, yielding. `alarm`: sets the object's one alarm; `alarm_handler`: its
//!   work. `resume`: what a run begins with, and whether it still matches. `notes`: warnings of a run.
//! * `accept`: incoming messages. `control`: stop, continue, terminate, delete. `expiry`: threads that delete
//!   themselves. `edit`, `cut` and `fork`: changes and copies of the conversation. `answer_end`: where the answer
//!   to a message ends.
//! * `context`: the request to a model. `model_call`: attempts, fallbacks and pauses. `provider_call`: one request
//!   and its timeouts. `attempts`: the progress of a step with its model. `retry`: retry policies. `replay`: data
//!   that providers want back with their replies. `skills`: skills that a model has loaded.
//! * `call`: a call of a reply or of code. `tool_call`: its receipt and its work. `tool_result`: results and their
//!   files. `scrub`: removes secrets from results. `batch`: read-only calls at the same time. `tool_queue`: calls
//!   that code queues. `invoke`: calls that code waits for. `scope`: the origin of a step's calls. `detached`:
//!   calls outside any run.
//! * `subprompt`: prompts that are called as tools. `handoff`: another agent takes over. `opening`: the first
//!   message of a called prompt or agent. `subagents`: child threads.
//! * `stop`: when a turn, a session or a run ends. `close`: the transition of that end. `run_end`: what its commit
//!   leaves to announce. `session`: tools of a session. `outcome`: the result of a run. `diagnose`: missing
//!   values, models and tools.
//! * `handle`: the thread for code that works in it, behind [`ThreadState`]. `work_context`: host and catalog for
//!   that code.
//! * `values`: key-value pairs. `env`: variables. `files`: files. `attachments`: files that messages show.
//!   `records`: pages of messages and of the log. `effects`: scheduled effects. `hooks`: code of the application.
//!   `waits`: questions to people, and other reasons why a run is parked. `budget`: limits and costs of runs.
//!   `memory`: memories. `mcp`: calls to MCP servers.
//! * `listeners`: clients that begin to listen. `stream`: events for them. `tool_events`: events of tool calls.
//!   `feed`: the events of one run. `items`: the same as items. `progress`: one line about a run. `outbox`:
//!   messages to the directory, a parent and children; `delivery`: sends them. `log`: the durable log. `operator`:
//!   failures, for the server's terminal. `traces` and `run_trace`: trace contexts.
//! * `jobs`: work outside runs; `job_runner`: its attempts. `summary`: summaries of older messages. `cancel`:
//!   cancels the answer of a provider after a stop. `spans`: runs as spans. `export`: sends spans to a collector.

mod accept;
pub(crate) mod alarm;
mod alarm_handler;
mod answer_end;
pub(crate) mod attachments;
mod attempts;
mod batch;
pub(crate) mod budget;
mod call;
mod cancel;
mod catalogs;
mod close;
pub(crate) mod context;
mod control;
mod cut;
pub(crate) mod definitions;
mod delivery;
mod detached;
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
mod flow;
mod fork;
mod handle;
mod handoff;
mod hooks;
mod invoke;
mod items;
mod job_runner;
mod jobs;
mod listeners;
mod log;
mod mcp;
mod memory;
mod model_call;
mod notes;
mod opening;
pub(crate) mod operator;
pub(crate) mod outbox;
pub(crate) mod outcome;
mod progress;
mod provider_call;
pub(crate) mod records;
mod replay;
mod resume;
mod retry;
mod run_end;
mod run_trace;
mod scope;
mod scrub;
mod session;
mod skills;
mod spans;
mod step;
mod stop;
mod stream;
pub(crate) mod subagents;
mod subprompt;
pub(crate) mod summary;
pub(crate) mod thread;
mod tool_call;
mod tool_events;
mod tool_queue;
pub(crate) mod tool_result;
mod tool_run;
mod traces;
mod values;
pub(crate) mod waits;
mod work_context;

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
