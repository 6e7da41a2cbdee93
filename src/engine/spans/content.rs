//! Texts of a run in its spans, for deployments that set `BOBBIN_OTLP_CONTENT`. They come from the stored
//! messages, without secrets, and each is cut.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::definitions::message::Role;
use crate::engine::features::Telemetry;
use crate::engine::spans::facts::Facts;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::limits::SPAN_CONTENT_BYTES;
use crate::store::messages::Row;
use crate::store::{messages, receipts};
use crate::text::first_bytes;

/// Number of messages that are exported as the input of a run.
const INPUT: usize = 8;

/// Texts of a run, in the format of attributes.
#[derive(Default)]
pub(crate) struct Content {
    /// The messages at the beginning of the run's turn.
    pub(super) input: Option<String>,
    /// Replies, by their seqs.
    pub(super) replies: BTreeMap<i64, String>,
    /// Arguments and results of calls, by receipt.
    pub(super) calls: BTreeMap<i64, (Option<String>, Option<String>)>,
}

impl Telemetry<'_> {
    /// The texts of a run.
    pub(crate) fn content_of(&self, sql: &dyn Sql, facts: &Facts) -> Result<Content> {
        let mut content = Content { input: self.input_of(sql, facts)?, ..Content::default() };
        // A failed attempt has no reply; the next attempt may have the same seq.
        let answered = facts.attempts.iter().filter(|attempt| attempt.text("status") != Some("failed"));
        for (reply, attempt) in answered.filter_map(|attempt| Some((attempt.reply?, attempt))) {
            if let Some(row) = messages::find(sql, reply)?
                && !content.replies.contains_key(&reply)
            {
                let reason = finish_reason(attempt.text("finish_reason"), &row);
                content.replies.insert(reply, self.messages_json(&[row], Some(reason)));
            }
        }
        for call in &facts.calls {
            let (args, result) = self.of_call(sql, call.id, call.reply)?;
            content.calls.insert(call.id, (args, result));
        }
        Ok(content)
    }

    fn input_of(&self, sql: &dyn Sql, facts: &Facts) -> Result<Option<String>> {
        let first =
            facts.attempts.iter().filter_map(|attempt| attempt.reply).min().unwrap_or(facts.run.block);
        let mut rows = Vec::new();
        for seq in (facts.run.turn_from..first).take(INPUT) {
            rows.extend(messages::find(sql, seq)?.filter(|row| row.depth == 0 && !row.is_status()));
        }
        Ok((!rows.is_empty()).then(|| self.messages_json(&rows, None)))
    }

    /// Messages in the format of the conventions: each with its parts, and a model's message with its finish
    /// reason.
    fn messages_json(&self, rows: &[Row], finish_reason: Option<&str>) -> String {
        let mut left = SPAN_CONTENT_BYTES;
        let mut part = |text: &str| {
            let text = self.variables().redact(text.to_owned());
            let cut = first_bytes(&text, left / 2).to_owned();
            left = left.saturating_sub(cut.len());
            cut
        };
        let messages = rows.iter().map(|row| {
            let said = row.content.as_deref().filter(|text| !text.is_empty());
            let said = said.map(|text| match &row.tool_call_id {
                Some(id) => json!({ "type": "tool_call_response", "id": id, "response": part(text) }),
                None => json!({ "type": "text", "content": part(text) }),
            });
            let mut parts: Vec<Value> = said.into_iter().collect();
            for call in row.calls.iter().take(32) {
                let arguments = part(&call.arguments);
                let arguments = crate::json::from_str(&arguments).unwrap_or(Value::String(arguments));
                parts.push(
                    json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments }),
                );
            }
            let role = match row.role {
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::System => "system",
                Role::Tool => "tool",
            };
            match finish_reason {
                Some(reason) => json!({ "role": role, "parts": parts, "finish_reason": reason }),
                None => json!({ "role": role, "parts": parts }),
            }
        });
        Value::Array(messages.collect()).to_string()
    }

    fn of_call(&self, sql: &dyn Sql, id: i64, reply: i64) -> Result<(Option<String>, Option<String>)> {
        let shown = |text: String| first_bytes(&self.variables().redact(text), SPAN_CONTENT_BYTES).to_owned();
        if reply <= 0 {
            let data = receipts::find(sql, id)?.map(|receipt| receipt.data).unwrap_or_default();
            let args = data.args.map(|args| shown(args.to_string()));
            return Ok((args, data.result.map(|result| shown(result.text()))));
        }
        let result = messages::find(sql, id)?;
        let of = messages::find(sql, reply)?;
        let call_id = result.as_ref().and_then(|row| row.tool_call_id.clone());
        let called = of.and_then(|row| row.calls.into_iter().find(|call| Some(&call.id) == call_id.as_ref()));
        Ok((called.map(|call| shown(call.arguments)), result.and_then(|row| row.content).map(shown)))
    }
}

/// The finish reason in the names of the conventions. `told`: the reason in the log.
fn finish_reason(told: Option<&str>, reply: &Row) -> &'static str {
    match told {
        Some("length") => "length",
        Some("content_filter") => "content_filter",
        Some("tool_calls") => "tool_call",
        // Not every provider sends a known reason.
        _ if !reply.calls.is_empty() => "tool_call",
        _ => "stop",
    }
}
