//! The bytes of a request. Stable parts come first (tools, system, history) and are always written in the
//! same way. Three marks are for the provider's prompt cache: after the tools, the system prompt, and the
//! history.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::address::address;
use crate::anthropic::messages;
use crate::anthropic::messages::{Replay, cached};
use crate::anthropic::thinking::Thinking;
use crate::cached_json::Blocks;
use crate::http::{HeaderSelection, Request};
use crate::writing::Body;
use crate::{ChatMessage, ChatRequest, ResponseMode, ToolDefinition};
use bobbin_definitions::definitions::prompt::ToolChoice;
use bobbin_definitions::json;

/// Anthropic's own address.
pub const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// Version of the API.
pub const VERSION: &str = "2023-06-01";

/// The option for the header `anthropic-beta`: a text, or a list of texts.
const BETA: &str = "anthropic_beta";

/// Keys that options cannot replace.
const FIXED: [&str; 4] = ["messages", "stream", "system", BETA];

/// Options that the API refuses while a model thinks.
const NOT_WITH_THINKING: [&str; 3] = ["temperature", "top_k", "top_p"];

/// The HTTP request of a chat request. `base_url` may end with `/v1` or a slash, and a query in it is kept;
/// empty means [`DEFAULT_BASE_URL`]. Without a key there is no `x-api-key`.
pub fn request(chat: &ChatRequest, base_url: &str, api_key: Option<&str>, answer: ResponseMode) -> Request {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut headers = vec![
        header("content-type", "application/json"),
        header("accept", answer.media_type()),
        header("anthropic-version", VERSION),
    ];
    if let Some(key) = api_key.map(str::trim).filter(|key| !key.is_empty()) {
        headers.push(header("x-api-key", key));
    }
    if let Some(beta) = chat.options.get(BETA).and_then(beta) {
        headers.push(header("anthropic-beta", &beta));
    }
    let body = Bytes::from(body(chat, answer));
    let url = address(base_url, DEFAULT_BASE_URL, &["/messages", "/v1"], "/v1/messages");
    Request { method: "POST", url, headers, body: Some(body), reads: HeaderSelection::Type }
}

fn beta(option: &Value) -> Option<String> {
    match option {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")),
        _ => None,
    }
}

fn body(chat: &ChatRequest, answer: ResponseMode) -> String {
    let thinking = Thinking::of(chat);
    let thinks = thinking != Thinking::Off;
    let (system, leading) = messages::system(&chat.messages);
    let history = chat.messages.get(leading..).unwrap_or_default();
    let mut body = Body::new(&chat.options);
    body.entry("model", &chat.model);
    body.entry("max_tokens", &thinking.max_tokens(chat));
    tools(&mut body, chat, thinks);
    if let Some(system) = system {
        body.raw("system", &system);
    }
    let replay = if thinks { Replay::Yes } else { Replay::No };
    body.raw("messages", &messages::messages(history, replay));
    body.raw("stream", if answer == ResponseMode::Stream { "true" } else { "false" });
    if let Some(user) = &chat.user {
        body.entry("metadata", &json!({ "user_id": user }));
    }
    if let Some(thinking) = thinking.json() {
        body.entry("thinking", &thinking);
    }
    if let Some(config) = output_config(chat, &thinking) {
        body.entry("output_config", &config);
    }
    body.finish(|key| match key {
        "thinking" => !thinks,
        key => FIXED.contains(&key) || thinks && NOT_WITH_THINKING.contains(&key),
    })
}

/// The effort of thinking, and the schema of the reply: the API has no JSON mode without a schema.
fn output_config(chat: &ChatRequest, thinking: &Thinking) -> Option<Value> {
    let mut config = Map::new();
    if let Thinking::Adaptive(effort) = thinking {
        config.insert("effort".into(), effort.as_str().into());
    }
    if let Some(schema) = chat.json.as_ref().and_then(|mode| mode.schema.as_ref()) {
        config.insert("format".into(), json!({ "type": "json_schema", "schema": schema }));
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

fn tools(body: &mut Body<'_>, chat: &ChatRequest, thinks: bool) {
    if !chat.tools.is_empty() {
        if !chat.options.contains_key("tools") {
            let tools = chat.tools.blocks(Blocks::Anthropic, |tools| offers(tools)).into_owned();
            body.raw("tools", &format!("[{}]", cached(tools)));
        }
        body.entry("tool_choice", &choice(chat, thinks));
    } else if chat.messages.iter().any(|message| matches!(**message, ChatMessage::Tool { .. })) {
        // A history with calls needs tools, even when none may be called any more.
        let none = json!([{ "name": "none", "description": "Not available.",
            "input_schema": { "type": "object", "properties": {} } }]);
        body.entry("tools", &none);
        body.entry("tool_choice", &json!({ "type": "none" }));
    }
}

/// A thinking model cannot be forced to call a tool; `required` becomes `auto`.
fn choice(chat: &ChatRequest, thinks: bool) -> Value {
    let kind = match chat.tool_choice {
        ToolChoice::None => return json!({ "type": "none" }),
        ToolChoice::Required if !thinks => "any",
        ToolChoice::Required | ToolChoice::Auto => "auto",
    };
    match chat.parallel_tool_calls {
        true => json!({ "type": kind }),
        false => json!({ "type": kind, "disable_parallel_tool_use": true }),
    }
}

/// The tools, separated by commas, without brackets.
fn offers(tools: &[ToolDefinition]) -> String {
    #[derive(Serialize)]
    struct Offer<'a> {
        name: &'a str,
        description: &'a str,
        input_schema: &'a Value,
    }
    let offer = |tool: &ToolDefinition| {
        let ToolDefinition { name, description, parameters, .. } = tool;
        serde_json::to_string(&Offer { name, description, input_schema: parameters }).unwrap_or_default()
    };
    tools.iter().map(offer).collect::<Vec<_>>().join(",")
}
