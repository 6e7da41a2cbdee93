//! The only door to the outside. Two hosts exist: Cloudflare's (`worker/`), and the simulated one of `tests/engine/`, which is
//! seeded and fails at every point on purpose. Every method is a point where the process may die.
//!
//! A directory needs an [`Object`]; a thread needs a [`Host`], which is one with ways out. Neither is a type parameter of
//! anything: the core is compiled once, whoever hosts it.
//!
//! * `sql`: SQLite. [`http`]: requests and responses as data. [`ai`]: requests to models of the platform's own. `bucket`: where the content of large files lies. `listeners`: who
//!   listens to a thread. `process`: what the objects of one process share.

pub mod ai;
pub(crate) mod bucket;
pub mod http;
pub(crate) mod listeners;
pub(crate) mod process;
pub(crate) mod sql;

pub use crate::host::bucket::Bucket;
pub use crate::host::listeners::{Feed, Filter, Frame, Listeners, Place};
pub use crate::host::process::Process;
pub use crate::host::sql::{Cell, Param, Rows, Sql};
pub(crate) use crate::host::sql::{integer, pairs};

use std::rc::Rc;

use futures::future::LocalBoxFuture;

use crate::error::Result;
use crate::host::ai::AiRequest;
use crate::host::http::{FetchError, Request, Response};

/// What a method gives that has to be waited for. Dropping it cancels the work.
pub type Pending<T> = LocalBoxFuture<'static, T>;

/// A way to wait, in microseconds from now.
pub type Sleep = Rc<dyn Fn(i64) -> Pending<()>>;

/// Another object that the engine may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sibling {
    /// The directory of one owner: `o:<id>`, or `null` for threads without owner.
    Directory(String),
    /// The thread of this id. It is called with a [`crate::request::ThreadRequest`] as JSON, a line break, and the request's
    /// body.
    Thread(String),
    /// The object of a memory that threads share, by its name. It is called with a [`crate::request::MemoryCall`] as JSON, a line
    /// break, and what that says.
    Memory(String),
}

/// One durable object: its storage, its clock, its alarm, and the objects beside it.
pub trait Object {
    /// Reads, and writes that need no transaction.
    fn sql(&self) -> &dyn Sql;

    /// One synchronous transaction: `work` is called once. An error or a panic inside rolls everything back, alarm
    /// included. [`Transactions::transaction`] has a value, too.
    fn transact(&self, work: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()>;

    /// Microseconds since 1970. Frozen while code runs without awaiting, in production.
    fn now_us(&self) -> i64;

    /// Random bytes.
    fn random(&self) -> [u8; 16];

    /// A variable of the deployment; bindings that are not strings are absent, but [`ai::AI_BINDING`], which has some value.
    fn var(&self, name: &str) -> Option<String>;

    /// Calls another object with a JSON text and gets one back, a [`crate::request::Reply`].
    ///
    /// # Errors
    /// `overloaded` when there was no answer. Whether the call took effect is not known then.
    fn sibling(&self, to: Sibling, call: String) -> Pending<Result<String>>;

    /// Resolves at that time.
    fn sleep_until(&self, us: i64) -> Pending<()>;

    /// Sets the object's one alarm, or removes it. Inside a transaction it commits with it.
    fn set_alarm(&self, due_us: Option<i64>) -> Result<()>;

    /// When the alarm will fire; `None` while none is set or its handler is running. For diagnostics.
    fn alarm(&self) -> Pending<Result<Option<i64>>>;

    /// Runs a future beside the caller. A panic in it is logged and ends only that future.
    fn spawn(&self, work: Pending<()>);

    /// One line for the operator's log.
    fn log(&self, line: &str);
}

/// The object of a thread, with its ways out.
pub trait Host: Object {
    /// Sends a request; follows no redirect. Dropping the future or the body cancels it.
    fn fetch(&self, request: Request) -> Pending<Result<Response, FetchError>>;

    /// Asks a model of the platform's own, and gives its answer whatever its status. Dropping the future or the content cancels
    /// it.
    ///
    /// # Errors
    /// There was no answer, or nothing is bound to ask.
    fn ask_ai(&self, _request: AiRequest) -> Pending<Result<Response, FetchError>> {
        Box::pin(std::future::ready(Err(FetchError(format!("the binding {} is not there", ai::AI_BINDING)))))
    }

    /// Sends a request without a body to a streamed route ([`crate::request::ThreadRoute::is_streamed`]) of another thread,
    /// a [`crate::request::ThreadRequest`] as JSON, and gives its answer, whatever its status. Dropping the future or the
    /// content cancels it.
    ///
    /// # Errors
    /// The other object was lost before it answered. When that happens later, its content breaks off.
    fn sibling_stream(&self, thread: String, call: String) -> Pending<Result<Response, FetchError>>;

    /// Where the content of large files lives; `None` while no bucket is bound.
    fn bucket(&self) -> Option<&dyn Bucket>;

    /// Who listens to the thread.
    fn listeners(&self) -> &dyn Listeners;

    /// What it shares with the other objects of its process.
    fn process(&self) -> Rc<Process>;
}

/// A transaction that has a value.
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

/// A platform that has called nothing back.
pub(crate) fn not_run() -> crate::Error {
    crate::Error::internal("the platform did not run a transaction")
}
