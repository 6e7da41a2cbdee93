//! The interface between the Worker's bridge and the encoders that turn a feed into another protocol.

use serde_json::Value;

use crate::access::Caller;
use crate::request::{Query, ThreadRequest, ThreadRoute};
use bobbin_definitions::error::Result;

/// Encodes the events of a feed as a stream or a whole response.
pub trait Encode {
    /// Encodes events of the feed for a client that reads a stream.
    ///
    /// # Errors
    /// The feed does not continue at its last position. The response must be aborted.
    fn push(&mut self, events: &str) -> Result<String>;

    /// Whether the response is complete.
    fn is_over(&self) -> bool;

    /// The status of the response so far: 200 unless there is an error with nothing sent before it.
    fn status(&self) -> u16;

    /// The whole response so far, or the error.
    fn whole(&self) -> Value;

    /// Headers of a whole response that are known only at the end of the run.
    fn headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Interval of heartbeats, milliseconds; `None` for the default.
    fn beat_ms(&self) -> Option<u32> {
        None
    }

    /// A heartbeat for an idle stream; `None` for a comment.
    fn beat(&mut self) -> Option<String> {
        None
    }

    /// A call of the thread's object, as text, whose response is needed before the next output; `None` if
    /// there is none.
    fn asks(&mut self) -> Option<String> {
        None
    }

    /// Encodes the object's response, for a client that reads a stream.
    ///
    /// # Errors
    /// The response cannot be parsed. The stream must be aborted.
    fn answered(&mut self, _status: u16, _body: &str) -> Result<String> {
        Ok(String::new())
    }

    /// A call of the thread's object, as text, for the case that the client disconnects before the end.
    fn leaving(&self) -> Option<String> {
        None
    }
}

/// A call of a thread's object, as text.
pub(super) fn call(
    thread: &str,
    caller: &Caller,
    route: ThreadRoute,
    query: Query,
    body: &str,
) -> Option<String> {
    let request = ThreadRequest {
        thread_id: thread.to_owned(),
        life: None,
        caller: caller.clone(),
        route,
        query,
        idempotency_key: None,
        headers: Vec::new(),
        body: String::new(),
    };
    let head = serde_json::to_string(&request).ok()?;
    Some(format!("{head}\n{body}"))
}
