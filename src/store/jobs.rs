//! The table `jobs`: pending background work of a thread, one row for each kind and subject. It is created
//! with the first job. `meta.jobs` counts its rows; while that is 0, the table is not read.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::limits;
use crate::store::meta;
use crate::store::state::State;
use crate::store::table::Table;

/// `data`: the remaining work, as JSON. `error`: the failure of the last attempt.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS jobs (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, due_us INTEGER NOT NULL,
        attempts INTEGER NOT NULL, data TEXT NOT NULL, error TEXT, UNIQUE (kind, subject))"],
    drop: "DROP TABLE IF EXISTS jobs",
};

/// The task of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sends spans of runs to a collector.
    Export,
    /// Writes a summary of older messages.
    Summary,
    /// Indexes texts of a memory. The subject is its name.
    Index,
    /// Copies the original of a fork.
    Fork,
    /// Cancels a background response that is no longer needed. The subject is the provider's id of the
    /// response.
    Cancel,
    /// Cancels a task of an MCP server that is no longer needed. The subject is the server's id of the task.
    CancelTask,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Kind::Export => "export",
            Kind::Summary => "summary",
            Kind::Index => "index",
            Kind::Fork => "fork",
            Kind::Cancel => "cancel",
            Kind::CancelTask => "cancel_task",
        }
    }

    /// Maximum number of attempts.
    pub(crate) const fn attempts(self) -> u32 {
        match self {
            Kind::Export | Kind::Index | Kind::Fork | Kind::Cancel | Kind::CancelTask => limits::JOB_ATTEMPTS,
            Kind::Summary => limits::SUMMARY_FAILURES,
        }
    }

    fn parse(text: &str) -> Option<Kind> {
        const ALL: [Kind; 6] =
            [Kind::Export, Kind::Summary, Kind::Index, Kind::Fork, Kind::Cancel, Kind::CancelTask];
        ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A row of `jobs`.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: i64,
    /// `None`: a newer version wrote the row, and this one does not know the kind.
    pub(crate) kind: Option<Kind>,
    pub(crate) subject: String,
    pub(crate) due_us: i64,
    /// Attempts begun since the last progress.
    pub(crate) attempts: u32,
    pub(crate) data: String,
    pub(crate) error: Option<String>,
}

/// Adds a job that is due at `due_us`, unless one of its kind and subject exists. Returns whether it was
/// added.
pub(crate) fn add(
    state: &mut State,
    sql: &dyn Sql,
    kind: Kind,
    subject: &str,
    due_us: i64,
    data: &str,
) -> Result<bool> {
    if state.meta.jobs == 0 && !state.jobs_made {
        TABLE.create.iter().try_for_each(|statement| sql.run(statement, &[]))?;
    }
    state.jobs_made = true;
    let added = integer(
        sql,
        "INSERT INTO jobs (kind, subject, due_us, attempts, data) VALUES (?, ?, ?, 0, ?)
         ON CONFLICT (kind, subject) DO NOTHING RETURNING id",
        &[Param::Text(kind.as_str()), Param::Text(subject), Param::Int(due_us), Param::Text(data)],
    )?;
    if added.is_some() {
        count(state, sql, state.meta.jobs + 1)?;
    }
    Ok(added.is_some())
}

/// Adds a job, or makes an existing one due no later, with all its attempts except one that may be running.
pub(crate) fn owe(state: &mut State, sql: &dyn Sql, kind: Kind, subject: &str, due_us: i64) -> Result<()> {
    if add(state, sql, kind, subject, due_us, "{}")? {
        return Ok(());
    }
    sql.run(
        "UPDATE jobs SET due_us = min(due_us, ?), attempts = min(attempts, 1) WHERE kind = ? AND subject = ?",
        &[Param::Int(due_us), Param::Text(kind.as_str()), Param::Text(subject)],
    )
}

/// Records progress of a memory's job: only attempts after it count. One is still running, unless nothing is
/// `left`.
pub(crate) fn progressed(state: &State, sql: &dyn Sql, subject: &str, left: bool) -> Result<()> {
    if state.meta.jobs == 0 {
        return Ok(());
    }
    let now = i64::from(left);
    let params = [Param::Int(now), Param::Text(Kind::Index.as_str()), Param::Text(subject)];
    sql.run("UPDATE jobs SET attempts = ?1 WHERE kind = ?2 AND subject = ?3 AND attempts > ?1", &params)
}

/// When the first job is due; reads nothing if there is none.
pub(crate) fn next_due(state: &State, sql: &dyn Sql) -> Result<Option<i64>> {
    if state.meta.jobs == 0 {
        return Ok(None);
    }
    integer(sql, "SELECT min(due_us) FROM jobs", &[])
}

/// The due job that was due first.
pub(crate) fn first_due(state: &State, sql: &dyn Sql, now: i64) -> Result<Option<Job>> {
    if state.meta.jobs == 0 {
        return Ok(None);
    }
    let statement = "SELECT id, kind, subject, due_us, attempts, data, error FROM jobs WHERE due_us <= ?
        ORDER BY due_us, id LIMIT 1";
    Ok(list(sql, statement, &[Param::Int(now)])?.pop())
}

/// The job of a kind without subjects.
pub(crate) fn of_kind(state: &State, sql: &dyn Sql, kind: Kind) -> Result<Option<Job>> {
    if state.meta.jobs == 0 {
        return Ok(None);
    }
    let statement =
        "SELECT id, kind, subject, due_us, attempts, data, error FROM jobs WHERE kind = ? AND subject = ''";
    Ok(list(sql, statement, &[Param::Text(kind.as_str())])?.pop())
}

pub(crate) fn all(state: &State, sql: &dyn Sql) -> Result<Vec<Job>> {
    if state.meta.jobs == 0 {
        return Ok(Vec::new());
    }
    list(sql, "SELECT id, kind, subject, due_us, attempts, data, error FROM jobs ORDER BY id", &[])
}

/// Writes the columns of a job that may change.
pub(crate) fn update(sql: &dyn Sql, job: &Job) -> Result<()> {
    sql.run(
        "UPDATE jobs SET due_us = ?, attempts = ?, data = ?, error = ? WHERE id = ?",
        &[
            Param::Int(job.due_us),
            Param::Int(i64::from(job.attempts)),
            Param::Text(&job.data),
            job.error.as_ref().into(),
            Param::Int(job.id),
        ],
    )
}

/// Removes a job that is done or has failed for good; does nothing if it is gone.
pub(crate) fn remove(state: &mut State, sql: &dyn Sql, id: i64) -> Result<()> {
    if state.meta.jobs == 0
        || integer(sql, "DELETE FROM jobs WHERE id = ? RETURNING id", &[Param::Int(id)])?.is_none()
    {
        return Ok(());
    }
    count(state, sql, state.meta.jobs - 1)
}

/// Removes the jobs of a terminated thread, except those that export, cancel, or complete a fork.
pub(crate) fn end_all(state: &mut State, sql: &dyn Sql) -> Result<()> {
    if state.meta.jobs == 0 {
        return Ok(());
    }
    sql.run("DELETE FROM jobs WHERE kind NOT IN ('export', 'fork', 'cancel', 'cancel_task')", &[])?;
    let left = integer(sql, "SELECT count(*) FROM jobs", &[])?.unwrap_or(0);
    count(state, sql, left)
}

fn count(state: &mut State, sql: &dyn Sql, jobs: i64) -> Result<()> {
    if state.meta.jobs != jobs {
        meta::set_jobs(sql, jobs)?;
        state.meta.jobs = jobs;
    }
    Ok(())
}

fn list(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    sql.each(statement, params, &mut |cells| {
        jobs.push(read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(jobs)
}

fn read(cells: &[Cell]) -> Result<Job> {
    let [id, kind, subject, due, attempts, data, error] = cells else {
        return Err(Error::internal("a job has the wrong number of columns"));
    };
    let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
    Ok(Job {
        id: id.int().unwrap_or_default(),
        kind: kind.text().and_then(Kind::parse),
        subject: text(subject),
        due_us: due.int().unwrap_or_default(),
        attempts: attempts.int().and_then(|n| u32::try_from(n).ok()).unwrap_or_default(),
        data: text(data),
        error: error.text().map(str::to_owned),
    })
}

/// The pause after so many attempts: at least half of the doubled base, plus jitter.
pub(crate) fn pause_us(attempts: u32, random: [u8; 16]) -> i64 {
    let doubled =
        2_i64.checked_pow(attempts.saturating_sub(1)).and_then(|n| limits::JOB_PAUSE_US.checked_mul(n));
    let half = doubled.unwrap_or(limits::JOB_PAUSE_MAX_US).min(limits::JOB_PAUSE_MAX_US) / 2;
    let jitter = u128::from_le_bytes(random) % (half.unsigned_abs() as u128 + 1);
    half + i64::try_from(jitter).unwrap_or(0)
}
