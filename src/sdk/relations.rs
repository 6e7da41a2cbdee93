//! Related threads, for the code that works in a thread (spec §12.2, §12.3): its children, and remote access
//! to others.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::LocalBoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Code, Error, Result};
use crate::host::http::Response;
use crate::json;
use crate::limits;
use crate::request::between::{error_of, to_thread};
use crate::request::{Query, StreamRoute, ThreadRequest, ThreadRoute};
use crate::sdk::messages::{MessageUpdate, NewAttachment};
use crate::sdk::remote_call::{MemberCall, WireValue};
use crate::sdk::{Identity, NewMessage, ThreadState};
use crate::store::children::Child;

/// The header of a message from another thread's code: whether it is queued or only stored.
pub(crate) const BY_CODE: &str = "x-bobbin-code";

/// An entry of the registry of children (spec §8.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subagent {
    /// The child's thread id, which models also use as its name.
    pub reference: String,
    /// The agent of the child.
    pub name: String,
    /// The agent's title.
    pub title: Option<String>,
    /// What models read about it.
    pub description: String,
    /// Whether it accepts further messages.
    pub resumable: bool,
    /// Whether calls wait for its result.
    pub blocking: bool,
    /// Its label.
    pub thread_name: Option<String>,
    /// The message whose calls created it, and others in the same group.
    pub spawn_group_id: Option<String>,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// `running`, `idle`, `failed`, `terminated`, or the status that it reported.
    pub status: String,
    /// `implicit` or `explicit`.
    pub parent_communication: &'static str,
}

impl Subagent {
    pub(crate) fn of(child: Child) -> Subagent {
        let Child { reference, agent, facts, created_us, status, .. } = child;
        Subagent {
            reference,
            name: agent,
            title: facts.title,
            description: facts.description,
            resumable: facts.resumable,
            blocking: facts.blocking,
            thread_name: facts.name,
            spawn_group_id: facts.group,
            created_at: created_us,
            status,
            parent_communication: facts.communication.as_str(),
        }
    }
}

/// The relations of a thread. A message to the parent is durable when the method returns, and will be
/// delivered.
impl ThreadState {
    /// The children, newest first, including terminated ones.
    pub fn children(&self) -> Result<Vec<Subagent>> {
        self.door().children()
    }

    /// A child by its reference; `None` for any thread that is not a child of this one, or not created yet.
    pub fn get_child_thread(&self, reference: &str) -> Result<Option<RemoteThread>> {
        let is_child = self.door().is_child(reference)?;
        Ok(is_child.then(|| RemoteThread { id: reference.to_owned(), from: self.clone() }))
    }

    /// The parent; `None` in a thread without one.
    pub fn get_parent_thread(&self) -> Result<Option<RemoteThread>> {
        Ok(self.door().parent()?.map(|id| RemoteThread { id, from: self.clone() }))
    }

    /// Sends a text to the parent (spec §24.2): a silent message there, which starts a run. Does nothing
    /// without a parent.
    ///
    /// # Errors
    /// `missing_field` for a blank text; `terminated`.
    pub fn notify_parent(&self, text: &str) -> Result<()> {
        self.door().notify_parent(text)
    }

    /// Sets the status that the parent's registry shows (spec §24.3). Does nothing without a parent.
    ///
    /// # Errors
    /// `missing_field` for a blank text; `terminated`.
    pub fn set_status(&self, text: &str) -> Result<()> {
        self.door().set_status(text)
    }

    /// The arguments with which the thread was created as a child (spec §8.3); empty in others.
    pub fn arguments(&self) -> Result<Map<String, Value>> {
        self.door().arguments()
    }
}

/// Remote access to a related thread. Each method is a request to it.
///
/// Methods fail with the codes of the API, and with `overloaded` when the other thread does not answer. It is
/// then unknown whether it executed the request.
#[derive(Clone)]
pub struct RemoteThread {
    id: String,
    from: ThreadState,
}

impl RemoteThread {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its identity. Times are those of the API, in whole seconds.
    pub async fn identity(&self) -> Result<Identity> {
        let body = self.get(ThreadRoute::Get, Query::default()).await?;
        let thread = body.get("thread").unwrap_or(&Value::Null);
        let text = |name: &str| thread.get(name).and_then(Value::as_str).map(str::to_owned);
        let us = |name: &str| thread.get(name).and_then(Value::as_i64).map(|at| at * limits::SECOND_US);
        Ok(Identity {
            thread_id: self.id.clone(),
            agent_id: text("agent_id").unwrap_or_default(),
            user_id: text("user_id"),
            created_us: us("created_at").unwrap_or_default(),
            terminated_us: us("terminated"),
        })
    }

    /// A page of its messages: the query and the response of `GET …/messages`.
    pub async fn get_messages(&self, query: &Query) -> Result<Value> {
        self.get(ThreadRoute::ListMessages, query.clone()).await
    }

    /// Queues a message, which starts a run or joins the active one. Returns its id. Attached files are paths
    /// of the other thread, or come with the message.
    pub async fn queue_message(&self, message: NewMessage) -> Result<String> {
        self.post("queue", message, None).await
    }

    /// Like `queue_message`, but once for a key within a day.
    ///
    /// # Errors
    /// `idempotency_mismatch` when the key was used with another message.
    pub async fn queue_message_once(&self, message: NewMessage, key: &str) -> Result<String> {
        self.post("queue", message, Some(key)).await
    }

    /// Stores a message without starting a run. Returns its id.
    pub async fn inject_message(&self, message: NewMessage) -> Result<String> {
        self.post("inject", message, None).await
    }

    /// Calls a member of the other thread by its name in code (`updateMessage`, `statFile`, `scheduleEffect`,
    /// …), with JSON arguments and a JSON result. Everything in [`ThreadState`] is available except the
    /// thread's private parts: its values (spec §18.1), its variables, and its run.
    ///
    /// # Errors
    /// Those of the member; `invalid_field`, of the field `method`, for one that is not available remotely.
    pub async fn member(&self, method: &str, args: Vec<Value>) -> Result<Value> {
        match self.call(method, args.into_iter().map(WireValue::Json).collect()).await? {
            WireValue::Json(value) => Ok(value),
            WireValue::Bytes(base64) => Ok(Value::String(base64)),
        }
    }

    /// Like `member`, with bytes.
    pub(crate) async fn call(&self, method: &str, args: Vec<WireValue>) -> Result<WireValue> {
        // The other thread must not learn this one's secrets.
        let told = |plain: WireValue| match plain {
            WireValue::Json(value) => WireValue::Json(self.from.redact_json(value)),
            WireValue::Bytes(base64) => WireValue::Bytes(base64),
        };
        let scope = self.from.calls_api().scope();
        let asked = MemberCall {
            method: method.to_owned(),
            args: args.into_iter().map(told).collect(),
            package: scope.package.as_deref().map(str::to_owned),
            only_reads: scope.only_reads(),
        };
        let body = serde_json::to_string(&asked).map_err(Error::internal)?;
        let answer = self.ask(ThreadRequest { body, ..to_thread(&self.id, ThreadRoute::Member) }).await;
        if answer.as_ref().is_err_and(|error| error.code == Code::ReadOnly) {
            scope.writes("change another thread")?;
        }
        crate::json::from_value(answer?).map_err(Error::internal)
    }

    /// A related thread whose id this thread provides.
    pub(crate) fn relative(&self, id: &str) -> RemoteThread {
        RemoteThread { id: id.to_owned(), from: self.from.clone() }
    }

    /// A message as the API shows it, including silent ones.
    pub async fn get_message(&self, id: &str) -> Result<Option<Value>> {
        let message = self.member("getMessage", vec![id.into()]).await?;
        Ok(Some(message).filter(|message| !message.is_null()))
    }

    /// Changes a message.
    pub async fn update_message(&self, id: &str, update: impl Into<MessageUpdate>) -> Result<()> {
        self.member("updateMessage", vec![id.into(), update.into().to_json()]).await.map(drop)
    }

    /// Deletes a message; returns whether there was one.
    pub async fn delete_message(&self, id: &str) -> Result<bool> {
        Ok(self.member("deleteMessage", vec![id.into()]).await? == Value::Bool(true))
    }

    /// A page of its log, without the envelope.
    pub async fn get_logs(&self, options: Value) -> Result<Value> {
        self.member("getLogs", vec![options]).await
    }

    /// Queues a call there.
    pub async fn queue_tool(&self, name: &str, args: Value) -> Result<()> {
        self.member("queueTool", vec![name.into(), args]).await.map(drop)
    }

    /// Schedules an effect there, due after `delay_ms` milliseconds. Returns its id.
    pub async fn schedule_effect(&self, name: &str, args: Value, delay_ms: i64) -> Result<String> {
        let id = self.member("scheduleEffect", vec![name.into(), args, delay_ms.into()]).await?;
        Ok(id.as_str().unwrap_or_default().to_owned())
    }

    /// Cancels an effect; returns whether it was still pending.
    pub async fn remove_scheduled_effect(&self, id: &str) -> Result<bool> {
        Ok(self.member("removeScheduledEffect", vec![id.into()]).await? == Value::Bool(true))
    }

    /// Sends an event to its clients. Nothing is stored.
    pub async fn emit(&self, event: &str, data: Value) -> Result<()> {
        self.member("emit", vec![event.into(), data]).await.map(drop)
    }

    /// Writes a file there, of at most [`limits::REMOTE_BYTES`]. Returns its record.
    pub async fn write_file(&self, path: &str, data: &[u8], mime_type: &str) -> Result<Value> {
        if data.len() > limits::REMOTE_BYTES {
            let text = format!("{} bytes are too many; the limit is {}.", data.len(), limits::REMOTE_BYTES);
            return Err(Error::new(Code::TooLarge, text));
        }
        let args = vec![
            WireValue::Json(path.into()),
            WireValue::Bytes(STANDARD.encode(data)),
            WireValue::Json(mime_type.into()),
        ];
        match self.call("writeFile", args).await? {
            WireValue::Json(record) => Ok(record),
            WireValue::Bytes(_) => Err(Error::internal("a record of a file came as bytes")),
        }
    }

    /// The bytes of a file; `None` when it does not exist.
    ///
    /// # Errors
    /// `too_large` beyond [`limits::FILE_WHOLE_BYTES`]; `conflict` for a directory.
    pub async fn read_file(&self, path: &str) -> Result<Option<Bytes>> {
        let request = to_thread(&self.id, StreamRoute::GetFile(self.from.redact(path.to_owned())));
        let mut answer = self.from.door().ask_stream(request).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = answer.body.next().await {
            let broke_off = |error| Error::new(Code::Overloaded, format!("{path} broke off: {error}."));
            bytes.extend_from_slice(&piece.map_err(broke_off)?);
            if bytes.len() > limits::FILE_WHOLE_BYTES {
                let message = format!("{path} has more than {} bytes.", limits::FILE_WHOLE_BYTES);
                return Err(Error::new(Code::TooLarge, message));
            }
        }
        match answer.status {
            200 if answer.header("etag").is_none() => {
                Err(Error::new(Code::Conflict, format!("{path} is a directory.")))
            }
            200 => Ok(Some(bytes.into())),
            status => match error_of(status, None, &bytes) {
                error if error.code == Code::NotFound => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Stops its run (spec §30), and those of its children.
    pub async fn stop(&self) -> Result<()> {
        self.ask(to_thread(&self.id, ThreadRoute::Stop)).await.map(drop)
    }

    /// Ends its run and all further work, also of its children.
    pub async fn terminate(&self) -> Result<()> {
        self.ask(to_thread(&self.id, ThreadRoute::Terminate)).await.map(drop)
    }

    async fn get(&self, route: ThreadRoute, query: Query) -> Result<Value> {
        self.ask(ThreadRequest { query, ..to_thread(&self.id, route) }).await
    }

    async fn post(&self, how: &str, message: NewMessage, key: Option<&str>) -> Result<String> {
        let request = ThreadRequest {
            headers: vec![(BY_CODE.to_owned(), how.to_owned())],
            idempotency_key: key.map(str::to_owned),
            body: self.from.door().message_json(message)?.to_string(),
            ..to_thread(&self.id, ThreadRoute::PostMessage)
        };
        let body = self.ask(request).await?;
        Ok(body.get("messageId").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    async fn ask(&self, request: ThreadRequest) -> Result<Value> {
        self.from.door().ask_thread(request).await
    }
}

/// The thread's side of its relations, for any host.
pub(crate) trait FamilyApi {
    fn children(&self) -> Result<Vec<Subagent>>;
    fn is_child(&self, reference: &str) -> Result<bool>;
    fn parent(&self) -> Result<Option<String>>;
    fn arguments(&self) -> Result<Map<String, Value>>;
    fn notify_parent(&self, text: &str) -> Result<()>;
    fn set_status(&self, text: &str) -> Result<()>;
    /// A message as JSON for another thread.
    fn message_json(&self, message: NewMessage) -> Result<Value>;
    fn ask_thread(&self, request: ThreadRequest) -> LocalBoxFuture<'static, Result<Value>>;
    fn ask_stream(&self, request: ThreadRequest<StreamRoute>) -> LocalBoxFuture<'static, Result<Response>>;
}

/// An attachment as JSON for the API.
pub(crate) fn attached(attachment: &NewAttachment) -> Value {
    match attachment {
        NewAttachment::Path { path, description } => json!({ "path": path, "description": description }),
        NewAttachment::Inline { name, mime_type, data, options, description } => json!({
            "name": name, "mimeType": mime_type, "data": STANDARD.encode(data), "width": options.width,
            "height": options.height, "metadata": options.metadata,
            "thumbnail": options.thumbnail.as_ref().map(|bytes| STANDARD.encode(bytes)), "description": description,
        }),
    }
}
