//! The table `state`: one row with the counts for the default listing, which would otherwise scan all
//! threads; the progress of reports to the root; and the version of the values of variables, which grows with
//! each change.

use std::ops::ControlFlow;

use crate::directory::{int_at, text_at};
use crate::error::Result;
use crate::host::{Sql, integer};
use crate::store::table::Table;

pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE state (
        id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, owner TEXT,
        threads INTEGER NOT NULL DEFAULT 0, top INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0,
        told INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, env_version INTEGER NOT NULL DEFAULT 0)"],
    drop: "DROP TABLE state",
};

/// A report for the root.
pub(crate) struct CountReport {
    pub(crate) owner: Option<String>,
    pub(crate) threads: i64,
    /// Number of changes so far.
    pub(crate) changes: i64,
}

/// The version of the tables; 0 if there are none.
pub(super) fn schema(sql: &dyn Sql) -> Result<i64> {
    let found = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'state'";
    match integer(sql, found, &[])? {
        None => Ok(0),
        Some(_) => Ok(integer(sql, "SELECT schema FROM state", &[])?.unwrap_or(0)),
    }
}

/// Stores the version to which the tables were migrated.
pub(super) fn set_schema(sql: &dyn Sql, version: i64) -> Result<()> {
    sql.run(
        "INSERT INTO state (id, schema) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET schema = excluded.schema",
        &[version.into()],
    )
}

/// Counts a new thread; `top` is 1 if it is not a child.
pub(crate) fn thread_came(sql: &dyn Sql, owner: Option<&str>, top: i64) -> Result<()> {
    sql.run(
        "UPDATE state SET owner = ?, threads = threads + 1, top = top + ?, changes = changes + 1",
        &[owner.into(), top.into()],
    )
}

/// Counts a removed thread; `top` is 1 if it was not a child.
pub(crate) fn thread_went(sql: &dyn Sql, top: i64) -> Result<()> {
    sql.run("UPDATE state SET threads = threads - 1, top = top - ?, changes = changes + 1", &[top.into()])
}

/// Number of listed threads.
pub(crate) fn threads(sql: &dyn Sql) -> Result<i64> {
    Ok(integer(sql, "SELECT threads FROM state", &[])?.unwrap_or(0))
}

/// Number of listed threads that are not children.
pub(crate) fn top(sql: &dyn Sql) -> Result<i64> {
    Ok(integer(sql, "SELECT top FROM state", &[])?.unwrap_or(0))
}

/// Number of changes that were not reported to the root.
pub(crate) fn untold(sql: &dyn Sql) -> Result<i64> {
    Ok(integer(sql, "SELECT changes - told FROM state", &[])?.unwrap_or(0))
}

/// The pending report for the root.
pub(crate) fn news(sql: &dyn Sql) -> Result<Option<CountReport>> {
    let mut news = None;
    sql.each("SELECT owner, threads, changes, told FROM state", &[], &mut |row| {
        if int_at(row, 2)? > int_at(row, 3)? {
            let owner = text_at(row, 0).map(str::to_owned);
            news = Some(CountReport { owner, threads: int_at(row, 1)?, changes: int_at(row, 2)? });
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(news)
}

/// Stores that this number of changes was reported to the root.
pub(crate) fn mark_reported(sql: &dyn Sql, changes: i64) -> Result<()> {
    sql.run("UPDATE state SET told = ?, tries = 0", &[changes.into()])
}

/// Counts a failed report. Returns the number of consecutive failures.
pub(crate) fn count_try(sql: &dyn Sql) -> Result<i64> {
    sql.run("UPDATE state SET tries = tries + 1", &[])?;
    Ok(integer(sql, "SELECT tries FROM state", &[])?.unwrap_or(1))
}

/// The version of the values of variables.
pub(crate) fn env_version(sql: &dyn Sql) -> Result<i64> {
    Ok(integer(sql, "SELECT env_version FROM state", &[])?.unwrap_or(0))
}

/// Increments the version of the values of variables.
pub(crate) fn env_changed(sql: &dyn Sql) -> Result<()> {
    sql.run("UPDATE state SET env_version = env_version + 1", &[])
}
