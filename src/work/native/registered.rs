//! The registered functions, for a thread.

use serde_json::Value;

use crate::error::Result;
use crate::host::Pending;
use crate::models::{ProviderCall, ProviderError};
use crate::registry::{Panicked, contained};
use crate::spec::message::ToolResult;
use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};
use crate::work::native::hook_call::HookCall;
use crate::work::native::{EffectCall, NativeCall, Natives, effects, endpoints, hooks, tools};

/// Runs functions that were registered with [`tools::register`] and similar functions.
pub struct Registered;

impl Natives for Registered {
    fn tool(&self, call: NativeCall) -> Pending<Result<ToolResult, Panicked>> {
        Box::pin(contained(tools::run(call)))
    }

    fn effect(&self, call: EffectCall) -> Pending<Result<Result<(), String>, Panicked>> {
        Box::pin(contained(effects::run(call)))
    }

    fn endpoint(&self, call: EndpointCall) -> Pending<Result<Result<EndpointAnswer>, Panicked>> {
        Box::pin(contained(endpoints::run(call)))
    }

    fn hook(&self, call: HookCall) -> Pending<Result<Result<Value, String>, Panicked>> {
        Box::pin(contained(hooks::run(call)))
    }

    fn provider(&self, call: ProviderCall) -> Pending<Result<Result<(), ProviderError>, Panicked>> {
        Box::pin(crate::models::run(call))
    }

    fn has_tool(&self, name: &str) -> bool {
        tools::has(name)
    }

    fn has_hook(&self, name: &str) -> bool {
        hooks::has(name)
    }
}
