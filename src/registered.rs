//! The functions that crates have registered, as a thread calls them.

use serde_json::Value;

use crate::error::Result;
use crate::host::Pending;
use crate::models::{ProviderCall, ProviderError};
use crate::spec::message::ToolResult;
use crate::thread::{EffectCall, EndpointAnswer, EndpointCall, HookCall, NativeCall, Natives, Panicked};

/// Runs what was registered with [`crate::tools::register`] and its like.
pub struct Registered;

impl Natives for Registered {
    fn tool(&self, call: NativeCall) -> Pending<ToolResult> {
        crate::tools::run(call)
    }

    fn effect(&self, call: EffectCall) -> Pending<Result<(), String>> {
        crate::effects::run(call)
    }

    fn endpoint(&self, call: EndpointCall) -> Pending<Result<Result<EndpointAnswer>, Panicked>> {
        Box::pin(crate::endpoints::run(call))
    }

    fn hook(&self, call: HookCall) -> Pending<Result<Result<Value, String>, Panicked>> {
        Box::pin(crate::hooks::run(call))
    }

    fn provider(&self, call: ProviderCall) -> Pending<Result<Result<(), ProviderError>, Panicked>> {
        Box::pin(crate::models::run(call))
    }
}
