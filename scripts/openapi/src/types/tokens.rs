//! Tokens to create.

use schemars::JsonSchema;

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewToken {
    /// Such as `owner:alice` or `thread:6f0c8a52-…`, within the scope of the caller.
    scope: String,
    /// Seconds.
    #[schemars(range(min = 1, max = 604_800))]
    ttl: Option<i64>,
}
