//! The interface between the runtime and a host that runs code: docs/run-code.md, without the transport.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use serde::Serialize;

use crate::definitions::tool::Engine;
use crate::sandbox::options::{Form, Language};
use crate::sandbox::packed::EncodedValue;
use crate::sandbox::result::{CodeError, Status};

/// A run of code. As JSON it is the isolate Worker's request, without `values`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Unique id.
    pub id: String,
    /// The thread's id. Runs of one owner share a quota of the sandbox, so that there is capacity for others.
    pub owner: String,
    /// The owner's account, or the owner. Accounts have a quota, too.
    pub account: String,
    /// Ids of the runs inside which it was started, outermost first.
    pub ancestors: Vec<String>,
    /// The engine that runs it.
    pub engine: Engine,
    /// The source.
    pub source: String,
    /// Language of the source.
    pub language: Language,
    /// Form of the source.
    pub form: Form,
    /// File name of the source.
    pub filename: String,
    /// The exported function to run.
    #[serde(rename = "fn")]
    pub function: String,
    /// Relative specifiers and their sources.
    pub modules: Vec<(String, String)>,
    /// Requested heap, in bytes.
    pub memory_limit_bytes: u64,
    /// Maximum fuel.
    pub fuel: Option<u64>,
    /// Whether the code may report values.
    pub report: bool,
    /// Whether success waits until no call of [`HostCalls::call`] is active.
    pub awaits_calls: bool,
    /// Names of the globals.
    pub globals: Vec<String>,
    /// Specifiers of the imports, and the names that they export.
    pub imports: Vec<(String, Vec<String>)>,
    /// `{ args, globals, imports }`.
    #[serde(skip)]
    pub values: EncodedValue,
}

/// The outcome of a called function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionResult {
    /// Its return value.
    Value(EncodedValue),
    /// Its exception.
    Error(EncodedValue),
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionReply {
    /// The outcome of the function.
    pub answer: FunctionResult,
    /// Bytes in transit, for [`HostCalls::taken`]; 0 for a small answer.
    pub held: usize,
}

/// Calls a function that the sandbox has passed out.
pub type Callback = Rc<dyn Fn(u64, EncodedValue) -> LocalBoxFuture<'static, FunctionResult>>;

/// A host that runs code.
pub trait Sandbox {
    /// Runs code. Every error is an outcome.
    fn run(&self, run: Run, door: Rc<dyn HostCalls>) -> LocalBoxFuture<'static, Outcome>;

    /// Whether a sandbox is bound. Without one every run of code fails.
    fn is_bound(&self) -> bool;
}

/// Calls of a sandbox to the side that started it. Texts from it are untrusted.
pub trait HostCalls {
    /// Calls a function of this side. `back` calls functions among its arguments. Waits while the sandbox has
    /// not taken earlier answers.
    fn call(
        &self,
        function: u64,
        args: EncodedValue,
        back: Callback,
    ) -> LocalBoxFuture<'static, FunctionReply>;

    /// Records that the sandbox has taken an answer, by its [`FunctionReply::held`].
    fn taken(&self, bytes: usize);

    /// Receives a reported value.
    fn report(&self, value: EncodedValue, back: Callback) -> LocalBoxFuture<'static, ()>;

    /// Resolves with a reason when the run must end, and with `None` when neither the run nor its functions
    /// are needed any more.
    fn ended(&self) -> LocalBoxFuture<'static, Option<String>>;
}

/// The result of a run, from a host.
pub struct Outcome {
    /// The outcome.
    pub status: Status,
    /// The value, on success.
    pub value: Option<EncodedValue>,
    /// The error, otherwise.
    pub error: Option<CodeError>,
    /// The console output.
    pub logs: Vec<RawLog>,
    /// Whether console output was cut.
    pub logs_cut: bool,
    /// Duration in milliseconds.
    pub duration_ms: f64,
    /// Calls functions in the value.
    pub back: Callback,
}

/// A line of console output.
#[derive(Clone, Debug, PartialEq)]
pub struct RawLog {
    /// `log`, `info`, `warn`, `error` or `debug`.
    pub level: String,
    /// The arguments, as an array.
    pub args: EncodedValue,
    /// Milliseconds since 1970.
    pub timestamp: f64,
}

impl Outcome {
    /// The sandbox was lost with the code in it.
    pub fn lost(why: &str) -> Outcome {
        let message = format!("The sandbox was lost while the code ran: {why}");
        Outcome::failed(Status::Terminated, CodeError::new("Terminated", message))
    }

    /// The code ended without a value.
    pub fn failed(status: Status, error: CodeError) -> Outcome {
        Outcome {
            status,
            value: None,
            error: Some(error),
            logs: Vec::new(),
            logs_cut: false,
            duration_ms: 0.0,
            back: no_functions(),
        }
    }
}

/// Fails for every function.
fn no_functions() -> Callback {
    Rc::new(|_, _| {
        let gone = EncodedValue::error("The function is gone: its sandbox has ended.");
        Box::pin(async move { FunctionResult::Error(gone) })
    })
}
