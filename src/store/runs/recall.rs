//! Memory search results for a turn of a run: `runs.recall`. Read and written separately from the rest of the
//! row, and only if a prompt uses a memory.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::{Param, Sql};

/// Search results, as references. Their texts are read again, so that deleted ones are not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recall {
    /// The first message of the turn.
    pub(crate) turn: i64,
    /// Number of results that were put before the model; `None` until it is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) injected: Option<usize>,
    /// In the order of the labels, from `m1` on.
    pub(crate) found: Vec<RecallHit>,
}

/// A result of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecallHit {
    pub(crate) memory: String,
    /// Numbers of its chunks.
    pub(crate) chunks: Vec<i64>,
    pub(crate) score: f64,
}

/// The last search results of a run, if they are for this turn.
pub(crate) fn of_turn(sql: &dyn Sql, run: i64, turn: i64) -> Result<Option<Recall>> {
    let mut found = None;
    sql.each("SELECT recall FROM runs WHERE id = ?", &[Param::Int(run)], &mut |cells| {
        if let [recall] = cells {
            found = recall.text().and_then(|text| crate::json::from_str::<Recall>(text).ok());
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found.filter(|recall| recall.turn == turn))
}

pub(crate) fn store(sql: &dyn Sql, run: i64, recall: &Recall) -> Result<()> {
    let text = serde_json::to_string(recall).map_err(Error::internal)?;
    sql.run("UPDATE runs SET recall = ? WHERE id = ?", &[Param::Text(&text), Param::Int(run)])
}
