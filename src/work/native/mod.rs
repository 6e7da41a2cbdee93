//! Rust functions of the application that definitions name (spec §6.3, §9, §10, §26): their input, and the
//! registries.
//!
//! * `tools`, `effects`, `hooks`, `endpoints`: the functions of this crate, and the registries for others.
//! * Here: the input of tools and effects. `hook_call`, `endpoint_call`: the input of hooks and endpoints.
//! * `registered`: all registered functions, for a thread.

pub mod effects;
pub(crate) mod endpoint_call;
pub mod endpoints;
pub(crate) mod hook_call;
pub mod hooks;
pub mod registered;
mod registry;
pub mod tools;

use serde_json::{Map, Value};

use crate::definitions::message::ToolResult;
use crate::host::{Pending, Sleep};
use crate::models::registry::Panic;
use crate::models::{ProviderCall, ProviderError};
use crate::sdk::ThreadState;
use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};
use crate::work::native::hook_call::HookCall;

/// A call of a native tool (spec §6.3). It has no direct access to clock or network: `sleep` and `env` come
/// from the host.
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
    /// Whether a user has approved this call (docs/approvals.md).
    pub approved: bool,
    /// Users' answers to inputs that earlier runs of the call requested, by their names (docs/tools.md).
    pub answers: Map<String, Value>,
    /// `<thread>/<receipt>`: the same for every run of the call.
    pub idempotency_key: String,
    /// Microseconds since 1970.
    pub now_us: i64,
    /// Random bytes of this call.
    pub random: [u8; 16],
    /// Values of declared variables, by name.
    pub env: Map<String, Value>,
    /// Waits for some microseconds.
    pub sleep: Sleep,
    /// The thread: its values, messages and clients.
    pub state: ThreadState,
}

impl NativeCall {
    /// The part of the call that users see.
    pub(crate) fn id_and_args(&self) -> (String, Value) {
        (self.call_id.clone(), self.args.clone())
    }
}

/// A call of a native effect (spec §10). Each attempt at the same occurrence has the same key.
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
    /// `<thread>/e<number>`; for an effect that repeats, with the number of the occurrence.
    pub idempotency_key: String,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Scheduled time, microseconds since 1970.
    pub scheduled_us: i64,
    /// Microseconds since 1970.
    pub now_us: i64,
    /// Random bytes of this attempt.
    pub random: [u8; 16],
    /// Values of declared variables, by name.
    pub env: Map<String, Value>,
    /// Waits for some microseconds.
    pub sleep: Sleep,
    /// The thread. Messages of this attempt have `metadata.scheduledEffect`.
    pub state: ThreadState,
}

/// Runs functions that definitions name with `run.native`, and providers of models. [`crate::Registered`]
/// runs the registered ones.
///
/// A panic ends only its own call. It is the outer error of each method.
pub trait Natives {
    /// Runs a tool. An unknown name is an error result.
    fn tool(&self, call: NativeCall) -> Pending<Result<ToolResult, Panic>>;

    /// Runs an effect. An unknown name is an error; its text is for readers of the thread's effects.
    fn effect(&self, call: EffectCall) -> Pending<Result<Result<(), String>, Panic>>;

    /// Runs an endpoint. An unknown name is an error of code `internal`.
    fn endpoint(&self, call: EndpointCall) -> Pending<Result<crate::error::Result<EndpointAnswer>, Panic>>;

    /// Runs a hook. An unknown name is a failure; its text is for readers of the thread's log.
    fn hook(&self, call: HookCall) -> Pending<Result<Result<Value, String>, Panic>>;

    /// Runs the provider of a model ([`crate::models::run`]). An unknown name is a failure.
    fn provider(&self, call: ProviderCall) -> Pending<Result<Result<(), ProviderError>, Panic>>;

    /// Whether there is a tool with that name.
    fn has_tool(&self, name: &str) -> bool;

    /// Whether there is a hook with that name.
    fn has_hook(&self, name: &str) -> bool;
}
