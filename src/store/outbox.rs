//! The table `outbox`: messages to other objects, delivered at least once. One row per subject; the newest
//! wins.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::table::Table;

pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE outbox (
        subject TEXT PRIMARY KEY, target TEXT NOT NULL, body TEXT NOT NULL, version INTEGER NOT NULL,
        tries INTEGER NOT NULL, due_us INTEGER NOT NULL) WITHOUT ROWID"],
    drop: "DROP TABLE outbox",
};

/// Prefix of a target that is a thread; the rest is its id.
pub(crate) const TO_THREAD: &str = "t:";
/// Prefix of a target that is a memory; the rest is its object's name. Any other target is a directory.
pub(crate) const TO_MEMORY: &str = "m:";

/// An entry to deliver.
pub(crate) struct OutboxEntry {
    pub(crate) subject: String,
    pub(crate) target: String,
    pub(crate) body: String,
    pub(crate) version: i64,
    pub(crate) tries: i64,
}

/// The due time of an entry, in `GET …/diagnostics`.
pub(crate) struct DueEntry {
    pub(crate) subject: Option<String>,
    pub(crate) at_us: Option<i64>,
    pub(crate) tries: Option<i64>,
}

/// A new entry.
pub(crate) struct NewEntry<'a> {
    pub(crate) subject: &'a str,
    pub(crate) target: &'a str,
    pub(crate) body: &'a str,
    pub(crate) version: i64,
    pub(crate) due_us: i64,
}

impl NewEntry<'_> {
    const fn params(&self) -> [Param<'_>; 5] {
        [
            Param::Text(self.subject),
            Param::Text(self.target),
            Param::Text(self.body),
            Param::Int(self.version),
            Param::Int(self.due_us),
        ]
    }

    /// Writes the entry, replacing an older one with the same subject.
    pub(crate) fn replace(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "INSERT OR REPLACE INTO outbox (subject, target, body, version, tries, due_us) VALUES (?, ?, ?, ?, 0, ?)",
            &self.params(),
        )
    }

    /// Writes the entry, due no earlier than entries to the same target that wait for a retry.
    pub(crate) fn follow(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "INSERT INTO outbox (subject, target, body, version, tries, due_us)
             VALUES (?1, ?2, ?3, ?4, 0, max(?5, ifnull((SELECT max(due_us) FROM outbox WHERE target = ?2), 0)))",
            &self.params(),
        )
    }
}

/// The first due entries, by subject.
pub(crate) fn due(sql: &dyn Sql, until: i64) -> Result<Vec<OutboxEntry>> {
    let statement = "SELECT subject, target, body, version, tries FROM outbox WHERE due_us <= ? ORDER BY subject LIMIT 64";
    entries(sql, statement, &[Param::Int(until)])
}

/// The first due entries to threads.
pub(crate) fn due_to_threads(sql: &dyn Sql, until: i64) -> Result<Vec<OutboxEntry>> {
    let statement = "SELECT subject, target, body, version, tries FROM outbox
        WHERE due_us <= ? AND target LIKE 't:%' ORDER BY subject LIMIT 64";
    entries(sql, statement, &[Param::Int(until)])
}

/// The first due entries to a target.
pub(crate) fn due_to(sql: &dyn Sql, target: &str, until: i64) -> Result<Vec<OutboxEntry>> {
    let statement = "SELECT subject, target, body, version, tries FROM outbox
        WHERE due_us <= ? AND target = ? ORDER BY subject LIMIT 64";
    entries(sql, statement, &[Param::Int(until), Param::Text(target)])
}

/// The version of the newest entry to a target.
pub(crate) fn newest_for(sql: &dyn Sql, target: &str) -> Result<Option<i64>> {
    integer(sql, "SELECT max(version) FROM outbox WHERE target = ?", &[Param::Text(target)])
}

/// The memories with pending entries.
pub(crate) fn memories(sql: &dyn Sql) -> Result<Vec<String>> {
    let mut targets = Vec::new();
    sql.each("SELECT DISTINCT target FROM outbox WHERE target LIKE 'm:%'", &[], &mut |cells| {
        targets.extend(cells.first().and_then(Cell::text).map(str::to_owned));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(targets)
}

fn entries(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<OutboxEntry>> {
    let mut entries = Vec::new();
    sql.each(statement, params, &mut |cells| {
        let [subject, target, body, version, tries] = cells else {
            return Err(Error::internal("an outbox row has the wrong number of columns"));
        };
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        entries.push(OutboxEntry {
            subject: text(subject),
            target: text(target),
            body: text(body),
            version: version.int().unwrap_or_default(),
            tries: tries.int().unwrap_or_default(),
        });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(entries)
}

/// The first due time.
pub(crate) fn next_due(sql: &dyn Sql) -> Result<Option<i64>> {
    integer(sql, "SELECT min(due_us) FROM outbox", &[])
}

/// The first due time that concerns the alarm's handler: of entries that are due, or whose target is not a
/// thread.
pub(crate) fn next_soon(sql: &dyn Sql, now: i64) -> Result<Option<i64>> {
    integer(
        sql,
        "SELECT min(CASE WHEN target NOT LIKE 't:%' OR due_us <= ?1 THEN due_us END) FROM outbox",
        &[Param::Int(now)],
    )
}

/// The due time of each entry.
pub(crate) fn dues(sql: &dyn Sql) -> Result<Vec<DueEntry>> {
    let mut found = Vec::new();
    sql.each("SELECT subject, due_us, tries FROM outbox", &[], &mut |cells| {
        if let [subject, at, tries] = cells {
            found.push(DueEntry {
                subject: subject.text().map(str::to_owned),
                at_us: at.int(),
                tries: tries.int(),
            });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Schedules a failed delivery again.
pub(crate) fn retry(sql: &dyn Sql, entry: &OutboxEntry, at_us: i64) -> Result<()> {
    sql.run(
        "UPDATE outbox SET tries = tries + 1, due_us = ? WHERE subject = ? AND version = ?",
        &[Param::Int(at_us), Param::Text(&entry.subject), Param::Int(entry.version)],
    )
}

/// Delays all entries to a target.
pub(crate) fn hold(sql: &dyn Sql, target: &str, at_us: i64) -> Result<()> {
    sql.run(
        "UPDATE outbox SET due_us = max(due_us, ?) WHERE target = ?",
        &[Param::Int(at_us), Param::Text(target)],
    )
}

/// Makes all entries to a target due now.
pub(crate) fn hurry(sql: &dyn Sql, target: &str, now_us: i64) -> Result<()> {
    let params = [Param::Int(now_us), Param::Text(target)];
    sql.run("UPDATE outbox SET due_us = min(due_us, ?) WHERE target = ?", &params)
}

/// Deletes a delivered entry. A newer one with the same subject has another version and stays.
pub(crate) fn forget(sql: &dyn Sql, subject: &str, version: i64) -> Result<()> {
    sql.run(
        "DELETE FROM outbox WHERE subject = ? AND version = ?",
        &[Param::Text(subject), Param::Int(version)],
    )
}

/// Deletes these entries, in one statement.
pub(crate) fn forget_all(sql: &dyn Sql, entries: &[OutboxEntry]) -> Result<()> {
    if let [entry] = entries {
        return forget(sql, &entry.subject, entry.version);
    }
    let keys: serde_json::Value =
        entries.iter().map(|entry| crate::json!([entry.subject, entry.version])).collect();
    sql.run(
        "DELETE FROM outbox WHERE (subject, version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
        &[Param::Text(&keys.to_string())],
    )
}

/// Deletes all entries to a target.
pub(crate) fn forget_target(sql: &dyn Sql, target: &str) -> Result<()> {
    sql.run("DELETE FROM outbox WHERE target = ?", &[Param::Text(target)])
}

/// Deletes all entries to threads, except those to this target.
pub(crate) fn forget_threads_but(sql: &dyn Sql, target: Option<&str>) -> Result<()> {
    sql.run("DELETE FROM outbox WHERE target LIKE 't:%' AND target IS NOT ?", &[target.into()])
}

/// Whether there are entries to a target.
pub(crate) fn has_for(sql: &dyn Sql, target: &str) -> Result<bool> {
    Ok(integer(sql, "SELECT 1 FROM outbox WHERE target = ? LIMIT 1", &[Param::Text(target)])?.is_some())
}

/// Number of entries to a target.
pub(crate) fn count_for(sql: &dyn Sql, target: &str) -> Result<i64> {
    Ok(integer(sql, "SELECT count(*) FROM outbox WHERE target = ?", &[Param::Text(target)])?.unwrap_or(0))
}
