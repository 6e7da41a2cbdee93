//! A response that need not be JSON: any headers, and a body in bytes or as a stream.

use bytes::Bytes;
use futures::stream::LocalBoxStream;

use crate::request::Reply;
use bobbin_definitions::error::{Error, Result};

/// The response to a request whose body arrived as a stream ([`crate::request::StreamRoute`]).
#[derive(Debug)]
pub struct RawResponse {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case. `content-length` is the length of a stream. A stream of another length is
    /// aborted.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub content: Content,
}

/// The body of a response.
pub enum Content {
    /// No body: 204, 304, and every response to `HEAD`.
    Empty,
    /// The whole body.
    Bytes(Bytes),
    /// Chunks. Each is produced after the client has read the previous one. An error aborts the response.
    Stream(LocalBoxStream<'static, Result<Bytes>>),
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Content::Empty => f.write_str("Empty"),
            Content::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Content::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl RawResponse {
    /// A response without headers and body.
    pub const fn empty(status: u16) -> RawResponse {
        RawResponse { status, headers: Vec::new(), content: Content::Empty }
    }

    /// Adds a header; `name` in lower case.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> RawResponse {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

impl From<Reply> for RawResponse {
    fn from(reply: Reply) -> RawResponse {
        let mut served = RawResponse::empty(reply.status)
            .header("cache-control", "no-store")
            .header("x-content-type-options", "nosniff");
        if let Some(seconds) = reply.retry_after {
            served = served.header("retry-after", seconds.to_string());
        }
        if let Some(body) = reply.body {
            served = served.header("content-type", "application/json; charset=utf-8");
            served.content = Content::Bytes(Bytes::from(String::from(Box::<str>::from(body))));
        }
        served
    }
}

impl From<Error> for RawResponse {
    fn from(error: Error) -> RawResponse {
        Reply::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bobbin_definitions::error::Code;

    #[test]
    fn an_error_is_served_as_every_other_answer_is() {
        let error = Error::new(Code::Overloaded, "Later.").retry_after(2);
        let served = RawResponse::from(error);
        let header = |name: &str| served.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        assert_eq!(
            (served.status, header("retry-after"), header("cache-control")),
            (503, Some("2"), Some("no-store"))
        );
        assert_eq!(header("content-type"), Some("application/json; charset=utf-8"));
        let Content::Bytes(body) = &served.content else { panic!("{:?}", served.content) };
        assert_eq!(&body[..], br#"{"error":{"code":"overloaded","message":"Later."}}"#);
        assert!(matches!(RawResponse::from(Reply::empty(204)).content, Content::Empty));
    }
}
