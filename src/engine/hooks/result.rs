//! Hooks around a tool call (spec §9.2): execute, `after_tool_call_success` or `after_tool_call_failure`,
//! `before_store_tool_result`, `before_create_message`, insert, `after_create_message`.
//!
//! While hooks run, the tool's own result is kept on the receipt. After a crash they run again on that
//! result, and the tool does not.

use serde_json::Value;

use crate::definitions::hook::HookName;
use crate::definitions::message::{ToolResult, ToolStatus};
use crate::engine::calls::call::{Call, CallOutcome, StoredReceipt};
use crate::engine::calls::tool_result::result_row;
use crate::engine::definitions::Definitions;
use crate::engine::features::Hooks;
use crate::engine::hooks::chain::{ChainControl, Subject};
use crate::engine::hooks::{Site, wrong};
use crate::engine::model::replay;
use crate::error::{Error, Result};
use crate::limits;
use crate::sdk::scope::EntryMode;
use crate::store::messages::{Inbound, Row, SharedRow};
use crate::store::receipts;
use crate::store::receipts::{Receipt, ReceiptState};

/// The hooks that may change the stored result of a call.
pub(crate) const CHANGING: [HookName; 4] = [
    HookName::AfterToolCallSuccess,
    HookName::AfterToolCallFailure,
    HookName::BeforeStoreToolResult,
    HookName::BeforeCreateMessage,
];

/// A call's result on its way into the history.
struct Outcome {
    call: Value,
    result: ToolResult,
    null: Null,
}

/// The meaning of `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Null {
    /// No change.
    Keeps,
    /// The call is dropped.
    Drops,
}

impl Subject for Outcome {
    fn args(&self) -> Vec<Value> {
        let mut result = serde_json::to_value(&self.result).unwrap_or_default();
        if let Some(fields) = result.as_object_mut() {
            fields.remove("stored");
            fields.remove("scrubbed");
        }
        vec![self.call.clone(), result]
    }

    fn take(&mut self, answer: Value) -> Result<ChainControl, String> {
        if answer.is_null() {
            return Ok(if self.null == Null::Drops { ChainControl::Stop } else { ChainControl::Go });
        }
        if !answer.is_object() {
            return Err(wrong("a tool result or null", &answer));
        }
        let mut result: ToolResult =
            crate::json::from_value(answer).map_err(|error| format!("it gave no tool result: {error}"))?;
        // If the hook changed only `result`, the old `content` must not override it.
        if result.result != self.result.result && result.content == self.result.content {
            result.content.clear();
        }
        let bytes = result.text().len();
        if bytes > limits::CONTENT_BYTES {
            return Err(format!("it gave a result of {bytes} bytes"));
        }
        self.result = result;
        Ok(ChainControl::Go)
    }
}

impl Hooks<'_> {
    /// The receipt of a call that may have been made before. It has a result if the process crashed while
    /// hooks ran on it, or if the result came from outside.
    pub(crate) fn earlier_receipt(&self, entered: EntryMode, call: &Call) -> Result<Option<Receipt>> {
        match entered {
            EntryMode::First => Ok(None),
            EntryMode::Again => self.read(|_, sql| receipts::find(sql, call.seq)),
        }
    }

    /// Stores a result after its hooks, or drops the call. Returns the reply as it is then.
    pub(crate) async fn settle_call(
        self,
        definitions: &Definitions<'_>,
        reply: SharedRow,
        call: &Call,
        mut done: CallOutcome,
    ) -> Result<SharedRow> {
        if self.has_hooks(definitions, &CHANGING) {
            self.keep_result(call, &done)?;
        }
        let ended = match done.result.status {
            ToolStatus::Success => HookName::AfterToolCallSuccess,
            ToolStatus::Error => HookName::AfterToolCallFailure,
        };
        // Calls queued by code and hand-offs are never dropped.
        let drops = reply.inbound != Inbound::QueuedTool && !done.hands_off();
        let null = if drops { Null::Drops } else { Null::Keeps };
        for (name, null) in [(ended, null), (HookName::BeforeStoreToolResult, Null::Keeps)] {
            if !self.has_hooks(definitions, &[name]) {
                continue;
            }
            let at = Site::run(definitions, call.seq);
            let mut outcome = Outcome { call: call.call.to_wire(), result: done.result.clone(), null };
            if self.transform(&at, name, &mut outcome).await? == ChainControl::Stop {
                return self.drop_call(&reply, call, &done);
            }
            done.replace_result(self.variables().redact_result(outcome.result));
        }
        let files = done.take_files(&call.call.name);
        let row = result_row(&reply, call, &done, self.host.now_us());
        let row = self.before_create(definitions, row).await?;
        let row = self.store_result(&reply, call, &done, row, &files)?;
        self.after_create(definitions, &row).await?;
        Ok(reply)
    }

    /// Keeps the result of a call that has ended. A call that never started, or whose outcome is unknown, is
    /// evaluated again.
    fn keep_result(&self, call: &Call, done: &CallOutcome) -> Result<()> {
        if done.stored_receipt != StoredReceipt::Started || done.state == ReceiptState::Indeterminate {
            return Ok(());
        }
        let text = serde_json::to_string(&done.result).map_err(Error::internal)?;
        if text.len() > limits::KEPT_RESULT_BYTES {
            return Ok(());
        }
        self.transition(|_, sql| receipts::keep_result(sql, call.seq, &text))
    }

    /// Stores that a hook dropped a call: on its receipt, and in the reply, which keeps its position and the
    /// tool's name. No client or model sees the call.
    fn drop_call(&self, reply: &SharedRow, call: &Call, done: &CallOutcome) -> Result<SharedRow> {
        let now = self.host.now_us();
        let row = self.transition(|state, sql| {
            done.close(sql, ReceiptState::Dropped, reply, call, None, now)?;
            let mut row = Row::clone(reply);
            replay::drop_call(&mut row.calls, call.index);
            row.reasoning = replay::without(row.reasoning.as_deref(), &call.call.id);
            row.update_calls(sql)?;
            state.filled = state.filled.max(call.seq + 1 - reply.seq);
            // No later step takes its seq. Reconnecting clients have seen the call.
            state.meta.seq_floor = state.meta.seq_floor.max(call.seq);
            state.record_edit(sql)?;
            Ok(SharedRow::new(row))
        })?;
        self.broadcast_message(&row)?;
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_result_that_a_hook_has_changed_stands_for_the_texts_that_were_there() {
        let content = vec![json!({ "type": "text", "text": "{\"key\":\"k\"}" })];
        let result = ToolResult { result: Some(json!({ "key": "k" })), content, ..ToolResult::success("") };
        let read = |answer: Value| {
            let mut outcome = Outcome { call: Value::Null, result: result.clone(), null: Null::Keeps };
            assert!(matches!(outcome.take(answer), Ok(ChainControl::Go)));
            outcome.result.text()
        };
        let mut answer = json!(result);
        assert_eq!(read(answer.clone()), "{\"key\":\"k\"}");
        answer["result"] = json!({ "key": "…" });
        assert_eq!(read(answer.clone()), "{\"key\":\"…\"}");
        answer["content"] = json!([{ "type": "text", "text": "else" }]);
        assert_eq!(read(answer), "else");
    }
}
