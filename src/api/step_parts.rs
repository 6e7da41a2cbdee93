//! The sizes of the parts of a request to a model, in tokens, estimated as for
//! [`Space`](crate::engine::context::space::Space). The request is parsed as JSON, because a stored request
//! has its provider's format.

use serde_json::Value;

use crate::models::size::{CALL, MESSAGE};
use crate::protocols::responses::runs::StepTokens;
use crate::tokens::tokens;

/// The tokens of each part, multiplied by `factor`, which turns an estimate into the model's own
/// count.
pub(super) fn of_request(body: &Value, factor: f64) -> StepTokens {
    let list = |name: &str| body.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut messages = list("messages").iter().chain(list("input")).peekable();
    let system = match body.get("system").or_else(|| body.get("instructions")) {
        Some(own) => text(own),
        None => messages.next_if(|first| is_system(first)).map_or(0, message),
    };
    let tools: usize = list("tools").iter().map(tool).sum();
    let messages: usize = messages.map(message).sum();
    let counted = |tokens: usize| (tokens as f64 * factor).round() as u64;
    StepTokens { system: counted(system), tools: counted(tools), messages: counted(messages) }
}

fn is_system(message: &Value) -> bool {
    matches!(message.get("role").and_then(Value::as_str), Some("system" | "developer"))
}

fn tool(tool: &Value) -> usize {
    let tool = tool.get("function").unwrap_or(tool);
    let schema = tool.get("parameters").or_else(|| tool.get("input_schema"));
    let named = ["name", "description"].into_iter().filter_map(|name| tool.get(name)).map(text);
    CALL + named.sum::<usize>() + schema.map_or(0, |schema| tokens(&schema.to_string()))
}

fn message(message: &Value) -> usize {
    MESSAGE + text(message)
}

/// The tokens of all texts in a part of a request. Images and field names are not counted.
fn text(part: &Value) -> usize {
    match part {
        Value::String(text) => tokens(text),
        Value::Array(parts) => parts.iter().map(text).sum(),
        Value::Object(fields) => {
            let counted = fields.iter().filter(|(name, _)| !NO_TEXTS.contains(&name.as_str()));
            counted.map(|(_, part)| text(part)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Fields of messages that contain no text for the model.
const NO_TEXTS: [&str; 11] = [
    "role",
    "type",
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "image_url",
    "source",
    "signature",
    "encrypted_content",
    "cache_control",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn the_forms_of_all_providers_have_the_same_parts() {
        let schema = json!({ "type": "object" });
        let tool = json!({ "name": "add", "description": "Adds numbers.", "parameters": schema });
        let forms = [
            json!({ "tools": [{ "type": "function", "function": tool }], "messages": [
                { "role": "system", "content": "You add." }, { "role": "user", "content": "Two and two?" }] }),
            json!({ "tools": [{ "name": "add", "description": "Adds numbers.", "input_schema": schema }],
                "system": [{ "type": "text", "text": "You add." }],
                "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Two and two?" }] }] }),
            json!({ "tools": [tool], "instructions": "You add.", "input": [
                { "role": "user", "content": [{ "type": "input_text", "text": "Two and two?" }] }] }),
        ];
        for form in &forms {
            let parts = of_request(form, 1.0);
            assert!(parts.system.abs_diff(tokens("You add.") as u64) <= MESSAGE as u64);
            assert_eq!(parts.messages, (MESSAGE + tokens("Two and two?")) as u64, "{form}");
            let expected = CALL + tokens("add") + tokens("Adds numbers.") + tokens(&schema.to_string());
            assert_eq!(parts.tools, expected as u64, "{form}");
        }
    }

    #[test]
    fn images_are_no_texts_and_estimates_follow_the_models_own_count() {
        let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } });
        let body = json!({ "messages": [{ "role": "user", "content": [image, { "type": "text", "text": "Look." }] }] });
        let once = of_request(&body, 1.0).messages;
        assert_eq!(once, (MESSAGE + tokens("Look.")) as u64);
        assert_eq!(of_request(&body, 2.0).messages, 2 * once);
        assert_eq!(of_request(&json!(null), 1.0), StepTokens { system: 0, tools: 0, messages: 0 });
    }
}
