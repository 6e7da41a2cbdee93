//! The bodies of responses, as types. The runtime serializes them, and with the feature `schema` the
//! description of the API derives their schemas (`scripts/openapi`).
//!
//! The fields are in the order of the response. An `Option` without `skip_serializing_if` is a field that a
//! response always has and that may be `null`; one with it is absent if it is `None`. Types borrow from the
//! rows that they show, so that a large text is copied only into the response.

pub mod agents;
pub mod budgets;
pub mod chats;
pub mod context;
pub mod diagnostics;
pub mod files;
pub mod frames;
pub mod logs;
pub mod mcp;
pub mod memories;
pub mod messages;
pub mod runs;
pub mod server;
pub mod threads;
pub mod values;
pub mod variables;
pub mod waits;

use serde::Serialize;
use serde_json::{Map, Value};

/// Any JSON object.
pub type Object = Map<String, Value>;

/// Microseconds since 1970.
pub type Micros = i64;

/// Seconds since 1970.
pub type Seconds = i64;

/// The request has succeeded.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Success {
    /// Always `true`.
    pub success: bool,
}

impl Success {
    /// The response to a request without any other result.
    pub const OK: Success = Success { success: true };
}

#[cfg(test)]
mod tests;
