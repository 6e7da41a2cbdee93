//! HTTP routes as data (`docs/http.md`; spec §27): the routes, the request that the router passes to an
//! object over stub RPC, and the object's reply.
//!
//! The router (`worker/`) authenticates, matches the route and passes the body on: as text, or for a
//! [`StreamRoute`] as a stream. The object that owns the data authorises, parses and replies. A body is
//! therefore parsed once, where it is used.
//!
//! * `target`: the address of a request. `route`: routes as types. `table`: every route; `row`: one row of
//!   the table, and the search. `endpoints`: the custom endpoint of a request. `cors`: the allowed origins.
//! * `memory`: routes of memories; `chats`: of chats of the AI SDK and of AG-UI; `openai`: of OpenAI's
//!   clients. `surfaces`: the protocols of other systems that a deployment offers.
//! * `body`: the body that a route accepts. `fields`, `query`: fields and parameters, taken one by one.
//!   `thread_id`: ids of threads.
//! * `directory_call`: requests to a directory. `every_owner`: lists over the directories of all owners.
//!   `between`: requests from one thread to another.
//! * `raw_response`: responses in other formats than JSON. `agents`: agents as clients see them.

pub mod agents;
pub mod between;
pub mod body;
pub mod chats;
pub mod cors;
pub mod directory_call;
pub mod endpoints;
pub mod every_owner;
pub mod explain;
pub mod fields;
pub mod history;
pub mod memory;
pub mod openai;
pub mod query;
pub mod raw_response;
pub mod route;
pub mod row;
pub mod surfaces;
pub mod table;
pub mod target;
pub mod thread_id;

pub use crate::request::body::BodyRule;
pub use crate::request::chats::{AgUiRoute, ChatRoute};
pub use crate::request::memory::{MemoryAsk, MemoryCall, MemoryRoute};
pub use crate::request::openai::OpenAiRoute;
pub use crate::request::query::Query;
pub use crate::request::raw_response::{Content, RawResponse};
pub use crate::request::route::{EnvLevel, Follow, Matched, OpenRoute, Route, StreamRoute, ThreadRoute};
pub use crate::request::target::Target;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::access::Caller;
use crate::trace;
use crate::trace::Trace;
use bobbin_definitions::error::{Error, Result};

/// A request to a thread's object: [`ThreadRoute`] for a text, [`StreamRoute`] for a streamed body.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadRequest<R = ThreadRoute> {
    /// The thread's id. An object does not know its id before it is created.
    pub thread_id: String,
    /// The life that the request is for, of the threads that have used this id in turn
    /// ([`thread_id::is_of_key`]). Absent: any life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<i64>,
    /// The caller. The object compares the caller's scope with its owner.
    pub caller: Caller,
    /// The route.
    pub route: R,
    /// Query parameters, decoded, in order.
    #[serde(default)]
    pub query: Query,
    /// The `Idempotency-Key` header.
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// Headers that the route asks for ([`ThreadRoute::headers`], [`StreamRoute::headers`]), with names in lower case.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body, as received; empty if it arrives as a stream.
    #[serde(default)]
    pub body: String,
}

impl<R: Serialize + DeserializeOwned> ThreadRequest<R> {
    /// The first line of a call to an object: JSON in one line. A line break and the request's body may
    /// follow.
    ///
    /// # Errors
    /// No known error.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }

    /// Parses the text of a call to an object.
    ///
    /// # Errors
    /// `internal` if the text is not a call.
    pub fn parse(text: &str) -> Result<ThreadRequest<R>> {
        let (head, body) = text.split_once('\n').unwrap_or((text, ""));
        let request: ThreadRequest<R> = bobbin_definitions::json::from_str(head)
            .map_err(|error| Error::internal(format!("not a call of a thread: {error}")))?;
        Ok(ThreadRequest { body: body.to_owned(), ..request })
    }
}

impl<R> ThreadRequest<R> {
    /// The value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The trace of the request, if its headers name one.
    pub fn trace(&self) -> Option<Trace> {
        Trace::of_headers(self.header(trace::TRACEPARENT), self.header(trace::TRACESTATE))
    }
}

/// An internal header of the Worker: the first characters of a hash of the caller's credentials.
pub const FINGERPRINT: &str = "bobbin-fingerprint";

/// An internal header of the Worker: the message whose reply a new message follows. The new message is
/// refused if another message was sent after that reply.
pub const FOLLOWS: &str = "bobbin-follows";

/// An internal header of the Worker: the message that a new message replaces. That message and all later ones
/// are deleted in the transaction that stores the new one.
pub const REPLACES: &str = "bobbin-replaces";

/// An internal header of the Worker: the id of a copy. A repeated request has the same id.
pub const COPY: &str = "bobbin-copy";

/// The response of an object.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// `Retry-After` in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// JSON; absent for 204.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Box<RawValue>>,
}

impl Reply {
    /// A response with a JSON body.
    pub fn json(status: u16, body: &impl Serialize) -> Reply {
        // Written directly in its raw form. Parsing a page of messages again to check it would double the
        // cost.
        Reply { status, retry_after: None, body: to_raw_value(body).ok() }
    }

    /// A response without a body.
    pub const fn empty(status: u16) -> Reply {
        Reply { status, retry_after: None, body: None }
    }
}

impl From<Error> for Reply {
    fn from(error: Error) -> Reply {
        Reply { retry_after: error.retry_after_s, ..Reply::json(error.code.status(), &error.body()) }
    }
}
