//! The table `inbox`: waits in the threads of an owner, as reported. Closed waits stay for a while, so that a
//! late report does not open them again.

use std::ops::ControlFlow;

use crate::directory::{int_at, text_at};
use crate::error::Result;
use crate::host::{Cell, Param, Sql};
use crate::limits::DAY_US;
use crate::request::directory_call::WaitRow;
use crate::store::table::Table;

pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE inbox (
        id TEXT PRIMARY KEY, thread TEXT NOT NULL, kind TEXT NOT NULL, title TEXT NOT NULL, created_us INTEGER NOT NULL,
        expires_us INTEGER NOT NULL, open INTEGER NOT NULL) WITHOUT ROWID"],
    drop: "DROP TABLE inbox",
};

/// Time after its creation until a closed wait is deleted.
const KEPT_US: i64 = 31 * DAY_US;

/// Stores a wait. A closed one is not opened again.
pub(crate) fn put(sql: &dyn Sql, row: &WaitRow, now: i64) -> Result<()> {
    sql.run("DELETE FROM inbox WHERE open = 0 AND created_us < ?", &[Param::Int(now - KEPT_US)])?;
    sql.run(
        "INSERT INTO inbox (id, thread, kind, title, created_us, expires_us, open) VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET
            open = min(open, excluded.open), expires_us = max(expires_us, excluded.expires_us)",
        &[
            (&row.id).into(),
            (&row.thread).into(),
            (&row.kind).into(),
            (&row.title).into(),
            row.created_at_us.into(),
            row.expires_at_us.into(),
            i64::from(row.open).into(),
        ],
    )
}

/// Closes the waits of a deleted thread.
pub(crate) fn forget_thread(sql: &dyn Sql, thread: &str) -> Result<()> {
    sql.run("UPDATE inbox SET open = 0 WHERE thread = ?", &[thread.into()])
}

/// Open waits of one kind or any, newest first, after the one at `(created_us, id)`.
pub(crate) fn open(
    sql: &dyn Sql,
    kind: Option<&str>,
    behind: Option<(i64, &str)>,
    each: &mut dyn FnMut(WaitRow) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let (created, id) = behind.map_or((i64::MAX >> 10, ""), |behind| behind);
    sql.each(
        "SELECT id, thread, kind, title, created_us, expires_us FROM inbox
         WHERE open = 1 AND (?1 IS NULL OR kind = ?1) AND (created_us < ?2 OR (created_us = ?2 AND id < ?3))
         ORDER BY created_us DESC, id DESC",
        &[kind.into(), Param::Int(created), Param::Text(id)],
        &mut |row| each(read(row)?),
    )
}

fn read(row: &[Cell]) -> Result<WaitRow> {
    let text = |column| text_at(row, column).unwrap_or_default().to_owned();
    Ok(WaitRow {
        id: text(0),
        thread: text(1),
        life: 1,
        kind: text(2),
        title: text(3),
        created_at_us: int_at(row, 4)?,
        expires_at_us: int_at(row, 5)?,
        open: true,
    })
}
