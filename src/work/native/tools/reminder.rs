//! Reminders: the effect `remind`, for a model to schedule.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::json;
use crate::sdk::effects::NewEffect;
use crate::work::native::NativeCall;

/// The effect of a reminder, by its name in the definitions.
const EFFECT: &str = "remind";

/// Schedules `content` for this thread in `minutes`.
pub(super) fn remind_me(call: &NativeCall) -> ToolResult {
    let Some(content) = call.args.get("content").and_then(Value::as_str) else {
        return ToolResult::error("content: required but missing.");
    };
    let Some(minutes) = call.args.get("minutes").and_then(Value::as_f64) else {
        return ToolResult::error("minutes: required but missing.");
    };
    let delay_ms = (minutes * 60_000.0).round() as i64;
    let args = json!({ "content": format!("Reminder: {content}") });
    match call.state.schedule_effect(NewEffect::once(EFFECT, args, delay_ms)) {
        Ok(id) => ToolResult::success(format!("Reminder {id} is set for {minutes} minutes from now.")),
        Err(error) => ToolResult::error(error.into_message()),
    }
}
