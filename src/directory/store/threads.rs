//! The table `threads`: a copy of each thread's row. `agent_id` is NULL before the thread's row arrives, if
//! its activity arrived first, and after the thread was deleted. Such a row is in no list and no index.

use std::ops::ControlFlow;

use serde_json::Value;

use crate::directory::{ThreadRow, int_at, text_at};
use crate::error::Result;
use crate::host::{Cell, Param, Sql, integer};
use crate::store::table::Table;

pub(crate) const TABLE: Table = Table {
    create: &[
        "CREATE TABLE threads (
        id TEXT PRIMARY KEY, agent_id TEXT, origin_agent_id TEXT, tags TEXT NOT NULL DEFAULT '[]',
        created_us INTEGER NOT NULL DEFAULT 0, terminated_us INTEGER, parent TEXT, version INTEGER NOT NULL DEFAULT -1,
        executing INTEGER NOT NULL DEFAULT 0, activity_us INTEGER NOT NULL DEFAULT 0, preview TEXT, message_us INTEGER,
        activity_version INTEGER NOT NULL DEFAULT -1, deleted INTEGER NOT NULL DEFAULT 0,
        key TEXT, life INTEGER NOT NULL DEFAULT 1, failed TEXT)",
        "CREATE INDEX threads_by_activity ON threads (activity_us) WHERE agent_id IS NOT NULL",
        "CREATE INDEX threads_by_creation ON threads (created_us) WHERE agent_id IS NOT NULL",
    ],
    drop: "DROP TABLE threads",
};

/// Migration of the table from version 1 to 2.
pub(super) const ADD_FAILED: &str = "ALTER TABLE threads ADD COLUMN failed TEXT";

/// The known state of a thread.
pub(crate) struct KnownThread {
    /// Generation of the thread; 0 if nothing is known.
    pub(crate) life: i64,
    pub(crate) version: i64,
    pub(crate) listed: bool,
    pub(crate) child: bool,
    pub(crate) deleted: bool,
}

impl KnownThread {
    /// The state of an unknown thread.
    pub(crate) const fn none() -> KnownThread {
        KnownThread { life: 0, version: -1, listed: false, child: false, deleted: false }
    }

    pub(crate) fn read(sql: &dyn Sql, id: &str) -> Result<KnownThread> {
        let mut known = KnownThread::none();
        let statement = "SELECT version, agent_id IS NOT NULL, parent IS NOT NULL, deleted, life FROM threads WHERE id = ?";
        sql.each(statement, &[id.into()], &mut |row| {
            known = KnownThread {
                life: int_at(row, 4)?,
                version: int_at(row, 0)?,
                listed: int_at(row, 1)? != 0,
                child: int_at(row, 2)? != 0,
                deleted: int_at(row, 3)? != 0,
            };
            Ok(ControlFlow::Break(()))
        })?;
        Ok(known)
    }
}

/// Writes the row of a thread; keeps its activity.
pub(crate) fn write_row(sql: &dyn Sql, row: &ThreadRow) -> Result<()> {
    let tags = Value::from(row.tags.clone()).to_string();
    sql.run(
        "INSERT INTO threads
            (id, agent_id, origin_agent_id, tags, created_us, terminated_us, parent, version, activity_us, key, life)
         VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?4, ?8, ?9)
         ON CONFLICT (id) DO UPDATE SET
            agent_id = excluded.agent_id, origin_agent_id = coalesce(origin_agent_id, excluded.origin_agent_id),
            tags = excluded.tags, created_us = excluded.created_us, terminated_us = excluded.terminated_us,
            parent = excluded.parent, version = excluded.version, key = excluded.key,
            activity_us = max(activity_us, excluded.activity_us)",
        &[
            (&row.id).into(),
            (&row.agent_id).into(),
            Param::Text(&tags),
            row.created_at_us.into(),
            row.terminated_at_us.into(),
            row.parent.as_deref().into(),
            row.version.into(),
            row.key.as_deref().into(),
            row.life.into(),
        ],
    )
}

/// The start or the end of a run.
pub(crate) struct Activity<'a> {
    pub(crate) id: &'a str,
    pub(crate) life: i64,
    pub(crate) version: i64,
    pub(crate) executing: bool,
    pub(crate) at_us: i64,
    pub(crate) preview: Option<&'a str>,
    pub(crate) message_us: Option<i64>,
    /// The reason if the run has failed.
    pub(crate) failed: Option<&'a str>,
}

impl Activity<'_> {
    /// Writes the activity, unless a newer one is known or the thread was deleted.
    pub(crate) fn write(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "INSERT INTO threads (id, activity_version, executing, activity_us, preview, message_us, life, failed)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (id) DO UPDATE SET
                activity_version = excluded.activity_version, executing = excluded.executing,
                activity_us = max(activity_us, excluded.activity_us),
                preview = coalesce(excluded.preview, preview),
                message_us = coalesce(excluded.message_us, message_us), failed = excluded.failed
             WHERE deleted = 0 AND life = excluded.life AND activity_version <= excluded.activity_version",
            &[
                self.id.into(),
                self.version.into(),
                i64::from(self.executing).into(),
                self.at_us.into(),
                self.preview.into(),
                self.message_us.into(),
                self.life.into(),
                self.failed.into(),
            ],
        )
    }
}

/// Deletes the row of a thread, except its id.
pub(crate) fn delete(sql: &dyn Sql, id: &str, life: i64) -> Result<()> {
    sql.run(
        "INSERT INTO threads (id, deleted, life) VALUES (?, 1, ?)
         ON CONFLICT (id) DO UPDATE SET
            deleted = 1, key = NULL, agent_id = NULL, origin_agent_id = NULL, tags = '[]', preview = NULL, parent = NULL,
            executing = 0, failed = NULL",
        &[id.into(), life.into()],
    )
}

/// Removes the row, because another generation replaces it.
pub(crate) fn clear(sql: &dyn Sql, id: &str) -> Result<()> {
    sql.run("DELETE FROM threads WHERE id = ?", &[id.into()])
}

pub(crate) fn is_deleted(sql: &dyn Sql, id: &str) -> Result<bool> {
    let mut deleted = false;
    sql.each("SELECT deleted FROM threads WHERE id = ?", &[id.into()], &mut |row| {
        deleted = int_at(row, 0)? != 0;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(deleted)
}

/// Filters of a list; absent ones match everything.
pub(crate) struct Filter<'a> {
    pub(crate) agent_id: Option<&'a str>,
    pub(crate) search: Option<String>,
    pub(crate) from_us: Option<i64>,
    pub(crate) to_us: Option<i64>,
    pub(crate) executing: Option<i64>,
    pub(crate) terminated: Option<i64>,
    /// Whether the last run failed.
    pub(crate) failed: Option<i64>,
    pub(crate) children: bool,
}

impl Filter<'_> {
    /// Whether it matches every thread except children.
    pub(crate) fn is_open(&self) -> bool {
        self.params().iter().take(7).all(|param| *param == Param::Null)
    }

    fn params(&self) -> [Param<'_>; 8] {
        [
            self.agent_id.into(),
            self.search.as_deref().into(),
            self.from_us.into(),
            self.to_us.into(),
            self.executing.into(),
            self.terminated.into(),
            self.failed.into(),
            i64::from(self.children).into(),
        ]
    }
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Most recent activity first.
    Activity,
    Newest,
    Oldest,
}

/// The conditions of every list. An absent filter is NULL and matches everything.
macro_rules! conditions {
    () => {
        "agent_id IS NOT NULL AND (?1 IS NULL OR agent_id = ?1)
            AND (?2 IS NULL OR instr(lower(id || char(10) || agent_id || char(10) || tags || char(10)
                || coalesce(preview, '')), ?2) > 0)
            AND (?3 IS NULL OR created_us >= ?3) AND (?4 IS NULL OR created_us <= ?4)
            AND (?5 IS NULL OR executing = ?5) AND (?6 IS NULL OR (terminated_us IS NOT NULL) = ?6)
            AND (?7 IS NULL OR (failed IS NOT NULL) = ?7) AND (?8 = 1 OR parent IS NULL)"
    };
}
macro_rules! columns {
    () => {
        "SELECT id, agent_id, origin_agent_id, tags, parent, terminated_us, created_us, activity_us, executing,
            preview, message_us, (SELECT owner FROM state), key, failed"
    };
}
macro_rules! page {
    ($order:literal) => {
        concat!(
            columns!(),
            " FROM threads WHERE ",
            conditions!(),
            " ORDER BY ",
            $order,
            " LIMIT ?9 OFFSET ?10"
        )
    };
}

/// A thread in a list.
pub(crate) struct ThreadEntry<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) agent_id: &'a str,
    pub(crate) origin_agent_id: Option<&'a str>,
    /// A JSON array.
    pub(crate) tags: &'a str,
    pub(crate) parent: Option<&'a str>,
    pub(crate) terminated_us: Option<i64>,
    pub(crate) created_us: Option<i64>,
    pub(crate) activity_us: Option<i64>,
    pub(crate) executing: bool,
    pub(crate) preview: Option<&'a str>,
    pub(crate) message_us: Option<i64>,
    /// The owner of the directory.
    pub(crate) owner: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    /// The reason if the last run failed.
    pub(crate) failed: Option<&'a str>,
}

impl ThreadEntry<'_> {
    fn read(row: &[Cell]) -> Result<ThreadEntry<'_>> {
        let time = |column: usize| row.get(column).and_then(Cell::int);
        Ok(ThreadEntry {
            id: text_at(row, 0),
            agent_id: text_at(row, 1).unwrap_or_default(),
            origin_agent_id: text_at(row, 2),
            tags: text_at(row, 3).unwrap_or("[]"),
            parent: text_at(row, 4),
            terminated_us: time(5),
            created_us: time(6),
            activity_us: time(7),
            executing: int_at(row, 8)? != 0,
            preview: text_at(row, 9),
            message_us: time(10),
            owner: text_at(row, 11),
            key: text_at(row, 12),
            failed: text_at(row, 13),
        })
    }
}

/// Number of matching threads; scans the threads of the owner.
pub(crate) fn count(sql: &dyn Sql, filter: &Filter<'_>) -> Result<i64> {
    Ok(integer(sql, concat!("SELECT count(*) FROM threads WHERE ", conditions!()), &filter.params())?
        .unwrap_or(0))
}

/// Passes a page of matching threads, including the directory's owner, to `each` until it breaks.
pub(crate) fn page(
    sql: &dyn Sql,
    filter: &Filter<'_>,
    order: Order,
    limit: u32,
    offset: u32,
    each: &mut dyn FnMut(&ThreadEntry<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let statement = match order {
        Order::Activity => page!("activity_us DESC, rowid DESC"),
        Order::Newest => page!("created_us DESC, rowid DESC"),
        Order::Oldest => page!("created_us, rowid"),
    };
    let mut params = filter.params().to_vec();
    params.extend([Param::Int(limit.into()), Param::Int(offset.into())]);
    sql.each(statement, &params, &mut |row| each(&ThreadEntry::read(row)?))
}

/// The thread with this id, if it matches.
pub(crate) fn one(
    sql: &dyn Sql,
    filter: &Filter<'_>,
    id: &str,
    each: &mut dyn FnMut(&ThreadEntry<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut params = filter.params().to_vec();
    params.push(id.into());
    let statement = concat!(columns!(), " FROM threads WHERE id = ?9 AND ", conditions!());
    sql.each(statement, &params, &mut |row| each(&ThreadEntry::read(row)?))
}
