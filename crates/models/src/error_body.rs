//! Reads the body of a failed response, in the many shapes that servers use.

use serde_json::Value;

use crate::ProviderCode;

/// The failure that a body describes.
#[derive(Debug, Default)]
pub struct ErrorBody {
    /// Error text; empty when there is none.
    pub message: String,
    /// Codes and types, in lower case.
    kinds: String,
    /// A code that is an HTTP status.
    pub status: Option<u16>,
    /// Whether it is a web page, whose text is useless.
    pub is_page: bool,
}

impl ErrorBody {
    /// Reads `{"error": {…}}`, `{"error": "…"}`, both without `error`, in a list, `detail` (FastAPI),
    /// `errors` and `description` (Cloudflare). Anything else is taken as plain text.
    pub fn read(body: &[u8]) -> ErrorBody {
        let Ok(value) = bobbin_definitions::json::from_slice::<Value>(body) else {
            let text = String::from_utf8_lossy(body);
            let text = text.trim();
            let is_page = text.starts_with('<');
            return ErrorBody {
                message: if is_page { String::new() } else { text.to_owned() },
                is_page,
                ..ErrorBody::default()
            };
        };
        let mut said = ErrorBody::default();
        said.take(&value, 0);
        said
    }

    fn take(&mut self, value: &Value, depth: u8) {
        match value {
            Value::String(text) if self.message.is_empty() => self.message = text.trim().to_owned(),
            Value::Array(list) => list.iter().take(1).for_each(|first| self.take(first, depth)),
            Value::Object(object) if depth < 4 => {
                for key in ["code", "type", "status"] {
                    match object.get(key) {
                        Some(Value::String(kind)) => {
                            self.kinds.push_str(&kind.to_ascii_lowercase());
                            self.kinds.push(' ');
                            self.status = self.status.or(kind.parse().ok().filter(is_failure));
                        }
                        Some(Value::Number(number)) => {
                            let number = number.as_u64().and_then(|number| u16::try_from(number).ok());
                            self.status = self.status.or(number.filter(is_failure));
                        }
                        _ => {}
                    }
                }
                for key in ["error", "errors", "message", "msg", "detail", "description"] {
                    if let Some(inner) = object.get(key) {
                        self.take(inner, depth + 1);
                    }
                }
                // OpenRouter says "Provider returned error", and puts the provider's own error here.
                if let Some(raw) = object.get("metadata").and_then(|metadata| metadata.get("raw")) {
                    let raw = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
                    let upstream = ErrorBody::read(raw.as_bytes());
                    self.kinds.push_str(&upstream.kinds);
                    if !upstream.message.is_empty() {
                        self.message = format!("{}: {}", self.message, upstream.message);
                    }
                }
            }
            _ => {}
        }
    }

    /// Kinds that the status does not show: servers report them with 400, 413, 403 or 500.
    pub fn special(&self) -> Option<ProviderCode> {
        let message = self.message.to_ascii_lowercase();
        let kind = |names: &[&str]| names.iter().any(|name| self.kinds.contains(name));
        let text = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
        if kind(&CONTEXT_KINDS) || text(&CONTEXT_PHRASES) {
            Some(ProviderCode::ContextLength)
        } else if kind(&FILTER_KINDS) || text(&FILTER_PHRASES) {
            Some(ProviderCode::ContentFilter)
        } else {
            None
        }
    }

    /// The kind by its name, when there is no status. An unknown kind counts as the server's fault.
    pub fn of_kind(&self) -> ProviderCode {
        let kind = |names: &[&str]| names.iter().any(|name| self.kinds.contains(name));
        if kind(&["rate_limit", "ratelimit", "quota", "too_many_requests", "resource_exhausted"]) {
            ProviderCode::RateLimit
        } else if kind(&["auth", "permission", "api_key", "forbidden"]) {
            ProviderCode::AuthError
        } else if kind(&[
            "invalid_request",
            "badrequest",
            "bad_request",
            "invalid_argument",
            "not_found",
            "notfound",
        ]) {
            ProviderCode::InvalidRequest
        } else {
            ProviderCode::ServerError
        }
    }
}

fn is_failure(status: &u16) -> bool {
    (400..600).contains(status)
}

/// Codes and types that mean too many tokens.
const CONTEXT_KINDS: [&str; 6] = [
    "context_length",
    "context_window",
    "exceed_context_size",
    "max_prompt_tokens_exceeded",
    "string_above_max_length",
    "request_too_large",
];

/// Error texts of servers that have no code for it: OpenAI, vLLM, DeepSeek, OpenRouter; llama.cpp;
/// Anthropic; Google; xAI; Mistral; LM Studio; text-generation-inference; Workers AI; OpenAI's and
/// Groq's limit of tokens a minute that one request alone exceeds; newer vLLM; SGLang and Together;
/// Moonshot; DashScope; Zhipu; MiniMax; Bedrock; Ollama; Cohere; LiteLLM.
const CONTEXT_PHRASES: [&str; 29] = [
    "maximum context length",
    "available context size",
    "context size has been exceeded",
    "prompt is too long",
    "exceed context limit",
    "exceeds the maximum number of tokens",
    "maximum prompt length",
    "model with maximum context",
    "maximum model length",
    "context the overflows",
    "`inputs` must have less than",
    "context window limit",
    "exceeds the context window",
    "tokens must be reduced",
    "reduce the length of the messages",
    "context length is only",
    "longer than the model's context length",
    "exceeded model token limit",
    "range of input length should be",
    "prompt exceeds max length",
    "context window exceeds limit",
    "input is too long for requested model",
    "`inputs` tokens + `max_new_tokens` must be",
    "greater than the context length",
    "exceeded max context length",
    "tokens in the prompt cannot exceed",
    "input tokens exceed the configured limit",
    "exceeds the maximum allowed input length",
    "contextwindowexceedederror",
];

/// Field names that show that a text about lengths means something else.
const OTHER_LENGTHS: [&str; 5] =
    ["max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "tool_call"];

/// Words that may mean too many tokens, in a message that no list contains.
const LENGTH_WORDS: [&str; 6] = ["token", "context", "length", "too long", "too large", "prompt"];

/// Whether a message may mean that a request is too long. The caller asks only about long requests.
pub fn may_mean_length(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
    names(&LENGTH_WORDS) && !names(&OTHER_LENGTHS)
}

const FILTER_KINDS: [&str; 5] =
    ["content_filter", "content_policy", "responsibleai", "data_inspection", "prohibited_content"];

const FILTER_PHRASES: [&str; 3] =
    ["input was flagged", "content management policy", "blocked by content filtering"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProviderError;

    #[test]
    fn too_many_tokens_in_the_words_of_many_servers() {
        for (status, body) in [
            (
                400,
                r#"{"error":{"message":"…","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            ),
            (
                400,
                r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens\"}}","provider_name":"X"}}}"#,
            ),
            (
                400,
                r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            ),
            (
                400,
                r#"{"message":"Prompt contains 40000 tokens, too large for model with maximum context 32768"}"#,
            ),
            (
                413,
                r#"{"error":{"message":"Request too large for model in organization on tokens per minute (TPM): Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}"#,
            ),
            (
                429,
                r#"{"error":{"message":"Request too large for gpt-4o: Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            ),
            (500, r#"{"error":"Trying to keep the first 5000 tokens when context the overflows."}"#),
            (
                400,
                r#"{"errors":[{"code":5021,"message":"AiError: The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8192)"}]}"#,
            ),
            (
                400,
                r#"{"error":{"message":"You passed 5001 input tokens and requested 0 output tokens. However, the model's context length is only 5000 tokens, resulting in a maximum input length of 5000 tokens."}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","code":400}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 8192]","code":"invalid_parameter_error"}}"#,
            ),
            (400, r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#),
            (400, r#"{"error":{"message":"invalid params, context window exceeds limit (2013)"}}"#),
            (400, r#"{"message":"Input is too long for requested model."}"#),
            (
                422,
                r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 10 `max_new_tokens`"}"#,
            ),
            (
                400,
                r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"}"#,
            ),
            (400, r#"{"error":"prompt too long; exceeded max context length by 17 tokens"}"#),
            (
                400,
                r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292."}"#,
            ),
            (400, r#"{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens."}}"#),
            (
                400,
                r#"{"error":{"message":"prompt token count of 9000 exceeds the limit of 8192","code":"model_max_prompt_tokens_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: too many","type":null}}"#,
            ),
        ] {
            let error = ProviderError::from_response(status, &[], body.as_bytes(), &[], 0);
            assert_eq!(error.code, ProviderCode::ContextLength, "{body}");
            assert!(!error.retryable() && !error.moves_on(), "{body}");
        }
        let ours =
            ProviderError::in_stream(br#"{"error":{"code":400,"message":"max_tokens is too large"}}"#, &[]);
        assert_eq!(ours.code, ProviderCode::InvalidRequest, "another number that is too large");
    }

    #[test]
    fn words_that_nobody_lists_may_mean_too_many_tokens() {
        for (message, may) in [
            ("Your conversation has 9000 tokens and that is more than we take", true),
            ("the input is too long", true),
            ("max_tokens must be at most 4096", false),
            ("tool_calls[0].id: string too long", false),
            ("Unknown parameter: 'x'", false),
        ] {
            assert_eq!(may_mean_length(message), may, "{message}");
        }
    }
}
