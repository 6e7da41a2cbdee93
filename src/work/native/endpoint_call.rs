//! Input and result of a native endpoint.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::definitions::endpoint::Method;
use crate::error::{Code, Error, Result};
use crate::host::Sleep;
use crate::request::Query;
use crate::sdk::ThreadState;

/// A request to a native endpoint (spec §26.1). It does not block the thread: a run may be active at the same
/// time.
#[derive(Clone)]
pub struct EndpointCall {
    /// The registered name.
    pub native: String,
    /// The matched route: `GET /reports/[day]`.
    pub name: String,
    /// The thread.
    pub thread_id: String,
    /// The agent that the thread runs.
    pub agent_id: String,
    /// Id of this request, for the log when the endpoint fails.
    pub request_id: String,
    /// The request's method; for `HEAD` the response's body is omitted.
    pub method: Method,
    /// The path below the thread, decoded, with its leading slash.
    pub path: String,
    /// The URL as the client sent it, without the prefix of the thread: `https://host/reports/a%2Fb?q=1`.
    /// Empty for a request that did not come over HTTP.
    pub address: String,
    /// The path's parameters, decoded. A catch-all is `*`, and contains its slashes.
    pub params: BTreeMap<String, String>,
    /// The query, decoded.
    pub query: Query,
    /// The request's headers without credentials; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, of any type; at most 4 MB.
    pub body: Bytes,
    /// Microseconds since 1970.
    pub now_us: i64,
    /// Random bytes of this request.
    pub random: [u8; 16],
    /// Values of declared variables, by name.
    pub env: Map<String, Value>,
    /// Waits for some microseconds.
    pub sleep: Sleep,
    /// The thread.
    pub state: ThreadState,
}

impl EndpointCall {
    /// The value of a request header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// A parameter of the path; empty when the route does not have it.
    pub fn param(&self, name: &str) -> &str {
        self.params.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// `bad_json`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        crate::json::from_slice(&self.body)
            .map_err(|error| Error::new(Code::BadJson, format!("The body cannot be read: {error}.")))
    }
}

/// The response of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointAnswer {
    /// HTTP status, 200 to 599.
    pub status: u16,
    /// Headers. Those that the runtime or the platform sets are removed.
    pub headers: Vec<(String, String)>,
    /// The body, of any type; omitted for a status without one.
    pub body: Bytes,
}

impl EndpointAnswer {
    /// A response in JSON.
    pub fn json(status: u16, body: &Value) -> EndpointAnswer {
        EndpointAnswer::bytes(status, "application/json; charset=utf-8", body.to_string())
    }

    /// A response in plain text.
    pub fn text(status: u16, text: impl Into<String>) -> EndpointAnswer {
        EndpointAnswer::bytes(status, "text/plain; charset=utf-8", text.into())
    }

    /// A response of any type.
    pub fn bytes(status: u16, content_type: &str, body: impl Into<Bytes>) -> EndpointAnswer {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        EndpointAnswer { status, headers, body: body.into() }
    }

    /// A response without a body.
    pub const fn empty(status: u16) -> EndpointAnswer {
        EndpointAnswer { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// The response with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> EndpointAnswer {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}
