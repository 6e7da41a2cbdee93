//! The tables `mem_work` and `mem_applied` of an object with one shared memory: its pending work, and the
//! outbox entries of threads that it has applied.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::host::{Param, Sql, integer};
use crate::limits;
use crate::store::table::Table;

/// One row while work is pending. `attempts`: attempts since the last progress, including the one that made
/// it. `failures`: consecutive failures of the model.
const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mem_work (
        id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, due_us INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0)"],
    drop: "DROP TABLE IF EXISTS mem_work",
};

/// Keys of applied entries, so that an entry that is delivered again has no effect.
const APPLIED: Table = Table {
    create: &[
        "CREATE TABLE IF NOT EXISTS mem_applied (key TEXT PRIMARY KEY, at_us INTEGER NOT NULL) WITHOUT ROWID",
        // Each entry deletes the expired ones without reading the others.
        "CREATE INDEX IF NOT EXISTS mem_applied_at ON mem_applied (at_us)",
    ],
    drop: "DROP TABLE IF EXISTS mem_applied",
};

/// Pending indexing of a memory.
#[derive(Clone, Debug)]
pub(crate) struct IndexingJob {
    /// Name of the memory.
    pub(crate) name: String,
    pub(crate) due_us: i64,
    pub(crate) attempts: u32,
    pub(crate) failures: u32,
}

/// Creates the tables if they are missing.
pub(crate) fn create_tables(sql: &dyn Sql) -> Result<()> {
    [TABLE, APPLIED].iter().flat_map(|table| table.create).try_for_each(|statement| sql.run(statement, &[]))
}

/// The pending job.
pub(crate) fn pending(sql: &dyn Sql) -> Result<Option<IndexingJob>> {
    let mut found = None;
    sql.each("SELECT name, due_us, attempts, failures FROM mem_work", &[], &mut |cells| {
        if let [name, due, attempts, failures] = cells {
            let count =
                |cell: &crate::host::Cell| cell.int().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            found = Some(IndexingJob {
                name: name.text().unwrap_or_default().to_owned(),
                due_us: due.int().unwrap_or_default(),
                attempts: count(attempts),
                failures: count(failures),
            });
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Schedules indexing. A pending job becomes due no later, with all its attempts except one that may be running.
pub(crate) fn schedule(sql: &dyn Sql, name: &str, due_us: i64) -> Result<()> {
    sql.run(
        "INSERT INTO mem_work (id, name, due_us) VALUES (1, ?, ?)
         ON CONFLICT (id) DO UPDATE SET due_us = min(due_us, excluded.due_us), attempts = min(attempts, 1), name = excluded.name",
        &[Param::Text(name), Param::Int(due_us)],
    )
}

/// Writes the columns that may change.
pub(crate) fn update(sql: &dyn Sql, job: &IndexingJob) -> Result<()> {
    sql.run(
        "UPDATE mem_work SET due_us = ?, attempts = ?, failures = ?",
        &[Param::Int(job.due_us), Param::Int(i64::from(job.attempts)), Param::Int(i64::from(job.failures))],
    )
}

/// Records progress: only attempts after it count. One is still running, unless nothing is `left`.
pub(crate) fn record_progress(sql: &dyn Sql, left: bool) -> Result<()> {
    sql.run("UPDATE mem_work SET attempts = ?1 WHERE attempts > ?1", &[Param::Int(i64::from(left))])
}

/// Deletes the pending job.
pub(crate) fn finish(sql: &dyn Sql) -> Result<()> {
    sql.run("DELETE FROM mem_work", &[])
}

/// Records an entry. Returns false if it was applied before. Deletes the keys of expired entries.
pub(crate) fn record_entry(sql: &dyn Sql, key: &str, now_us: i64) -> Result<bool> {
    sql.run("DELETE FROM mem_applied WHERE at_us < ?", &[Param::Int(now_us - limits::MEMORY_APPLIED_US)])?;
    let statement =
        "INSERT INTO mem_applied (key, at_us) VALUES (?, ?) ON CONFLICT (key) DO NOTHING RETURNING 1";
    Ok(integer(sql, statement, &[Param::Text(key), Param::Int(now_us)])?.is_some())
}
