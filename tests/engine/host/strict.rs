//! What a provider would refuse, checked on every request that the engine sends to a model.

use std::collections::BTreeSet;

use serde_json::Value;

use super::outside::ModelRequest;

/// Everything wrong with a chat-completions request.
pub fn complaints(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let empty = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&empty);
    if !body["model"].is_string() {
        found.push("no model".into());
    }
    if !messages.iter().any(|message| message["role"] != "system") {
        found.push("no messages but the system prompt".into());
    }
    if messages.last().is_some_and(|message| message["role"] == "assistant") {
        found.push("the last message is the assistant's".into());
    }
    if messages.last().is_some_and(|message| message["role"] == "system") {
        found.push("expected last role user or tool".into());
    }
    pairs(messages, &mut found);
    match &body["tools"] {
        Value::Null => {
            if !body["tool_choice"].is_null() {
                found.push("tool_choice without tools".into());
            }
        }
        Value::Array(tools) if tools.is_empty() => found.push("an empty list of tools".into()),
        Value::Array(tools) => {
            let mut names = BTreeSet::new();
            for tool in tools {
                let name = tool["function"]["name"].as_str().unwrap_or("");
                if !names.insert(name) || name.is_empty() {
                    found.push(format!("tool name “{name}” is empty or repeated"));
                }
                closed(&tool["function"]["parameters"], name, &mut found);
            }
        }
        other => found.push(format!("tools is {other}")),
    }
    found
}

/// Everything wrong with a request of responses: one for an answer, or one that fetches or cancels it.
pub fn of_responses(request: &ModelRequest) -> Vec<String> {
    let ModelRequest { method, path, body, .. } = request;
    let mut found = Vec::new();
    match (*method, path.as_str()) {
        (method, path) if path.starts_with("/responses/") => {
            let id = path.strip_prefix("/responses/").unwrap_or("");
            let id = if method == "POST" { id.strip_suffix("/cancel").unwrap_or("") } else { id };
            if id.is_empty() || !body.is_null() {
                found.push(format!("{method} {path} with the body {body}"));
            }
        }
        ("POST", "/responses") => {
            if !body["model"].is_string() || body["input"].as_array().is_none_or(Vec::is_empty) {
                found.push("no model or no input".into());
            }
            if body["background"] == true && body["store"] != true {
                found.push("an answer in the background is not stored".into());
            }
        }
        (method, path) => found.push(format!("{method} {path}")),
    }
    found
}

/// Every call has its result directly behind it, in order, and no result is without its call.
fn pairs(messages: &[Value], found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or("");
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or("");
            match open.iter().position(|call| *call == id) {
                Some(place) => {
                    if place != 0 {
                        found.push(format!("message {at}: the result of {id} is out of order"));
                    }
                    open.remove(place);
                }
                None => found.push(format!("message {at}: a result without its call: {id}")),
            }
            if !message["content"].is_string() {
                found.push(format!("message {at}: a result whose content is {}", message["content"]));
            }
            continue;
        }
        if !open.is_empty() {
            found.push(format!("message {at}: calls without results before it: {}", open.join(", ")));
            open.clear();
        }
        match role {
            "assistant" => {
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                for call in calls {
                    let id = call["id"].as_str().unwrap_or("");
                    if id.is_empty() || !seen.insert(id.to_owned()) {
                        found.push(format!("message {at}: call id “{id}” is empty or repeated"));
                    }
                    if !call["function"]["arguments"].is_string() {
                        found.push(format!("message {at}: arguments of {id} are not a text"));
                    }
                    open.push(id);
                }
                if calls.is_empty() && message["content"].as_str().unwrap_or("").is_empty() {
                    found.push(format!("message {at}: an assistant message without text and calls"));
                }
                if message["tool_calls"].as_array().is_some_and(Vec::is_empty) {
                    found.push(format!("message {at}: an empty list of calls"));
                }
            }
            "user" | "system" => {
                let empty = match &message["content"] {
                    Value::String(text) => text.is_empty() && role == "user",
                    Value::Array(parts) => parts.is_empty(),
                    _ => true,
                };
                if empty {
                    found.push(format!("message {at}: a {role} message without content"));
                }
            }
            other => found.push(format!("message {at}: role “{other}”")),
        }
    }
    if !open.is_empty() {
        found.push(format!("calls without results at the end: {}", open.join(", ")));
    }
}

/// Every object level says `additionalProperties: false`.
fn closed(schema: &Value, path: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            let is_object = match fields.get("type") {
                Some(Value::String(kind)) => kind == "object",
                Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
                _ => false,
            };
            if (is_object || fields.contains_key("properties"))
                && fields.get("additionalProperties") != Some(&Value::Bool(false))
            {
                found.push(format!("{path}: an object level without additionalProperties: false"));
            }
            for (name, inner) in fields {
                match (name.as_str(), inner) {
                    ("properties", Value::Object(properties)) => {
                        for (property, schema) in properties {
                            closed(schema, &format!("{path}.{property}"), found);
                        }
                    }
                    ("enum" | "const" | "default" | "examples", _) => {}
                    _ => closed(inner, &format!("{path}.{name}"), found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| closed(item, path, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::complaints;

    fn call(id: &str) -> serde_json::Value {
        json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } })
    }

    #[test]
    fn a_good_request_has_no_complaints() {
        let body = json!({ "model": "m", "messages": [
            { "role": "system", "content": "s" },
            { "role": "user", "content": "u" },
            { "role": "assistant", "content": null, "tool_calls": [call("a"), call("b")] },
            { "role": "tool", "tool_call_id": "a", "content": "1" },
            { "role": "tool", "tool_call_id": "b", "content": "" },
        ], "tools": [{ "type": "function", "function": { "name": "f", "parameters": {
            "type": "object", "additionalProperties": false, "properties": {
                "list": { "type": "array", "items": { "type": "object", "properties": {},
                    "additionalProperties": false } } } } } }] });
        assert_eq!(complaints(&body), Vec::<String>::new());
    }

    #[test]
    fn each_fault_of_a_request_is_found() {
        let user = json!({ "role": "user", "content": "u" });
        let tool = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "r" });
        let calls = |calls: Vec<serde_json::Value>| json!({ "role": "assistant", "content": null, "tool_calls": calls });
        for (what, messages) in [
            ("no messages", json!([{ "role": "system", "content": "s" }])),
            ("last message is the assistant's", json!([user, { "role": "assistant", "content": "a" }])),
            ("expected last role", json!([user, { "role": "system", "content": "s" }])),
            ("calls without results at the end", json!([user, calls(vec![call("a")])])),
            ("calls without results before it", json!([user, calls(vec![call("a")]), user])),
            ("a result without its call", json!([user, tool("a")])),
            ("empty or repeated", json!([user, calls(vec![call("a"), call("a")]), tool("a"), tool("a")])),
            ("empty or repeated", json!([user, calls(vec![call("")]), tool("")])),
            ("out of order", json!([user, calls(vec![call("a"), call("b")]), tool("b"), tool("a")])),
            ("without text and calls", json!([user, { "role": "assistant", "content": "" }, user])),
            ("without content", json!([{ "role": "user", "content": "" }])),
        ] {
            let found = complaints(&json!({ "model": "m", "messages": messages }));
            assert!(found.iter().any(|c| c.contains(what)), "{what}: {found:?}");
        }
        for (what, parameters) in [
            ("f:", json!({ "type": "object", "properties": {} })),
            (
                "f.a.items:",
                json!({ "type": "object", "additionalProperties": false, "properties": {
                "a": { "type": "array", "items": { "type": "object", "properties": {} } } } }),
            ),
            (
                "f.a.anyOf:",
                json!({ "type": "object", "additionalProperties": false, "properties": {
                "a": { "anyOf": [{ "type": "null" }, { "type": ["object", "null"] }] } } }),
            ),
        ] {
            let found = complaints(&json!({ "model": "m", "messages": [user],
                "tools": [{ "type": "function", "function": { "name": "f", "parameters": parameters } }] }));
            assert!(found.iter().any(|c| c.starts_with(what)), "{what}: {found:?}");
        }
    }
}
