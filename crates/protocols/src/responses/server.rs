//! The server itself (docs/http.md).

use serde::Serialize;

/// The state of the server.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// Always `ok`.
    pub status: &'static str,
    /// The version of Bobbin.
    pub version: &'static str,
    /// The number of agents.
    pub agents: u64,
    /// For administrators: the number of warnings of the compiled definitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<u32>,
}
