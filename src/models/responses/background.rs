//! Answers that the provider goes on with by itself (`background`): one that was lost here is fetched, not paid twice.

use serde::Deserialize;
use serde_json::Value;

use crate::host::http::{Reads, Request};
use crate::models::address::address;
use crate::models::call::ProviderCall;
use crate::models::openai::DEFAULT_BASE_URL;
use crate::models::responses::request::headers;
use crate::models::sse::EVENT_BYTES;
use crate::models::{Answer, ChatRequest, ProviderCode, ProviderError};
use crate::spec::model::{Model, Provider};

/// The option that asks for it.
pub(crate) const BACKGROUND: &str = "background";

/// What became of an answer.
pub(crate) enum Earlier {
    /// It is still being made.
    Running,
    /// It is complete, or was cut: its body.
    Over(Vec<u8>),
    /// The provider has none, or it has failed.
    Lost,
}

/// Whether a request asks for it. The server must then keep the answer, which options may forbid.
pub(crate) fn is_in_background(chat: &ChatRequest) -> bool {
    let is = |key: &str, value: bool| chat.options.get(key).is_some_and(|given| *given == value);
    is(BACKGROUND, true) && !is("store", false)
}

/// Whether any answer of a model is asked for so.
pub(crate) fn is_used_by(model: &Model) -> bool {
    model.provider == Provider::Openai && model.provider_options.get(BACKGROUND) == Some(&Value::Bool(true))
}

/// The request that ends an answer.
pub(crate) fn cancel(base_url: &str, key: Option<&str>, id: &str) -> Request {
    let url = address_of(base_url, id, "/cancel");
    Request { method: "POST", url, headers: headers(key, Answer::Whole), body: None, reads: Reads::Type }
}

/// Where an answer is.
fn address_of(base_url: &str, id: &str, what: &str) -> String {
    // An id is the provider's word, and must lead nowhere else.
    let id: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
    let known = ["/responses", "/chat/completions"];
    address(base_url, DEFAULT_BASE_URL, &known, &format!("/responses/{id}{what}"))
}

/// The request for an answer that was asked for before: as it stands, or as a stream from its beginning.
pub(crate) fn fetch(base_url: &str, key: Option<&str>, id: &str, answer: Answer) -> Request {
    let url = address_of(base_url, id, "");
    let url = match (answer, url.contains('?')) {
        (Answer::Whole, _) => url,
        (Answer::Stream, false) => format!("{url}?stream=true"),
        (Answer::Stream, true) => format!("{url}&stream=true"),
    };
    Request { method: "GET", url, headers: headers(key, answer), body: None, reads: Reads::Type }
}

/// What became of an answer, by what the provider says of it.
///
/// # Errors
/// The provider could not be asked, or not now.
pub(crate) async fn state(call: &ProviderCall, request: Request) -> Result<Earlier, ProviderError> {
    #[derive(Default, Deserialize)]
    struct Said {
        #[serde(default)]
        status: String,
    }
    let mut incoming = call.fetch(request).await?;
    if !incoming.is_ok() {
        let refusal = incoming.refusal().await;
        let later = matches!(refusal.code, ProviderCode::RateLimit | ProviderCode::ServerError);
        return if later { Err(refusal) } else { Ok(Earlier::Lost) };
    }
    let mut body = Vec::new();
    while let Some(chunk) = incoming.next().await {
        body.extend_from_slice(&chunk?);
        if body.len() > EVENT_BYTES {
            return Ok(Earlier::Lost);
        }
    }
    let said: Said = crate::json::from_slice(&body).unwrap_or_default();
    Ok(match said.status.as_str() {
        "queued" | "in_progress" => Earlier::Running,
        "completed" | "incomplete" => Earlier::Over(body),
        _ => Earlier::Lost,
    })
}
