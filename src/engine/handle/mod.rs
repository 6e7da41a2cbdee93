//! A thread for the code that works in it: the implementation of [`crate::sdk::ThreadState`]. Here: identity,
//! values, messages and effects.
//!
//! * `files`, `env`, `resources`, `relations`: files, values of variables, definitions and logs, other threads
//!   of the family.
//! * `run`: the run that the code works in. `code`: code in the sandbox that it starts.

mod code;
mod env;
mod files;
mod relations;
mod resources;
mod run;

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use serde_json::{Map, Value};

use crate::definitions::package::ReferenceKind;
use crate::engine::cycle::accept::Input;
use crate::engine::hooks::call::CodeHandle;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::json;
use crate::request::Query;
use crate::sdk::effects::NewEffect;
use crate::sdk::messages::MessageUpdate;
use crate::sdk::scope::{Access, EntryMode, Origin, Scope};
use crate::sdk::{Identity, NewMessage, ThreadApi, ThreadState, WakeMode};

/// A thread on its host.
pub(super) struct ThreadHandle {
    pub(super) thread: Thread,
    /// The scope of the code and of its calls.
    pub(super) scope: Scope,
}

impl ThreadApi for ThreadHandle {
    fn identity(&self) -> Result<Identity> {
        self.thread.read(|state, _| {
            let meta = &state.meta;
            Ok(Identity {
                thread_id: meta.thread_id.clone(),
                agent_id: meta.agent.clone(),
                user_id: meta.owner.clone(),
                created_us: meta.created_us,
                terminated_us: meta.terminated_us,
            })
        })
    }

    fn value(&self, key: &str) -> Result<Option<Value>> {
        self.thread.key_values().value(key)
    }

    fn set_value(&self, key: &str, value: &Value) -> Result<()> {
        self.scope.writes("set a value")?;
        self.thread.key_values().set_value(key, value)
    }

    fn compare_and_set(&self, key: &str, expected: &Value, value: &Value) -> Result<bool> {
        self.scope.writes("set a value")?;
        self.thread.key_values().compare_and_set(key, expected, value)
    }

    fn values(&self, query: &Query) -> Result<Value> {
        self.thread.key_values().values_for_code(query)
    }

    fn add_message(&self, message: NewMessage, wakes: WakeMode, key: Option<&str>) -> Result<String> {
        self.scope.writes("send a message")?;
        let id = self.thread.add_message(self.input(message, wakes)?, key)?;
        if wakes == WakeMode::Yes {
            self.thread.telemetry().note_run(&self.scope)?;
        }
        Ok(id)
    }

    fn inject_message(&self, message: NewMessage) -> LocalBoxFuture<'static, Result<String>> {
        let (thread, hooked) = (self.thread.clone(), self.scope.origin.hooked());
        let input = self.scope.writes("store a message").and_then(|()| self.input(message, WakeMode::No));
        Box::pin(async move { thread.hooks().inject(input?, hooked).await })
    }

    fn queue_tool(&self, name: &str, args: Value) -> Result<String> {
        self.scope.writes("queue a call")?;
        let mut by = Map::new();
        if let Origin::Effect(effect) = &self.scope.origin {
            by.insert("scheduledEffect".into(), effect.clone());
        }
        let name = self.thread.named(&self.scope, "name", name, ReferenceKind::Callable)?;
        let id = self.thread.queue_tool(&name, args, by)?;
        self.thread.telemetry().note_run(&self.scope)?;
        Ok(id)
    }

    fn messages(&self, query: &Query) -> Result<Value> {
        Ok(json!(self.thread.records().messages(query)?))
    }

    fn message(&self, id: &str) -> Result<Option<Value>> {
        found(self.thread.records().message(id))
    }

    fn update_message(&self, id: String, update: MessageUpdate) -> LocalBoxFuture<'static, Result<()>> {
        let (thread, hooked) = (self.thread.clone(), self.scope.origin.hooked());
        let may = self.scope.writes("change a message");
        Box::pin(async move {
            may?;
            let update = thread.variables().shown(update);
            thread.history().update_message(&id, update, hooked).await
        })
    }

    fn delete_message(&self, id: &str) -> Result<bool> {
        self.scope.writes("delete a message")?;
        found(self.thread.history().remove_message(id)).map(|gone| gone.is_some())
    }

    fn schedule_effect(&self, mut effect: NewEffect) -> Result<String> {
        self.scope.writes("schedule an effect")?;
        effect.name =
            self.thread.named(&self.scope, "name", &effect.name, ReferenceKind::Effect)?.into_owned();
        self.thread.effects().schedule_effect(effect, &self.scope)
    }

    fn scheduled_effects(&self, name: Option<&str>) -> Result<Vec<Value>> {
        let named = |name| self.thread.named(&self.scope, "name", name, ReferenceKind::Effect);
        self.thread.effects().scheduled_effects(name.map(named).transpose()?.as_deref())
    }

    fn remove_effect(&self, id: &str) -> Result<bool> {
        self.scope.writes("cancel an effect")?;
        crate::engine::effects::schedule::remove(&self.thread, id)
    }

    fn terminate(&self) -> Result<()> {
        self.scope.writes("terminate the thread")?;
        self.thread.control().terminate_now()
    }

    fn redact(&self, text: String) -> String {
        self.thread.variables().redact(text)
    }

    fn redact_json(&self, value: Value) -> Value {
        self.thread.variables().redact_json(value)
    }

    fn emit(&self, event: &str, data: Value) {
        // A read-only caller fails at the end of its call.
        if self.scope.writes("emit an event").is_ok() {
            self.thread.emit(event, data);
        }
    }
}

impl ThreadHandle {
    fn input(&self, mut message: NewMessage, wakes: WakeMode) -> Result<Input> {
        if let Origin::Effect(effect) = &self.scope.origin {
            message.metadata.insert("scheduledEffect".into(), effect.clone());
        }
        let message = self.thread.variables().shown(message);
        let kind = self.thread.read(|state, _| Ok(self.thread.kind(state)))?;
        Input::of(message, wakes, kind)
    }
}

/// Turns the error for a missing message into `None`.
fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.code == crate::error::Code::MessageNotFound => Ok(None),
        other => other.map(Some),
    }
}

impl CodeHandle for Thread {
    fn state_at(&self, origin: Origin, package: Option<&str>) -> ThreadState {
        self.state_with(origin, package, Access::Writes)
    }
}

impl Thread {
    /// The thread for code outside its runs.
    pub fn thread_state(&self) -> ThreadState {
        self.state_at(Origin::Detached, None)
    }

    /// The thread for code with this access.
    fn state_with(&self, origin: Origin, package: Option<&str>, access: Access) -> ThreadState {
        let id: String = self.host.random().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let scope = Scope::beside(origin, &format!("e{id}"), EntryMode::First).in_package(package);
        self.state_in(Scope { access, ..scope })
    }

    /// The thread for code whose calls are within `scope`.
    pub(crate) fn state_in(&self, scope: Scope) -> ThreadState {
        ThreadState(Rc::new(ThreadHandle { thread: self.clone(), scope }))
    }
}
