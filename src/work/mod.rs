//! The work that a definition names with `run`: a native function, a file of code in the sandbox, or a URL.
//! Tools, effects, hooks and endpoints run through [`run`], with the same rules for time, panics and signed
//! requests. The engine itself runs tools of MCP servers, tools of the client, memory tools and skills.
//!
//! * `kinds`: input and results of the four kinds in each of the three ways.
//! * `native`: functions that crates register. `http`: the signed request. `code`: files in the sandbox.
//!   `mcp`: requests to MCP servers, for tools only. `outbound`: permitted targets of all requests.
//! * `timeout`: a time limit. `tool_answer`: the meaning of a tool's response.

pub(crate) mod code;
mod http;
mod kinds;
pub(crate) mod mcp;
pub mod native;
pub(crate) mod outbound;
pub(crate) mod timeout;
mod tool_answer;

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use serde_json::Value;

use crate::definitions::retry::RetryOn;
use crate::definitions::{Catalog, Http, Implementation};
use crate::env::redact::Redacted;
use crate::error::Error;
use crate::host::{Host, Pending, Sleep};
use crate::models::registry::Panic;
use crate::trace::Trace;
use crate::work::code::file::{FileCall, run_file};
use crate::work::http::{PostResponse, SignedPost, post_signed};
use crate::work::native::Natives;
use crate::work::timeout::Deadline;

/// Services of a thread for its work.
pub(crate) trait WorkContext {
    fn host(&self) -> &Rc<dyn Host>;

    fn natives(&self) -> &dyn Natives;

    fn catalog(&self) -> &Catalog;

    /// The deployment's value of a variable.
    fn deployment_variable(&self, variable: &str) -> Option<String>;

    /// Removes secrets from a text.
    fn without_secrets(&self, text: String) -> Redacted;

    /// Loads the values that a request needs.
    fn ready<'a>(&'a self, http: &'a Http) -> LocalBoxFuture<'a, Result<(), Failure>>;

    /// Counts a request against the limit of the current event.
    fn counts_request(&self);

    /// A timer for a tool, an effect, a hook or an endpoint.
    fn sleep(&self) -> Sleep;

    /// Writes a line to the operator's log.
    fn log(&self, line: &str);
}

/// The reason why work has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No result within this many milliseconds.
    Late(u64),
    /// A native function panicked, which ends only this call.
    Panicked(Panic),
    /// Failed, with a text.
    Failed(String),
    /// Failed, of a kind that may succeed later.
    MayPass(RetryOn, String),
    /// An endpoint refused the request. The client receives the error.
    Refused(Error),
}

impl Failure {
    /// Its name in a policy's `retryOn`; `None` when a repetition would fail again.
    pub(crate) const fn may_pass(&self) -> Option<RetryOn> {
        match self {
            Failure::Late(_) => Some(RetryOn::Timeout),
            Failure::MayPass(kind, _) => Some(*kind),
            Failure::Panicked(_) | Failure::Failed(_) | Failure::Refused(_) => None,
        }
    }

    /// The text; `subject` is what failed.
    pub(crate) fn of(self, subject: &str) -> String {
        match self {
            Failure::Late(limit_ms) => {
                format!("{subject} did not answer within {} s", limit_ms as f64 / 1000.0)
            }
            Failure::Panicked(Panic(text)) => format!("{subject} panicked: {text}"),
            Failure::Failed(text) | Failure::MayPass(_, text) => text,
            Failure::Refused(error) => error.into_message(),
        }
    }
}

/// The request for remote work.
pub(super) struct RemoteRequest {
    /// The definition's name, for messages.
    name: String,
    idempotency_key: String,
    /// Microseconds since 1970; part of the signature.
    now_us: i64,
    /// Sent as JSON.
    body: Value,
}

/// Converts the return value of a file's function to a result.
type ResultConverter<A> = Box<dyn FnOnce(crate::sandbox::Value) -> Result<A, Failure>>;

/// A call of one of the four kinds.
pub(super) trait ImplementationCall: Sized {
    type Output;

    /// Calls the native function `name`.
    fn native(
        self,
        natives: &dyn Natives,
        name: &str,
    ) -> Pending<Result<Result<Self::Output, Failure>, Panic>>;

    /// The call of a file of code, and the conversion of its value.
    fn in_file(self) -> (FileCall, ResultConverter<Self::Output>);

    /// The request to a remote server.
    fn posted(&self) -> RemoteRequest;

    /// Converts the response of a remote server.
    fn answered(self, answered: PostResponse, context: &dyn WorkContext) -> Result<Self::Output, Failure>;
}

/// The implementation of a call, with its limits and context.
#[derive(Clone, Copy)]
pub(crate) struct ExecutionPlan<'a> {
    pub(crate) run: &'a Implementation,
    /// Time limit within the object, in milliseconds; `None` without a limit.
    pub(crate) limit_ms: Option<u64>,
    /// Time limit for a remote response; `None` for the default.
    pub(crate) http_ms: Option<u64>,
    /// Values for the URL and the headers of `run.http`.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// The trace of a request for it, and the current span.
    pub(crate) trace: &'a dyn Fn() -> Trace,
}

/// Executes a call once. Retries are the caller's.
pub(crate) async fn run<C: ImplementationCall>(
    context: Rc<dyn WorkContext>,
    plan: ExecutionPlan<'_>,
    call: C,
) -> Result<C::Output, Failure> {
    let host = context.host().clone();
    match plan.run {
        Implementation::Native(name) => {
            let running = call.native(context.natives(), name);
            match in_time(&*host, plan.limit_ms, running).await? {
                Ok(answer) => answer,
                Err(panicked) => {
                    // It may have come between a commit of the thread and the frame that reports it.
                    host.listeners().close("the thread had to start over");
                    Err(Failure::Panicked(panicked))
                }
            }
        }
        Implementation::Code(code) => {
            let (file_call, meaning) = call.in_file();
            let value = in_time(&*host, plan.limit_ms, run_file(context, code, file_call)).await?;
            meaning(value.map_err(Failure::Failed)?)
        }
        // The engine calls tools of MCP servers itself, because they may have to wait for users.
        Implementation::Mcp(_) => Err(Failure::Failed("No MCP server can be called here.".to_owned())),
        // Calls for clients are parked earlier.
        Implementation::Client(_) => Err(Failure::Failed("No client can carry this out here.".to_owned())),
        Implementation::Http(http) => {
            let RemoteRequest { name, idempotency_key, now_us, body } = call.posted();
            let post = SignedPost {
                name: &name,
                http,
                timeout_ms: plan.http_ms,
                idempotency_key: &idempotency_key,
                trace: (plan.trace)().headers(),
                now_us,
                body,
            };
            let answered = post_signed(&*context, post, plan.env).await?;
            call.answered(answered, &*context)
        }
    }
}

async fn in_time<T>(
    host: &dyn Host,
    limit_ms: Option<u64>,
    running: impl Future<Output = T>,
) -> Result<T, Failure> {
    let Some(limit_ms) = limit_ms else { return Ok(running.await) };
    Deadline::for_ms(host, limit_ms).within(running).await.ok_or(Failure::Late(limit_ms))
}
