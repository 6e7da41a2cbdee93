//! Messages, tool calls and tool results (spec §6.2, §14).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::opaque::Opaque;

/// Who a message is from, as the thread stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The runtime or the developer.
    System,
    /// Side B: the person, or the other agent.
    User,
    /// Side A.
    Assistant,
    /// A tool's result.
    Tool,
}

impl Role {
    /// As stored and sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    /// The role of that name.
    pub fn parse(name: &str) -> Option<Role> {
        Some(match name {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => return None,
        })
    }
}

/// A call that a model made. `arguments` is the JSON text as received: it may be malformed, and then the call gets
/// an error result (spec §35.21).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within its reply.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// JSON text.
    pub arguments: String,
    /// What the provider wants back with it (spec §4.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_content: Option<Opaque>,
}

impl ToolCall {
    /// What remains in its reply of a call that a hook dropped (spec §9.2): its place and the tool's name.
    pub fn dropped(name: &str) -> ToolCall {
        ToolCall { id: String::new(), name: name.to_owned(), arguments: String::new(), extra_content: None }
    }

    /// Whether a hook dropped it: a stored call has an id otherwise.
    pub fn is_dropped(&self) -> bool {
        self.id.is_empty()
    }

    /// The form in which clients and chat-completion providers see it.
    pub fn to_wire(&self) -> Value {
        let mut wire = json!({ "id": self.id, "type": "function",
            "function": { "name": self.name, "arguments": self.arguments } });
        if let (Some(extra), Some(wire)) = (&self.extra_content, wire.as_object_mut()) {
            wire.insert("extra_content".into(), json!(extra));
        }
        wire
    }
}

/// Whether a tool worked (spec §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// It did.
    Success,
    /// It did not; the model reads why.
    Error,
}

/// What a tool gives back (spec §6.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Whether it worked.
    pub status: ToolStatus,
    /// Text shown to the model; anything but a string is given as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Machine-readable failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Details of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_data: Option<Map<String, Value>>,
}

impl ToolResult {
    /// A success with a text.
    pub fn success(text: impl Into<String>) -> ToolResult {
        ToolResult {
            status: ToolStatus::Success,
            result: Some(Value::String(text.into())),
            error: None,
            error_code: None,
            error_data: None,
        }
    }

    /// A failure with a text for the model.
    pub fn error(text: impl Into<String>) -> ToolResult {
        ToolResult {
            status: ToolStatus::Error,
            result: None,
            error: Some(text.into()),
            error_code: None,
            error_data: None,
        }
    }

    /// The text the model reads: the result, or the error (the result when there is no error text).
    pub fn text(&self) -> String {
        let result = || match &self.result {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        match (self.status, &self.error) {
            (ToolStatus::Error, Some(error)) if !error.is_empty() => error.clone(),
            _ => result(),
        }
    }
}
