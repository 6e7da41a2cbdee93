//! The interface between the Worker's bridge and the encoders that turn a feed into another protocol.

use serde_json::Value;

use crate::access::Caller;
use crate::error::Result;
use crate::request::{Query, ThreadRequest, ThreadRoute};

/// Makes an answer of the events of a feed, as a stream or whole.
pub trait Encode {
    /// What events of the feed are for a client that reads a stream.
    ///
    /// # Errors
    /// The feed does not go on where it was: the answer must break.
    fn push(&mut self, events: &str) -> Result<String>;

    /// Whether the answer is complete.
    fn is_over(&self) -> bool;

    /// The status of the answer, as far as it is known: other than 200 where it is an error and nothing was said before it.
    fn status(&self) -> u16;

    /// The answer as a whole: what is known so far, or the error.
    fn whole(&self) -> Value;

    /// Headers that only the end of the run can tell, for a whole answer.
    fn headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// How often a client is told something, milliseconds; none for as often as is usual.
    fn beat_ms(&self) -> Option<u32> {
        None
    }

    /// What a client is told that has been told nothing for a while; none where a comment does.
    fn beat(&mut self) -> Option<String> {
        None
    }

    /// A call of the thread's object, as text, whose answer is needed before anything else is said; none where nothing is.
    fn asks(&mut self) -> Option<String> {
        None
    }

    /// What the object has answered: for a client that reads a stream.
    ///
    /// # Errors
    /// The answer cannot be read: it must break.
    fn answered(&mut self, _status: u16, _body: &str) -> Result<String> {
        Ok(String::new())
    }

    /// A call of the thread's object, as text, that is due when the client has gone before the end.
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
