//! The table `works`: detached work that a collector has to receive (docs/observability.md). For an effect,
//! an endpoint or a job, no other row keeps its data and links until its span is sent. Without a collector,
//! the table does not exist.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::state::State;
use crate::store::table::Table;

/// Created with the first row. `ended`: 1 when the span may be sent; it leads the key, so that pending spans
/// are found without an index. `data`: [`WorkData`].
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS works (
        ended INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, began_us INTEGER, ended_us INTEGER, data TEXT NOT NULL,
        PRIMARY KEY (ended, kind, id)) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS works",
};

/// The kind of detached work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkKind {
    /// One occurrence of an effect. Its id is the last part of its idempotency key.
    Effect,
    /// A request to an endpoint, by its id.
    Endpoint,
    /// A job, by its kind and subject; after its end, also by the time of its start.
    Job,
}

impl WorkKind {
    const ALL: [WorkKind; 3] = [WorkKind::Effect, WorkKind::Endpoint, WorkKind::Job];

    /// The name in the table and in ids of spans.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            WorkKind::Effect => "effect",
            WorkKind::Endpoint => "endpoint",
            WorkKind::Job => "job",
        }
    }

    fn parse(text: &str) -> Option<WorkKind> {
        WorkKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A link of its span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkLink {
    /// The linked trace and span: the text of a [`crate::trace::Trace`].
    pub(crate) to: String,
    /// The number of the linked run, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<i64>,
}

/// The data for its span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WorkData {
    /// For an effect, the name of its definition; for an endpoint, method and path; for a job, its kind.
    pub(crate) name: String,
    /// The id that clients know.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) shown: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<WorkLink>,
    /// Its own trace: the text of a [`crate::trace::Trace`]. Empty until it begins.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) trace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<u32>,
    /// The outcome, in terms of its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    /// The status of an HTTP response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// Number of the occurrence, for an effect that repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) occurrence: Option<i64>,
    /// The error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkRecord {
    pub(crate) kind: WorkKind,
    pub(crate) id: String,
    /// Start of its first attempt, microseconds since 1970.
    pub(crate) began_us: Option<i64>,
    /// Its end, microseconds since 1970.
    pub(crate) ended_us: Option<i64>,
    pub(crate) data: WorkData,
}

impl WorkRecord {
    /// WorkRecord that has not begun.
    pub(crate) fn new(kind: WorkKind, id: String) -> WorkRecord {
        WorkRecord { kind, id, began_us: None, ended_us: None, data: WorkData::default() }
    }

    /// Whether it has begun, so that the row holds more than links.
    pub(crate) fn is_named(&self) -> bool {
        !self.data.trace.is_empty()
    }

    fn read(cells: &[Cell]) -> Result<WorkRecord> {
        let [kind, id, began, ended, data] = cells else {
            return Err(Error::internal("detached work has the wrong number of columns"));
        };
        let damaged = || Error::internal("stored detached work is damaged");
        Ok(WorkRecord {
            kind: kind.text().and_then(WorkKind::parse).ok_or_else(damaged)?,
            id: id.text().unwrap_or_default().to_owned(),
            began_us: began.int(),
            ended_us: ended.int(),
            data: crate::json::from_str(data.text().unwrap_or_default()).map_err(|_| damaged())?,
        })
    }

    /// Writes the row, replacing an earlier one of the same work.
    pub(crate) fn put(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        made(state, sql)?;
        if self.ended_us.is_some() {
            forget(state, sql, self.kind, &self.id)?;
        }
        let data = serde_json::to_string(&self.data).map_err(Error::internal)?;
        sql.run(
            "INSERT OR REPLACE INTO works (ended, kind, id, began_us, ended_us, data) VALUES (?, ?, ?, ?, ?, ?)",
            &[
                Param::Int(i64::from(self.ended_us.is_some())),
                Param::Text(self.kind.as_str()),
                Param::Text(&self.id),
                self.began_us.into(),
                self.ended_us.into(),
                Param::Text(&data),
            ],
        )
    }
}

fn made(state: &mut State, sql: &dyn Sql) -> Result<()> {
    if !state.works_made {
        TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
        state.works_made = true;
    }
    Ok(())
}

/// WorkRecord that has not ended.
pub(crate) fn find(state: &mut State, sql: &dyn Sql, kind: WorkKind, id: &str) -> Result<Option<WorkRecord>> {
    made(state, sql)?;
    let statement =
        "SELECT kind, id, began_us, ended_us, data FROM works WHERE ended = 0 AND kind = ? AND id = ?";
    Ok(list(sql, statement, &[Param::Text(kind.as_str()), Param::Text(id)])?.pop())
}

/// WorkRecord of a kind that has begun and not ended.
pub(crate) fn begun(state: &mut State, sql: &dyn Sql, kind: WorkKind) -> Result<Vec<WorkRecord>> {
    made(state, sql)?;
    let statement = "SELECT kind, id, began_us, ended_us, data FROM works
        WHERE ended = 0 AND kind = ? AND began_us IS NOT NULL";
    list(sql, statement, &[Param::Text(kind.as_str())])
}

/// Deletes work that has not ended, without a span.
pub(crate) fn forget(state: &mut State, sql: &dyn Sql, kind: WorkKind, id: &str) -> Result<()> {
    made(state, sql)?;
    sql.run(
        "DELETE FROM works WHERE ended = 0 AND kind = ? AND id = ?",
        &[Param::Text(kind.as_str()), Param::Text(id)],
    )
}

/// Deletes all work that has not ended, because the thread is terminated.
pub(crate) fn forget_all(state: &mut State, sql: &dyn Sql) -> Result<()> {
    made(state, sql)?;
    sql.run("DELETE FROM works WHERE ended = 0", &[])
}

/// Ended work, at most `most`.
pub(crate) fn ended(sql: &dyn Sql, most: usize) -> Result<Vec<WorkRecord>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let statement =
        "SELECT kind, id, began_us, ended_us, data FROM works WHERE ended = 1 ORDER BY kind, id LIMIT ?";
    list(sql, statement, &[Param::Int(most)])
}

/// Deletes work whose spans were sent. Returns whether more is pending.
pub(crate) fn delete_sent(sql: &dyn Sql, works: &[(WorkKind, String)]) -> Result<bool> {
    let keys: Vec<String> = works.iter().map(|(kind, id)| format!("{} {id}", kind.as_str())).collect();
    let keys = serde_json::to_string(&keys).map_err(Error::internal)?;
    sql.run(
        "DELETE FROM works WHERE ended = 1 AND kind || ' ' || id IN (SELECT value FROM json_each(?))",
        &[Param::Text(&keys)],
    )?;
    Ok(integer(sql, "SELECT 1 FROM works WHERE ended = 1 LIMIT 1", &[])?.is_some())
}

/// Deletes all ended work without sending spans. Returns how many.
pub(crate) fn drop_ended(state: &mut State, sql: &dyn Sql) -> Result<u64> {
    made(state, sql)?;
    let count = integer(sql, "SELECT count(*) FROM works WHERE ended = 1", &[])?;
    sql.run("DELETE FROM works WHERE ended = 1", &[])?;
    Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
}

fn list(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<WorkRecord>> {
    let mut works = Vec::new();
    sql.each(statement, params, &mut |cells| {
        works.push(WorkRecord::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(works)
}
