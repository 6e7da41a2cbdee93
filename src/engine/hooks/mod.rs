//! Hooks (spec §9): the application's code around the operations of a thread.
//!
//! A run uses the hooks of its active prompt, or else of its agent. The list follows from the definitions, so a
//! resumed run has the same one. Hooks run in the listed order, each on the result of the previous one. A hook
//! that fails is logged and changes nothing.
//!
//! No message or result is transformed twice: the transformed version is stored in one transaction with the mark
//! that the hook has run. Until then the hook is called again with the original. Changes to a request are not
//! stored. Observing hooks run at least once, with the same `hookCallId` each time.
//!
//! * `call`: one call of one hook. `chain`: the hooks of one name, one after another. `request`: hooks of a
//!   request to a model. `message`: hooks around a message that is stored or changed. `inbound`: hooks of a drain,
//!   and of a new thread. `result`: hooks around a tool call.

pub(super) mod call;
mod chain;
pub(super) mod inbound;
mod message;
mod request;
pub(super) mod result;

pub use crate::work::native::hook_call::HookCall;

use serde_json::Value;

use crate::definitions::hook::{Hook, HookName};
use crate::engine::definitions::Definitions;
use crate::engine::features::Hooks;
use crate::engine::operator::Failure;
use crate::error::Result;
use crate::limits;
use crate::sdk::scope::{HookMode, Origin};
use crate::store::log_record::Event;
use crate::store::runs::diagnostics::{Diagnostic, Kind};

/// The place at which a hook runs.
struct Site<'a> {
    definitions: &'a Definitions<'a>,
    /// The subject, unique in the thread: the seq of a message, and for its changes their number.
    place: String,
    origin: Origin,
}

impl<'a> Site<'a> {
    /// In the active run, for the message with that seq.
    fn run(definitions: &'a Definitions<'a>, seq: i64) -> Site<'a> {
        Site { definitions, place: seq.to_string(), origin: Origin::Hook }
    }

    fn beside(definitions: &'a Definitions<'a>, place: String) -> Site<'a> {
        Site { definitions, place, origin: Origin::DetachedHook }
    }

    /// At a change of a message.
    fn change(definitions: &'a Definitions<'a>, place: String, hooked: HookMode) -> Site<'a> {
        let origin = if hooked == HookMode::InStep { Origin::Hook } else { Origin::DetachedHook };
        Site { definitions, place, origin }
    }

    fn call_id(&self, thread_id: &str, hook: &Hook) -> String {
        format!("{thread_id}/h{}.{}", self.place, hook.id)
    }
}

impl Hooks<'_> {
    /// The hooks of that name, in their order.
    fn hooks_for<'a>(&'a self, definitions: &Definitions<'a>, name: HookName) -> Vec<&'a Hook> {
        let listed = self.catalog.hooks_of(definitions.agent, definitions.prompt);
        listed.filter(|hook| hook.hook == name).collect()
    }

    pub(super) fn has_hooks(&self, definitions: &Definitions<'_>, names: &[HookName]) -> bool {
        names.iter().any(|name| !self.hooks_for(definitions, *name).is_empty())
    }

    /// Logs a failure. The operation continues as if the hook had not run.
    fn hook_failed(&self, at: &Site<'_>, hook: &Hook, error: &str) -> Result<()> {
        let error = &self.variables().shown(error.to_owned());
        self.report_failure(Failure {
            what: format!("the hook {} ({})", hook.id, hook.hook.as_str()),
            code: None,
            error: error.clone(),
            log: None,
        })?;
        let now = self.host.now_us();
        self.transition(|state, sql| {
            let call_id = at.call_id(&state.meta.stem, hook);
            Event::hook(state.active(), hook, &call_id, error).insert(sql, now)?;
            if let Some(run) = state.run.as_mut().filter(|run| run.end.is_none() && at.origin == Origin::Hook)
            {
                let text =
                    format!("The hook \"{}\" failed: {}", hook.id, error.cut(limits::LOGGED_PATH_BYTES));
                let subject = ("hook", hook.id.as_str());
                let entry = Diagnostic::warning(Kind::Contract, "hook.failed", subject, text, now);
                // A strict run ends because of it, so it must be stored.
                if run.diagnostics.add(entry) {
                    run.update(sql)?;
                }
            }
            Ok(())
        })
    }

    /// Stops here if a hook has ended its own run. That aborted this flow, which ends at its next await.
    async fn stop_if_run_ended(&self, at: &Site<'_>) -> Result<()> {
        if at.origin == Origin::Hook && self.read(|state, _| Ok(state.active().is_none()))? {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// The type of a return value, for error messages.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn wrong(expected: &str, got: &Value) -> String {
    format!("it gave {}, not {expected}", kind_of(got))
}

/// A hook blocks the request; with the text for people.
pub(crate) struct BlockReason(pub(crate) String);
