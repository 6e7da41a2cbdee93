//! Errors of the runtime's API: a stable code, a message for a developer and, if useful, a hint and a field.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json;

/// The result of anything that can fail towards a client.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A stable error code for programs. [`Code::status`] maps each to its HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The body is not JSON.
    BadJson,
    /// A field has the wrong type or an impossible value.
    InvalidField,
    /// An unknown option that cannot be ignored.
    UnsupportedParameter,
    /// A required field is absent.
    MissingField,
    /// Variables that the agent requires have no value.
    MissingVariables,
    /// A paging cursor is unknown or malformed.
    BadCursor,
    /// The token of a link is forged, expired or has another scope.
    InvalidToken,
    /// No or unknown credentials.
    Unauthenticated,
    /// The credentials do not allow this.
    Forbidden,
    /// No such route or item.
    NotFound,
    /// No such thread, or not the caller's.
    ThreadNotFound,
    /// No such message in this thread.
    MessageNotFound,
    /// The catalog has no agent with this name.
    AgentNotFound,
    /// There is no memory with this name, or not here.
    MemoryNotFound,
    /// The route exists, the method does not.
    MethodNotAllowed,
    /// The body's content type is not accepted.
    UnsupportedMediaType,
    /// The body of the request stopped arriving.
    RequestTimeout,
    /// The thread was terminated (spec §30): it stays readable and refuses work.
    Terminated,
    /// The state of the thread forbids this now.
    Conflict,
    /// A key names a thread that was created with another agent.
    KeyConflict,
    /// A memory has no room for a document.
    MemoryFull,
    /// Read-only code tried to change something.
    ReadOnly,
    /// A condition of the request (`If-Match`, `If-None-Match`) does not hold.
    PreconditionFailed,
    /// The requested range is outside the file.
    RangeNotSatisfiable,
    /// A body or value is over its limit, which the message names.
    TooLarge,
    /// An idempotency key was used again with another body.
    IdempotencyMismatch,
    /// Changed arguments of a call that the tool does not accept, or that may not be changed.
    InvalidArgs,
    /// Too many requests.
    RateLimited,
    /// The thread's queue is full.
    QueueFull,
    /// An internal failure; the log has the id in the message.
    Internal,
    /// A custom endpoint failed; the thread's log has the id in the message.
    EndpointFailed,
    /// A hook failed or refused, and its result counts (spec §9.1).
    HookFailed,
    /// The definitions failed validation and are not served.
    CatalogInvalid,
    /// Values cannot be encrypted or decrypted: a key is missing from `BOBBIN_ENCRYPTION_KEYS`.
    EncryptionUnavailable,
    /// The object was restarted or lost during the request, which may be sent again.
    Overloaded,
}

impl Code {
    /// The HTTP status of a response with this code.
    pub const fn status(self) -> u16 {
        match self {
            Code::BadJson
            | Code::InvalidField
            | Code::UnsupportedParameter
            | Code::MissingField
            | Code::MissingVariables
            | Code::BadCursor
            | Code::InvalidToken => 400,
            Code::Unauthenticated => 401,
            Code::Forbidden | Code::ReadOnly => 403,
            Code::NotFound
            | Code::ThreadNotFound
            | Code::MessageNotFound
            | Code::AgentNotFound
            | Code::MemoryNotFound => 404,
            Code::MethodNotAllowed => 405,
            Code::RequestTimeout => 408,
            Code::Terminated | Code::Conflict | Code::KeyConflict | Code::MemoryFull => 409,
            Code::PreconditionFailed => 412,
            Code::TooLarge => 413,
            Code::UnsupportedMediaType => 415,
            Code::RangeNotSatisfiable => 416,
            Code::IdempotencyMismatch | Code::InvalidArgs => 422,
            Code::RateLimited | Code::QueueFull => 429,
            Code::Internal | Code::EndpointFailed | Code::HookFailed => 500,
            Code::CatalogInvalid | Code::EncryptionUnavailable | Code::Overloaded => 503,
        }
    }

    /// Whether the same request may succeed later without a change.
    pub const fn retryable(self) -> bool {
        matches!(self, Code::RequestTimeout | Code::RateLimited | Code::QueueFull | Code::Overloaded)
    }
}

/// The text without its final full stop, to embed it in a sentence.
pub fn unstopped(text: &str) -> &str {
    text.strip_suffix('.').filter(|rest| !rest.ends_with('.')).unwrap_or(text)
}

/// An error of the API. `Display` is its message.
///
/// Consists of one pointer: nearly every function of the core returns a `Result`, and each `?` would
/// otherwise copy the texts on the stack.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Box<Fault>);

/// The contents of an [`Error`].
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The stable code.
    pub code: Code,
    /// What is wrong, for a developer.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The field of the request that is wrong.
    pub field: Option<String>,
    /// Seconds after which a retry makes sense (`Retry-After`).
    pub retry_after_s: Option<u32>,
    /// Data that a program needs to continue, such as the current state.
    pub details: Option<Box<Value>>,
}

impl Deref for Error {
    type Target = Fault;

    fn deref(&self) -> &Fault {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Fault {
        &mut self.0
    }
}

impl From<Fault> for Error {
    #[cold]
    #[inline(never)]
    fn from(fault: Fault) -> Error {
        Error(Box::new(fault))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        *error.0
    }
}

impl Error {
    /// An error with a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        let message = message.into();
        Fault { code, message, hint: None, field: None, retry_after_s: None, details: None }.into()
    }

    /// An error about a field of the request.
    pub fn field(field: &str, message: impl Into<String>) -> Error {
        Error::new(Code::InvalidField, message).at(field)
    }

    /// An error about a missing required field.
    pub fn missing(field: &str) -> Error {
        Error::new(Code::MissingField, format!("`{field}` is required.")).at(field)
    }

    /// A failure inside the runtime; `detail` goes to the log and, in development, to the developer.
    pub fn internal(detail: impl std::fmt::Display) -> Error {
        Error::new(Code::Internal, detail.to_string())
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the field of the request.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Error {
        self.field = Some(field.into());
        self
    }

    /// Sets the seconds after which a retry makes sense.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Error {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The message.
    pub fn into_message(self) -> String {
        self.0.message
    }

    /// The body of a response.
    pub fn body(&self) -> ErrorBody<'_> {
        ErrorBody {
            error: ErrorDetail {
                code: self.code,
                message: &self.message,
                hint: self.hint.as_deref(),
                field: self.field.as_deref(),
                details: self.details.as_deref(),
            },
        }
    }

    /// The body of a response as JSON.
    pub fn to_json(&self) -> Value {
        json!(self.body())
    }
}

/// The response to a request that was refused or has failed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Error"))]
pub struct ErrorBody<'a> {
    /// The error.
    pub error: ErrorDetail<'a>,
}

/// The error of a response.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDetail<'a> {
    /// A stable code for programs (docs/errors.md).
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub code: Code,
    /// The error, for people.
    pub message: &'a str,
    /// What to do about it, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'a str>,
    /// The wrong field or parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<&'a str>,
    /// Data that a program needs to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub details: Option<&'a Value>,
}

#[cfg(test)]
mod tests {
    use crate::error::{Code, unstopped};

    /// The rows with a code in the tables of docs/errors.md: code, status, and whether to send the request
    /// again.
    fn documented() -> Vec<(Code, u16, bool)> {
        let row = |line: &str| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, code, status, .., again, _] = cells.as_slice() else { return None };
            let status = status.parse().ok()?;
            let code = crate::json::from_value(code.trim_matches('`').into())
                .unwrap_or_else(|_| panic!("docs/errors.md has a row for {code}, which is no code"));
            Some((code, status, again.starts_with("yes")))
        };
        include_str!("../../../docs/errors.md").lines().filter_map(row).collect()
    }

    #[test]
    fn the_page_of_errors_has_every_code_once_with_its_status() {
        let source = include_str!("error.rs");
        let variants = source.split_once("pub enum Code {").and_then(|(_, rest)| rest.split_once("\n}"));
        let lines =
            variants.expect("the codes").0.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        let mut names: Vec<&str> = lines.filter_map(|line| line.strip_suffix(',')).collect();
        let documented = documented();
        let mut rows: Vec<String> = documented.iter().map(|(code, ..)| format!("{code:?}")).collect();
        names.sort_unstable();
        rows.sort_unstable();
        assert!(!names.is_empty());
        assert_eq!(rows, names, "left: the rows of docs/errors.md; right: the variants of `Code`");
        for (code, status, again) in documented {
            assert_eq!((status, again), (code.status(), code.retryable()), "{code:?} in docs/errors.md");
        }
    }

    #[test]
    fn one_full_stop_goes() {
        for (text, expected) in
            [("lost.", "lost"), ("lost", "lost"), ("and so on...", "and so on..."), (".", ""), ("", "")]
        {
            assert_eq!(unstopped(text), expected, "{text}");
        }
    }
}
