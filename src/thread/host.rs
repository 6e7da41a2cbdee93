//! The engine's only door to the outside. Two hosts exist: Cloudflare's (`worker/`), and the simulated one of
//! `tests/engine/`, which is seeded and fails at every point on purpose.

use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;
use serde_json::{Map, Value};

use super::endpoints::{EndpointAnswer, EndpointCall, Panicked};
use super::frame::Frame;
use super::hooks::HookCall;
use super::thread_state::ThreadState;
use crate::api::ThreadRequest;
use crate::code;
use crate::error::Result;
use crate::http::{Body, FetchError, Request, Response};
use crate::models::{ProviderCall, ProviderError};
use crate::spec::message::ToolResult;

/// A value bound to a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    /// SQL `NULL`.
    Null,
    /// An integer; the platform carries 53 bits.
    Int(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

impl From<i64> for Param<'_> {
    fn from(value: i64) -> Self {
        Param::Int(value)
    }
}
impl<'a> From<&'a str> for Param<'a> {
    fn from(value: &'a str) -> Self {
        Param::Text(value)
    }
}
impl<'a> From<&'a String> for Param<'a> {
    fn from(value: &'a String) -> Self {
        Param::Text(value)
    }
}
impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Param::Null, Into::into)
    }
}

/// A column of a row that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// SQL `NULL`.
    Null,
    /// An integer.
    Int(i64),
    /// A floating-point number. The platform hands integers over as numbers too: see [`Cell::int`].
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Cell {
    /// The integer in this cell; `None` for anything else. A whole floating-point number counts.
    pub fn int(&self) -> Option<i64> {
        match self {
            Cell::Int(value) => Some(*value),
            Cell::Real(value) if value.fract() == 0.0 => Some(*value as i64),
            _ => None,
        }
    }

    /// The number in this cell.
    pub fn real(&self) -> Option<f64> {
        match self {
            Cell::Int(value) => Some(*value as f64),
            Cell::Real(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes in this cell; `None` for anything else.
    pub fn blob(&self) -> Option<&[u8]> {
        match self {
            Cell::Blob(value) => Some(value),
            _ => None,
        }
    }

    /// The text in this cell; `None` for anything else.
    pub fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(value) => Some(value),
            _ => None,
        }
    }
}

/// The thread's SQLite. Every call runs exactly one statement; a failing one is an error of code `internal` whose
/// message is SQLite's.
pub trait Sql {
    /// Runs a statement that returns no rows.
    fn run(&self, statement: &'static str, params: &[Param<'_>]) -> Result<()>;

    /// Reads rows lazily: `row` breaks to stop the read there, and rows beyond it are not read.
    fn each(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        row: &mut dyn FnMut(&[Cell]) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    /// Bytes that the thread's database takes.
    fn size(&self) -> i64;
}

/// What a native tool is given (spec §6.3). It sees no clock and no socket of its own: `sleep` and `env` are its
/// host's.
#[derive(Clone)]
pub struct NativeCall {
    /// The registered name.
    pub name: String,
    /// Validated arguments; an object.
    pub args: Value,
    /// Static options of the prompt's tool entry.
    pub options: Map<String, Value>,
    /// The thread.
    pub thread_id: String,
    /// The agent that runs.
    pub agent_id: String,
    /// Id of the call, as the model knows it.
    pub call_id: String,
    /// `<thread>/<receipt>`: the same for every run of the same call.
    pub idempotency_key: String,
    /// Microseconds since 1970.
    pub now_us: i64,
    /// Random bytes of this call.
    pub random: [u8; 16],
    /// Values of declared variables, by name.
    pub env: Map<String, Value>,
    /// Waits so many microseconds.
    pub sleep: Sleep,
    /// The thread: its values, its messages, who listens to it.
    pub state: ThreadState,
}

/// What a native effect is given (spec §10). Each attempt at the same occurrence is given the same key.
#[derive(Clone)]
pub struct EffectCall {
    /// The registered name.
    pub native: String,
    /// The definition's name.
    pub name: String,
    /// Validated arguments; an object.
    pub args: Value,
    /// The thread.
    pub thread_id: String,
    /// The agent that the thread runs.
    pub agent_id: String,
    /// Public id of the effect.
    pub effect_id: String,
    /// `<thread>/e<number>`, for one that repeats with the number of the occurrence.
    pub idempotency_key: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// When it was to run, microseconds since 1970.
    pub scheduled_us: i64,
    /// Microseconds since 1970.
    pub now_us: i64,
    /// Random bytes of this attempt.
    pub random: [u8; 16],
    /// Values of declared variables, by name.
    pub env: Map<String, Value>,
    /// Waits so many microseconds.
    pub sleep: Sleep,
    /// The thread. Messages that this attempt adds say so in `metadata.scheduledEffect`.
    pub state: ThreadState,
}

/// Content of an object in the bucket, or of another thread's answer, as it arrives.
pub type ObjectStream = LocalBoxStream<'static, std::result::Result<Bytes, FetchError>>;

/// A way to wait, in microseconds from now.
pub type Sleep = Rc<dyn Fn(i64) -> LocalBoxFuture<'static, ()>>;

/// Another object that the engine may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sibling {
    /// The directory of one owner: `o:<id>`, or `null` for threads without owner.
    Directory(String),
    /// The thread of this id. It is called with a [`ThreadRequest`] as JSON, a line break, and the request's body.
    Thread(String),
}

/// The door. Every method is a point where the process may die.
pub trait Host: 'static {
    /// The database.
    type Sql: Sql;
    /// A response's body.
    type Body: Body;

    /// Reads, and writes that need no transaction.
    fn sql(&self) -> &Self::Sql;

    /// One synchronous transaction. An error or a panic inside rolls everything back, alarm included.
    fn transaction<T>(&self, f: impl FnOnce(&Self::Sql) -> Result<T>) -> Result<T>;

    /// Microseconds since 1970. Frozen while code runs without awaiting, in production.
    fn now_us(&self) -> i64;

    /// Random bytes.
    fn random(&self) -> [u8; 16];

    /// A variable of the deployment; bindings that are not strings are absent.
    fn var(&self, name: &str) -> Option<String>;

    /// Sends a request; follows no redirect. Dropping the future or the body cancels it.
    fn fetch(
        &self,
        request: Request,
    ) -> impl Future<Output = std::result::Result<Response<Self::Body>, FetchError>> + 'static;

    /// Runs a native tool. An unknown name is an error result.
    fn native(&self, call: NativeCall) -> impl Future<Output = ToolResult> + 'static;

    /// Runs a native effect. An unknown name is an error; the text is for whoever reads the thread's effects.
    fn effect(&self, call: EffectCall) -> impl Future<Output = std::result::Result<(), String>> + 'static;

    /// Runs a native endpoint. An unknown name is an error of code `internal`.
    ///
    /// # Errors
    /// It panicked, which ends this call alone.
    fn endpoint(
        &self,
        call: EndpointCall,
    ) -> impl Future<Output = std::result::Result<Result<EndpointAnswer>, Panicked>> + 'static;

    /// Runs a native hook. An unknown name is a failure; the text is for whoever reads the thread's log.
    ///
    /// # Errors
    /// It panicked, which ends this call alone.
    fn hook(
        &self,
        call: HookCall,
    ) -> impl Future<Output = std::result::Result<std::result::Result<Value, String>, Panicked>> + 'static;

    /// Runs the provider of a model ([`crate::models::run`]). An unknown name is a failure.
    ///
    /// # Errors
    /// It panicked, which ends this call alone.
    fn provider(
        &self,
        call: ProviderCall,
    ) -> impl Future<Output = std::result::Result<std::result::Result<(), ProviderError>, Panicked>> + 'static;

    /// Runs code in the sandbox. Whatever happens to it is an outcome.
    fn sandbox(
        &self,
        run: code::Run,
        door: Rc<dyn code::Door>,
    ) -> impl Future<Output = code::Outcome> + 'static;

    /// Calls another object with a JSON text and gets one back, a [`crate::api::Reply`].
    ///
    /// # Errors
    /// `overloaded` when there was no answer. Whether the call took effect is not known then.
    fn sibling(&self, to: Sibling, call: String) -> impl Future<Output = Result<String>> + 'static;

    /// Sends a request without a body to a streamed route ([`crate::api::ThreadRoute::is_streamed`]) of another thread,
    /// and gives its answer, whatever its status. Dropping the future or the content cancels it.
    ///
    /// # Errors
    /// The other object was lost before it answered. When that happens later, its content breaks off.
    fn sibling_stream(
        &self,
        thread: String,
        request: ThreadRequest,
    ) -> impl Future<Output = std::result::Result<Response<ObjectStream>, FetchError>> + 'static;

    /// The size in bytes above which a file's content lives in the bucket, at least [`crate::limits::FILE_WHOLE_BYTES`]
    /// in a deployment ([`crate::thread::spilled_above`]); `None` while no bucket is bound.
    fn bucket(&self) -> Option<u64>;

    /// Stores an object of exactly so many bytes, in place of an earlier one. It is there as a whole or not at all: when
    /// the content breaks off there is none of it.
    fn put_object(
        &self,
        key: String,
        length: u64,
        content: LocalBoxStream<'static, Result<Bytes>>,
    ) -> impl Future<Output = std::result::Result<(), FetchError>> + 'static;

    /// Bytes of an object, which has them; `None` when there is no such object. Dropping the stream cancels the rest.
    fn get_object(
        &self,
        key: String,
        range: Range<u64>,
    ) -> impl Future<Output = std::result::Result<Option<ObjectStream>, FetchError>> + 'static;

    /// Deletes objects, at most [`crate::limits::DELETED_OBJECTS`]; one that is not there is deleted already.
    fn delete_objects(
        &self,
        keys: Vec<String>,
    ) -> impl Future<Output = std::result::Result<(), FetchError>> + 'static;

    /// Resolves at that time.
    fn sleep_until(&self, us: i64) -> impl Future<Output = ()> + 'static;

    /// Sets the object's one alarm, or removes it. Inside a transaction it commits with it.
    fn set_alarm(&self, due_us: Option<i64>) -> Result<()>;

    /// When the alarm will fire; `None` while none is set or its handler is running. For diagnostics.
    fn alarm(&self) -> impl Future<Output = Result<Option<i64>>> + 'static;

    /// Whether anybody listens; frames are not even built when nobody does.
    fn has_listeners(&self) -> bool;

    /// Sends a frame to every listener whose filter lets it through. Never fails: a broken listener is dropped.
    fn broadcast(&self, frame: &Frame);

    /// Ends every listener's connection: the thread is gone.
    fn close_listeners(&self, reason: &str);

    /// Runs a future beside the caller. A panic in it is logged and ends only that future.
    fn spawn(&self, future: impl Future<Output = ()> + 'static);

    /// One line for the operator's log.
    fn log(&self, line: &str);
}
