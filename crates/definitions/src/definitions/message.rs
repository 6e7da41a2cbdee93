//! Messages, tool calls and tool results (spec §6.2, §14).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::definitions::opaque::Opaque;
use crate::definitions::scrub::ScrubCounts;
use crate::json;

/// Who a message is from, as the thread stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ToolStatus {
    /// The tool worked.
    Success,
    /// The tool failed. The model reads why.
    Error,
}

/// The result of a tool (spec §6.2).
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
    /// Where it went wrong; only the log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// What the model reads in place of `result`: `[{type: "text", text} | {type: "image", mimeType, data}]`. Texts are joined by line breaks,
    /// images are files like those of `attachments`.
    #[serde(default, deserialize_with = "listed", skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Value>,
    /// Files that come with it, as messages have them: `{name, mimeType, data}` with base64, or the `path` of a file of the
    /// thread. They are stored with the result, and models that see are shown the images.
    #[serde(default, deserialize_with = "listed", skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Value>,
    /// The subagent that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_id: Option<String>,
    /// Files that are stored for it already, as the runtime's own messages have them. A tool cannot set it.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stored: Vec<Value>,
    /// What was taken out of it, for its receipt. A tool cannot set it.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "ScrubCounts::is_none")]
    pub scrubbed: ScrubCounts,
}

/// A list; `null` is none.
fn listed<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Value>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl ToolResult {
    /// A success with a text.
    pub fn success(text: impl Into<String>) -> ToolResult {
        ToolResult { result: Some(Value::String(text.into())), ..ToolResult::of(ToolStatus::Success) }
    }

    /// A failure with a text for the model.
    pub fn error(text: impl Into<String>) -> ToolResult {
        ToolResult { error: Some(text.into()), ..ToolResult::of(ToolStatus::Error) }
    }

    /// The same with a file of this type and content, which is stored with it.
    #[must_use]
    pub fn with_file(mut self, name: &str, mime_type: &str, content: impl AsRef<[u8]>) -> ToolResult {
        let data = STANDARD.encode(content);
        self.attachments.push(json!({ "name": name, "mimeType": mime_type, "data": data }));
        self
    }

    /// The same with a file of the thread.
    #[must_use]
    pub fn with_path(mut self, path: &str) -> ToolResult {
        self.attachments.push(json!({ "path": path }));
        self
    }

    fn of(status: ToolStatus) -> ToolResult {
        ToolResult {
            status,
            result: None,
            error: None,
            error_code: None,
            error_data: None,
            stack: None,
            content: Vec::new(),
            attachments: Vec::new(),
            subagent_id: None,
            stored: Vec::new(),
            scrubbed: ScrubCounts::default(),
        }
    }

    /// The files that come with it, those of `content` last; they are taken out.
    pub fn take_files(&mut self) -> Vec<Value> {
        let mut files = std::mem::take(&mut self.attachments);
        let is_image = |part: &&mut Value| part.get("type").and_then(Value::as_str) == Some("image");
        for part in self.content.iter_mut().filter(is_image) {
            if let Value::Object(mut fields) = part.take() {
                fields.remove("type");
                fields.entry("name").or_insert_with(|| "image".into());
                files.push(Value::Object(fields));
            }
        }
        self.content.retain(|part| !part.is_null());
        files
    }

    /// The text the model reads: the result, or the error (the result when there is no error text).
    pub fn text(&self) -> String {
        let result = || match &self.result {
            _ if !self.content.is_empty() => self.content_text(),
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        match (self.status, &self.error) {
            (ToolStatus::Error, Some(error)) if !error.is_empty() => error.clone(),
            _ => result(),
        }
    }

    /// The texts of `content`. What is neither text nor image is given as JSON.
    fn content_text(&self) -> String {
        let text = |part: &Value| {
            let kind = part.get("type").and_then(Value::as_str);
            match (kind, part.get("text").and_then(Value::as_str)) {
                (Some("text"), Some(text)) => Some(text.to_owned()),
                (Some("image"), _) => None,
                _ => Some(part.to_string()),
            }
        };
        self.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }
}
