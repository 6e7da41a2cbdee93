//! The thread's values as a notebook for models.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::sdk::ThreadState;
use crate::work::native::NativeCall;

/// Stores `value`, any JSON, under `key`; `null` deletes it.
pub(super) fn remember(call: &NativeCall) -> ToolResult {
    // Absent is not null: an omitted value must not delete the key.
    let Some(value) = call.args.get("value") else {
        return ToolResult::error("value: required but missing; null forgets the key.");
    };
    with_key(call, |state, key| {
        state.set_value(key, value)?;
        Ok(if value.is_null() { format!("Forgot “{key}”.") } else { format!("Kept under “{key}”.") })
    })
}

/// Returns the value of `key`, as JSON.
pub(super) fn recall(call: &NativeCall) -> ToolResult {
    with_key(call, |state, key| {
        Ok(match state.get_value::<Value>(key)? {
            Some(value) => value.to_string(),
            None => format!("Nothing is kept under “{key}”."),
        })
    })
}

fn with_key(call: &NativeCall, act: impl FnOnce(&ThreadState, &str) -> crate::Result<String>) -> ToolResult {
    let Some(key) = call.args.get("key").and_then(Value::as_str) else {
        return ToolResult::error("key: required but missing.");
    };
    match act(&call.state, key) {
        Ok(text) => ToolResult::success(text),
        Err(error) => ToolResult::error(error.into_message()),
    }
}
