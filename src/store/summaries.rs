//! The table `summaries`: texts that replace the older messages of a thread in requests (docs/context.md),
//! one row for each epoch. The last few are kept. It is created with the first summary. The column
//! `meta.summary` names the current one; a thread without any reads nothing.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::limits;
use crate::protocols::responses::context::ShownSummary;
use crate::store::messages::message_id;
use crate::store::table::Table;

/// `upto`: seq of the last message that it covers. `since`: the same of the summary before it, or 0.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS summaries (
        epoch INTEGER PRIMARY KEY, upto INTEGER NOT NULL, since INTEGER NOT NULL, text TEXT NOT NULL,
        tokens INTEGER NOT NULL, model TEXT NOT NULL, stale INTEGER NOT NULL DEFAULT 0, created_us INTEGER NOT NULL)"],
    drop: "DROP TABLE IF EXISTS summaries",
};

/// Turns of a thread at some time: its ended runs, and the turns of its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnCounts {
    pub(crate) runs: i64,
    pub(crate) of_session: u32,
}

impl TurnCounts {
    /// Turns since then.
    pub(crate) fn since(self, then: TurnCounts) -> u64 {
        let runs = u64::try_from(self.runs - then.runs).unwrap_or(0);
        runs.max(u64::from(self.of_session.saturating_sub(then.of_session)))
    }
}

/// The column `meta.summary`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SummaryState {
    /// Epoch of the last summary that was stored or removed; each is one more than the one before.
    pub(crate) epoch: i64,
    /// Seq of the last message that it covers; 0 if there is none.
    pub(crate) upto: i64,
    /// A message that it covers has changed, so that it is no longer sent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) stale: bool,
    /// When it was written.
    #[serde(default)]
    pub(crate) made: TurnCounts,
    /// When too many attempts had failed in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paused: Option<TurnCounts>,
    /// Whether the next run must report that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) untold: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl SummaryState {
    /// Parses the column.
    pub(super) fn parse(column: Option<&str>) -> Result<Option<SummaryState>> {
        column.map(crate::json::from_str).transpose().map_err(Error::internal)
    }

    pub(crate) fn column(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }

    /// Seq of the last message that it replaces in requests; 0 if it replaces none.
    pub(crate) const fn covers(&self) -> i64 {
        if self.stale { 0 } else { self.upto }
    }
}

/// A row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) epoch: i64,
    pub(crate) upto: i64,
    pub(crate) since: i64,
    pub(crate) text: String,
    pub(crate) tokens: i64,
    /// Name of the model's definition.
    pub(crate) model: String,
    pub(crate) stale: bool,
    pub(crate) created_us: i64,
}

impl Summary {
    /// The public form.
    pub(crate) fn response(&self, thread: &str) -> ShownSummary<'_> {
        ShownSummary {
            epoch: self.epoch,
            upto: message_id(thread, self.upto),
            tokens: self.tokens,
            model: &self.model,
            created_at: self.created_us,
            stale: self.stale,
            text: &self.text,
        }
    }

    fn read(cells: &[Cell]) -> Result<Summary> {
        let [epoch, upto, since, text, tokens, model, stale, created] = cells else {
            return Err(Error::internal("a summary has the wrong number of columns"));
        };
        let number = |cell: &Cell| cell.int().unwrap_or_default();
        let owned = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        Ok(Summary {
            epoch: number(epoch),
            upto: number(upto),
            since: number(since),
            text: owned(text),
            tokens: number(tokens),
            model: owned(model),
            stale: number(stale) == 1,
            created_us: number(created),
        })
    }
}

/// Stores a summary, and deletes old ones.
pub(crate) fn insert(sql: &dyn Sql, summary: &Summary) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
    sql.run(
        "INSERT INTO summaries (epoch, upto, since, text, tokens, model, created_us) VALUES (?, ?, ?, ?, ?, ?, ?)",
        &[
            Param::Int(summary.epoch),
            Param::Int(summary.upto),
            Param::Int(summary.since),
            Param::Text(&summary.text),
            Param::Int(summary.tokens),
            Param::Text(&summary.model),
            Param::Int(summary.created_us),
        ],
    )?;
    sql.run("DELETE FROM summaries WHERE epoch <= ?", &[Param::Int(summary.epoch - limits::SUMMARIES)])
}

pub(crate) fn find(sql: &dyn Sql, epoch: i64) -> Result<Option<Summary>> {
    let statement =
        "SELECT epoch, upto, since, text, tokens, model, stale, created_us FROM summaries WHERE epoch = ?";
    Ok(list(sql, statement, &[Param::Int(epoch)])?.pop())
}

/// The newest summary whose messages are unchanged.
pub(crate) fn newest_sound(sql: &dyn Sql) -> Result<Option<Summary>> {
    let statement = "SELECT epoch, upto, since, text, tokens, model, stale, created_us FROM summaries
        WHERE stale = 0 ORDER BY epoch DESC LIMIT 1";
    Ok(list(sql, statement, &[])?.pop())
}

/// The newest unchanged summary that covers nothing after a seq; none if the table was never created.
pub(crate) fn newest_within(sql: &dyn Sql, upto: i64) -> Result<Option<Summary>> {
    if integer(sql, "SELECT 1 FROM sqlite_schema WHERE name = 'summaries'", &[])?.is_none() {
        return Ok(None);
    }
    let statement = "SELECT epoch, upto, since, text, tokens, model, stale, created_us FROM summaries
        WHERE stale = 0 AND upto <= ? ORDER BY epoch DESC LIMIT 1";
    Ok(list(sql, statement, &[Param::Int(upto)])?.pop())
}

/// The stored summaries, newest first.
pub(crate) fn all(sql: &dyn Sql) -> Result<Vec<Summary>> {
    let statement = "SELECT epoch, upto, since, text, tokens, model, stale, created_us FROM summaries ORDER BY epoch DESC";
    list(sql, statement, &[])
}

/// Marks the summaries that cover a changed message as stale, and deletes their texts.
pub(crate) fn spoil(sql: &dyn Sql, seq: i64) -> Result<()> {
    sql.run("UPDATE summaries SET stale = 1, text = '' WHERE upto >= ?", &[Param::Int(seq)])
}

pub(crate) fn clear(sql: &dyn Sql) -> Result<()> {
    TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
    sql.run("DELETE FROM summaries", &[])
}

fn list(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Summary>> {
    let mut rows = Vec::new();
    sql.each(statement, params, &mut |cells| {
        rows.push(Summary::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_counted_by_runs_and_within_a_session() {
        let at = |runs, of_session| TurnCounts { runs, of_session };
        assert_eq!(at(7, 7).since(at(3, 3)), 4);
        assert_eq!(at(7, 0).since(at(3, 9)), 4, "a session that ended begins to count anew");
        assert_eq!(at(1, 40).since(at(1, 30)), 10, "one run of two sides has many");
        assert_eq!(at(0, 0).since(at(3, 3)), 0);
    }

    #[test]
    fn a_column_that_says_little_is_read() {
        assert_eq!(SummaryState::parse(None).unwrap(), None);
        let current = SummaryState::parse(Some(r#"{"epoch":3,"upto":12}"#)).unwrap().unwrap();
        assert_eq!((current.epoch, current.covers(), current.paused), (3, 12, None));
        assert_eq!(SummaryState { stale: true, ..current }.covers(), 0);
        assert!(SummaryState::parse(Some("[]")).is_err());
    }
}
