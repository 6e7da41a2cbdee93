//! The table `objects`: the files that the bucket has something of, and how far they are. id: the file's.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::host::{Cell, Param, Sql};
use crate::store::file_path::Below;
use crate::store::table::Table;

pub(crate) const TABLE: Table = Table {
    create: &[
        "CREATE TABLE objects (id INTEGER PRIMARY KEY, storage INTEGER NOT NULL)",
        "CREATE INDEX objects_moving ON objects (storage)",
    ],
    drop: "DROP TABLE objects",
};

/// Where the content of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In `chunks`, and nowhere else; the others are in `objects`.
    Local = 0,
    /// In `chunks`, all of it; the bucket may have an object of it, whole or none.
    Copying = 1,
    /// In the bucket; `chunks` may still have some of it.
    Emptying = 2,
    /// In the bucket alone.
    Bucket = 3,
}

impl Storage {
    /// By what the row says; `None` without one.
    pub(crate) const fn of(stored: Option<i64>) -> Storage {
        match stored {
            None => Storage::Local,
            Some(1) => Storage::Copying,
            Some(2) => Storage::Emptying,
            Some(_) => Storage::Bucket,
        }
    }

    /// Whether it is read from the bucket.
    pub(crate) fn is_away(self) -> bool {
        matches!(self, Storage::Emptying | Storage::Bucket)
    }
}

/// Notes how far a file is.
pub(crate) fn put(sql: &dyn Sql, file: i64, storage: Storage) -> Result<()> {
    sql.run(
        "INSERT OR REPLACE INTO objects (id, storage) VALUES (?, ?)",
        &[Param::Int(file), Param::Int(storage as i64)],
    )
}

/// The bucket may have an object of everything below a directory that it has something of, whole or none.
pub(crate) fn name_all(sql: &dyn Sql, below: &Below) -> Result<()> {
    sql.run(
        "UPDATE objects SET storage = 1
         WHERE id IN (SELECT id FROM files WHERE parent = ? OR (parent >= ? AND parent < ?))",
        &below.params(),
    )
}

/// Ids beyond `after` that the bucket may have an object of, in order.
pub(crate) fn after(sql: &dyn Sql, after: i64, limit: i64) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    let statement = "SELECT id FROM objects WHERE id > ? ORDER BY id LIMIT ?";
    sql.each(statement, &[Param::Int(after), Param::Int(limit)], &mut |cells| {
        ids.extend(cells.first().and_then(Cell::int));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(ids)
}

/// The bucket has nothing of a content any more.
pub(crate) fn forget(sql: &dyn Sql, file: i64) -> Result<()> {
    sql.run("DELETE FROM objects WHERE id = ?", &[Param::Int(file)])
}
