//! Results of tool calls on their way into the history: the message, its files, and the log of a failure.

use serde_json::{Map, Value};

use crate::definitions::message::{Role, ToolResult, ToolStatus};
use crate::engine::calls::call::{Call, CallOutcome, no_files, result_metadata};
use crate::engine::operator::Failure;
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::sdk::messages::NewAttachment;
use crate::store::messages::{Inbound, Row, SharedRow};
use crate::store::receipts;
use crate::store::window::NO_REASON;
use crate::text::first_bytes;

impl Thread {
    /// Stores a result: receipt, message and files in one transition. Files that cannot be stored turn it
    /// into an error.
    pub(in crate::engine) fn store_result(
        &self,
        reply: &SharedRow,
        call: &Call,
        done: &CallOutcome,
        row: Row,
        files: &[NewAttachment],
    ) -> Result<SharedRow> {
        for (mime, size) in files.iter().filter_map(NewAttachment::content) {
            self.files().make_index(mime, size)?;
        }
        let now = row.created_us;
        let row = match self.insert_result(reply, call, done, row, files) {
            Err(error) if !files.is_empty() && is_of_files(&error) => {
                let mut done = done.clone();
                done.replace_result(no_files(&call.call.name, &error));
                self.insert_result(reply, call, &done, result_row(reply, call, &done, now), &[])?
            }
            stored => stored?,
        };
        if done.ran_and_failed() {
            self.report_tool_failure(&call.call.name, call.seq, &done.result)?;
        }
        if reply.inbound == Inbound::QueuedTool {
            // It is no longer queued.
            self.broadcast_message(reply)?;
        }
        self.broadcast_message(&row)?;
        Ok(row)
    }

    /// Reports a failed call to the operator. Mistakes of a model, whose calls never started, are no failures
    /// of the tool.
    pub(in crate::engine) fn report_tool_failure(
        &self,
        name: &str,
        receipt: i64,
        result: &ToolResult,
    ) -> Result<()> {
        self.report_failure(Failure {
            what: format!("the tool \"{name}\""),
            code: result.error_code.as_deref(),
            error: self.variables().shown(result.text()),
            log: Some(format!("c_{receipt}")),
        })
    }

    fn insert_result(
        &self,
        reply: &SharedRow,
        call: &Call,
        done: &CallOutcome,
        row: Row,
        files: &[NewAttachment],
    ) -> Result<SharedRow> {
        let now = row.created_us;
        let error = (done.result.status == ToolStatus::Error)
            .then(|| logged_error(row.content.as_deref().unwrap_or_default(), &done.result));
        self.transition(|state, sql| {
            let mut attachments = crate::engine::attachments::store::stored(&done.result.stored)?;
            attachments.extend(crate::engine::attachments::store::store(
                state,
                sql,
                files,
                || self.host.random(),
                now,
            )?);
            let row = Row { attachments, ..row };
            done.close(sql, done.state, reply, call, error.as_deref(), now)?;
            if done.hands_off()
                && let Some(earlier) = state.handoff.replace(call.seq)
            {
                // The last hand-off wins.
                receipts::end(sql, earlier, now)?;
            }
            if reply.inbound == Inbound::QueuedTool {
                let run = state.active_mut()?;
                run.steps += 1;
                run.update(sql)?;
            }
            self.mcp().post_mcp(state, sql)?;
            state.insert(sql, row)
        })
    }
}

/// The row of a result.
pub(in crate::engine) fn result_row(reply: &Row, call: &Call, done: &CallOutcome, now: i64) -> Row {
    Row {
        name: Some(call.call.name.clone()),
        tool_call_id: Some(call.call.id.clone()),
        status: Some(done.result.status),
        metadata: with_approval(result_metadata(&done.result), done.approval.as_ref()),
        parent: reply.parent,
        depth: reply.depth,
        ..Row::new(call.seq, Role::Tool, content_of(&done.result), now)
    }
}

/// The text for the model of a result without a text.
pub(crate) const NO_OUTPUT: &str = "The tool finished and gave no output.";

/// The text of a result's message.
pub(in crate::engine) fn content_of(result: &ToolResult) -> String {
    let text = result.text();
    match result.status {
        ToolStatus::Success if text.is_empty() => NO_OUTPUT.to_owned(),
        ToolStatus::Error if text.trim().is_empty() => NO_REASON.to_owned(),
        _ => text,
    }
}

/// The metadata of a result with its approval.
fn with_approval(metadata: Option<String>, approval: Option<&Value>) -> Option<String> {
    let Some(approval) = approval else { return metadata };
    let mut fields: Map<String, Value> =
        metadata.and_then(|text| crate::json::from_str(&text).ok()).unwrap_or_default();
    fields.insert("approval".into(), approval.clone());
    Some(Value::Object(fields).to_string())
}

/// Whether an error is about files, and not about the thread or the runtime.
pub(in crate::engine) fn is_of_files(error: &Error) -> bool {
    matches!(error.code, Code::InvalidField | Code::MissingField | Code::TooLarge)
        || (error.code == Code::Conflict && error.field.is_some())
}

/// An error for the log, with its stack if the tool returned one.
pub(in crate::engine) fn logged_error(text: &str, result: &ToolResult) -> String {
    let mut logged = first_bytes(text, limits::LOGGED_ERROR_BYTES).to_owned();
    if let Some(stack) = &result.stack {
        logged.push('\n');
        logged.push_str(first_bytes(stack, limits::LOGGED_STACK_BYTES));
    }
    logged
}
