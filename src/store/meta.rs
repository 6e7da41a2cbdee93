//! The table `meta`: one row with the identity of the thread and the values that outlive runs.

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use crate::access::ThreadRef;
use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::request::thread_id;
use crate::store::calibration::Calibration;
use crate::store::fork::{Fork, ForkState};
use crate::store::parent::Parent;
use crate::store::summaries::SummaryState;
use crate::store::table::Table;
use crate::store::thread_budget::ThreadBudget;

/// `env` counts the variables with a value, `children` the children that are not terminated. `parent` is a
/// child's data about its parent, as JSON. `created_told` is 0 until hooks have handled the thread's
/// creation.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, thread_id TEXT NOT NULL, agent TEXT NOT NULL,
        origin_agent TEXT NOT NULL, owner TEXT, tags TEXT NOT NULL, properties TEXT NOT NULL,
        created_us INTEGER NOT NULL, terminated_us INTEGER, stopped INTEGER NOT NULL DEFAULT 0,
        edits INTEGER NOT NULL DEFAULT 0, seq_floor INTEGER NOT NULL DEFAULT 0, window_cut INTEGER NOT NULL DEFAULT 0,
        window_tokens INTEGER, version INTEGER NOT NULL DEFAULT 1,
        env INTEGER NOT NULL DEFAULT 0, created_told INTEGER NOT NULL DEFAULT 1,
        parent TEXT, children INTEGER NOT NULL DEFAULT 0,
        activates INTEGER NOT NULL DEFAULT 0, detached INTEGER NOT NULL DEFAULT 0,
        waits INTEGER NOT NULL DEFAULT 0, wait_next INTEGER NOT NULL DEFAULT 1, jobs INTEGER NOT NULL DEFAULT 0,
        snapshot TEXT, workers INTEGER NOT NULL DEFAULT 0,
        dropped INTEGER NOT NULL DEFAULT 0, budget TEXT, calibration TEXT, summary TEXT,
        key TEXT, life INTEGER NOT NULL DEFAULT 1, run_floor INTEGER NOT NULL DEFAULT 0, expires_us INTEGER,
        fork TEXT)"],
    drop: "DROP TABLE meta",
};

/// The row of `meta`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meta {
    /// Name of its object, by which others address it.
    pub(crate) thread_id: String,
    /// Prefix of the ids of its messages, effects, waits and spans and of its idempotency keys. It is the
    /// thread's id or, in a later generation, a text that no other thread has. Not stored: it follows from
    /// `life`.
    pub(crate) stem: String,
    /// The key that its creator chose.
    pub(crate) key: Option<String>,
    /// Generation of the thread in this object, from 1: an id made of a key is used again after its thread
    /// was deleted.
    pub(crate) life: i64,
    /// Runs up to this number belong to an earlier generation.
    pub(crate) run_floor: i64,
    pub(crate) agent: String,
    pub(crate) origin_agent: String,
    pub(crate) owner: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) properties: Map<String, Value>,
    pub(crate) created_us: i64,
    pub(crate) terminated_us: Option<i64>,
    /// When the thread deletes itself.
    pub(crate) expires_us: Option<i64>,
    /// Stopped by a user: queued messages wait for the next message or `continue`.
    pub(crate) stopped: bool,
    /// Grows with every change to a stored message, so that a resuming stream starts over.
    pub(crate) edits: i64,
    /// Seqs up to this one were assigned, even if their rows are deleted.
    pub(crate) seq_floor: i64,
    /// History before this seq is not sent.
    pub(crate) window_cut: i64,
    /// Most tokens of messages in a request, set when a provider has rejected a request as too long.
    pub(crate) window_tokens: Option<usize>,
    /// Grows with every change that the directory must receive.
    pub(crate) version: i64,
    /// Number of variables with a value.
    pub(crate) env: i64,
    /// Data about its parent, if the thread is a subagent.
    pub(crate) parent: Option<Parent>,
    /// Number of children that are not terminated.
    pub(crate) children: i64,
    /// The sides whose prompts still have to become active and create subagents (`subagents/immediate`).
    pub(crate) activates: i64,
    /// Receipts of detached calls with a lower id are closed; 0 if all are (`engine/calls/detached.rs`).
    pub(crate) detached: i64,
    /// Number of open waits. Counted from their table when this row is read; the stored column is obsolete.
    pub(crate) waits: i64,
    /// The id of the next wait; 1 until the table of waits is needed. Only whether it was needed is stored.
    pub(crate) wait_next: i64,
    /// Number of jobs.
    pub(crate) jobs: i64,
    /// Hash of the definitions that the last run began with.
    pub(crate) snapshot: Option<String>,
    /// Number of workers ever created, from which their ids are made.
    pub(crate) workers: i64,
    /// Spans lost with failed export jobs since the last run began.
    pub(crate) dropped: i64,
    /// The part of budgets that outlives runs.
    pub(crate) budget: Option<Box<ThreadBudget>>,
    /// Correction of the token estimate for each model.
    pub(crate) calibration: Calibration,
    /// The current summary; `None` if there never was one.
    pub(crate) summary: Option<SummaryState>,
    /// Its origin, if it is a fork.
    pub(crate) fork: Option<Box<Fork>>,
}

impl Meta {
    /// The row of a new thread.
    pub(crate) fn new(thread_id: &str, agent: &str, now: i64) -> Meta {
        Meta {
            thread_id: thread_id.to_owned(),
            stem: thread_id.to_owned(),
            key: None,
            life: 1,
            run_floor: 0,
            agent: agent.to_owned(),
            origin_agent: agent.to_owned(),
            owner: None,
            tags: Vec::new(),
            properties: Map::new(),
            created_us: now,
            terminated_us: None,
            expires_us: None,
            stopped: false,
            edits: 0,
            seq_floor: 0,
            window_cut: 0,
            window_tokens: None,
            version: 1,
            env: 0,
            parent: None,
            children: 0,
            activates: 0,
            detached: 0,
            waits: 0,
            wait_next: 1,
            jobs: 0,
            snapshot: None,
            workers: 0,
            dropped: 0,
            budget: None,
            calibration: Calibration::default(),
            summary: None,
            fork: None,
        }
    }

    /// Messages up to this seq are copies: no run of this thread takes them in.
    pub(crate) fn copied_upto(&self) -> i64 {
        self.fork.as_ref().map_or(0, |fork| fork.upto)
    }

    /// State before the first run: the last run number of the earlier generation, and the last copied
    /// message.
    pub(crate) fn floor(&self) -> (i64, i64) {
        (self.run_floor, self.copied_upto())
    }

    /// Whether the fork is still being copied.
    pub(crate) fn is_copying(&self) -> bool {
        self.fork.as_ref().is_some_and(|fork| fork.state == ForkState::Copying)
    }

    /// Reads the row and the version of the tables; `None` if the thread was never created.
    pub(super) fn load(sql: &dyn Sql) -> Result<Option<(Meta, i64)>> {
        let mut found = None;
        let read = sql.each(
            "SELECT schema, thread_id, agent, origin_agent, owner, tags, properties, created_us, terminated_us,
                stopped, edits, seq_floor, window_cut, window_tokens, version, env, parent, children,
                activates, detached, wait_next, jobs, snapshot, workers, dropped, budget, calibration, summary,
                key, life, run_floor, expires_us, fork FROM meta",
            &[],
            &mut |cells| {
                found = Some(Meta::read(cells)?);
                Ok(ControlFlow::Break(()))
            },
        );
        match read {
            Ok(()) => Ok(found),
            // An object without a thread has no tables; reading must not create any.
            Err(error) if error.message.contains("no such table") => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(cells: &[Cell]) -> Result<(Meta, i64)> {
        let [
            schema,
            thread_id,
            agent,
            origin,
            owner,
            tags,
            properties,
            created,
            terminated,
            stopped,
            edits,
            floor,
            cut,
            window_tokens,
            version,
            env,
            parent,
            children,
            activates,
            detached,
            wait_next,
            jobs,
            snapshot,
            workers,
            dropped,
            budget,
            calibration,
            summary,
            key,
            life,
            run_floor,
            expires,
            fork,
        ] = cells
        else {
            return Err(Error::internal("the meta row has the wrong number of columns"));
        };
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        let number = |cell: &Cell| cell.int().unwrap_or_default();
        let damaged = |what: &str| Error::internal(format!("the stored {what} are not JSON"));
        let meta = Meta {
            thread_id: text(thread_id),
            stem: thread_id::of_life(&text(thread_id), number(life)),
            key: key.text().map(str::to_owned),
            life: number(life),
            run_floor: number(run_floor),
            agent: text(agent),
            origin_agent: text(origin),
            owner: owner.text().map(str::to_owned),
            tags: crate::json::from_str(&text(tags)).map_err(|_| damaged("tags"))?,
            properties: crate::json::from_str(&text(properties)).map_err(|_| damaged("properties"))?,
            created_us: number(created),
            terminated_us: terminated.int(),
            expires_us: expires.int(),
            stopped: number(stopped) == 1,
            edits: number(edits),
            seq_floor: number(floor),
            window_cut: number(cut),
            window_tokens: window_tokens.int().and_then(|tokens| usize::try_from(tokens).ok()),
            version: number(version),
            env: number(env),
            parent: parent
                .text()
                .map(crate::json::from_str)
                .transpose()
                .map_err(|_| damaged("facts of the parent"))?,
            children: number(children),
            activates: number(activates),
            detached: number(detached),
            waits: 0,
            wait_next: number(wait_next),
            jobs: number(jobs),
            snapshot: snapshot.text().map(str::to_owned),
            workers: number(workers),
            dropped: number(dropped),
            budget: budget.text().map(crate::json::from_str).transpose().map_err(|_| damaged("budgets"))?,
            calibration: Calibration::parse(calibration.text())?,
            summary: SummaryState::parse(summary.text())?,
            fork: Fork::parse(fork.text())?,
        };
        Ok((meta, number(schema)))
    }

    /// Writes the row of a new thread whose tables have this version.
    pub(crate) fn insert(&self, sql: &dyn Sql, schema: i64) -> Result<()> {
        let (tags, properties) = self.json_columns();
        let parent = self.parent_column()?;
        let budget = self.budget_column()?;
        let fork = self.fork.as_ref().map(|fork| fork.column()).transpose()?;
        sql.run(
            "INSERT INTO meta (id, schema, thread_id, agent, origin_agent, owner, tags, properties, created_us, env,
                parent, activates, snapshot, budget, key, life, run_floor, edits, expires_us, fork)
             VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[
                Param::Int(schema),
                Param::Text(&self.thread_id),
                Param::Text(&self.agent),
                Param::Text(&self.origin_agent),
                self.owner.as_ref().into(),
                Param::Text(&tags),
                Param::Text(&properties),
                Param::Int(self.created_us),
                Param::Int(self.env),
                parent.as_ref().into(),
                Param::Int(self.activates),
                self.snapshot.as_ref().into(),
                budget.as_ref().into(),
                self.key.as_ref().into(),
                Param::Int(self.life),
                Param::Int(self.run_floor),
                Param::Int(self.edits),
                self.expires_us.into(),
                fork.as_ref().into(),
            ],
        )
    }

    /// Writes the columns that may change.
    pub(crate) fn update(&self, sql: &dyn Sql) -> Result<()> {
        let (tags, properties) = self.json_columns();
        let parent = self.parent_column()?;
        let budget = self.budget_column()?;
        sql.run(
            "UPDATE meta SET agent = ?, tags = ?, properties = ?, terminated_us = ?, stopped = ?, edits = ?,
                seq_floor = ?, window_cut = ?, window_tokens = ?, version = ?, parent = ?, children = ?, activates = ?,
                workers = ?, budget = ?
             WHERE id = 1",
            &[
                Param::Text(&self.agent),
                Param::Text(&tags),
                Param::Text(&properties),
                self.terminated_us.into(),
                Param::Int(i64::from(self.stopped)),
                Param::Int(self.edits),
                Param::Int(self.seq_floor),
                Param::Int(self.window_cut),
                self.window_tokens.and_then(|tokens| i64::try_from(tokens).ok()).into(),
                Param::Int(self.version),
                parent.as_ref().into(),
                Param::Int(self.children),
                Param::Int(self.activates),
                Param::Int(self.workers),
                budget.as_ref().into(),
            ],
        )
    }

    /// The thread, as needed to check permissions.
    pub(crate) fn thread(&self) -> ThreadRef<'_> {
        ThreadRef { id: &self.thread_id, owner: self.owner.as_deref(), life: self.life }
    }

    /// Sets the generation.
    pub(super) fn lives(&mut self, life: i64) {
        self.life = life;
        self.stem = thread_id::of_life(&self.thread_id, life);
    }

    /// Generation of the family's top-level thread, the only one whose id may be used again.
    pub(crate) fn family_generation(&self) -> i64 {
        self.parent.as_ref().map_or(self.life, |parent| parent.life)
    }

    /// Name of the bucket object that holds the content with this number.
    pub(crate) fn object(&self, number: i64) -> String {
        match self.life {
            1 => format!("{}/{number}", self.thread_id),
            life => format!("{}/{life}/{number}", self.thread_id),
        }
    }

    fn parent_column(&self) -> Result<Option<String>> {
        self.parent.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)
    }

    fn budget_column(&self) -> Result<Option<String>> {
        self.budget.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)
    }

    fn json_columns(&self) -> (String, String) {
        let tags: Value = self.tags.iter().map(String::as_str).collect();
        (tags.to_string(), Value::Object(self.properties.clone()).to_string())
    }
}

/// The version of the tables, for a row of an older version that cannot be read otherwise.
pub(super) fn schema(sql: &dyn Sql) -> Result<Option<i64>> {
    integer(sql, "SELECT schema FROM meta", &[])
}

/// Stores the version to which the tables were migrated.
pub(super) fn set_schema(sql: &dyn Sql, version: i64) -> Result<()> {
    sql.run("UPDATE meta SET schema = ? WHERE id = 1", &[Param::Int(version)])
}

/// Whether hooks have handled the thread's creation, or there were none.
pub(super) fn creation_handled(sql: &dyn Sql) -> Result<bool> {
    Ok(integer(sql, "SELECT created_told FROM meta", &[])? != Some(0))
}

/// Notes that hooks must still handle the thread's creation.
pub(crate) fn mark_created_pending(sql: &dyn Sql) -> Result<()> {
    sql.run("UPDATE meta SET created_told = 0 WHERE id = 1", &[])
}

/// Notes that hooks have handled the thread's creation.
pub(crate) fn mark_created_handled(sql: &dyn Sql) -> Result<()> {
    sql.run("UPDATE meta SET created_told = 1 WHERE id = 1", &[])
}

/// Stores the number of variables with a value.
pub(crate) fn set_env(sql: &dyn Sql, values: i64) -> Result<()> {
    sql.run("UPDATE meta SET env = ? WHERE id = 1", &[Param::Int(values)])
}

/// Stores that receipts of detached calls with a lower id are closed.
pub(crate) fn set_apart(sql: &dyn Sql, receipt: i64) -> Result<()> {
    sql.run("UPDATE meta SET detached = ? WHERE id = 1", &[Param::Int(receipt)])
}

/// Stores that the table of waits exists.
pub(crate) fn set_waits(sql: &dyn Sql) -> Result<()> {
    sql.run("UPDATE meta SET wait_next = 2 WHERE id = 1", &[])
}

/// Stores when the thread deletes itself.
pub(crate) fn set_expires(sql: &dyn Sql, at_us: i64) -> Result<()> {
    sql.run("UPDATE meta SET expires_us = ? WHERE id = 1", &[Param::Int(at_us)])
}

/// Stores the number of jobs.
pub(super) fn set_jobs(sql: &dyn Sql, jobs: i64) -> Result<()> {
    sql.run("UPDATE meta SET jobs = ? WHERE id = 1", &[Param::Int(jobs)])
}

/// Stores the hash of the definitions of the last run or, before the first run, of the thread's creation.
pub(crate) fn set_snapshot(sql: &dyn Sql, hash: &str) -> Result<()> {
    sql.run("UPDATE meta SET snapshot = ? WHERE id = 1", &[Param::Text(hash)])
}

/// Stores the number of spans lost since the last run began.
pub(crate) fn set_dropped(sql: &dyn Sql, spans: i64) -> Result<()> {
    sql.run("UPDATE meta SET dropped = ? WHERE id = 1", &[Param::Int(spans)])
}

/// Stores the corrections of the token estimate.
pub(super) fn set_calibration(sql: &dyn Sql, column: &str) -> Result<()> {
    sql.run("UPDATE meta SET calibration = ? WHERE id = 1", &[Param::Text(column)])
}

/// Stores the current summary.
pub(crate) fn set_summary(sql: &dyn Sql, column: &str) -> Result<()> {
    sql.run("UPDATE meta SET summary = ? WHERE id = 1", &[Param::Text(column)])
}

/// Stores the origin of a fork.
pub(crate) fn set_fork(sql: &dyn Sql, fork: &Fork) -> Result<()> {
    sql.run("UPDATE meta SET fork = ? WHERE id = 1", &[Param::Text(&fork.column()?)])
}
