//! The log of a thread (docs/runs.md).

use serde::Serialize;
use serde_json::Value;

use super::Object;

/// A log entry. Its type determines its fields, and the log stores them as JSON.
#[derive(Debug, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "LogEntryFields"))]
pub struct LogEntry(pub Object);

/// A log entry. Its other fields depend on its type (docs/runs.md).
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(rename = "LogEntry")]
#[expect(dead_code, reason = "the schema of the fields that all entries have")]
struct LogEntryFields {
    id: String,
    #[schemars(rename = "type")]
    kind: String,
    created_at: super::Micros,
    #[schemars(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
}

/// A page of the log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogPage {
    /// The entries.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<LogEntryFields>"))]
    pub logs: Vec<Value>,
    /// The number of entries that match the request.
    pub total: i64,
    /// Whether more entries follow.
    pub has_more: bool,
}
