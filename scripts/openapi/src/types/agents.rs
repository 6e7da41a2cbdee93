//! Agents, tokens, and the server itself.

use schemars::JsonSchema;
use serde_json::Value;

use super::{Object, Seconds};

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewToken {
    /// Such as `owner:alice` or `thread:6f0c8a52-…`, within the scope of the caller.
    scope: String,
    /// Seconds.
    #[schemars(range(min = 1, max = 604_800))]
    ttl: Option<i64>,
}

/// The first facts for an operator (docs/runs.md).
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ThreadDiagnostics {
    thread_id: String,
    /// The number of this thread among those of its key, from 1.
    life: i64,
    state: bobbin_protocols::responses::threads::ThreadState,
    phase: String,
    run: Option<Object>,
    queue: Object,
    effects: Object,
    waiting_receipts: Vec<Value>,
    children: Vec<Value>,
    alarm: Object,
    due: Vec<Value>,
    flow: Object,
    /// Whether clients are connected.
    listeners: bool,
    history: Object,
    /// The version of the tables.
    schema: i64,
    /// Bytes of the database.
    bytes: i64,
    now: super::Micros,
    /// With a collector of spans: the spans that were dropped.
    #[schemars(skip_serializing_if = "Option::is_none")]
    export: Option<Object>,
}
