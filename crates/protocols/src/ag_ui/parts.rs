//! The parts of AG-UI events and histories: messages, and interrupts.

use serde_json::Value;

use crate::ag_ui::answers::response_schema;
use crate::ag_ui::tanstack::{BINDING, binding};
use crate::run_events::{Call, text_of};
use bobbin_definitions::dates::iso;
use bobbin_definitions::json;

/// The id of a message with reasoning.
pub(super) fn reasoning_id(message: &str, tries: u32) -> String {
    match tries {
        0 => format!("{message}:reasoning"),
        tries => format!("{message}:reasoning:{}", tries + 1),
    }
}

/// A reply as a message.
pub(super) fn assistant(id: &str, text: &str, calls: &[Call]) -> Value {
    let mut message = json!({ "id": id, "role": "assistant", "content": text });
    if let (false, Some(fields)) = (calls.is_empty(), message.as_object_mut()) {
        let calls = calls.iter().map(|Call { id, name, arguments }| {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
        });
        fields.insert("toolCalls".into(), calls.collect());
    }
    message
}

/// The result of a call as a message.
pub(super) fn tool(id: &str, call: &str, text: &str, failed: bool) -> Value {
    let mut message = json!({ "id": id, "role": "tool", "toolCallId": call, "content": text });
    if let (true, Some(fields)) = (failed, message.as_object_mut()) {
        fields.insert("error".into(), text.into());
    }
    message
}

/// A wait of a run as an interrupt, from its form in the list of waits; `None` for client tools and for waits
/// that nobody decides.
pub fn pending(wait: &Value, run: &str) -> Option<Value> {
    let asks = !matches!(text_of(wait, "kind"), "client_tool" | "children" | "retry" | "task");
    asks.then(|| interrupt(wait, run))
}

/// An interrupt for a wait.
fn interrupt(wait: &Value, run: &str) -> Value {
    let reason = match text_of(wait, "kind") {
        "approval" => "tool_call".to_owned(),
        "question" | "elicitation" => "input_required".to_owned(),
        kind => format!("bobbin:{kind}"),
    };
    let schema = response_schema(wait);
    let mut interrupt = json!({
        "id": wait.get("id"), "reason": reason,
        "metadata": { "bobbin": wait, BINDING: binding(text_of(wait, "id"), run, &schema) },
        "responseSchema": schema,
    });
    if let Some(fields) = interrupt.as_object_mut() {
        let title = ["title", "reason"].into_iter().map(|name| text_of(wait, name));
        let lines: Vec<&str> = title.filter(|line| !line.is_empty()).collect();
        if !lines.is_empty() {
            fields.insert("message".into(), lines.join("\n").into());
        }
        let call = wait.pointer("/call/id").filter(|id| id.is_string());
        fields.extend(call.map(|id| ("toolCallId".to_owned(), id.clone())));
        let until = wait.get("expiresAt").and_then(Value::as_i64);
        fields.extend(until.map(|us| ("expiresAt".to_owned(), iso(us).into())));
    }
    interrupt
}

/// Adds the usage in the protocol's format.
pub(super) fn with_usage(event: &mut Value, usage: Option<&Value>) {
    let (Some(usage), Some(fields)) = (usage, event.as_object_mut()) else { return };
    let number = |name: &str| usage.get(name).and_then(Value::as_i64).unwrap_or(0).max(0);
    let (input, output) = (number("inputTokens"), number("outputTokens"));
    let usage = json!([{ "inputTokens": input, "outputTokens": output, "totalTokens": input + output }]);
    fields.insert("usage".into(), usage);
}
