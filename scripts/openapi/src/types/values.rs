//! Values to set, and effects to schedule.

use schemars::JsonSchema;
use serde_json::Value;

use super::Object;

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
