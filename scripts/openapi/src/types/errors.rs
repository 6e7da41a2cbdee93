//! The body of an error response.

use schemars::JsonSchema;

use super::Object;

/// The answer of a request that was refused or has failed.
#[derive(JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct Failure {
    error: Detail,
}

#[derive(JsonSchema)]
#[schemars(rename = "ErrorDetail")]
pub(crate) struct Detail {
    /// What it is, for programs (docs/errors.md).
    code: String,
    /// What is wrong, for people.
    message: String,
    /// What to do about it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The field or parameter that is to blame.
    #[schemars(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    details: Option<Object>,
}
