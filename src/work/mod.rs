//! Whatever a definition names with `run`: a native function, a file of code in the sandbox, or an address. Tools, effects,
//! hooks and endpoints are run alike, by [`run`]: with one rule for time, one for panics, one signed request.
//!
//! * `kinds`: what each of the four is given in each of the three ways, and what its answers mean.
//! * `native`: functions that crates register. `http`: the signed request. `code`: files in the sandbox. `mcp`: requests to MCP
//!   servers, which tools alone make. `outbound`: where all of these may lead.
//! * `tier`: what a tool may change. `timeout`: a limit in time. `tool_answer`: what the answer of a tool means.

pub(crate) mod code;
pub(crate) mod http;
pub(crate) mod kinds;
pub(crate) mod mcp;
pub mod native;
pub(crate) mod outbound;
pub(crate) mod tier;
pub(crate) mod timeout;
pub(crate) mod tool_answer;

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::env::redact::Shown;
use crate::error::Error;
use crate::host::{Host, Pending, Sleep};
use crate::registry::Panicked;
use crate::spec::retry::RetryOn;
use crate::spec::{Catalog, Http, Implementation};
use crate::trace::Trace;
use crate::work::code::file::{FileCall, run_file};
use crate::work::http::{Answered, Post, post_signed};
use crate::work::native::Natives;
use crate::work::timeout::Watch;

/// What a thread lends to the work that it runs.
pub(crate) trait Surroundings {
    fn host(&self) -> &Rc<dyn Host>;

    fn natives(&self) -> &dyn Natives;

    fn catalog(&self) -> &Catalog;

    /// The deployment's value of a variable.
    fn of_deployment(&self, variable: &str) -> Option<String>;

    /// A text without secrets.
    fn without_secrets(&self, text: String) -> Shown;

    /// Sees to it that the values are known which a request names.
    fn ready<'a>(&'a self, http: &'a Http) -> LocalBoxFuture<'a, Result<(), Failure>>;

    /// Counts a request against the limit of the event that is under way.
    fn counts_request(&self);

    /// Waits for a tool, an effect, a hook or an endpoint.
    fn sleep(&self) -> Sleep;

    /// Tells the operator.
    fn log(&self, line: &str);
}

/// Why work has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing within so many milliseconds.
    Late(u64),
    /// A native function panicked, which ends this call alone.
    Panicked(Panicked),
    /// In words.
    Failed(String),
    /// The same, of a kind that may pass.
    MayPass(RetryOn, String),
    /// An endpoint refused the request: the client is told why.
    Refused(Error),
}

impl Failure {
    /// As policies name it (`retryOn`); `None` where the same would fail again.
    pub(crate) const fn may_pass(&self) -> Option<RetryOn> {
        match self {
            Failure::Late(_) => Some(RetryOn::Timeout),
            Failure::MayPass(kind, _) => Some(*kind),
            Failure::Panicked(_) | Failure::Failed(_) | Failure::Refused(_) => None,
        }
    }

    /// In words; `subject` is what failed.
    pub(crate) fn of(self, subject: &str) -> String {
        match self {
            Failure::Late(limit_ms) => {
                format!("{subject} did not answer within {} s", limit_ms as f64 / 1000.0)
            }
            Failure::Panicked(Panicked(text)) => format!("{subject} panicked: {text}"),
            Failure::Failed(text) | Failure::MayPass(_, text) => text,
            Failure::Refused(error) => error.into_message(),
        }
    }
}

/// What is sent of work that runs elsewhere.
pub(crate) struct Posted {
    /// The definition's name, for messages.
    pub(crate) name: String,
    pub(crate) idempotency_key: String,
    /// Microseconds since 1970; signed.
    pub(crate) now_us: i64,
    /// Sent as JSON.
    pub(crate) body: Value,
}

/// What makes an answer of the value that a file's function gave.
pub(crate) type Meaning<A> = Box<dyn FnOnce(crate::sandbox::Value) -> Result<A, Failure>>;

/// A call of one of the four kinds.
pub(crate) trait Work: Sized {
    type Answer;

    /// The function of that name.
    fn native(
        self,
        natives: &dyn Natives,
        name: &str,
    ) -> Pending<Result<Result<Self::Answer, Failure>, Panicked>>;

    /// As a file of code is called, and what it gives.
    fn in_file(self) -> (FileCall, Meaning<Self::Answer>);

    /// As it is sent elsewhere.
    fn posted(&self) -> Posted;

    /// What the answer from there means.
    fn answered(self, answered: Answered, around: &dyn Surroundings) -> Result<Self::Answer, Failure>;
}

/// How work is run.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) run: &'a Implementation,
    /// How long it may take within the object, in milliseconds; `None` without a limit.
    pub(crate) limit_ms: Option<u64>,
    /// How long an answer from elsewhere may take; `None` for what is usual.
    pub(crate) http_ms: Option<u64>,
    /// The values that the URL and the headers of `run.http` may name.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// The trace of a request that is made for it, and the span that it is made in.
    pub(crate) trace: &'a dyn Fn() -> Trace,
}

/// Runs it once; nothing here repeats a call.
pub(crate) async fn run<W: Work>(
    around: Rc<dyn Surroundings>,
    way: Way<'_>,
    work: W,
) -> Result<W::Answer, Failure> {
    let host = around.host().clone();
    match way.run {
        Implementation::Native(name) => {
            let running = work.native(around.natives(), name);
            match in_time(&*host, way.limit_ms, running).await? {
                Ok(answer) => answer,
                Err(panicked) => {
                    // It may have come between a commit of the thread's and the frame that tells of it.
                    host.listeners().close("the thread had to start over");
                    Err(Failure::Panicked(panicked))
                }
            }
        }
        Implementation::Code(code) => {
            let (call, meaning) = work.in_file();
            let value = in_time(&*host, way.limit_ms, run_file(around, code, call)).await?;
            meaning(value.map_err(Failure::Failed)?)
        }
        // Tools of MCP servers may have to wait for people, and are called by the engine itself.
        Implementation::Mcp(_) => Err(Failure::Failed("No MCP server can be called here.".to_owned())),
        // Calls that clients carry out are parked before they get here.
        Implementation::Client(_) => Err(Failure::Failed("No client can carry this out here.".to_owned())),
        Implementation::Http(http) => {
            let Posted { name, idempotency_key, now_us, body } = work.posted();
            let post = Post {
                name: &name,
                http,
                timeout_ms: way.http_ms,
                idempotency_key: &idempotency_key,
                trace: (way.trace)().headers(),
                now_us,
                body,
            };
            let answered = post_signed(&*around, post, way.env).await?;
            work.answered(answered, &*around)
        }
    }
}

async fn in_time<T>(
    host: &dyn Host,
    limit_ms: Option<u64>,
    running: impl Future<Output = T>,
) -> Result<T, Failure> {
    let Some(limit_ms) = limit_ms else { return Ok(running.await) };
    Watch::for_ms(host, limit_ms).within(running).await.ok_or(Failure::Late(limit_ms))
}
