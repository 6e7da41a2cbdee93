//! The functions that crates have registered, as a thread calls them.

use serde_json::Value;

use crate::engine::{EffectCall, EndpointAnswer, EndpointCall, HookCall, NativeCall, Natives, Panicked};
use crate::error::Result;
use crate::host::Pending;
use crate::models::{ProviderCall, ProviderError};
use crate::spec::message::ToolResult;

/// Runs what was registered with [`crate::work::native::tools::register`] and its like.
pub struct Registered;

impl Natives for Registered {
    fn tool(&self, call: NativeCall) -> Pending<ToolResult> {
        crate::work::native::tools::run(call)
    }

    fn effect(&self, call: EffectCall) -> Pending<Result<(), String>> {
        crate::work::native::effects::run(call)
    }

    fn endpoint(&self, call: EndpointCall) -> Pending<Result<Result<EndpointAnswer>, Panicked>> {
        Box::pin(crate::work::native::endpoints::run(call))
    }

    fn hook(&self, call: HookCall) -> Pending<Result<Result<Value, String>, Panicked>> {
        Box::pin(crate::work::native::hooks::run(call))
    }

    fn provider(&self, call: ProviderCall) -> Pending<Result<Result<(), ProviderError>, Panicked>> {
        Box::pin(crate::models::run(call))
    }
}
