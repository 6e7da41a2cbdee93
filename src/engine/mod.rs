//! The engine of one thread.
//!
//! # Layout
//!
//! Reading order: `step` is the seven-step cycle; `flow` drives it from step to step and re-enters it after a crash. The rows
//! behind it, the run's among them, are in `store`.
//!
//! * `thread`: one thread, its transitions. `ephemeral`: what exists only while the object lives. `definitions`: what the
//!   definitions say about the open step. `catalogs`: the catalog, as it grows.
//! * `flow`: one flow per thread, recovery, yielding. `alarm`: the one alarm, and how it joins a run.
//! * `accept`: messages that come in. `control`: stop, continue, terminate, delete; `expiry`: threads that delete
//!   themselves. `edit`: changes to messages and the thread. `cut`: to go on from an earlier message.
//!   `fork`: copies of threads. `answered`: where the answer to a message ends.
//! * `step`: the cycle. `context`: what a request to a model holds. `model_call`: attempts, fallbacks and pauses;
//!   `provider_call`: one request and its watchdogs; `attempts`: how far a step is with its model; `retry`: which policy
//!   holds for what fails; `replay`: what providers want back with their replies.
//! * `call`: a call of a reply or of code, and what runs it. `tool_call`: its receipt and its work. `tool_result`: results and
//!   their files; `scrub`: results without what looks like a secret. `batch`: calls that only read, made at the same time.
//!   `subprompt`: prompts that are called. `handoff`: another agent takes over; `opening`: the message that a called prompt or
//!   agent begins with.
//! * `tool_queue`: calls that code queues. `invoke`: calls that it waits for. `scope`: where the calls of a step are made.
//!   `detached`: what becomes of calls made apart from any run.
//! * `diagnose`: what a run lacks, and what becomes of it. `outcome`: what came of it. `run_trace`: what code adds to its
//!   trace.
//! * `stop`: when a turn, a session or a run ends; `close`: what then changes. `session`: the tools of a session.
//! * `handle`: the thread for the code that works in it, behind [`ThreadState`]. `surroundings`: what it lends to that code.
//! * `values`: what tools and clients remember in the thread. `env`: values of variables. `files`: its files. `attachments`:
//!   those that messages show. `effects`: what it does later. `hooks`: code of the application's own around all of it.
//!   `subagents`: threads that work for this one. `waits`: what people are asked.
//! * `resume`: what a run begins with, and whether it is still so. `skills`: what a model is given of them. `notes`: what a run
//!   finds wrong and goes on with.
//! * `stream`: what listeners are sent; `told`: of calls; `feed`: the same of one run, from its beginning to its end; `items`: the same in other words; `progress`: what a run does, in one line. `outbox`: what
//!   the directory, a parent and children are told. `log`: attempts, durably. `operator`: failures, for the server's terminal.
//!   `traces`: which trace work is part of.
//! * `budget`: what a run may use, and has used. `memory`: what it looks things up in. `mcp`: calls of the tools of MCP servers.
//! * `jobs`: work beside runs that the thread owes. `summary`: the job that makes a summary of older messages; `cancel`: the one that
//!   ends what a provider goes on with after a stop. `spans`: what a
//!   run did, as tracing systems show it; `export`: the job that sends it to one.

pub(crate) mod accept;
pub(crate) mod alarm;
pub(crate) mod answered;
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
pub(crate) mod surroundings;
pub(crate) mod thread;
pub(crate) mod told;
pub(crate) mod tool_call;
pub(crate) mod tool_queue;
pub(crate) mod tool_result;
pub(crate) mod traces;
pub(crate) mod values;
pub(crate) mod waits;

pub use crate::engine::effects::{NewEffect, Repetition};
pub use crate::engine::files::{
    FileChunk, FileOptions, FileRecord, FileStats, GrepMatch, GrepResult, spilled_above,
};
pub use crate::engine::hooks::HookCall;
pub use crate::engine::subagents::{RemoteThread, Subagent};
pub use crate::engine::thread::{Place, Thread};
pub use crate::registry::Panicked;
pub use crate::sdk::messages::{MessageUpdate, NewAttachment};
pub use crate::sdk::run_handle::{AbortSignal, RunHandle};
pub use crate::sdk::{Identity, NewMessage, ThreadState};
pub use crate::store::side::Side;
pub use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};
pub use crate::work::native::{EffectCall, NativeCall, Natives};
