//! What a route accepts as its body.

use crate::request::{AgUiRoute, ChatRoute, McpRoute, OpenAiRoute, Route, ThreadRoute};
use bobbin_definitions::error::{Code, Error, Result};
use bobbin_definitions::limits::{DOCUMENT_REQUEST_BYTES, MESSAGE_REQUEST_BYTES, REQUEST_BYTES};

/// Whether a route reads a body, and how large it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRule {
    /// It is left unread.
    Ignored,
    /// JSON up to so many bytes.
    Json {
        /// The limit in bytes.
        limit: usize,
        /// What the limit is called.
        what: &'static str,
    },
    /// It passes on to the object as a stream; the object knows what it takes.
    Streamed,
}

impl BodyRule {
    /// The rule of a route.
    pub fn of(route: &Route) -> BodyRule {
        match route {
            Route::Thread(_, ThreadRoute::PostMessage) => {
                BodyRule::Json { limit: MESSAGE_REQUEST_BYTES, what: "a message request" }
            }
            Route::Chat { of: ChatRoute::Post, .. } => {
                BodyRule::Json { limit: MESSAGE_REQUEST_BYTES, what: CHAT }
            }
            Route::Chat { of: ChatRoute::Stop(_), .. } => REQUEST,
            Route::OpenAi(
                OpenAiRoute::CancelResponse(_)
                | OpenAiRoute::Converse
                | OpenAiRoute::ChangeConversation(_)
                | OpenAiRoute::AddItems(_),
            ) => REQUEST,
            Route::AgUi { of: AgUiRoute::Run, .. } => {
                BodyRule::Json { limit: MESSAGE_REQUEST_BYTES, what: "a request for a run" }
            }
            Route::OpenAi(OpenAiRoute::Complete | OpenAiRoute::Respond) => {
                BodyRule::Json { limit: MESSAGE_REQUEST_BYTES, what: ANSWER }
            }
            Route::Thread(_, ThreadRoute::DecideWait(_) | ThreadRoute::DecideWaits) | Route::Resume => {
                BodyRule::Json { limit: MESSAGE_REQUEST_BYTES, what: "a decision" }
            }
            Route::Memory { of, .. } | Route::Thread(_, ThreadRoute::Memory { of, .. }) if of.has_body() => {
                BodyRule::Json { limit: DOCUMENT_REQUEST_BYTES, what: "a document" }
            }
            Route::CreateThread | Route::Mcp(McpRoute::Post) | Route::MintToken | Route::PatchEnv(_) => {
                REQUEST
            }
            Route::Thread(
                _,
                ThreadRoute::Patch
                | ThreadRoute::PatchMessage(_)
                | ThreadRoute::Regenerate(_)
                | ThreadRoute::Fork
                | ThreadRoute::Stop
                | ThreadRoute::Continue
                | ThreadRoute::Terminate
                | ThreadRoute::PatchBudget
                | ThreadRoute::Summarize
                | ThreadRoute::PostValue
                | ThreadRoute::PostEffect
                | ThreadRoute::RunEffect(_)
                | ThreadRoute::CancelEffect(_)
                | ThreadRoute::PostVariables(_),
            ) => REQUEST,
            Route::Thread(_, route) if route.is_streamed() => BodyRule::Streamed,
            _ => BodyRule::Ignored,
        }
    }

    /// Refuses a body by what its headers say: another type than JSON, or a length over the limit. A request without
    /// a body needs no type.
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

    /// The error of a body that is over the limit.
    pub fn too_large(self) -> Error {
        match self {
            BodyRule::Ignored | BodyRule::Streamed => Error::new(Code::TooLarge, "The body is too large."),
            BodyRule::Json { limit, what } => {
                let text = format!("The body of {what} has at most {limit} bytes ({} MB).", limit >> 20);
                let error = Error::new(Code::TooLarge, text);
                // A page sends the whole chat unless it is told not to, and only its last message counts.
                if what == CHAT {
                    error.hint("Send the last message alone: `{ id, message }`.")
                } else {
                    error
                }
            }
        }
    }
}

const CHAT: &str = "a request to a chat";
const ANSWER: &str = "a request for an answer";

const REQUEST: BodyRule = BodyRule::Json { limit: REQUEST_BYTES, what: "a request" };

/// `application/json`, with or without parameters, or a type built on it (`application/merge-patch+json`).
pub fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post() -> BodyRule {
        BodyRule::of(&Route::Thread("t".into(), ThreadRoute::PostMessage))
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
        for route in [ThreadRoute::Stop, ThreadRoute::PatchBudget, ThreadRoute::Summarize] {
            assert_eq!(BodyRule::of(&Route::Thread("t".into(), route)), REQUEST);
        }
    }

    #[test]
    fn a_length_over_the_routes_limit_is_refused_and_the_limit_named() {
        let json = Some("application/json");
        assert_eq!(post().check(json, Some(MESSAGE_REQUEST_BYTES)), Ok(()));
        let error = post().check(json, Some(MESSAGE_REQUEST_BYTES + 1)).unwrap_err();
        assert_eq!(error.code, Code::TooLarge);
        assert!(error.message.contains("12 MB"), "{error}");
        let error = BodyRule::of(&Route::CreateThread).check(json, Some(REQUEST_BYTES + 1)).unwrap_err();
        assert!(error.message.contains("4 MB"), "{error}");
    }

    #[test]
    fn routes_that_read_no_body_take_any() {
        assert_eq!(BodyRule::of(&Route::Agents).check(Some("text/html"), Some(1 << 40)), Ok(()));
    }
}
