//! The meaning of a failed request (spec §4.6), and the reaction to it (spec §3.3, §35.22).
//!
//! Unless a policy lists the failures to retry ([`bobbin_definitions::definitions::retry`]), every failure is handled in one
//! of three ways. [`ProviderError::retryable`]: the same model is tried again after a pause, while it
//! has attempts left. [`ProviderCode::ContextLength`]: the history is halved once, and the same model is
//! tried again. Everything else moves on ([`ProviderError::moves_on`]) to the next fallback at once:
//! after a time-out the same model would cost the same time again, and another provider may accept the
//! key, request or content.

use crate::backoff::retry_after_ms;
use crate::error_body::{ErrorBody, may_mean_length};
use crate::http::FetchError;
use crate::{ProviderCode, ProviderError, sse};
use bobbin_definitions::definitions::retry::RetryOn;
use bobbin_definitions::text::shorten;

/// Maximum bytes of a failure's message, once [prepared for display](ProviderError::told).
pub const MESSAGE_BYTES: usize = 1 << 10;

/// Bytes of a failed response's body that are read. The rest is ignored.
pub const BODY_BYTES: usize = 64 << 10;

/// The time limit that a model exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// No payload within [`FIRST_CHUNK_US`](bobbin_definitions::limits::FIRST_CHUNK_US).
    FirstChunk,
    /// Nothing for [`STALL_US`](bobbin_definitions::limits::STALL_US), or only events without payload for
    /// [`IDLE_EVENTS_US`](bobbin_definitions::limits::IDLE_EVENTS_US).
    Stall,
    /// Only reasoning for [`REASONING_US`](bobbin_definitions::limits::REASONING_US).
    Content,
    /// The response was not complete within the `timeoutMs` of the retry policy that applies.
    Attempt,
}

impl ProviderError {
    /// A failure with the reporter's own message. Without a status, `server_error` and `rate_limit` are
    /// [retried](ProviderError::retryable).
    pub fn new(code: ProviderCode, message: impl Into<String>) -> ProviderError {
        ProviderError { code, ..ProviderError::server(message) }
    }

    /// The failure that a response other than 2xx reports. `headers` have names in lower case. `secrets`
    /// are the credentials of the request. `now_us` resolves a `Retry-After` that is a date.
    pub fn from_response(
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        secrets: &[&str],
        now_us: i64,
    ) -> ProviderError {
        let header = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.trim());
        let said = ErrorBody::read(body);
        let code = said.special().unwrap_or_else(|| match status {
            // The network's edge answered, not the API: the key was never checked.
            403 if said.is_page => ProviderCode::ServerError,
            _ => of_status(status),
        });
        let message = match (said.message.is_empty(), status) {
            (false, _) => said.message,
            (true, 300..400) => format!("HTTP {status}: a redirect, which is not followed"),
            (true, _) if said.is_page => format!("HTTP {status} with a web page instead of JSON"),
            (true, _) => format!("HTTP {status} without an explanation"),
        };
        let retry_after_ms = retry_after_ms(header("retry-after-ms"), header("retry-after"), now_us);
        ProviderError {
            code,
            status: Some(status),
            retry_after_ms,
            is_network: false,
            message: presentable(&message, secrets),
        }
    }

    /// The failure that an object in a stream, or in a response with status 200, reports.
    pub fn in_stream(body: &[u8], secrets: &[&str]) -> ProviderError {
        let said = ErrorBody::read(body);
        let code = said.special().or(said.status.map(of_status)).unwrap_or_else(|| said.of_kind());
        let message = if said.message.is_empty() { "the provider reported an error" } else { &said.message };
        ProviderError {
            code,
            status: said.status,
            retry_after_ms: None,
            is_network: false,
            message: presentable(message, secrets),
        }
    }

    /// The request to `url` got no response, or the body broke off. The message shows only the host of
    /// the address.
    pub fn network(error: &FetchError, url: &str, secrets: &[&str]) -> ProviderError {
        let host = host_of(url);
        let text = if error.0.contains(host) { error.to_string() } else { format!("{error} ({host})") };
        ProviderError { is_network: true, ..ProviderError::server(presentable(&text, secrets)) }
    }

    /// The model exceeded a time limit.
    pub fn timeout(silence: TimeoutKind) -> ProviderError {
        let message = match silence {
            TimeoutKind::FirstChunk => "the model did not begin to answer in time",
            TimeoutKind::Stall => "the model fell silent in the middle of its answer",
            TimeoutKind::Content => {
                "the model reasoned for too long without beginning its answer or going on with it"
            }
            TimeoutKind::Attempt => "the answer was not complete within the `timeoutMs` of an attempt",
        };
        ProviderError { code: ProviderCode::Timeout, ..ProviderError::server(message) }
    }

    /// The deployment lacks what the request needs. No request was made.
    pub fn not_set_up(lack: &str) -> ProviderError {
        ProviderError { code: ProviderCode::AuthError, ..ProviderError::server(lack) }
    }

    /// The response ended before it was complete.
    pub fn broke_off() -> ProviderError {
        let text = "the stream broke off before the answer was complete";
        ProviderError { is_network: true, ..ProviderError::server(text) }
    }

    /// A web page, or another text, instead of a response: usually the address is wrong.
    pub fn no_answer(is_page: bool) -> ProviderError {
        let what = if is_page { "a web page" } else { "a text that is neither JSON nor a stream of events" };
        let text = format!("the server sent {what} instead of an answer: check the model's `baseUrl`");
        ProviderError { code: ProviderCode::InvalidRequest, ..ProviderError::server(text) }
    }

    /// A reply that Bobbin rejects, although the provider succeeded.
    pub fn invalid_reply(message: impl Into<String>) -> ProviderError {
        ProviderError { code: ProviderCode::Unknown, ..ProviderError::server(message) }
    }

    /// A chunk that cannot be read.
    pub fn malformed(error: &serde_json::Error) -> ProviderError {
        ProviderError::server(format!("the provider sent a chunk that cannot be read: {error}"))
    }

    /// A failure on the provider's side, without a status.
    pub fn server(message: impl Into<String>) -> ProviderError {
        let (code, message) = (ProviderCode::ServerError, message.into());
        ProviderError { code, status: None, retry_after_ms: None, is_network: false, message }
    }

    /// Removes credentials from the message.
    #[must_use]
    pub fn hiding(self, secrets: &[&str]) -> ProviderError {
        ProviderError { message: presentable(&self.message, secrets), ..self }
    }

    /// Prepares the message for display: `clean` removes secrets, then it is cut to [`MESSAGE_BYTES`].
    /// The order matters: a cut secret would not be recognized.
    #[must_use]
    pub fn cleaned(self, clean: impl FnOnce(String) -> String) -> ProviderError {
        let mut message = clean(self.message);
        if message.len() > MESSAGE_BYTES {
            shorten(&mut message, MESSAGE_BYTES - '…'.len_utf8());
            message.push('…');
        }
        ProviderError { message, ..self }
    }

    /// Whether the same request may succeed after a pause: 408, 409 (a lock), 429, 5xx and a broken
    /// connection (spec §35.22).
    pub fn retryable(&self) -> bool {
        let silence = self.code == ProviderCode::Timeout && self.status.is_none();
        self.may_pass().is_some() && !silence
    }

    /// Whether it may mean that the request is too long, in an unknown wording. Check this only for a
    /// long request.
    pub fn may_mean_length(&self) -> bool {
        self.code == ProviderCode::InvalidRequest
            && matches!(self.status, Some(400 | 422))
            && may_mean_length(&self.message)
    }

    /// Its name in a policy's `retryOn`; `None` when the same request would fail again.
    pub fn may_pass(&self) -> Option<RetryOn> {
        match (self.code, self.status) {
            // With any status.
            (ProviderCode::ContextLength | ProviderCode::ContentFilter, _) => None,
            (_, Some(status)) => RetryOn::of_status(status),
            (ProviderCode::Timeout, None) => Some(RetryOn::Timeout),
            (ProviderCode::RateLimit, None) => Some(RetryOn::RateLimit),
            (ProviderCode::ServerError, None) if self.is_network => Some(RetryOn::Network),
            (ProviderCode::ServerError, None) => Some(RetryOn::ServerError),
            _ => None,
        }
    }

    /// Whether the next fallback is tried at once, without another attempt at this model (spec §3.3).
    /// Neither this nor [`retryable`](ProviderError::retryable) is true for `context_length`: the
    /// history is shortened first, and a second one moves on.
    pub fn moves_on(&self) -> bool {
        self.code != ProviderCode::ContextLength && !self.retryable()
    }
}

impl From<sse::TooLarge> for ProviderError {
    fn from(error: sse::TooLarge) -> ProviderError {
        ProviderError::invalid_reply(format!("the answer cannot be read: {error}"))
    }
}

/// The kind of failure of a status alone.
fn of_status(status: u16) -> ProviderCode {
    match status {
        401 | 403 => ProviderCode::AuthError,
        408 => ProviderCode::Timeout,
        409 | 500.. => ProviderCode::ServerError,
        // Groq uses 413 for a request that exceeds the tokens of a minute; proxies use it for bytes.
        413 => ProviderCode::ContextLength,
        429 => ProviderCode::RateLimit,
        400..500 => ProviderCode::InvalidRequest,
        _ => ProviderCode::Unknown,
    }
}

/// Host and port of an address, without parts that may be secret.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// Removes our credentials from a message. Values under 4 bytes are kept: they are placeholders for
/// servers that accept any key.
fn presentable(message: &str, secrets: &[&str]) -> String {
    let mut text = message.to_owned();
    for secret in secrets.iter().map(|secret| secret.trim()).filter(|secret| secret.len() >= 4) {
        text = text.replace(secret, "[redacted]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: i64 = 1_795_300_000_000_000;

    fn response(status: u16, body: &str) -> ProviderError {
        ProviderError::from_response(status, &[], body.as_bytes(), &[], NOW_US)
    }

    #[test]
    fn kinds_and_what_they_lead_to() {
        use ProviderCode::*;
        // (status, body, code, message, reaction)
        for (status, body, code, message, remedy) in [
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                AuthError,
                "Incorrect API key provided.",
                "move on",
            ),
            (
                400,
                r#"{"error":{"message":"Unknown parameter: 'x'.","type":"invalid_request_error","param":"x","code":"unknown_parameter"}}"#,
                InvalidRequest,
                "Unknown parameter: 'x'.",
                "move on",
            ),
            (404, r#"{"detail":"Not Found"}"#, InvalidRequest, "Not Found", "move on"),
            (
                422,
                r#"{"detail":[{"loc":["body","model"],"msg":"field required","type":"value_error.missing"}]}"#,
                InvalidRequest,
                "field required",
                "move on",
            ),
            (
                402,
                r#"{"error":{"message":"Insufficient credits","code":402}}"#,
                InvalidRequest,
                "Insufficient credits",
                "move on",
            ),
            (408, "", Timeout, "HTTP 408 without an explanation", "retry"),
            (409, r#"{"message":"locked"}"#, ServerError, "locked", "retry"),
            (
                429,
                r#"{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}"#,
                RateLimit,
                "Rate limit reached",
                "retry",
            ),
            (500, "Internal Server Error", ServerError, "Internal Server Error", "retry"),
            (
                502,
                "<!DOCTYPE html><title>502</title>",
                ServerError,
                "HTTP 502 with a web page instead of JSON",
                "retry",
            ),
            (403, "<html>blocked</html>", ServerError, "HTTP 403 with a web page instead of JSON", "move on"),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                ServerError,
                "Overloaded",
                "retry",
            ),
            (301, "", Unknown, "HTTP 301: a redirect, which is not followed", "move on"),
            (
                400,
                r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#,
                InvalidRequest,
                "API key not valid.",
                "move on",
            ),
            (
                400,
                r#"{"success":false,"errors":[{"code":7003,"message":"No route for that URI"}]}"#,
                InvalidRequest,
                "No route for that URI",
                "move on",
            ),
            (400, r#"{"error":"plain text"}"#, InvalidRequest, "plain text", "move on"),
            // Content.
            (
                400,
                r#"{"error":{"message":"The response was filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
                ContentFilter,
                "The response was filtered",
                "move on",
            ),
            (
                403,
                r#"{"error":{"message":"Your chosen model requires moderation and your input was flagged","code":403}}"#,
                ContentFilter,
                "Your chosen model requires moderation and your input was flagged",
                "move on",
            ),
            (
                500,
                r#"{"error":{"message":"no","code":"content_policy_violation"}}"#,
                ContentFilter,
                "no",
                "move on",
            ),
        ] {
            let error = response(status, body);
            assert_eq!((error.code, error.message.as_str()), (code, message), "{status} {body}");
            assert_eq!(error.status, Some(status));
            let done = match (error.retryable(), error.moves_on()) {
                (true, false) => "retry",
                (false, true) => "move on",
                other => panic!("{other:?}: {body}"),
            };
            assert_eq!(done, remedy, "{status} {body}");
        }
    }

    #[test]
    fn what_an_upstream_provider_said_is_passed_on() {
        let body = r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"busy, try later"}}}"#;
        let error = ProviderError::in_stream(body.as_bytes(), &[]);
        assert_eq!((error.code, error.status), (ProviderCode::RateLimit, Some(429)));
        assert_eq!(error.message, "Provider returned error: busy, try later");
    }

    #[test]
    fn an_error_in_a_stream_is_told_by_its_kind() {
        use ProviderCode::*;
        for (body, code, retryable) in [
            (r#"{"error":{"type":"rate_limit_error","message":"x"}}"#, RateLimit, true),
            (r#"{"error":{"code":"insufficient_quota","message":"x"}}"#, RateLimit, true),
            (r#"{"error":{"type":"authentication_error","message":"x"}}"#, AuthError, false),
            (r#"{"error":{"type":"invalid_request_error","message":"x"}}"#, InvalidRequest, false),
            (r#"{"error":{"code":"400","message":"x"}}"#, InvalidRequest, false),
            (r#"{"error":{"code":503,"message":"x"}}"#, ServerError, true),
            (r#"{"error":{"code":17,"message":"x"}}"#, ServerError, true),
            (r#"{"error":{"message":"x"}}"#, ServerError, true),
            ("x", ServerError, true),
        ] {
            let error = ProviderError::in_stream(body.as_bytes(), &[]);
            assert_eq!(
                (error.code, error.retryable(), error.message.as_str()),
                (code, retryable, "x"),
                "{body}"
            );
        }
        assert_eq!(ProviderError::in_stream(b"{}", &[]).message, "the provider reported an error");
    }

    #[test]
    fn failures_without_an_answer() {
        let failed = |text: &str| {
            let url = "https://u:hunter2@api.example:8443/v1/x?key=hunter2";
            ProviderError::network(&FetchError(text.into()), url, &["hunter2"])
        };
        let refused = failed("internal error; reference = x");
        assert_eq!(refused.message, "network: internal error; reference = x (api.example:8443)");
        let named = failed("no route to https://u:hunter2@api.example:8443/");
        assert_eq!(named.message, "network: no route to https://u:[redacted]@api.example:8443/");
        assert!(refused.retryable() && !refused.moves_on());
        assert!(ProviderError::broke_off().retryable());
        for silence in [TimeoutKind::FirstChunk, TimeoutKind::Stall, TimeoutKind::Attempt] {
            let error = ProviderError::timeout(silence);
            assert!(error.code == ProviderCode::Timeout && !error.retryable() && error.moves_on());
        }
    }

    #[test]
    fn a_message_is_short_and_shows_no_key() {
        let key = "sk-0123456789";
        let body = format!("{}{key} and more", "é".repeat(MESSAGE_BYTES / 2 - 2));
        let error = ProviderError::from_response(400, &[], body.as_bytes(), &[key, " ", "an"], NOW_US);
        let message = error.cleaned(|text| text).message;
        assert!(
            message.len() <= MESSAGE_BYTES && message.ends_with('…') && !message.contains("sk-"),
            "{message}"
        );
        let echoed = format!(r#"{{"error":{{"message":"Wrong key {key}!"}}}}"#);
        let message = ProviderError::from_response(401, &[], echoed.as_bytes(), &[key], NOW_US).message;
        assert_eq!(message, "Wrong key [redacted]!");
    }

    #[test]
    fn the_pause_that_a_provider_asks_for_is_read_from_the_headers() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [header("content-type", "text/plain"), header("retry-after", " 7 ")];
        let error = ProviderError::from_response(429, &headers, b"", &[], NOW_US);
        assert_eq!(error.retry_after_ms, Some(7_000));
        assert_eq!(response(429, "").retry_after_ms, None);
    }
}
