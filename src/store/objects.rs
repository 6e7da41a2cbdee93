//! The table `objects`: files with an object in the bucket, and the state of each. id: the file's.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::host::{Cell, Param, Sql};
use crate::store::file_path::SubtreeRange;
use crate::store::table::Table;

pub(super) const TABLE: Table = Table {
    create: &[
        "CREATE TABLE objects (id INTEGER PRIMARY KEY, storage INTEGER NOT NULL)",
        "CREATE INDEX objects_moving ON objects (storage)",
    ],
    drop: "DROP TABLE objects",
};

/// Location of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In `chunks` only. The other states have a row in `objects`.
    Local = 0,
    /// Complete in `chunks`; the bucket has a complete object or none.
    Copying = 1,
    /// In the bucket; `chunks` may still hold a part.
    Emptying = 2,
    /// Only in the bucket.
    Bucket = 3,
}

impl Storage {
    /// Parses the column; `None` means that there is no row.
    pub(super) const fn of(stored: Option<i64>) -> Storage {
        match stored {
            None => Storage::Local,
            Some(1) => Storage::Copying,
            Some(2) => Storage::Emptying,
            Some(_) => Storage::Bucket,
        }
    }

    /// Whether the content is read from the bucket.
    pub(crate) fn is_away(self) -> bool {
        matches!(self, Storage::Emptying | Storage::Bucket)
    }
}

/// Stores the state of a file.
pub(super) fn put(sql: &dyn Sql, file: i64, storage: Storage) -> Result<()> {
    sql.run(
        "INSERT OR REPLACE INTO objects (id, storage) VALUES (?, ?)",
        &[Param::Int(file), Param::Int(storage as i64)],
    )
}

/// Sets everything below a directory that has a row back to [`Storage::Copying`].
pub(crate) fn name_all(sql: &dyn Sql, below: &SubtreeRange) -> Result<()> {
    sql.run(
        "UPDATE objects SET storage = 1
         WHERE id IN (SELECT id FROM files WHERE parent = ? OR (parent >= ? AND parent < ?))",
        &below.params(),
    )
}

/// Ids greater than `after` of files with a row, in order.
pub(crate) fn after(sql: &dyn Sql, after: i64, limit: i64) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    let statement = "SELECT id FROM objects WHERE id > ? ORDER BY id LIMIT ?";
    sql.each(statement, &[Param::Int(after), Param::Int(limit)], &mut |cells| {
        ids.extend(cells.first().and_then(Cell::int));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(ids)
}

/// Deletes the row of a file, because the bucket has nothing of it.
pub(crate) fn forget(sql: &dyn Sql, file: i64) -> Result<()> {
    sql.run("DELETE FROM objects WHERE id = ?", &[Param::Int(file)])
}
