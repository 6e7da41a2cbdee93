//! The body that a route accepts.

use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::limits::REQUEST_BYTES;

/// The body of a route: whether it is read, and its maximum size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRule {
    /// The body is not read.
    Ignored,
    /// JSON of limited size.
    Json {
        /// The limit in bytes.
        limit: usize,
        /// The name of the body in the error message.
        what: &'static str,
    },
    /// The body passes on to the object as a stream. The object checks it.
    Streamed,
}

impl BodyRule {
    /// Refuses a body by its headers: a type other than JSON, or a length over the limit. A request without a
    /// body needs no type.
    ///
    /// # Errors
    /// `unsupported_media_type`, `too_large`.
    pub fn check(self, content_type: Option<&str>, content_length: Option<usize>) -> Result<()> {
        let BodyRule::Json { limit, .. } = self else { return Ok(()) };
        if content_length == Some(0) {
            return Ok(());
        }
        if !content_type.is_some_and(is_json) {
            return Err(Error::new(
                Code::UnsupportedMediaType,
                format!("The body must be JSON, not {}.", content_type.unwrap_or("of an unnamed type")),
            )
            .hint("Send the header content-type: application/json."));
        }
        if content_length.is_some_and(|length| length > limit) { Err(self.too_large()) } else { Ok(()) }
    }

    /// The error for a body over the limit.
    pub fn too_large(self) -> Error {
        match self {
            BodyRule::Ignored | BodyRule::Streamed => Error::new(Code::TooLarge, "The body is too large."),
            BodyRule::Json { limit, what } => {
                let text = format!("The body of {what} has at most {limit} bytes ({} MB).", limit >> 20);
                let error = Error::new(Code::TooLarge, text);
                // By default, a page sends the whole chat. Only the last message is used.
                if what == CHAT {
                    error.hint("Send the last message alone: `{ id, message }`.")
                } else {
                    error
                }
            }
        }
    }
}

/// The name of a body in errors.
pub(super) const CHAT: &str = "a request to a chat";

/// The body of most routes.
pub(super) const REQUEST: BodyRule = BodyRule::Json { limit: REQUEST_BYTES, what: "a request" };

/// `application/json`, with or without parameters, or a type built on it (`application/merge-patch+json`).
pub fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use bobbin_definitions::limits::MESSAGE_REQUEST_BYTES;

    use super::*;
    use crate::request::{Route, Target};

    fn rule(method: &str, path: &str) -> BodyRule {
        Route::of(method, &Target::of(&format!("https://host{path}"))).unwrap().body
    }

    fn post() -> BodyRule {
        rule("POST", "/api/threads/t/messages")
    }

    #[test]
    fn only_json_is_accepted() {
        for accepted in
            ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/x+json"]
        {
            assert_eq!(post().check(Some(accepted), Some(2)), Ok(()), "{accepted}");
        }
        for refused in
            [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("json"), Some("")]
        {
            let error = post().check(refused, Some(2)).unwrap_err();
            assert_eq!(error.code, Code::UnsupportedMediaType, "{refused:?}");
        }
        assert_eq!(post().check(None, Some(0)), Ok(()));
    }

    #[test]
    fn what_changes_a_thread_and_takes_fields_has_its_body_read() {
        for (method, path) in [("POST", "stop"), ("PATCH", "budget"), ("POST", "context/summarize")] {
            assert_eq!(rule(method, &format!("/api/threads/t/{path}")), REQUEST, "{path}");
        }
    }

    #[test]
    fn a_length_over_the_routes_limit_is_refused_and_the_limit_named() {
        let json = Some("application/json");
        assert_eq!(post().check(json, Some(MESSAGE_REQUEST_BYTES)), Ok(()));
        let error = post().check(json, Some(MESSAGE_REQUEST_BYTES + 1)).unwrap_err();
        assert_eq!(error.code, Code::TooLarge);
        assert!(error.message.contains("12 MB"), "{error}");
        let error = rule("POST", "/api/threads").check(json, Some(REQUEST_BYTES + 1)).unwrap_err();
        assert!(error.message.contains("4 MB"), "{error}");
    }

    #[test]
    fn routes_that_read_no_body_take_any() {
        assert_eq!(rule("GET", "/api/agents").check(Some("text/html"), Some(1 << 40)), Ok(()));
    }
}
