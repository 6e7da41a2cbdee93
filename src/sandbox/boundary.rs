//! What a host is asked for when code is to run, and what it answers: the wire of docs/run-code.md, without its transport.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use serde::Serialize;

use crate::sandbox::options::{Form, Language};
use crate::sandbox::packed::Packed;
use crate::sandbox::result::{CodeError, Status};
use crate::spec::tool::Engine;

/// A run that is wanted. As JSON it is the isolate Worker's request, without `values`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Names it.
    pub id: String,
    /// Whose it is, a thread's id: runs of one owner share what the sandbox has, and leave room for others.
    pub owner: String,
    /// The account that the owner belongs to, or the owner: the same holds for accounts.
    pub account: String,
    /// Ids of the runs from inside which it was started, outermost first.
    pub ancestors: Vec<String>,
    /// What runs it.
    pub engine: Engine,
    /// The source.
    pub source: String,
    /// What that is written in.
    pub language: Language,
    /// What it is.
    pub form: Form,
    /// What that is called.
    pub filename: String,
    /// The export that is run.
    #[serde(rename = "fn")]
    pub function: String,
    /// Relative specifiers and their sources.
    pub modules: Vec<(String, String)>,
    /// Bytes of heap, as wanted.
    pub memory_limit_bytes: u64,
    /// The safety cap.
    pub fuel: Option<u64>,
    /// Whether the code can report.
    pub report: bool,
    /// Whether its success is told of only once no call of [`HostCalls::call`] is under way.
    pub awaits_calls: bool,
    /// Names of the globals.
    pub globals: Vec<String>,
    /// Specifiers of the imports, and the names that they export.
    pub imports: Vec<(String, Vec<String>)>,
    /// `{ args, globals, imports }`.
    #[serde(skip)]
    pub values: Packed,
}

/// What a called function came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its value.
    Value(Packed),
    /// What it threw.
    Error(Packed),
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What the called function came to.
    pub answer: Answer,
    /// Bytes that count as under way until [`HostCalls::taken`] has them; 0 for a small answer.
    pub held: usize,
}

/// Calls a function that the sandbox has given away.
pub type Back = Rc<dyn Fn(u64, Packed) -> LocalBoxFuture<'static, Answer>>;

/// What runs code.
pub trait Sandbox {
    /// Runs it. Whatever happens to it is an outcome.
    fn run(&self, run: Run, door: Rc<dyn HostCalls>) -> LocalBoxFuture<'static, Outcome>;

    /// Whether there is one: without it every run of code fails.
    fn is_bound(&self) -> bool;
}

/// What a sandbox may ask of the side that started it. Its texts are hostile.
pub trait HostCalls {
    /// Calls a function of this side. `back` calls those among its arguments.
    /// It waits while the sandbox has not taken earlier answers.
    fn call(&self, function: u64, args: Packed, back: Back) -> LocalBoxFuture<'static, Answered>;

    /// The sandbox has taken an answer: its [`Answered::held`].
    fn taken(&self, bytes: usize);

    /// A value was reported.
    fn report(&self, value: Packed, back: Back) -> LocalBoxFuture<'static, ()>;

    /// Resolves with a reason when the run is to end, and with none when nobody needs it or its functions any more.
    fn ended(&self) -> LocalBoxFuture<'static, Option<String>>;
}

/// What a host answers.
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// The value, on success.
    pub value: Option<Packed>,
    /// What went wrong, otherwise.
    pub error: Option<CodeError>,
    /// What was written to the console.
    pub logs: Vec<RawLog>,
    /// Whether there was more of that.
    pub logs_cut: bool,
    /// How long it took, milliseconds.
    pub duration_ms: f64,
    /// Calls the functions in the value.
    pub back: Back,
}

/// Something that was written to the console.
#[derive(Clone, Debug, PartialEq)]
pub struct RawLog {
    /// `log`, `info`, `warn`, `error` or `debug`.
    pub level: String,
    /// What was written, an array.
    pub args: Packed,
    /// Milliseconds since 1970.
    pub timestamp: f64,
}

impl Outcome {
    /// The sandbox was lost with whatever ran in it.
    pub fn lost(why: &str) -> Outcome {
        let message = format!("The sandbox was lost while the code ran: {why}");
        Outcome::failed(Status::Terminated, CodeError::new("Terminated", message))
    }

    /// It ended without a value.
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

/// Calls none.
fn no_functions() -> Back {
    Rc::new(|_, _| {
        let gone = Packed::error("The function is gone: its sandbox has ended.");
        Box::pin(async move { Answer::Error(gone) })
    })
}
