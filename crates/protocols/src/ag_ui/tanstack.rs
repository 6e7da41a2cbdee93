//! Extensions of AG-UI for TanStack AI: messages with parts in a history, and the mark without which its
//! clients show interrupts but do not let people answer them.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::run_events::text_of;
use bobbin_definitions::json;
use bobbin_definitions::json::canonical;

/// The name of the mark in an interrupt's metadata.
pub(super) const BINDING: &str = "tanstack:interruptBinding";

/// The mark of an interrupt of a run, which lets people answer by its schema.
pub(super) fn binding(wait: &str, run: &str, schema: &Value) -> Value {
    let digest = Sha256::digest(canonical(schema));
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "v": 1, "kind": "generic", "interruptId": wait, "interruptedRunId": run, "generation": 0,
        "responseSchemaHash": format!("sha256:{hash}"),
    })
}

/// AG-UI messages with parts: results with their calls, and reasoning with its reply.
pub fn with_parts(messages: &[Value]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let mut thought: Option<&Value> = None;
    for message in messages {
        let (id, role) = (text_of(message, "id"), text_of(message, "role"));
        if role == "tool" {
            result(&mut all, message);
            continue;
        }
        let mut parts = match message.get("content") {
            Some(Value::Array(content)) => content.iter().map(of_content).collect(),
            _ => text(text_of(message, "content")),
        };
        match (role, thought.take()) {
            ("assistant", thought) => {
                parts.splice(..0, thought.map(|thought| thinking(thought, id)));
                parts.extend(calls(message));
            }
            (_, thought) => all.extend(thought.map(alone)),
        }
        if role == "reasoning" {
            thought = Some(message);
        } else {
            all.push(json!({ "id": id, "role": role, "parts": parts }));
        }
    }
    all.extend(thought.map(alone));
    all
}

/// Reasoning, in the step of its reply.
fn thinking(thought: &Value, step: &str) -> Value {
    json!({ "type": "thinking", "content": thought.get("content"), "stepId": step })
}

/// Reasoning without a reply after it.
fn alone(thought: &Value) -> Value {
    let id = text_of(thought, "id");
    json!({ "id": id, "role": "assistant", "parts": [thinking(thought, id)] })
}

fn text(text: &str) -> Vec<Value> {
    if text.is_empty() { Vec::new() } else { vec![json!({ "type": "text", "content": text })] }
}

fn of_content(part: &Value) -> Value {
    match text_of(part, "type") {
        "text" => json!({ "type": "text", "content": text_of(part, "text") }),
        _ => part.clone(),
    }
}

fn calls(message: &Value) -> impl Iterator<Item = Value> {
    let calls = message.get("toolCalls").and_then(Value::as_array).into_iter().flatten();
    calls.map(|call| {
        let of = |name: &str| call.pointer(&format!("/function/{name}")).and_then(Value::as_str);
        let arguments = of("arguments").unwrap_or_default();
        let mut part = json!({
            "type": "tool-call", "id": call.get("id"), "name": of("name"), "arguments": arguments,
            "state": "input-complete",
        });
        if let (Ok(input), Some(fields)) =
            (bobbin_definitions::json::from_str(arguments), part.as_object_mut())
        {
            fields.insert("input".into(), input);
        }
        part
    })
}

/// Inserts a result after its call.
fn result(all: &mut [Value], message: &Value) {
    let (call, content) = (text_of(message, "toolCallId"), text_of(message, "content"));
    let is_call = |part: &Value| text_of(part, "type") == "tool-call" && text_of(part, "id") == call;
    let made =
        all.iter_mut().rev().filter_map(|message| message.get_mut("parts").and_then(Value::as_array_mut));
    let Some((parts, at)) =
        made.filter_map(|parts| parts.iter().position(is_call).map(|at| (parts, at))).next()
    else {
        return;
    };
    let error = message.get("error");
    let state = if error.is_some() { "error" } else { "complete" };
    if let Some(made) = parts.get_mut(at).and_then(Value::as_object_mut) {
        let output = bobbin_definitions::json::from_str(content).unwrap_or_else(|_| content.into());
        made.extend(Map::from_iter([("state".to_owned(), state.into()), ("output".to_owned(), output)]));
    }
    let mut result = json!({ "type": "tool-result", "toolCallId": call, "content": content, "state": state });
    if let Some(fields) = result.as_object_mut() {
        fields.extend(error.map(|error| ("error".to_owned(), error.clone())));
    }
    parts.push(result);
}
