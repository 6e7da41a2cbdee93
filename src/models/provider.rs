//! The one place that knows which wire format a provider speaks: what the engine calls.

use super::{ChatRequest, Delta, ProviderError, anthropic, openai};
use crate::http::Request;
use crate::spec::{Model, Provider};

/// How an answer is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As server-sent events, token by token.
    Stream,
    /// As one JSON body, for models whose `supportsStreaming` is false (spec §3.2).
    Whole,
}

impl Answer {
    /// What the request's `accept` says.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Answer::Stream => "text/event-stream",
            Answer::Whole => "application/json",
        }
    }
}

/// How a request to a model is carried out.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "made once a request and taken apart at once")]
pub enum Prepared {
    /// Send this, and feed the answer's body to the decoder. An answer other than 2xx is a
    /// [`ProviderError::from_response`].
    Http(Request, Decoder),
    /// No request: [`demo::script`](super::demo::script) is the answer.
    Demo,
}

/// Prepares a request. `base_url` is the model's address with its `{{env …}}` resolved, `None` for the provider's own;
/// `api_key` the value that its `apiKeyEnv` names. Neither comes from anything but the deployment (docs/agents.md).
pub fn prepare(model: &Model, chat: &ChatRequest, base_url: Option<&str>, api_key: Option<&str>) -> Prepared {
    let answer = if model.capabilities.supports_streaming { Answer::Stream } else { Answer::Whole };
    let base_url = base_url.unwrap_or_default();
    match model.provider {
        Provider::Openai => {
            let request = openai::request(chat, base_url, api_key, answer);
            Prepared::Http(request, Decoder::Openai(openai::Decoder::new(api_key)))
        }
        Provider::Anthropic => {
            let request = anthropic::request(chat, base_url, api_key, answer);
            Prepared::Http(request, Decoder::Anthropic(anthropic::Decoder::new(api_key)))
        }
        Provider::Demo => Prepared::Demo,
    }
}

/// Decodes a provider's answer, whichever provider it is.
#[derive(Debug)]
pub enum Decoder {
    /// Chat completions.
    Openai(openai::Decoder),
    /// Anthropic's messages.
    Anthropic(anthropic::Decoder),
}

impl Decoder {
    /// Takes the next bytes of the body and appends what they say to `out`. Bytes that say nothing (comments, half a
    /// chunk, deltas without content) append nothing: a delta with [`Delta::is_payload`] ends the wait for the first
    /// chunk.
    ///
    /// # Errors
    /// What the provider reports in the stream, or what cannot be read. The decoder is of no use afterwards.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        match self {
            Decoder::Openai(decoder) => decoder.push(bytes, out),
            Decoder::Anthropic(decoder) => decoder.push(bytes, out),
        }
    }

    /// Events that have come. Comments, which keep a connection open, are none.
    pub fn events(&self) -> u64 {
        match self {
            Decoder::Openai(decoder) => decoder.events(),
            Decoder::Anthropic(decoder) => decoder.events(),
        }
    }

    /// Whether the provider has said that nothing follows: some keep the connection open, and its end need not be
    /// waited for.
    pub fn is_done(&self) -> bool {
        match self {
            Decoder::Openai(decoder) => decoder.is_done(),
            Decoder::Anthropic(decoder) => decoder.is_done(),
        }
    }

    /// The body has ended; what was still open is appended to `out`. May be called as well when it broke off or fell
    /// silent: after the finish reason the answer is complete, only what tells the cost may be missing.
    ///
    /// # Errors
    /// As for [`push`](Decoder::push), and `server_error` when the answer is not complete.
    pub fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), ProviderError> {
        match self {
            Decoder::Openai(decoder) => decoder.finish(out),
            Decoder::Anthropic(decoder) => decoder.finish(out),
        }
    }
}
