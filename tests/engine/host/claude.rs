//! A reply of a model, in the wire format of Anthropic's messages, and what that provider would refuse.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{Answer, Piece};

/// A reply, block by block.
#[derive(Clone, Debug, Default)]
pub struct Claude {
    events: Vec<String>,
    blocks: usize,
    calls: usize,
}

/// Thinking as it is on the wire and must come back: its text in JSON's escapes, and its signature.
pub fn thought(text: &str, signature: &str) -> String {
    format!(r#"{{"type":"thinking","thinking":"{text}","signature":"{signature}"}}"#)
}

/// Thinking that nobody can read.
pub fn redacted(data: &str) -> String {
    format!(r#"{{"type":"redacted_thinking","data":"{data}"}}"#)
}

impl Claude {
    /// A text.
    pub fn text(self, text: &str) -> Claude {
        let delta = json!({ "type": "text_delta", "text": text }).to_string();
        self.block(r#"{"type":"text","text":""}"#, &[delta])
    }

    /// Thinking in two pieces, in JSON's escapes, and its signature.
    pub fn thinks(self, first: &str, second: &str, signature: &str) -> Claude {
        let delta = |text: &str| format!(r#"{{"type":"thinking_delta","thinking":"{text}"}}"#);
        let signed = format!(r#"{{"type":"signature_delta","signature":"{signature}"}}"#);
        let start = r#"{"type":"thinking","thinking":"","signature":""}"#;
        self.block(start, &[delta(first), delta(second), signed])
    }

    /// Thinking that nobody can read.
    pub fn hides(self, data: &str) -> Claude {
        self.block(&redacted(data), &[])
    }

    /// A call.
    pub fn call(mut self, id: &str, name: &str, arguments: &str) -> Claude {
        self.calls += 1;
        let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} }).to_string();
        let delta = json!({ "type": "input_json_delta", "partial_json": arguments }).to_string();
        self.block(&start, &[delta])
    }

    fn block(mut self, start: &str, deltas: &[String]) -> Claude {
        let index = self.blocks;
        self.blocks += 1;
        let mut say = |kind: &str, rest: &str| {
            let data = format!(r#"{{"type":"{kind}","index":{index}{rest}}}"#);
            self.events.push(format!("event: {kind}\ndata: {data}\n\n"));
        };
        say("content_block_start", &format!(r#","content_block":{start}"#));
        deltas.iter().for_each(|delta| say("content_block_delta", &format!(r#","delta":{delta}"#)));
        say("content_block_stop", "");
        self
    }

    /// The streamed answer.
    pub fn stream(&self) -> Answer {
        let reason = if self.calls > 0 { "tool_use" } else { "end_turn" };
        let start = json!({ "type": "message_start", "message": { "type": "message", "role": "assistant",
            "content": [], "stop_reason": null, "usage": { "input_tokens": 10, "output_tokens": 1 } } });
        let end = json!({ "type": "message_delta", "delta": { "stop_reason": reason },
            "usage": { "output_tokens": 5 } });
        let mut events = vec![format!("event: message_start\ndata: {start}\n\n")];
        events.extend(self.events.iter().cloned());
        events.push(format!("event: message_delta\ndata: {end}\n\n"));
        events.push("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".into());
        Answer {
            status: Some(200),
            headers: vec![("content-type".into(), "text/event-stream".into())],
            delay_us: Some(1_000),
            pieces: events.into_iter().map(|event| Piece::Data(Bytes::from(event))).collect(),
        }
    }
}

const KNOWN: [&str; 14] = [
    "model",
    "max_tokens",
    "tools",
    "tool_choice",
    "system",
    "messages",
    "stream",
    "metadata",
    "thinking",
    "output_config",
    "stop_sequences",
    "temperature",
    "top_k",
    "top_p",
];

/// Everything wrong with a request.
pub fn complaints(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let none = Vec::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for key in body.as_object().into_iter().flat_map(|body| body.keys()) {
        if !KNOWN.contains(&key.as_str()) {
            found.push(format!("{key}: extra inputs are not permitted"));
        }
    }
    let max_tokens = body["max_tokens"].as_u64().unwrap_or(0);
    if max_tokens == 0 {
        found.push("max_tokens: field required".into());
    }
    let messages = body["messages"].as_array().unwrap_or(&none);
    let tools = list(&body["tools"]);
    if body.to_string().matches("cache_control").count() > 4 {
        found.push("more than 4 cache marks".into());
    }
    turns(messages, !tools.is_empty(), &mut found);
    if tools.iter().any(|tool| tool["input_schema"]["type"] != "object" || !tool["name"].is_string()) {
        found.push("a tool without a name or a schema".into());
    }
    if tools.is_empty() && !body["tool_choice"].is_null() {
        found.push("tool_choice without tools".into());
    }
    if body["thinking"]["type"] == "enabled" {
        let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or(0);
        if budget < 1024 || budget >= max_tokens {
            found.push(format!("a budget of {budget} with max_tokens {max_tokens}"));
        }
        for key in ["temperature", "top_k", "top_p"] {
            if !body[key].is_null() {
                found.push(format!("{key} with thinking"));
            }
        }
        if matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
            found.push("a forced call with thinking".into());
        }
        if !exchange_began_with_thinking(messages) {
            found.push("the last exchange of calls does not begin with thinking".into());
        }
    }
    found
}

fn turns(messages: &[Value], tools: bool, found: &mut Vec<String>) {
    let mut ids = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            found.push(format!("message {at} is not the {expected}'s"));
        }
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        if blocks.is_empty() {
            found.push(format!("message {at} is empty"));
        }
        let of = |kind: &str, key: &str| -> Vec<String> {
            let blocks = blocks.iter().filter(|block| block["type"] == kind);
            blocks.map(|block| block[key].as_str().unwrap_or_default().to_owned()).collect()
        };
        let last = blocks.last().and_then(|block| block["type"].as_str()).unwrap_or_default();
        if message["role"] == "assistant" && last.ends_with("thinking") {
            found.push(format!("message {at}: the final block in an assistant message cannot be thinking"));
        }
        if of("text", "text").iter().any(|text| text.trim().is_empty()) {
            found.push(format!("message {at} has a blank text"));
        }
        let results = of("tool_result", "tool_use_id");
        let is_blank = |content: &Value| content.as_str().is_none_or(str::is_empty) && !content.is_array();
        if blocks.iter().any(|block| block["is_error"] == true && is_blank(&block["content"])) {
            found.push(format!("message {at}: content cannot be empty if is_error is true"));
        }
        if results != open || blocks.iter().take(results.len()).any(|block| block["type"] != "tool_result") {
            found.push(format!("message {at}: results {results:?} first, for the calls {open:?} before it"));
        }
        open = of("tool_use", "id");
        for id in &open {
            let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if id.is_empty() || !id.chars().all(fine) || !ids.insert(id.clone()) || !tools {
                found.push(format!("message {at}: call id {id}, tools {tools}"));
            }
        }
        if blocks.iter().any(|block| block["type"] == "tool_use" && !block["input"].is_object()) {
            found.push(format!("message {at}: an input that is no object"));
        }
    }
    if messages.len().is_multiple_of(2) {
        found.push("the last message is not the user's".into());
    }
}

fn exchange_began_with_thinking(messages: &[Value]) -> bool {
    let has = |message: &Value, kind: &str| {
        message["content"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == kind))
    };
    let Some(last) = messages.iter().rposition(|message| message["role"] == "assistant") else { return true };
    if !has(&messages[last], "tool_use") {
        return true;
    }
    let mut first = last;
    while first >= 2 && has(&messages[first - 1], "tool_result") && !has(&messages[first - 1], "text") {
        first -= 2;
    }
    matches!(messages[first]["content"][0]["type"].as_str(), Some("thinking" | "redacted_thinking"))
}
