//! How far the spans of a thread are exported: the data of the job.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The position of the export: the next spans belong to this run, to its steps from `after` on, without the
/// first `skip`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) run: i64,
    #[serde(default)]
    pub(super) after: i64,
    #[serde(default)]
    pub(super) skip: usize,
    /// Number of spans in the last attempt, for the count of dropped spans.
    #[serde(default)]
    pub(super) spans: u64,
    /// Limits the export to spans that began then and ended after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) late: Option<i64>,
}

pub(super) fn encoded(place: &Position) -> Result<String> {
    serde_json::to_string(place).map_err(Error::internal)
}
