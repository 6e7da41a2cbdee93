//! What was looked up for a turn of a run: `runs.recall`. It is read and written apart from the rest of the row, and only where a
//! prompt uses a memory.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::{Param, Sql};

/// What was looked up, as places: what they hold is read again, so that what was deleted meanwhile is not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recall {
    /// The first message of the turn.
    pub(crate) turn: i64,
    /// How many of them were put before the model; `None` until that was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) injected: Option<usize>,
    /// Those of the mark `m1` first.
    pub(crate) found: Vec<Recalled>,
}

/// A text that was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recalled {
    pub(crate) memory: String,
    /// Numbers of its chunks.
    pub(crate) chunks: Vec<i64>,
    pub(crate) score: f64,
}

/// What was looked up last in a run, if it was for this turn.
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

/// Writes it.
pub(crate) fn store(sql: &dyn Sql, run: i64, recall: &Recall) -> Result<()> {
    let text = serde_json::to_string(recall).map_err(Error::internal)?;
    sql.run("UPDATE runs SET recall = ? WHERE id = ?", &[Param::Text(&text), Param::Int(run)])
}
