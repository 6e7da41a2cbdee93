//! Tools behind a URL (docs/tools.md): one signed POST; every failure is an error result.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::engine::post::{Post, PostError};
use crate::engine::thread::Thread;
use crate::engine::tool_call::timed_out;
use crate::spec::message::ToolResult;
use crate::spec::{Http, Tool};
use crate::work::native::NativeCall;

impl Thread {
    /// Calls it once; nothing here repeats a call.
    pub(crate) async fn http_tool(
        self: &Rc<Self>,
        http: &Http,
        tool: &Tool,
        env: &dyn Fn(&str) -> Option<String>,
        call: NativeCall,
    ) -> ToolResult {
        let body = json!({
            "threadId": call.thread_id, "agentId": call.agent_id, "name": tool.name, "args": call.args,
            "callId": call.call_id, "idempotencyKey": call.idempotency_key, "options": call.options,
        });
        let post = Post {
            name: &tool.name,
            http,
            timeout_ms: tool.timeout_ms,
            idempotency_key: &call.idempotency_key,
            random: call.random,
            now_us: call.now_us,
            body,
        };
        match self.post_signed(post, env).await {
            Ok(answered) => match answered.refusal(self, &tool.name) {
                None => understood(&answered.text()),
                Some(refusal) => ToolResult::error(refusal),
            },
            Err(PostError::Late(limit_ms)) => timed_out(&tool.name, limit_ms),
            Err(PostError::Failed(text)) => ToolResult::error(text),
        }
    }
}

/// A tool result, if the answer is one; any other answer is the result's text.
fn understood(text: &str) -> ToolResult {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) if is_result(&fields) => result_of(fields),
        Ok(Value::String(text)) => ToolResult::success(text),
        _ => ToolResult::success(text),
    }
}

/// The result that an object says it is.
pub(crate) fn result_of(fields: Map<String, Value>) -> ToolResult {
    serde_json::from_value(Value::Object(fields)).unwrap_or_else(|error| {
        ToolResult::error(format!("The tool gave a result that cannot be read: {error}"))
    })
}

/// Whether an object is meant as a result.
pub(crate) fn is_result(fields: &Map<String, Value>) -> bool {
    matches!(fields.get("status").and_then(Value::as_str), Some("success" | "error"))
}
