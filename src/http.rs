//! Requests and responses as data. The engine hands them to its host; redirects are never followed.

use bytes::Bytes;

/// An outgoing request. The host sends it as it is and follows no redirect.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: &'static str,
    /// Absolute URL.
    pub url: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, if any.
    pub body: Option<Bytes>,
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct Response<B> {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, read chunk by chunk.
    pub body: B,
}

impl<B> Response<B> {
    /// The value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Why a request had no answer, or its body broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("network: {0}")]
pub struct FetchError(pub String);

/// A body that arrives in chunks. Dropping it cancels the request.
pub trait Body {
    /// The next chunk; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Result<Bytes, FetchError>>>;
}
