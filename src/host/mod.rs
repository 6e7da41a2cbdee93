//! The only interface to the outside. There are two hosts: Cloudflare's (`worker/`), and the simulated one of
//! `tests/engine/`, which is seeded and injects failures at every point. The process may crash in every
//! method.
//!
//! A directory needs an [`Object`]; a thread needs a [`Host`], which adds outgoing connections. Neither is a
//! type parameter, so that the core is compiled once for all hosts.
//!
//! * `sql`: SQLite. [`http`]: requests and responses as data. [`ai`]: requests to the platform's own models.
//!   `bucket`: contents of large files. `listeners`: connections that follow a thread. `process`: data shared
//!   by the objects of a process.

mod bucket;
mod listeners;
pub(crate) mod process;
mod sql;

pub use crate::host::bucket::Bucket;
pub use crate::host::listeners::{Feed, Filter, Frame, FramePosition, Listeners};
pub use crate::host::process::Process;
pub use crate::host::sql::{Cell, Param, Rows, Sql};
pub(crate) use crate::host::sql::{integer, pairs};
pub use crate::models::{ai, http};

use std::rc::Rc;

use futures::future::LocalBoxFuture;

use crate::error::Result;
use crate::host::ai::AiRequest;
use crate::host::http::{FetchError, Request, Response};

/// A result to await. Dropping it cancels the work.
pub type Pending<T> = LocalBoxFuture<'static, T>;

/// Waits for a number of microseconds.
pub type Sleep = Rc<dyn Fn(i64) -> Pending<()>>;

/// Another object that the engine may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sibling {
    /// The directory of one owner: `o:<id>`, or `null` for threads without owner.
    Directory(String),
    /// The thread with this id. The call is a [`crate::request::ThreadRequest`] as JSON, a line break, and
    /// the request's body.
    Thread(String),
    /// The shared memory whose object has this name. The call is a [`crate::request::MemoryCall`] as JSON, a
    /// line break, and its body.
    Memory(String),
}

/// One durable object: its storage, clock and alarm, and its siblings.
pub trait Object {
    /// The database, for reads and for writes without a transaction.
    fn sql(&self) -> &dyn Sql;

    /// Runs one synchronous transaction, which calls `work` once. An error or a panic rolls everything back,
    /// including the alarm. [`Transactions::transaction`] also returns a value.
    fn transact(&self, work: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()>;

    /// Microseconds since 1970. In production, frozen while code runs without awaiting.
    fn now_us(&self) -> i64;

    /// Random bytes.
    fn random(&self) -> [u8; 16];

    /// A variable of the deployment. Bindings that are not strings are absent, except [`ai::AI_BINDING`].
    fn var(&self, name: &str) -> Option<String>;

    /// Calls another object with a JSON text. The response is a [`crate::request::Reply`] as JSON.
    ///
    /// # Errors
    /// `overloaded` if there was no response. The call may or may not have taken effect.
    fn sibling(&self, to: Sibling, call: String) -> Pending<Result<String>>;

    /// Resolves at that time.
    fn sleep_until(&self, us: i64) -> Pending<()>;

    /// Sets or removes the object's only alarm. Inside a transaction, it commits with it.
    fn set_alarm(&self, due_us: Option<i64>) -> Result<()>;

    /// The time of the alarm; `None` if none is set or its handler is running. For diagnostics.
    fn alarm(&self) -> Pending<Result<Option<i64>>>;

    /// Runs a future concurrently. A panic in it is logged and ends only that future.
    fn spawn(&self, work: Pending<()>);

    /// Writes one line to the operator's log.
    fn log(&self, line: &str);
}

/// The object of a thread, with outgoing connections.
pub trait Host: Object {
    /// Sends a request without following redirects. Dropping the future or the body cancels it.
    fn fetch(&self, request: Request) -> Pending<Result<Response, FetchError>>;

    /// Calls a model of the platform and returns its response with any status. Dropping the future or the
    /// content cancels the call.
    ///
    /// # Errors
    /// There was no response, or the binding is missing.
    fn ask_ai(&self, _request: AiRequest) -> Pending<Result<Response, FetchError>> {
        Box::pin(std::future::ready(Err(FetchError(format!("the binding {} is not there", ai::AI_BINDING)))))
    }

    /// Sends a request without a body to a streamed route ([`crate::request::ThreadRoute::is_streamed`]) of
    /// another thread, a [`crate::request::ThreadRequest`] as JSON. Returns its response with any status.
    /// Dropping the future or the content cancels it.
    ///
    /// # Errors
    /// The other object crashed before it responded. If it crashes later, the content breaks off.
    fn sibling_stream(&self, thread: String, call: String) -> Pending<Result<Response, FetchError>>;

    /// The bucket for contents of large files; `None` if none is bound.
    fn bucket(&self) -> Option<&dyn Bucket>;

    /// The connections that follow the thread.
    fn listeners(&self) -> &dyn Listeners;

    /// Data shared with the other objects of the process.
    fn process(&self) -> Rc<Process>;
}

/// Transactions that return a value.
pub trait Transactions: Object {
    /// See [`Object::transact`].
    fn transaction<T>(&self, work: impl FnOnce(&dyn Sql) -> Result<T>) -> Result<T> {
        let (mut work, mut value) = (Some(work), None);
        self.transact(&mut |sql| {
            if let Some(work) = work.take() {
                value = Some(work(sql)?);
            }
            Ok(())
        })?;
        value.ok_or_else(not_run)
    }
}

impl<O: Object + ?Sized> Transactions for O {}

/// The error if the platform did not call a transaction's work.
pub(crate) fn not_run() -> crate::Error {
    crate::Error::internal("the platform did not run a transaction")
}
