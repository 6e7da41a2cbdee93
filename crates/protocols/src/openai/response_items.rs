//! OpenAI's response object and its items.

use serde_json::Value;

use crate::openai::call_id;
use crate::openai::item_id;
use crate::openai::responses::Settings;
use crate::run_events::{Call, CallResult};
use bobbin_definitions::json;

/// The name of the MCP server under which clients see the server's own tools.
pub(super) const LABEL: &str = "bobbin";

/// The data of a response.
pub(super) struct Facts<'a> {
    pub(super) settings: &'a Settings,
    pub(super) status: &'static str,
    pub(super) output: &'a [Value],
    pub(super) error: Option<Value>,
    pub(super) usage: Option<Value>,
}

/// The response object. Fields that the definition decides have OpenAI's defaults.
pub(super) fn response(facts: &Facts<'_>) -> Value {
    let Facts { settings, status, output, error, usage } = facts;
    let asked = |name: &str| settings.asked.get(name).cloned().unwrap_or_default();
    let or = |name: &str, default: Value| if asked(name).is_null() { default } else { asked(name) };
    let incomplete = (*status == "cancelled").then(|| json!({ "reason": "cancelled" }));
    json!({
        "id": settings.id, "object": "response", "created_at": settings.created, "completed_at": null,
        "status": status, "background": or("background", false.into()), "error": error,
        "incomplete_details": incomplete, "instructions": asked("instructions"), "model": settings.model,
        "output": output, "previous_response_id": asked("previous_response_id"),
        "conversation": { "id": settings.thread }, "metadata": or("metadata", json!({})), "usage": usage,
        "store": or("store", true.into()), "tools": or("tools", json!([])), "tool_choice": "auto",
        "parallel_tool_calls": true, "text": { "format": { "type": "text" } },
        "reasoning": { "effort": null, "summary": null }, "truncation": "disabled", "temperature": 1.0, "top_p": 1.0,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_logprobs": 0, "max_output_tokens": null,
        "max_tool_calls": null, "service_tier": "default", "safety_identifier": null, "prompt_cache_key": null,
    })
}

pub(super) fn message(id: &str, status: &str, content: &[Value]) -> Value {
    json!({ "id": id, "type": "message", "role": "assistant", "status": status, "content": content })
}

pub(super) fn text(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

pub(super) fn reasoning(id: &str, summary: &[Value]) -> Value {
    json!({ "id": id, "type": "reasoning", "summary": summary })
}

pub(super) fn summary(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

pub(super) fn function_call_id(call: &Call, thread: &str) -> String {
    item_id::in_thread(&format!("fc_{}", call.id), thread)
}

/// A call that the client is to run.
pub(super) fn function_call(call: &Call, thread: &str, status: &str) -> Value {
    let arguments = if status == "completed" { call.arguments.as_str() } else { "" };
    json!({
        "id": function_call_id(call, thread), "type": "function_call", "call_id": call_id::told(&call.id, thread),
        "name": call.name, "arguments": arguments, "status": status,
    })
}

/// A call that the server runs, shown as a call of an MCP server's tool.
pub(super) fn server_call(call: &Call, thread: &str, result: Option<&CallResult>) -> Value {
    let (status, output, error) = match result {
        None => ("in_progress", Value::Null, Value::Null),
        Some(result) if result.failed => ("failed", Value::Null, result.text.as_str().into()),
        Some(result) => ("completed", result.text.as_str().into(), Value::Null),
    };
    json!({
        "id": item_id::in_thread(&format!("mcp_{}", call.id), thread), "type": "mcp_call", "server_label": LABEL,
        "name": call.name,
        "arguments": call.arguments, "status": status, "output": output, "error": error,
        "approval_request_id": result.and_then(|result| Some(item_id::in_thread(result.wait.as_deref()?, thread))),
    })
}

/// A call without a result at the end of the response.
pub(super) fn unfinished(call: &Call, thread: &str) -> Value {
    let mut item = server_call(call, thread, None);
    if let Some(fields) = item.as_object_mut() {
        fields.insert("status".into(), "incomplete".into());
    }
    item
}

/// A request for an approval. Its id names the wait.
pub(super) fn approval_request(wait: &str, call: &Call, thread: &str) -> Value {
    json!({
        "id": item_id::in_thread(wait, thread), "type": "mcp_approval_request", "server_label": LABEL,
        "name": call.name, "arguments": call.arguments,
    })
}

/// The usage in OpenAI's format.
pub(super) fn usage(usage: &Value) -> Value {
    let number = |name: &str| usage.get(name).and_then(Value::as_i64).unwrap_or(0);
    let (input, output) = (number("inputTokens"), number("outputTokens"));
    json!({
        "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        "input_tokens_details": { "cached_tokens": number("cachedTokens") },
        "output_tokens_details": { "reasoning_tokens": number("reasoningTokens") },
    })
}
