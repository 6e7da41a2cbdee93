//! Hooks (spec §9): code of the application's own around what a thread does.
//!
//! A run's hooks are those that its active prompt lists, or else its agent; that list follows from the definitions, so a
//! run that is entered again has the same one. They run in the listed order, each on what the one before it made. One
//! that fails is logged and has changed nothing.
//!
//! Nothing is transformed twice: what a hook makes of a message or a result is stored in one transaction with what says
//! that it has run, and until then it is asked again about the original. What it makes of a request is stored nowhere.
//! Hooks that observe are told at least once, with the same `hookCallId` each time.
//!
//! * `call`: one call of one hook. `request`: those of a request to a model. `message`: those around a message that is
//!   stored or changed. `inbound`: what a drain takes in, and the new thread. `result`: those around a tool call.

pub(crate) mod call;
pub(crate) mod inbound;
pub(crate) mod message;
pub(crate) mod request;
pub(crate) mod result;

pub use crate::work::native::hook_call::HookCall;

use serde_json::Value;

use crate::engine::definitions::Definitions;
use crate::engine::features::Hooks;
use crate::engine::operator::Failure;
use crate::error::Result;
use crate::limits;
use crate::sdk::scope::{Hooked, Origin};
use crate::spec::hook::{Hook, HookName};
use crate::store::log::Event;
use crate::store::runs::diagnostics::{Diagnostic, Kind};

/// Where a hook runs.
pub(crate) struct At<'a> {
    definitions: &'a Definitions<'a>,
    /// What it is about, unique in the thread: the seq of a message, and for changes to it which one.
    place: String,
    origin: Origin,
}

impl<'a> At<'a> {
    /// In the active run, about the message of that seq.
    fn run(definitions: &'a Definitions<'a>, seq: i64) -> At<'a> {
        At { definitions, place: seq.to_string(), origin: Origin::Hook }
    }

    fn beside(definitions: &'a Definitions<'a>, place: String) -> At<'a> {
        At { definitions, place, origin: Origin::DetachedHook }
    }

    /// Where the change of a message is made.
    fn change(definitions: &'a Definitions<'a>, place: String, hooked: Hooked) -> At<'a> {
        let origin = if hooked == Hooked::InStep { Origin::Hook } else { Origin::DetachedHook };
        At { definitions, place, origin }
    }

    fn call_id(&self, thread_id: &str, hook: &Hook) -> String {
        format!("{thread_id}/h{}.{}", self.place, hook.id)
    }
}

/// What a hook may change.
trait Subject {
    /// The hook's arguments, as things stand.
    fn args(&self) -> Vec<Value>;

    /// Takes in what it gave.
    ///
    /// # Errors
    /// Why that cannot be taken, in words; then nothing has changed.
    fn take(&mut self, answer: Value) -> Result<Next, String>;
}

/// Whether the next hook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Go,
    Stop,
}

impl Hooks<'_> {
    /// The hooks of that name, in their order.
    fn hooks<'a>(&'a self, definitions: &Definitions<'a>, name: HookName) -> Vec<&'a Hook> {
        let listed = self.catalog.hooks_of(definitions.agent, definitions.prompt);
        listed.filter(|hook| hook.hook == name).collect()
    }

    pub(crate) fn has_hooks(&self, definitions: &Definitions<'_>, names: &[HookName]) -> bool {
        names.iter().any(|name| !self.hooks(definitions, *name).is_empty())
    }

    /// Runs those of that name one after another on what they may change.
    async fn transform(&self, at: &At<'_>, name: HookName, subject: &mut dyn Subject) -> Result<Next> {
        for hook in self.hooks(at.definitions, name) {
            let answer = self.call_hook(at, hook, subject.args()).await?;
            match answer.and_then(|answer| subject.take(answer)) {
                Ok(Next::Go) => {}
                Ok(Next::Stop) => return Ok(Next::Stop),
                Err(error) => self.hook_failed(at, hook, &error)?,
            }
        }
        Ok(Next::Go)
    }

    /// Runs those of that name one after another; what they give counts for nothing.
    async fn observe(&self, at: &At<'_>, name: HookName, args: &[Value]) -> Result<()> {
        for hook in self.hooks(at.definitions, name) {
            if let Err(error) = self.call_hook(at, hook, args.to_vec()).await? {
                self.hook_failed(at, hook, &error)?;
            }
        }
        Ok(())
    }

    /// Logs a failure; everything goes on as if the hook had not run.
    fn hook_failed(&self, at: &At<'_>, hook: &Hook, error: &str) -> Result<()> {
        let error = &self.variables().shown(error.to_owned());
        self.tell_failure(Failure {
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
                // A strict run ends with it: it must not be forgotten.
                if run.diagnostics.add(entry) {
                    run.update(sql)?;
                }
            }
            Ok(())
        })
    }

    /// A hook may have ended the run that it ran in. That has aborted this flow, which ends at its next await.
    async fn goes_on(&self, at: &At<'_>) -> Result<()> {
        if at.origin == Origin::Hook && self.read(|state, _| Ok(state.active().is_none()))? {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// What an answer is, for messages about a wrong one.
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

/// A hook forbids the request; with what a person is told.
pub(crate) struct Blocked(pub(crate) String);
