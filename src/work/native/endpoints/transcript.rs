//! The conversation as Markdown.

use serde_json::Value;

use crate::error::Result;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
use crate::request::Query;
use crate::work::native::endpoint_call::{EndpointAnswer, EndpointCall};

/// The newest messages as Markdown, oldest first, each below its author. `last=N` considers N messages
/// (default 100, at most 500). Tool results, silent messages and replies without a text are omitted.
pub(super) fn transcript(call: &EndpointCall) -> Result<EndpointAnswer> {
    let last = call.query.number("last", PAGE_DEFAULT, PAGE_MAX)?;
    let page = call.state.get_messages(&Query(vec![("limit".into(), last.to_string())]))?;
    let messages = page.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let said: Vec<String> = messages.iter().filter_map(paragraph).collect();
    Ok(EndpointAnswer::bytes(200, "text/markdown; charset=utf-8", said.join("\n")))
}

fn paragraph(message: &Value) -> Option<String> {
    let who = match message.get("role").and_then(Value::as_str)? {
        "user" => "User",
        "assistant" => "Assistant",
        _ => return None,
    };
    let text =
        message.get("content").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())?;
    Some(format!("**{who}**\n\n{text}\n"))
}
