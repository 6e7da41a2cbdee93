//! The result of a session, taken from a call of a session tool.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::SessionTool;
use crate::definitions::message::ToolCall;
use crate::protocols::responses::runs::RunResult;

/// The result of a session, for the caller that began it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionResult {
    pub(crate) text: String,
    /// Paths of attached files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<String>,
}

impl SessionResult {
    /// The public form.
    pub(crate) fn response(&self) -> RunResult {
        RunResult { text: self.text.clone(), attachments: self.attachments.clone() }
    }

    /// The result in a call of a session tool. `result` is the text of the tool's result.
    pub(crate) fn of(tool: &SessionTool, call: &ToolCall, result: &str) -> SessionResult {
        let arguments = arguments(call);
        let text = mapped(tool, &arguments).unwrap_or_else(|| result.to_owned());
        SessionResult { text, attachments: paths(tool, &arguments).unwrap_or_default() }
    }
}

pub(crate) fn arguments(call: &ToolCall) -> Value {
    crate::json::from_str(&call.arguments).unwrap_or_default()
}

/// The argument with the session's message; `None` if it is missing or blank.
pub(crate) fn mapped(tool: &SessionTool, arguments: &Value) -> Option<String> {
    let text = match arguments.get(tool.message_property.as_ref()?)? {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    (!text.trim().is_empty()).then_some(text)
}

/// The paths that the call names: one, or a list, each a text or an object with `path`.
///
/// # Errors
/// Describes the value that is not a path.
pub(crate) fn paths(tool: &SessionTool, arguments: &Value) -> Result<Vec<String>, String> {
    let named = tool.attachments_property.as_ref().and_then(|property| arguments.get(property));
    let list = match named {
        None | Some(Value::Null) => &[],
        Some(Value::Array(list)) => &list[..],
        Some(one) => std::slice::from_ref(one),
    };
    let path = |value: &Value| {
        match value {
            Value::String(path) => Ok(path.clone()),
            Value::Object(file) => file.get("path").and_then(Value::as_str).map(str::to_owned).ok_or(value),
            other => Err(other),
        }
        .map_err(|value| format!("{value} names no file: give a path, or an object with `path`"))
    };
    list.iter().map(path).collect()
}
