//! Values of a thread, and its effects.

use schemars::JsonSchema;
use serde_json::Value;

use super::{Micros, Object};

/// A value for a request with `key`, otherwise a page.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Values {
    One(OneValue),
    Page(ValuePage),
}

#[derive(JsonSchema)]
pub(crate) struct OneValue {
    key: String,
    value: Value,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ListedValue {
    key: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// Bytes of JSON.
    #[schemars(skip_serializing_if = "Option::is_none")]
    size: Option<i64>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    updated_at: Option<Micros>,
    /// Why the value cannot be read.
    #[schemars(skip_serializing_if = "Option::is_none")]
    damaged: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ValuePage {
    values: Vec<ListedValue>,
    total: i64,
    cursor: Option<String>,
    limit: i64,
    offset: i64,
    prefix: String,
    search: String,
}

/// A value to set, delete (`null`) or rename.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewValue {
    #[schemars(length(min = 1, max = 512))]
    key: String,
    value: Option<Value>,
    /// A key that is deleted in the same change.
    previous_key: Option<String>,
    /// Set the value only while the stored one is this JSON. `null`: while there is none.
    if_value: Option<Value>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ValueSet {
    key: String,
    value: Value,
    previous_key: Option<String>,
    deleted: bool,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum EffectStatus {
    Pending,
    Processing,
    Completed,
    Failed,
    AgentCanceled,
    UserCanceled,
}

/// An effect, scheduled or ended.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Effect {
    id: String,
    name: String,
    args: Value,
    status: EffectStatus,
    scheduled_at: Micros,
    due_at: Option<Micros>,
    ended_at: Option<Micros>,
    created_at: Micros,
    repeat: Option<Object>,
    occurrence: Option<i64>,
    attempts: i64,
    error: Option<String>,
    occurrence_of: Option<String>,
    replayed_from: Option<String>,
    idempotency_key: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct EffectPage {
    effects: Vec<Effect>,
    total: i64,
    upcoming_count: i64,
    limit: i64,
    offset: i64,
    has_more: bool,
}

/// A time: the text of a date, or milliseconds since 1970.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum When {
    Text(String),
    Millis(i64),
}

/// An effect to schedule.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewEffect {
    name: String,
    args: Option<Object>,
    /// Milliseconds from now.
    delay: Option<i64>,
    at: Option<When>,
    /// Milliseconds.
    every: Option<i64>,
    /// Five fields, in UTC.
    cron: Option<String>,
}

/// The result of running or cancelling an effect.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct EffectChanged {
    action: String,
    id: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    canceled_by: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    replayed_id: Option<String>,
}

#[derive(JsonSchema)]
pub(crate) struct OneEffect {
    effect: Effect,
}

/// A scheduled effect.
#[derive(JsonSchema)]
pub(crate) struct EffectScheduled {
    effect: Effect,
}
