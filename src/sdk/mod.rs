//! `ThreadState` (spec §12): a thread as seen by the code that works in it. The engine does the work
//! (`engine/handle`), behind the trait `ThreadApi` and those of the files below.
//!
//! * Here: the thread's identity, its values, and everything without its own file.
//! * `messages`, `effects`, `files`, `env`, `resources`, `calls`, `code`: as named.
//! * `run_handle`: the run (`execution`). `relations`: related threads; `remote_call`: calls to them.
//! * `scope`: where code runs, and the keys of its calls. `attachment_input`: attachments in a request.

pub(crate) mod attachment_input;
pub(crate) mod calls;
pub(crate) mod code;
pub(crate) mod effects;
pub(crate) mod env;
pub(crate) mod files;
pub(crate) mod messages;
pub(crate) mod relations;
pub(crate) mod remote_call;
pub(crate) mod resources;
pub(crate) mod run_handle;
pub(crate) mod scope;

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::definitions::finite;
use crate::definitions::message::Role;
use crate::error::{Error, Result};
use crate::request::{Query, table};
use crate::sdk::calls::CallsApi;
use crate::sdk::code::CodeApi;
use crate::sdk::effects::NewEffect;
use crate::sdk::env::EnvApi;
use crate::sdk::files::FilesApi;
use crate::sdk::messages::{MessageUpdate, NewAttachment};
use crate::sdk::relations::FamilyApi;
use crate::sdk::resources::ResourcesApi;
use crate::sdk::run_handle::RunApi;

/// The thread, for native tools and endpoints. A clone is the same thread.
///
/// Methods are synchronous, except those that hooks may delay, which return a future. When a method returns,
/// the change is in the thread's database, and no response, frame or request leaves the thread before it is
/// durable. A change is kept even if the tool fails afterwards.
///
/// ```
/// # use bobbin::definitions::message::ToolResult;
/// bobbin::tools::register("count_visits", |call| {
///     let count = || -> bobbin::Result<u32> {
///         let visits = call.state.get_value("visits")?.unwrap_or(0) + 1;
///         call.state.set_value("visits", &visits)?;
///         call.state.emit("visited", serde_json::json!({ "visits": visits }));
///         Ok(visits)
///     };
///     let result = match count() {
///         Ok(visits) => ToolResult::success(format!("Visit {visits}.")),
///         Err(error) => ToolResult::error(error.into_message()),
///     };
///     Box::pin(async move { result })
/// });
/// ```
///
/// Methods fail with the codes of the API: `terminated` on a terminated thread, `too_large` with the limit.
#[derive(Clone)]
pub struct ThreadState(pub(crate) Rc<dyn ThreadApi>);

/// The identity of a thread (spec §12.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The thread's id.
    pub thread_id: String,
    /// The agent that it runs.
    pub agent_id: String,
    /// Its owner.
    pub user_id: Option<String>,
    /// Microseconds since 1970.
    pub created_us: i64,
    /// When it was terminated, microseconds since 1970.
    pub terminated_us: Option<i64>,
}

/// A message to store (spec §14.4).
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// `user` or `system`; `assistant` for a message of side A, which makes side B act if that is a model.
    pub role: Role,
    /// Its text; not blank, unless it has attachments.
    pub content: String,
    /// Hidden from users, visible to the model.
    pub silent: bool,
    /// Data of the author.
    pub metadata: Map<String, Value>,
    /// Attached files.
    pub attachments: Vec<NewAttachment>,
}

impl NewMessage {
    /// A message of the user.
    pub fn user(content: impl Into<String>) -> NewMessage {
        NewMessage {
            role: Role::User,
            content: content.into(),
            silent: false,
            metadata: Map::new(),
            attachments: Vec::new(),
        }
    }
}

impl ThreadState {
    /// The thread's identity.
    pub fn identity(&self) -> Result<Identity> {
        self.0.identity()
    }

    /// The value of a key (spec §18); `None` when it was never set, or was deleted.
    ///
    /// # Errors
    /// `invalid_field` when it is not a `T`.
    pub fn get_value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.0.value(key)? else { return Ok(None) };
        let typed = crate::json::from_value(value);
        typed
            .map(Some)
            .map_err(|error| Error::field("value", format!("The value of “{key}” does not fit: {error}.")))
    }

    /// Sets a value. A value that is `null` as JSON deletes the key.
    ///
    /// # Errors
    /// `invalid_field` for anything that JSON cannot express: NaN and infinities, by name.
    pub fn set_value<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<()> {
        let value = finite::to_json(value)
            .map_err(|error| Error::field("value", format!("The value for “{key}” is refused: {error}.")))?;
        self.0.set_value(key, &value)
    }

    /// Sets a value if the current one is `expected`, a value that was read before; `null` means none.
    /// Returns whether it did. Otherwise read again and retry. Of concurrent writers exactly one succeeds.
    ///
    /// # Errors
    /// As [`ThreadState::set_value`].
    pub fn compare_and_set(&self, key: &str, expected: &Value, value: &Value) -> Result<bool> {
        self.0.compare_and_set(key, expected, value)
    }

    /// A page of values: the query (without `key`) and the response of `GET …/kv`.
    pub fn get_values(&self, query: &Query) -> Result<Value> {
        self.0.values(query)
    }

    /// Queues a message. An active run takes it in before its next model call; otherwise it starts a run.
    /// Returns its id.
    pub fn queue_message(&self, message: NewMessage) -> Result<String> {
        self.0.add_message(message, WakeMode::Yes, None)
    }

    /// Like `queue_message`, but once for a key within a day. Code that may run again for the same work
    /// passes the key of that work. Returns the message's id, also when it was queued before.
    ///
    /// # Errors
    /// `idempotency_mismatch` when the key was used with another text; `conflict` when the message was
    /// deleted.
    pub fn queue_message_once(&self, message: NewMessage, key: &str) -> Result<String> {
        self.0.add_message(message, WakeMode::Yes, Some(key))
    }

    /// Stores a message without starting a run (spec §35.16). Returns its id. If no `before_create_message`
    /// hook is listed, it is stored when the future is first polled.
    ///
    /// # Errors
    /// `hook_failed` when such a hook fails (spec §9.1).
    pub fn inject_message(&self, message: NewMessage) -> LocalBoxFuture<'static, Result<String>> {
        self.0.inject_message(message)
    }

    /// A page of messages: the query and the response of `GET …/messages` (spec §14.3).
    pub fn get_messages(&self, query: &Query) -> Result<Value> {
        query.check(table::MESSAGES)?;
        self.0.messages(query)
    }

    /// A message as the API shows it, including silent ones.
    pub fn get_message(&self, id: &str) -> Result<Option<Value>> {
        self.0.message(id)
    }

    /// Queues a call (spec §6.4) of a tool, a prompt, or an exposed agent, which takes over the thread.
    /// During a step it is made after the calls of the step's reply; on an idle thread it starts a run. The
    /// definition need not be listed in any prompt. Returns the id of the message that holds the call.
    ///
    /// # Errors
    /// `invalid_field` for an unknown name or invalid arguments; `queue_full`.
    pub fn queue_tool(&self, name: &str, args: Value) -> Result<String> {
        self.0.queue_tool(name, args)
    }

    /// Changes a message: another text, or a [`MessageUpdate`]. If no hook for such a change is listed, it
    /// happens when the future is first polled.
    ///
    /// # Errors
    /// `message_not_found`; `conflict` for a message of the current step.
    pub fn update_message(
        &self,
        id: &str,
        update: impl Into<MessageUpdate>,
    ) -> LocalBoxFuture<'static, Result<()>> {
        self.0.update_message(id.to_owned(), update.into())
    }

    /// Deletes a message; a reply with the results of its calls. Returns whether there was one.
    pub fn delete_message(&self, id: &str) -> Result<bool> {
        self.0.delete_message(id)
    }

    /// Schedules an effect (spec §10.3). Its arguments are checked and stored now. Returns its id.
    ///
    /// # Errors
    /// `invalid_field` for an unknown name or invalid arguments.
    pub fn schedule_effect(&self, effect: NewEffect) -> Result<String> {
        self.0.schedule_effect(effect)
    }

    /// Pending effects, the next one first, of one name or all, as `GET …/effects` shows them.
    pub fn get_scheduled_effects(&self, name: Option<&str>) -> Result<Vec<Value>> {
        self.0.scheduled_effects(name)
    }

    /// Cancels an effect; returns whether it was still pending.
    pub fn remove_scheduled_effect(&self, id: &str) -> Result<bool> {
        self.0.remove_effect(id)
    }

    /// Ends the run and refuses all further work (spec §30); the thread stays readable. A tool that calls
    /// this has no result: it ends at its next await, and the call is recorded as interrupted. A second call
    /// changes nothing.
    pub fn terminate(&self) -> Result<()> {
        self.0.terminate()
    }

    /// Removes the secrets that the thread knows from a text. Results, errors and events are redacted
    /// automatically. Redact a text before cutting it, or a part of a secret would remain.
    pub fn redact(&self, text: String) -> String {
        self.0.redact(text)
    }

    /// Like `redact`, for JSON.
    pub fn redact_json(&self, value: Value) -> Value {
        self.0.redact_json(value)
    }

    /// Sends an `event` frame to the thread's clients. Nothing is stored.
    pub fn emit(&self, event: &str, data: Value) {
        self.0.emit(event, data);
    }

    /// Adds an entry to the trace of the current run (`GET …/runs/:run?trace=1`). `kind` begins with `app.`;
    /// `data` has at most 8 KB as JSON. A run keeps 100 entries; its diagnostics report when there were more.
    ///
    /// # Errors
    /// `invalid_field` for another kind; `too_large`; `conflict` without a run.
    pub fn trace(&self, kind: &str, data: Value) -> Result<()> {
        self.0.trace(kind, data)
    }

    /// Sends clients a progress line of this code: at most 200 characters, and at most one a second; others
    /// are dropped. Nothing is stored.
    ///
    /// # Errors
    /// `thread_not_found` when the thread was deleted.
    pub fn progress(&self, text: &str) -> Result<()> {
        self.0.progress(text)
    }
}

impl ThreadState {
    /// Files and variables.
    fn door(&self) -> &dyn ThreadApi {
        &*self.0
    }

    /// The run.
    pub(crate) fn run_api(&self) -> Rc<dyn RunApi> {
        self.0.clone()
    }

    /// Calls.
    pub(crate) fn calls_api(&self) -> &dyn CallsApi {
        &*self.0
    }

    /// Code.
    fn code_api(&self) -> &dyn CodeApi {
        &*self.0
    }

    /// Definitions and logs.
    fn resources(&self) -> &dyn ResourcesApi {
        &*self.0
    }
}

/// Whether a message starts a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeMode {
    /// It starts a run, once nothing runs.
    Yes,
    /// It waits for the next run.
    No,
}

/// The thread's side, for any host.
pub(crate) trait ThreadApi:
    FilesApi + EnvApi + RunApi + ResourcesApi + CallsApi + FamilyApi + CodeApi
{
    fn identity(&self) -> Result<Identity>;
    fn value(&self, key: &str) -> Result<Option<Value>>;
    fn set_value(&self, key: &str, value: &Value) -> Result<()>;
    fn compare_and_set(&self, key: &str, expected: &Value, value: &Value) -> Result<bool>;
    fn add_message(&self, message: NewMessage, wakes: WakeMode, key: Option<&str>) -> Result<String>;
    fn queue_tool(&self, name: &str, args: Value) -> Result<String>;
    fn values(&self, query: &Query) -> Result<Value>;
    fn messages(&self, query: &Query) -> Result<Value>;
    fn message(&self, id: &str) -> Result<Option<Value>>;
    fn inject_message(&self, message: NewMessage) -> LocalBoxFuture<'static, Result<String>>;
    fn update_message(&self, id: String, update: MessageUpdate) -> LocalBoxFuture<'static, Result<()>>;
    fn delete_message(&self, id: &str) -> Result<bool>;
    fn schedule_effect(&self, effect: NewEffect) -> Result<String>;
    fn scheduled_effects(&self, name: Option<&str>) -> Result<Vec<Value>>;
    fn remove_effect(&self, id: &str) -> Result<bool>;
    fn terminate(&self) -> Result<()>;
    fn redact(&self, text: String) -> String;
    fn redact_json(&self, value: Value) -> Value;
    fn emit(&self, event: &str, data: Value);
}
