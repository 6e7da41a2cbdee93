//! The log of a thread.

use schemars::JsonSchema;

use super::Micros;

/// A log entry. Its other fields depend on its type (docs/runs.md).
#[derive(JsonSchema)]
pub(crate) struct LogEntry {
    id: String,
    #[schemars(rename = "type")]
    kind: String,
    created_at: Micros,
    #[schemars(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct LogPage {
    logs: Vec<LogEntry>,
    total: i64,
    has_more: bool,
}
