//! `ThreadState` (spec §12): a thread as the code that works in it sees it. The work is done by the engine (`engine/handle`),
//! which is reached through traits: `ThreadApi`, and those of the files below.
//!
//! * Here: who the thread is, its values, and what has no file of its own.
//! * `messages`, `effects`, `files`, `env`, `resources`, `calls`, `code`: what each is about.
//! * `run_handle`: the run (`execution`). `family`: other threads; `afar`: a call to one of them.
//! * `scope`: where code works, and the keys of the calls that it makes. `given`: attachments as a body gives them.

pub(crate) mod afar;
pub(crate) mod calls;
pub(crate) mod code;
pub(crate) mod effects;
pub(crate) mod env;
pub(crate) mod family;
pub(crate) mod files;
pub(crate) mod given;
pub(crate) mod messages;
pub(crate) mod resources;
pub(crate) mod run_handle;
pub(crate) mod scope;

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::request::{Query, table};
use crate::sdk::calls::CallsApi;
use crate::sdk::code::CodeApi;
use crate::sdk::effects::NewEffect;
use crate::sdk::env::EnvApi;
use crate::sdk::family::FamilyApi;
use crate::sdk::files::FilesApi;
use crate::sdk::messages::{MessageUpdate, NewAttachment};
use crate::sdk::resources::ResourcesApi;
use crate::sdk::run_handle::RunApi;
use crate::spec::finite;
use crate::spec::message::Role;

/// What native tools and endpoints are given of their thread. A clone is the same thread.
///
/// Methods are synchronous, except those that hooks may hold up, which return a future. When one is done, the change is in
/// the thread's database, and no later answer, frame or request leaves the thread before it is durable. A change is not
/// undone when the tool fails afterwards.
///
/// ```
/// # use bobbin::spec::message::ToolResult;
/// bobbin::tools::register("count_visits", |call| {
///     let count = || -> bobbin::Result<u32> {
///         let visits = call.state.get_value("visits")?.unwrap_or(0) + 1;
///         call.state.set_value("visits", &visits)?;
///         call.state.emit("visited", crate::json!({ "visits": visits }));
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
/// Methods fail with the codes of the API: `terminated` on a terminated thread, `too_large` with the cap that was hit.
#[derive(Clone)]
pub struct ThreadState(pub(crate) Rc<dyn ThreadApi>);

/// Who a thread is (spec §12.2).
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

/// A message to be stored (spec §14.4).
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// `user` or `system`; `assistant` for side A's words, which make side B act where that is a model.
    pub role: Role,
    /// Its text; not blank, unless something is attached.
    pub content: String,
    /// Kept from people, seen by the model.
    pub silent: bool,
    /// Whatever its author wants to find again.
    pub metadata: Map<String, Value>,
    /// Files that it shows.
    pub attachments: Vec<NewAttachment>,
}

impl NewMessage {
    /// A user's message.
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
    /// Who the thread is.
    pub fn identity(&self) -> Result<Identity> {
        self.0.identity()
    }

    /// The value of a key (spec §18); `None` when it was never set or was deleted.
    ///
    /// # Errors
    /// `invalid_field` when it is no `T`.
    pub fn get_value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.0.value(key)? else { return Ok(None) };
        let typed = crate::json::from_value(value);
        typed
            .map(Some)
            .map_err(|error| Error::field("value", format!("The value of “{key}” does not fit: {error}.")))
    }

    /// Sets a value; one that is `null` as JSON deletes the key.
    ///
    /// # Errors
    /// `invalid_field` for what is no JSON: NaN and infinities, by name.
    pub fn set_value<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<()> {
        let value = finite::to_json(value)
            .map_err(|error| Error::field("value", format!("The value for “{key}” is refused: {error}.")))?;
        self.0.set_value(key, &value)
    }

    /// Sets a value, but only while the one that is there is `expected`, a value that was read before; `null`: while there
    /// is none. Whether it did: who is told no reads again, and tries again. Of writers at the same time one is told yes.
    ///
    /// # Errors
    /// As [`ThreadState::set_value`].
    pub fn compare_and_set(&self, key: &str, expected: &Value, value: &Value) -> Result<bool> {
        self.0.compare_and_set(key, expected, value)
    }

    /// A page of values: the query (without `key`) and the answer of `GET …/kv`.
    pub fn get_values(&self, query: &Query) -> Result<Value> {
        self.0.values(query)
    }

    /// Queues a message: the run that is under way takes it in before its next model call; without one it starts a run.
    /// Its id.
    pub fn queue_message(&self, message: NewMessage) -> Result<String> {
        self.0.add_message(message, Wakes::Yes, None)
    }

    /// The same, once for a key within a day: code that may run again for the same work gives the key of that work.
    /// The id of the message, also when it was queued before.
    ///
    /// # Errors
    /// `idempotency_mismatch` when the key came with another text; `conflict` when the message was deleted.
    pub fn queue_message_once(&self, message: NewMessage, key: &str) -> Result<String> {
        self.0.add_message(message, Wakes::Yes, Some(key))
    }

    /// Stores a message that starts nothing (spec §35.16). Its id. Where no `before_create_message` is listed the message
    /// is stored when this is first polled.
    ///
    /// # Errors
    /// `hook_failed` when such a hook fails (spec §9.1).
    pub fn inject_message(&self, message: NewMessage) -> LocalBoxFuture<'static, Result<String>> {
        self.0.inject_message(message)
    }

    /// A page of messages: the query and the answer of `GET …/messages` (spec §14.3).
    pub fn get_messages(&self, query: &Query) -> Result<Value> {
        query.check(table::MESSAGES)?;
        self.0.messages(query)
    }

    /// A message as the API shows it, silent ones too.
    pub fn get_message(&self, id: &str) -> Result<Option<Value>> {
        self.0.message(id)
    }

    /// Queues a call (spec §6.4): of a tool, a prompt, or an exposed agent, which takes the thread over. While a step
    /// runs it is made after the calls of the step's reply; on an idle thread it starts a run. What is called need not
    /// be listed in any prompt. The id of the message that holds the call.
    ///
    /// # Errors
    /// `invalid_field` for an unknown name or arguments that do not fit; `queue_full`.
    pub fn queue_tool(&self, name: &str, args: Value) -> Result<String> {
        self.0.queue_tool(name, args)
    }

    /// Changes a message: another text, or a [`MessageUpdate`]. Where no hook of such a change is listed that is done
    /// when this is first polled.
    ///
    /// # Errors
    /// `message_not_found`; `conflict` for a message of the step that is running.
    pub fn update_message(
        &self,
        id: &str,
        update: impl Into<MessageUpdate>,
    ) -> LocalBoxFuture<'static, Result<()>> {
        self.0.update_message(id.to_owned(), update.into())
    }

    /// Deletes a message; a reply with the results of its calls. Whether there was one.
    pub fn delete_message(&self, id: &str) -> Result<bool> {
        self.0.delete_message(id)
    }

    /// Schedules an effect (spec §10.3), whose arguments are checked now and kept. Its id.
    ///
    /// # Errors
    /// `invalid_field` for an unknown name or arguments that do not fit.
    pub fn schedule_effect(&self, effect: NewEffect) -> Result<String> {
        self.0.schedule_effect(effect)
    }

    /// Effects that are still to run, the next one first, of one name or of all: as `GET …/effects` shows them.
    pub fn get_scheduled_effects(&self, name: Option<&str>) -> Result<Vec<Value>> {
        self.0.scheduled_effects(name)
    }

    /// Cancels an effect; whether it was still to run.
    pub fn remove_scheduled_effect(&self, id: &str) -> Result<bool> {
        self.0.remove_effect(id)
    }

    /// Ends the run and refuses all further work (spec §30); the thread stays readable. A tool that calls this has no
    /// result: it ends at its next await, and the call is told to have been interrupted. A second time nothing changes.
    pub fn terminate(&self) -> Result<()> {
        self.0.terminate()
    }

    /// A text without the secrets that the thread knows of. Results, errors and events lose theirs by themselves; what
    /// is cut before it becomes one has to lose them first, or part of one would remain.
    pub fn redact(&self, text: String) -> String {
        self.0.redact(text)
    }

    /// The same for JSON.
    pub fn redact_json(&self, value: Value) -> Value {
        self.0.redact_json(value)
    }

    /// Sends an `event` frame to whoever listens; nothing is stored.
    pub fn emit(&self, event: &str, data: Value) {
        self.0.emit(event, data);
    }

    /// Adds an entry to the trace of the run that this code works in (`GET …/runs/:run?trace=1`). `kind` begins with
    /// `app.`; `data` may have 8 KB as JSON. Of one run 100 entries are kept, which its diagnostics say when there were
    /// more.
    ///
    /// # Errors
    /// `invalid_field` for another kind; `too_large`; `conflict` where no run is under way.
    pub fn trace(&self, kind: &str, data: Value) -> Result<()> {
        self.0.trace(kind, data)
    }

    /// Tells whoever listens what this code is doing: a line of at most 200 characters, and not more than one a second;
    /// others are left out. Nothing is stored.
    ///
    /// # Errors
    /// `thread_not_found` when the thread was deleted.
    pub fn progress(&self, text: &str) -> Result<()> {
        self.0.progress(text)
    }
}

impl ThreadState {
    /// Its files and values of variables; `files/state.rs` and `env/state.rs` have their methods.
    pub(crate) fn door(&self) -> &dyn ThreadApi {
        &*self.0
    }

    /// The run; `execution.rs`.
    pub(crate) fn run_api(&self) -> Rc<dyn RunApi> {
        self.0.clone()
    }

    /// Calls; `invoke.rs`.
    pub(crate) fn calls_api(&self) -> &dyn CallsApi {
        &*self.0
    }

    /// Code; `code/`.
    pub(crate) fn code_api(&self) -> &dyn CodeApi {
        &*self.0
    }

    /// Definitions and logs; `resources.rs`.
    pub(crate) fn resources(&self) -> &dyn ResourcesApi {
        &*self.0
    }
}

/// Whether a message starts a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// Once nothing runs.
    Yes,
    /// It waits for a run that something else starts.
    No,
}

/// The thread behind it, whatever its host.
pub(crate) trait ThreadApi:
    FilesApi + EnvApi + RunApi + ResourcesApi + CallsApi + FamilyApi + CodeApi
{
    fn identity(&self) -> Result<Identity>;
    fn value(&self, key: &str) -> Result<Option<Value>>;
    fn set_value(&self, key: &str, value: &Value) -> Result<()>;
    fn compare_and_set(&self, key: &str, expected: &Value, value: &Value) -> Result<bool>;
    fn add_message(&self, message: NewMessage, wakes: Wakes, key: Option<&str>) -> Result<String>;
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
