//! The bytes of a request. Stable parts come first (tools, instructions, history) and are always written in
//! the same way, so that the provider's prompt cache finds the prefix of the previous request.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::address::address;
use crate::cached_json::Blocks;
use crate::http::{HeaderSelection, Request};
use crate::openai::{DEFAULT_BASE_URL, effort};
use crate::responses::background::is_in_background;
use crate::responses::input;
use crate::writing::Body;
use crate::{ChatRequest, JsonMode, ResponseMode, ToolDefinition};
use bobbin_definitions::definitions::prompt::ToolChoice;
use bobbin_definitions::json;

/// Keys that options cannot replace.
const FIXED: [&str; 3] = ["input", "instructions", "stream"];

/// The API's minimum for the output limit.
const OUTPUT_TOKENS_MIN: u64 = 16;

/// The HTTP request of a chat request. `base_url` may end with `/responses` or a slash, and a query in it is
/// kept; empty means OpenAI's. Without a key there is no `authorization`.
pub fn request(chat: &ChatRequest, base_url: &str, api_key: Option<&str>, answer: ResponseMode) -> Request {
    let url = address(base_url, DEFAULT_BASE_URL, &["/responses", "/chat/completions"], "/responses");
    let body = Bytes::from(body(chat, answer));
    let headers = headers(api_key, answer);
    Request { method: "POST", url, headers, body: Some(body), reads: HeaderSelection::Type }
}

pub(super) fn headers(api_key: Option<&str>, answer: ResponseMode) -> Vec<(String, String)> {
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), answer.media_type().to_owned()),
    ];
    if let Some(key) = api_key.map(str::trim).filter(|key| !key.is_empty()) {
        headers.push(("authorization".to_owned(), format!("Bearer {key}")));
    }
    headers
}

fn body(chat: &ChatRequest, answer: ResponseMode) -> String {
    let (instructions, leading) = input::instructions(&chat.messages);
    let history = chat.messages.get(leading..).unwrap_or_default();
    let mut body = Body::new(&chat.options);
    body.entry("model", &chat.model);
    tools(&mut body, chat);
    if let Some(text) = instructions {
        body.raw("instructions", &crate::writing::quoted(&text));
    }
    body.raw("input", &input::input(history));
    body.raw("stream", if answer == ResponseMode::Stream { "true" } else { "false" });
    // The thread is the store. A background response must be stored at the server until it is fetched.
    body.entry("store", &is_in_background(chat));
    if may_reason(&chat.model) {
        body.entry("include", &["reasoning.encrypted_content"]);
    }
    if let Some(thread) = &chat.user {
        body.entry("prompt_cache_key", thread);
    }
    if let Some(tokens) = chat.max_output_tokens {
        body.entry("max_output_tokens", &tokens.max(OUTPUT_TOKENS_MIN));
    }
    let format = chat.json.as_ref().map(|mode| ("format", format(mode)));
    merged(&mut body, "text", format);
    merged(&mut body, "reasoning", effort(&chat.reasoning).map(|effort| ("effort", effort.into())));
    body.finish(|key| FIXED.contains(&key) || MERGED.contains(&key))
}

/// Objects that options extend instead of replacing them.
const MERGED: [&str; 2] = ["text", "reasoning"];

/// Writes an object with one entry of ours. Entries of the options are added, and override it.
fn merged(body: &mut Body<'_>, key: &str, ours: Option<(&str, Value)>) {
    let object = match body.options.get(key) {
        Some(Value::Null) => return,
        Some(Value::Object(object)) => object.clone(),
        Some(other) => return body.raw(key, &other.to_string()),
        None => Map::new(),
    };
    let mut merged = Map::new();
    if let Some((name, value)) = ours {
        merged.insert(name.to_owned(), value);
    }
    merged.extend(object);
    merged.retain(|_, value| !value.is_null());
    if !merged.is_empty() {
        body.raw(key, &Value::Object(merged).to_string());
    }
}

/// Whether a model may reason: others refuse a request for encrypted reasoning. Those are OpenAI's up to
/// gpt-4.1, and pure chat models.
fn may_reason(model: &str) -> bool {
    let never = ["gpt-3", "gpt-4", "chatgpt-", "ft:gpt-3", "ft:gpt-4"];
    !never.iter().any(|prefix| model.starts_with(prefix)) && !model.contains("-chat")
}

fn tools(body: &mut Body<'_>, chat: &ChatRequest) {
    if chat.tools.is_empty() {
        return;
    }
    if !chat.options.contains_key("tools") {
        let tools = chat.tools.blocks(Blocks::Responses, |tools| offers(tools)).into_owned();
        body.raw("tools", &format!("[{tools}]"));
    }
    if chat.tool_choice != ToolChoice::Auto {
        body.entry("tool_choice", &chat.tool_choice);
    }
    body.entry("parallel_tool_calls", &chat.parallel_tool_calls);
}

/// The tools, separated by commas, without brackets. In this API a function is strict by default, and a
/// strict one has no optional arguments.
fn offers(tools: &[ToolDefinition]) -> String {
    #[derive(Serialize)]
    struct Offer<'a> {
        r#type: &'static str,
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
        strict: bool,
    }
    let offer = |tool: &ToolDefinition| {
        let ToolDefinition { name, description, parameters, strict } = tool;
        let offer = Offer { r#type: "function", name, description, parameters, strict: *strict };
        serde_json::to_string(&offer).unwrap_or_default()
    };
    tools.iter().map(offer).collect::<Vec<_>>().join(",")
}

/// Without a schema any object is valid. The API requires a name for a schema.
fn format(mode: &JsonMode) -> Value {
    match &mode.schema {
        None => json!({ "type": "json_object" }),
        Some(schema) => {
            json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": mode.strict })
        }
    }
}
