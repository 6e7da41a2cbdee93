//! Rust functions of the application's own that definitions name (spec §6.3, §9, §10, §26): what each is given, and who runs
//! them.
//!
//! * `tools`, `effects`, `hooks`, `endpoints`: the functions of this crate, and where other crates register theirs.
//! * Here: what tools and effects are given. `hook_call`, `endpoint_call`: what hooks and endpoints are given.
//! * `registered`: all of them, as a thread calls them.

pub mod effects;
pub(crate) mod endpoint_call;
pub mod endpoints;
pub(crate) mod hook_call;
pub mod hooks;
pub mod registered;
pub mod tools;

use serde_json::{Map, Value};

use crate::host::{Pending, Sleep};
use crate::models::{ProviderCall, ProviderError};
use crate::registry::Panicked;
use crate::sdk::ThreadState;
use crate::spec::message::ToolResult;
use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};
use crate::work::native::hook_call::HookCall;

/// What a native tool is given (spec §6.3). It sees no clock and no socket of its own: `sleep` and `env` are its
/// host's.
#[derive(Clone)]
pub struct NativeCall {
    /// The registered name.
    pub name: String,
    /// Validated arguments; an object.
    pub args: Value,
    /// Static options of the prompt's tool entry.
    pub options: Map<String, Value>,
    /// The thread.
    pub thread_id: String,
    /// The agent that runs.
    pub agent_id: String,
    /// Id of the call, as the model knows it.
    pub call_id: String,
    /// Whether a person has approved of this very call (docs/approvals.md).
    pub approved: bool,
    /// What people have answered to what earlier runs of the call have asked, by the names that it gave (docs/tools.md).
    pub answers: Map<String, Value>,
    /// `<thread>/<receipt>`: the same for every run of the same call.
    pub idempotency_key: String,
    /// Microseconds since 1970.
    pub now_us: i64,
    /// Random bytes of this call.
    pub random: [u8; 16],
    /// Values of declared variables, by name.
    pub env: Map<String, Value>,
    /// Waits so many microseconds.
    pub sleep: Sleep,
    /// The thread: its values, its messages, who listens to it.
    pub state: ThreadState,
}

impl NativeCall {
    /// What people are shown of it.
    pub(crate) fn asked(&self) -> (String, Value) {
        (self.call_id.clone(), self.args.clone())
    }
}

/// What a native effect is given (spec §10). Each attempt at the same occurrence is given the same key.
#[derive(Clone)]
pub struct EffectCall {
    /// The registered name.
    pub native: String,
    /// The definition's name.
    pub name: String,
    /// Validated arguments; an object.
    pub args: Value,
    /// The thread.
    pub thread_id: String,
    /// The agent that the thread runs.
    pub agent_id: String,
    /// Public id of the effect.
    pub effect_id: String,
    /// `<thread>/e<number>`, for one that repeats with the number of the occurrence.
    pub idempotency_key: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// When it was to run, microseconds since 1970.
    pub scheduled_us: i64,
    /// Microseconds since 1970.
    pub now_us: i64,
    /// Random bytes of this attempt.
    pub random: [u8; 16],
    /// Values of declared variables, by name.
    pub env: Map<String, Value>,
    /// Waits so many microseconds.
    pub sleep: Sleep,
    /// The thread. Messages that this attempt adds say so in `metadata.scheduledEffect`.
    pub state: ThreadState,
}

/// Runs what definitions name with `run.native`, and providers of models. [`crate::Registered`] runs what was registered.
///
/// What panics ends its own call alone: that is the outer error of each.
pub trait Natives {
    /// Runs a tool. An unknown name is an error result.
    fn tool(&self, call: NativeCall) -> Pending<Result<ToolResult, Panicked>>;

    /// Runs an effect. An unknown name is an error; the text is for whoever reads the thread's effects.
    fn effect(&self, call: EffectCall) -> Pending<Result<Result<(), String>, Panicked>>;

    /// Runs an endpoint. An unknown name is an error of code `internal`.
    fn endpoint(&self, call: EndpointCall)
    -> Pending<Result<crate::error::Result<EndpointAnswer>, Panicked>>;

    /// Runs a hook. An unknown name is a failure; the text is for whoever reads the thread's log.
    fn hook(&self, call: HookCall) -> Pending<Result<Result<Value, String>, Panicked>>;

    /// Runs the provider of a model ([`crate::models::run`]). An unknown name is a failure.
    fn provider(&self, call: ProviderCall) -> Pending<Result<Result<(), ProviderError>, Panicked>>;

    /// Whether there is a tool of that name.
    fn has_tool(&self, name: &str) -> bool;

    /// Whether there is a hook of that name.
    fn has_hook(&self, name: &str) -> bool;
}
