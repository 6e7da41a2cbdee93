//! Responses that the provider continues in the background (`background`): a lost one is fetched, and not
//! paid twice.

use serde::Deserialize;
use serde_json::Value;

use crate::address::address;
use crate::call::ProviderCall;
use crate::http::{HeaderSelection, Request};
use crate::openai::DEFAULT_BASE_URL;
use crate::responses::request::headers;
use crate::sse::EVENT_BYTES;
use crate::{ChatRequest, ProviderCode, ProviderError, ResponseMode};
use bobbin_definitions::definitions::model::{Model, Provider};

/// The option that enables it.
pub const BACKGROUND: &str = "background";

/// The state of an earlier response.
pub enum EarlierResponse {
    /// Still running.
    Running,
    /// Complete or incomplete, with its body.
    Over(Vec<u8>),
    /// Unknown to the provider, or failed.
    Lost,
}

/// Whether a request uses it. The server must store the response, which options may forbid.
pub fn is_in_background(chat: &ChatRequest) -> bool {
    let is = |key: &str, value: bool| chat.options.get(key).is_some_and(|given| *given == value);
    is(BACKGROUND, true) && !is("store", false)
}

/// Whether a model's definition enables it.
pub fn is_used_by(model: &Model) -> bool {
    model.provider == Provider::Openai && model.provider_options.get(BACKGROUND) == Some(&Value::Bool(true))
}

/// The request that cancels a response.
pub fn cancel(base_url: &str, key: Option<&str>, id: &str) -> Request {
    let url = address_of(base_url, id, "/cancel");
    Request {
        method: "POST",
        url,
        headers: headers(key, ResponseMode::Whole),
        body: None,
        reads: HeaderSelection::Type,
    }
}

/// The address of a response.
fn address_of(base_url: &str, id: &str, what: &str) -> String {
    // The id is from the provider and must not lead to another path.
    let id: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
    let known = ["/responses", "/chat/completions"];
    address(base_url, DEFAULT_BASE_URL, &known, &format!("/responses/{id}{what}"))
}

/// The request for an earlier response: in its current state, or as a stream from the beginning.
pub fn fetch(base_url: &str, key: Option<&str>, id: &str, answer: ResponseMode) -> Request {
    let url = address_of(base_url, id, "");
    let url = match (answer, url.contains('?')) {
        (ResponseMode::Whole, _) => url,
        (ResponseMode::Stream, false) => format!("{url}?stream=true"),
        (ResponseMode::Stream, true) => format!("{url}&stream=true"),
    };
    Request { method: "GET", url, headers: headers(key, answer), body: None, reads: HeaderSelection::Type }
}

/// The state of an earlier response, according to the provider.
///
/// # Errors
/// The provider could not be reached, or not now.
pub async fn state(call: &ProviderCall, request: Request) -> Result<EarlierResponse, ProviderError> {
    #[derive(Default, Deserialize)]
    struct StatusBody {
        #[serde(default)]
        status: String,
    }
    let mut incoming = call.fetch(request).await?;
    if !incoming.is_ok() {
        let refusal = incoming.refusal().await;
        let later = matches!(refusal.code, ProviderCode::RateLimit | ProviderCode::ServerError);
        return if later { Err(refusal) } else { Ok(EarlierResponse::Lost) };
    }
    let mut body = Vec::new();
    while let Some(chunk) = incoming.next().await {
        body.extend_from_slice(&chunk?);
        if body.len() > EVENT_BYTES {
            return Ok(EarlierResponse::Lost);
        }
    }
    let said: StatusBody = bobbin_definitions::json::from_slice(&body).unwrap_or_default();
    Ok(match said.status.as_str() {
        "queued" | "in_progress" => EarlierResponse::Running,
        "completed" | "incomplete" => EarlierResponse::Over(body),
        _ => EarlierResponse::Lost,
    })
}
