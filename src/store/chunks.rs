//! The table `chunks`: the contents of files. id: the file's id, shifted by 20 bits, plus the chunk's index.

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::error::Result;
use crate::host::{Cell, Param, Sql, integer};
use crate::limits;
use crate::store::table::Table;

pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE chunks (id INTEGER PRIMARY KEY, data BLOB NOT NULL)"],
    drop: "DROP TABLE chunks",
};

/// Bits of a chunk's id for its index within the content.
const INDEX_BITS: u32 = 20;
/// Index of a thumbnail, after every possible chunk of a file.
const THUMBNAIL: i64 = (1 << INDEX_BITS) - 1;

/// Number of chunks of a content.
pub(crate) fn of_size(size: u64) -> u64 {
    size.div_ceil(limits::FILE_CHUNK_BYTES as u64)
}

/// Stores a chunk, replacing an earlier one with that index.
pub(crate) fn put(sql: &dyn Sql, file: i64, index: i64, data: &[u8]) -> Result<()> {
    sql.run(
        "INSERT INTO chunks (id, data) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data",
        &[Param::Int((file << INDEX_BITS) + index), Param::Blob(data)],
    )
}

/// A chunk; `None` if it was deleted.
pub(crate) fn find(sql: &dyn Sql, file: i64, index: i64) -> Result<Option<Bytes>> {
    let mut found = None;
    let id = Param::Int((file << INDEX_BITS) + index);
    sql.each("SELECT data FROM chunks WHERE id = ?", &[id], &mut |cells| {
        found = cells.first().and_then(Cell::blob).map(Bytes::copy_from_slice);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// The indexes of the stored chunks, in order, without the thumbnail.
pub(crate) fn stored(sql: &dyn Sql, file: i64) -> Result<Vec<i64>> {
    let first = file << INDEX_BITS;
    let mut indexes = Vec::new();
    let range = [Param::Int(first), Param::Int(first + THUMBNAIL)];
    sql.each("SELECT id FROM chunks WHERE id >= ? AND id < ? ORDER BY id", &range, &mut |cells| {
        indexes.extend(cells.first().and_then(Cell::int).map(|id| id - first));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(indexes)
}

/// Stores a thumbnail.
pub(crate) fn put_thumbnail(sql: &dyn Sql, file: i64, data: &[u8]) -> Result<()> {
    put(sql, file, THUMBNAIL, data)
}

/// The thumbnail, if there is one.
pub(crate) fn thumbnail(sql: &dyn Sql, file: i64) -> Result<Option<Bytes>> {
    find(sql, file, THUMBNAIL)
}

/// Deletes up to `limit` chunks of a content, including its thumbnail. Returns how many.
pub(super) fn delete(sql: &dyn Sql, file: i64, limit: i64) -> Result<i64> {
    delete_below(sql, file, THUMBNAIL + 1, limit)
}

/// Deletes up to `limit` chunks of a content, but not its thumbnail. Returns how many.
pub(crate) fn empty(sql: &dyn Sql, file: i64, limit: i64) -> Result<i64> {
    delete_below(sql, file, THUMBNAIL, limit)
}

/// Deletes up to `limit` chunks with an index below `end`.
fn delete_below(sql: &dyn Sql, file: i64, end: i64, limit: i64) -> Result<i64> {
    let first = file << INDEX_BITS;
    let some = [Param::Int(first), Param::Int(first + end), Param::Int(limit)];
    let there =
        integer(sql, "SELECT count(*) FROM (SELECT id FROM chunks WHERE id >= ? AND id < ? LIMIT ?)", &some)?;
    let there = there.unwrap_or(0);
    if there > 0 {
        sql.run(
            "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE id >= ? AND id < ? LIMIT ?)",
            &some,
        )?;
    }
    Ok(there)
}
