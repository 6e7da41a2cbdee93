//! The body of an error response.

use schemars::JsonSchema;

use super::Object;

/// The response to a request that was refused or has failed.
#[derive(JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct Failure {
    error: Detail,
}

#[derive(JsonSchema)]
#[schemars(rename = "ErrorDetail")]
pub(crate) struct Detail {
    /// A stable code for programs (docs/errors.md).
    code: String,
    /// The error, for people.
    message: String,
    /// What to do about it, for people.
    #[schemars(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The wrong field or parameter.
    #[schemars(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    details: Option<Object>,
}
