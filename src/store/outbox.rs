//! The table `outbox`: what another object must be told at least once; one row per subject, the newest wins.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::table::Table;

pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE outbox (
        subject TEXT PRIMARY KEY, target TEXT NOT NULL, body TEXT NOT NULL, version INTEGER NOT NULL,
        tries INTEGER NOT NULL, due_us INTEGER NOT NULL) WITHOUT ROWID"],
    drop: "DROP TABLE outbox",
};

/// The target of a letter to a thread begins so; the rest is its id.
pub(crate) const TO_THREAD: &str = "t:";
/// That of a letter to a memory; the rest is its object's name. Any other target is a directory.
pub(crate) const TO_MEMORY: &str = "m:";

/// A letter that is due.
pub(crate) struct Letter {
    pub(crate) subject: String,
    pub(crate) target: String,
    pub(crate) body: String,
    pub(crate) version: i64,
    pub(crate) tries: i64,
}

/// When a letter is due, as `GET …/diagnostics` shows it.
pub(crate) struct Due {
    pub(crate) subject: Option<String>,
    pub(crate) at_us: Option<i64>,
    pub(crate) tries: Option<i64>,
}

/// What is written of a new letter.
pub(crate) struct Post<'a> {
    pub(crate) subject: &'a str,
    pub(crate) target: &'a str,
    pub(crate) body: &'a str,
    pub(crate) version: i64,
    pub(crate) due_us: i64,
}

impl Post<'_> {
    const fn params(&self) -> [Param<'_>; 5] {
        [
            Param::Text(self.subject),
            Param::Text(self.target),
            Param::Text(self.body),
            Param::Int(self.version),
            Param::Int(self.due_us),
        ]
    }

    /// Writes it in place of an older one on the same subject.
    pub(crate) fn replace(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "INSERT OR REPLACE INTO outbox (subject, target, body, version, tries, due_us) VALUES (?, ?, ?, ?, 0, ?)",
            &self.params(),
        )
    }

    /// Writes it behind an earlier one to the same target that waits to be sent again.
    pub(crate) fn follow(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "INSERT INTO outbox (subject, target, body, version, tries, due_us)
             VALUES (?1, ?2, ?3, ?4, 0, max(?5, ifnull((SELECT max(due_us) FROM outbox WHERE target = ?2), 0)))",
            &self.params(),
        )
    }
}

/// The first letters that are due by then, by subject.
pub(crate) fn due(sql: &dyn Sql, until: i64) -> Result<Vec<Letter>> {
    let statement = "SELECT subject, target, body, version, tries FROM outbox WHERE due_us <= ? ORDER BY subject LIMIT 64";
    letters(sql, statement, &[Param::Int(until)])
}

/// Those that go to threads.
pub(crate) fn due_to_threads(sql: &dyn Sql, until: i64) -> Result<Vec<Letter>> {
    let statement = "SELECT subject, target, body, version, tries FROM outbox
        WHERE due_us <= ? AND target LIKE 't:%' ORDER BY subject LIMIT 64";
    letters(sql, statement, &[Param::Int(until)])
}

/// Those that go to this target.
pub(crate) fn due_to(sql: &dyn Sql, target: &str, until: i64) -> Result<Vec<Letter>> {
    let statement = "SELECT subject, target, body, version, tries FROM outbox
        WHERE due_us <= ? AND target = ? ORDER BY subject LIMIT 64";
    letters(sql, statement, &[Param::Int(until), Param::Text(target)])
}

/// The version of the newest letter to a target.
pub(crate) fn newest_for(sql: &dyn Sql, target: &str) -> Result<Option<i64>> {
    integer(sql, "SELECT max(version) FROM outbox WHERE target = ?", &[Param::Text(target)])
}

/// The memories that letters go to.
pub(crate) fn memories(sql: &dyn Sql) -> Result<Vec<String>> {
    let mut targets = Vec::new();
    sql.each("SELECT DISTINCT target FROM outbox WHERE target LIKE 'm:%'", &[], &mut |cells| {
        targets.extend(cells.first().and_then(Cell::text).map(str::to_owned));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(targets)
}

fn letters(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Letter>> {
    let mut letters = Vec::new();
    sql.each(statement, params, &mut |cells| {
        let [subject, target, body, version, tries] = cells else {
            return Err(Error::internal("an outbox row has the wrong number of columns"));
        };
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        letters.push(Letter {
            subject: text(subject),
            target: text(target),
            body: text(body),
            version: version.int().unwrap_or_default(),
            tries: tries.int().unwrap_or_default(),
        });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(letters)
}

/// When the first one is due.
pub(crate) fn next_due(sql: &dyn Sql) -> Result<Option<i64>> {
    integer(sql, "SELECT min(due_us) FROM outbox", &[])
}

/// When the first one is due that the alarm's handler looks after: one that is due by now, or one to a directory.
pub(crate) fn next_soon(sql: &dyn Sql, now: i64) -> Result<Option<i64>> {
    integer(
        sql,
        "SELECT min(CASE WHEN target NOT LIKE 't:%' OR due_us <= ?1 THEN due_us END) FROM outbox",
        &[Param::Int(now)],
    )
}

/// When each is due.
pub(crate) fn dues(sql: &dyn Sql) -> Result<Vec<Due>> {
    let mut found = Vec::new();
    sql.each("SELECT subject, due_us, tries FROM outbox", &[], &mut |cells| {
        if let [subject, at, tries] = cells {
            found.push(Due {
                subject: subject.text().map(str::to_owned),
                at_us: at.int(),
                tries: tries.int(),
            });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// It could not be delivered and is sent again then.
pub(crate) fn retry(sql: &dyn Sql, letter: &Letter, at_us: i64) -> Result<()> {
    sql.run(
        "UPDATE outbox SET tries = tries + 1, due_us = ? WHERE subject = ? AND version = ?",
        &[Param::Int(at_us), Param::Text(&letter.subject), Param::Int(letter.version)],
    )
}

/// Nothing goes to a target before then.
pub(crate) fn hold(sql: &dyn Sql, target: &str, at_us: i64) -> Result<()> {
    sql.run(
        "UPDATE outbox SET due_us = max(due_us, ?) WHERE target = ?",
        &[Param::Int(at_us), Param::Text(target)],
    )
}

/// What goes to a target is due now.
pub(crate) fn hurry(sql: &dyn Sql, target: &str, now_us: i64) -> Result<()> {
    let params = [Param::Int(now_us), Param::Text(target)];
    sql.run("UPDATE outbox SET due_us = min(due_us, ?) WHERE target = ?", &params)
}

/// Takes a letter out. A newer one on the same subject has another version and stays.
pub(crate) fn forget(sql: &dyn Sql, subject: &str, version: i64) -> Result<()> {
    sql.run(
        "DELETE FROM outbox WHERE subject = ? AND version = ?",
        &[Param::Text(subject), Param::Int(version)],
    )
}

/// Takes out these letters, in one statement.
pub(crate) fn forget_all(sql: &dyn Sql, letters: &[Letter]) -> Result<()> {
    if let [letter] = letters {
        return forget(sql, &letter.subject, letter.version);
    }
    let keys: serde_json::Value =
        letters.iter().map(|letter| crate::json!([letter.subject, letter.version])).collect();
    sql.run(
        "DELETE FROM outbox WHERE (subject, version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
        &[Param::Text(&keys.to_string())],
    )
}

/// Takes out all that goes to a target.
pub(crate) fn forget_target(sql: &dyn Sql, target: &str) -> Result<()> {
    sql.run("DELETE FROM outbox WHERE target = ?", &[Param::Text(target)])
}

/// Takes out all that goes to threads, but for what goes to this target.
pub(crate) fn forget_threads_but(sql: &dyn Sql, target: Option<&str>) -> Result<()> {
    sql.run("DELETE FROM outbox WHERE target LIKE 't:%' AND target IS NOT ?", &[target.into()])
}

/// Whether anything is to go to a target.
pub(crate) fn has_for(sql: &dyn Sql, target: &str) -> Result<bool> {
    Ok(integer(sql, "SELECT 1 FROM outbox WHERE target = ? LIMIT 1", &[Param::Text(target)])?.is_some())
}

/// How many letters are to go to a target.
pub(crate) fn count_for(sql: &dyn Sql, target: &str) -> Result<i64> {
    Ok(integer(sql, "SELECT count(*) FROM outbox WHERE target = ?", &[Param::Text(target)])?.unwrap_or(0))
}
