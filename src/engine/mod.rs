//! The engine of one thread.
//!
//! # Layout
//!
//! Read `step` first: the cycle of seven steps. `flow` drives a run from step to step and resumes it after a crash. The rows
//! behind it are in `store`.
//!
//! * `thread`: one thread and its transitions. `features`: the handles of its features. `ephemeral`: state that is lost with
//!   the object. `definitions`: the definitions of the open step. `catalogs`: the catalog and its later versions.
//! * `flow`: one flow per thread, recovery, yielding. `alarm`: the object's one alarm. `resume`: what a run begins with, and
//!   whether it still matches. `notes`: warnings of a run.
//! * `accept`: incoming messages. `control`: stop, continue, terminate, delete. `expiry`: threads that delete themselves.
//!   `edit`, `cut` and `fork`: changes and copies of the conversation. `answer_end`: where the answer to a message ends.
//! * `context`: the request to a model. `model_call`: attempts, fallbacks and pauses. `provider_call`: one request and its
//!   timeouts. `attempts`: the progress of a step with its model. `retry`: retry policies. `replay`: data that providers want
//!   back with their replies. `skills`: skills that a model has loaded.
//! * `call`: a call of a reply or of code. `tool_call`: its receipt and its work. `tool_result`: results and their files.
//!   `scrub`: removes secrets from results. `batch`: read-only calls at the same time. `tool_queue`: calls that code queues.
//!   `invoke`: calls that code waits for. `scope`: the origin of a step's calls. `detached`: calls outside any run.
//! * `subprompt`: prompts that are called as tools. `handoff`: another agent takes over. `opening`: the first message of a
//!   called prompt or agent. `subagents`: child threads.
//! * `stop`: when a turn, a session or a run ends. `close`: the transition of that end. `session`: tools of a session.
//!   `outcome`: the result of a run. `diagnose`: missing values, models and tools.
//! * `handle`: the thread for code that works in it, behind [`ThreadState`]. `work_context`: host and catalog for that code.
//! * `values`: key-value pairs. `env`: variables. `files`: files. `attachments`: files that messages show. `records`: pages of
//!   messages and of the log. `effects`: scheduled effects. `hooks`: code of the application. `waits`: questions to people,
//!   and other reasons why a run is parked. `budget`: limits and costs of runs. `memory`: memories. `mcp`: calls to MCP servers.
//! * `stream`: events for listeners. `tool_events`: events of tool calls. `feed`: the events of one run. `items`: the same as items.
//!   `progress`: one line about a run. `outbox`: messages to the directory, a parent and children. `log`: the durable log.
//!   `operator`: failures, for the server's terminal. `traces` and `run_trace`: trace contexts.
//! * `jobs`: work outside runs. `summary`: summaries of older messages. `cancel`: cancels the answer of a provider after a stop.
//!   `spans`: runs as spans. `export`: sends spans to a collector.

pub(crate) mod accept;
pub(crate) mod alarm;
pub(crate) mod answer_end;
pub(crate) mod attachments;
pub(crate) mod attempts;
pub(crate) mod batch;
pub(crate) mod budget;
pub(crate) mod call;
pub(crate) mod cancel;
pub(crate) mod catalogs;
pub(crate) mod close;
pub(crate) mod context;
pub(crate) mod control;
pub(crate) mod cut;
pub(crate) mod definitions;
pub(crate) mod detached;
pub(crate) mod diagnose;
pub(crate) mod edit;
pub(crate) mod effects;
pub(crate) mod env;
pub(crate) mod ephemeral;
pub(crate) mod expiry;
pub(crate) mod export;
pub(crate) mod features;
pub mod feed;
pub(crate) mod files;
pub(crate) mod flow;
pub(crate) mod fork;
pub(crate) mod handle;
pub(crate) mod handoff;
pub(crate) mod hooks;
pub(crate) mod invoke;
pub(crate) mod items;
pub(crate) mod jobs;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod model_call;
pub(crate) mod notes;
pub(crate) mod opening;
pub(crate) mod operator;
pub(crate) mod outbox;
pub(crate) mod outcome;
pub(crate) mod progress;
pub(crate) mod provider_call;
pub(crate) mod records;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod retry;
pub(crate) mod run_trace;
pub(crate) mod scope;
pub(crate) mod scrub;
pub(crate) mod session;
pub(crate) mod skills;
pub(crate) mod spans;
pub(crate) mod step;
pub(crate) mod stop;
pub(crate) mod stream;
pub(crate) mod subagents;
pub(crate) mod subprompt;
pub(crate) mod summary;
pub(crate) mod thread;
pub(crate) mod tool_call;
pub(crate) mod tool_events;
pub(crate) mod tool_queue;
pub(crate) mod tool_result;
pub(crate) mod tool_run;
pub(crate) mod traces;
pub(crate) mod values;
pub(crate) mod waits;
pub(crate) mod work_context;

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
