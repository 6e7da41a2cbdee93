//! The table `works`: work beside runs that a collector is told of (docs/observability.md). What an effect, an endpoint or a job was
//! and what it is linked to stands in no other row until its span was sent, and not longer. Where no collector is configured there
//! is no such table.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::state::State;
use crate::store::table::Table;

/// It is made with the first row. `ended`: 1 once the span may be sent; it leads the key, so that what is owed is found without an
/// index. `data`: [`WorkData`].
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS works (
        ended INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, began_us INTEGER, ended_us INTEGER, data TEXT NOT NULL,
        PRIMARY KEY (ended, kind, id)) WITHOUT ROWID"],
    drop: "DROP TABLE IF EXISTS works",
};

/// What kind of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkKind {
    /// One occurrence of an effect. Its id: the part of the idempotency key that is its own.
    Effect,
    /// A request to an endpoint, by its id.
    Endpoint,
    /// A job, by its kind and subject; once it has ended, also by when it began.
    Job,
}

impl WorkKind {
    const ALL: [WorkKind; 3] = [WorkKind::Effect, WorkKind::Endpoint, WorkKind::Job];

    /// As the table and the ids of spans have it.
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

/// What its span is linked to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkLink {
    /// The trace, within the span that is meant: the text of a [`crate::trace::Trace`].
    pub(crate) to: String,
    /// The number of the run, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<i64>,
}

/// What its span tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WorkData {
    /// Of an effect its definition's; of an endpoint method and path; of a job its kind.
    pub(crate) name: String,
    /// As clients know it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) shown: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<WorkLink>,
    /// The trace that it is in: the text of a [`crate::trace::Trace`]. Empty while nothing of it has begun.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) trace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<u32>,
    /// How it ended, in the words of its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    /// The status of an HTTP answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// Which time this is, of an effect that repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) occurrence: Option<i64>,
    /// Why it failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) kind: WorkKind,
    pub(crate) id: String,
    /// When its first attempt began, microseconds since 1970; none before.
    pub(crate) began_us: Option<i64>,
    /// When it ended; none before.
    pub(crate) ended_us: Option<i64>,
    pub(crate) data: WorkData,
}

impl Work {
    /// One that has not begun.
    pub(crate) fn new(kind: WorkKind, id: String) -> Work {
        Work { kind, id, began_us: None, ended_us: None, data: WorkData::default() }
    }

    /// Whether it is known what it is, and not only what it will be linked to.
    pub(crate) fn is_named(&self) -> bool {
        !self.data.trace.is_empty()
    }

    fn read(cells: &[Cell]) -> Result<Work> {
        let [kind, id, began, ended, data] = cells else {
            return Err(Error::internal("a work has the wrong number of columns"));
        };
        let damaged = || Error::internal("a stored work is damaged");
        Ok(Work {
            kind: kind.text().and_then(WorkKind::parse).ok_or_else(damaged)?,
            id: id.text().unwrap_or_default().to_owned(),
            began_us: began.int(),
            ended_us: ended.int(),
            data: crate::json::from_str(data.text().unwrap_or_default()).map_err(|_| damaged())?,
        })
    }

    /// Writes it, in place of what is there of it.
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

/// One that has not ended.
pub(crate) fn find(state: &mut State, sql: &dyn Sql, kind: WorkKind, id: &str) -> Result<Option<Work>> {
    made(state, sql)?;
    let statement =
        "SELECT kind, id, began_us, ended_us, data FROM works WHERE ended = 0 AND kind = ? AND id = ?";
    Ok(list(sql, statement, &[Param::Text(kind.as_str()), Param::Text(id)])?.pop())
}

/// Those of a kind that have begun and not ended.
pub(crate) fn begun(state: &mut State, sql: &dyn Sql, kind: WorkKind) -> Result<Vec<Work>> {
    made(state, sql)?;
    let statement = "SELECT kind, id, began_us, ended_us, data FROM works
        WHERE ended = 0 AND kind = ? AND began_us IS NOT NULL";
    list(sql, statement, &[Param::Text(kind.as_str())])
}

/// One that has not ended is not told of.
pub(crate) fn forget(state: &mut State, sql: &dyn Sql, kind: WorkKind, id: &str) -> Result<()> {
    made(state, sql)?;
    sql.run(
        "DELETE FROM works WHERE ended = 0 AND kind = ? AND id = ?",
        &[Param::Text(kind.as_str()), Param::Text(id)],
    )
}

/// Nor is any other that has not ended: the thread takes no more work.
pub(crate) fn forget_all(state: &mut State, sql: &dyn Sql) -> Result<()> {
    made(state, sql)?;
    sql.run("DELETE FROM works WHERE ended = 0", &[])
}

/// Those that have ended, `most` at most.
pub(crate) fn ended(sql: &dyn Sql, most: usize) -> Result<Vec<Work>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let statement =
        "SELECT kind, id, began_us, ended_us, data FROM works WHERE ended = 1 ORDER BY kind, id LIMIT ?";
    list(sql, statement, &[Param::Int(most)])
}

/// These were told of. Whether others are to be.
pub(crate) fn told(sql: &dyn Sql, works: &[(WorkKind, String)]) -> Result<bool> {
    let keys: Vec<String> = works.iter().map(|(kind, id)| format!("{} {id}", kind.as_str())).collect();
    let keys = serde_json::to_string(&keys).map_err(Error::internal)?;
    sql.run(
        "DELETE FROM works WHERE ended = 1 AND kind || ' ' || id IN (SELECT value FROM json_each(?))",
        &[Param::Text(&keys)],
    )?;
    Ok(integer(sql, "SELECT 1 FROM works WHERE ended = 1 LIMIT 1", &[])?.is_some())
}

/// Those that have ended are told of to nobody. How many they were.
pub(crate) fn drop_ended(state: &mut State, sql: &dyn Sql) -> Result<u64> {
    made(state, sql)?;
    let count = integer(sql, "SELECT count(*) FROM works WHERE ended = 1", &[])?;
    sql.run("DELETE FROM works WHERE ended = 1", &[])?;
    Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
}

fn list(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Work>> {
    let mut works = Vec::new();
    sql.each(statement, params, &mut |cells| {
        works.push(Work::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(works)
}
