//! The registered functions, for a thread.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::error::Result;
use crate::host::Pending;
use crate::models::registry::{Panic, contained};
use crate::models::{ProviderCall, ProviderError};
use crate::validate;
use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};
use crate::work::native::hook_call::HookCall;
use crate::work::native::{EffectCall, NativeCall, Natives, effects, endpoints, hooks, tools};

/// The names that this program has for `run.native`, and for the `provider` of models.
pub fn natives() -> validate::Natives {
    validate::Natives {
        complete: true,
        tools: tools::names(),
        effects: effects::names(),
        endpoints: endpoints::names(),
        hooks: hooks::names(),
        providers: crate::models::providers(),
    }
}

/// Runs functions that were registered with [`tools::register`] and similar functions.
pub struct Registered;

impl Natives for Registered {
    fn tool(&self, call: NativeCall) -> Pending<Result<ToolResult, Panic>> {
        Box::pin(contained(tools::run(call)))
    }

    fn effect(&self, call: EffectCall) -> Pending<Result<Result<(), String>, Panic>> {
        Box::pin(contained(effects::run(call)))
    }

    fn endpoint(&self, call: EndpointCall) -> Pending<Result<Result<EndpointAnswer>, Panic>> {
        Box::pin(contained(endpoints::run(call)))
    }

    fn hook(&self, call: HookCall) -> Pending<Result<Result<Value, String>, Panic>> {
        Box::pin(contained(hooks::run(call)))
    }

    fn provider(&self, call: ProviderCall) -> Pending<Result<Result<(), ProviderError>, Panic>> {
        Box::pin(crate::models::run(call))
    }

    fn has_tool(&self, name: &str) -> bool {
        tools::has(name)
    }

    fn has_hook(&self, name: &str) -> bool {
        hooks::has(name)
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::Natives;

    /// The compiler of definitions knows the functions of this crate by these lists alone.
    #[test]
    fn the_functions_of_this_crate_are_those_that_the_compiler_of_definitions_knows() {
        let (mut known, here) = (Natives::built_in(), super::natives());
        for names in [
            &mut known.tools,
            &mut known.effects,
            &mut known.endpoints,
            &mut known.hooks,
            &mut known.providers,
        ] {
            names.sort_unstable();
        }
        assert_eq!(known, here);
    }
}
