//! The rows behind the files: `files` has one for each file, directory and unfinished content, `chunks` the content.
//!
//! An id is never given out twice, and what is stored under one never changes: new content has a new id. So an id is a
//! version (the ETag), and a reader that finds a chunk gone knows that its file was replaced.

use std::ops::ControlFlow;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql};
use crate::limits;
use crate::store::file_path::FilePath;
use crate::store::file_record::FileRecord;
use crate::store::messages as rows;

/// Bits of a chunk's id that number it within its content.
const INDEX_BITS: u32 = 20;
/// The number under which a thumbnail lies, behind every chunk that a file can have.
const THUMBNAIL: i64 = (1 << INDEX_BITS) - 1;

/// What a row is. The first two have a place in the tree; the others have none, and a later write deletes what is left
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A directory. Directories come first in a listing.
    Directory = 0,
    /// A file.
    File = 1,
    /// An upload in chunks that is not complete; `name` is the path that it will have.
    Upload = 2,
    /// A body that is just being written.
    Write = 3,
    /// Content that was replaced or removed, and is too large to be deleted at once or has an object in the bucket.
    Gone = 4,
}

/// How a file is found by its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Not at all.
    No = 0,
    /// By reading it.
    Scan = 1,
    /// By the index, then by reading it.
    Index = 2,
}

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
    /// Whether it is read from the bucket.
    pub(crate) fn is_away(self) -> bool {
        matches!(self, Storage::Emptying | Storage::Bucket)
    }
}

/// A row of `files`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: i64,
    /// The directory that it is in; `None` without a place in the tree.
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) mime: String,
    /// Bytes; of an upload, those that were announced.
    pub(crate) size: i64,
    pub(crate) chunks: i64,
    /// A JSON object.
    pub(crate) metadata: Option<String>,
    pub(crate) width: Option<i64>,
    pub(crate) height: Option<i64>,
    pub(crate) created_us: i64,
    pub(crate) updated_us: i64,
    pub(crate) search: Search,
    pub(crate) storage: Storage,
}

macro_rules! columns {
    () => {
        "id, parent, name, kind, mime, size, chunks, metadata, width, height, created_us, updated_us, search,
         (SELECT storage FROM objects WHERE objects.id = files.id)"
    };
}
pub(crate) use columns;

impl Row {
    pub(crate) fn read(cells: &[Cell]) -> Result<Row> {
        let [
            id,
            parent,
            name,
            kind,
            mime,
            size,
            chunks,
            metadata,
            width,
            height,
            created,
            updated,
            search,
            storage,
        ] = cells
        else {
            return Err(Error::internal("a row of files has the wrong number of columns"));
        };
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        let number = |cell: &Cell| cell.int().unwrap_or_default();
        Ok(Row {
            id: number(id),
            parent: parent.text().map(str::to_owned),
            name: text(name),
            kind: match number(kind) {
                0 => Kind::Directory,
                1 => Kind::File,
                2 => Kind::Upload,
                3 => Kind::Write,
                _ => Kind::Gone,
            },
            mime: text(mime),
            size: number(size),
            chunks: number(chunks),
            metadata: metadata.text().map(str::to_owned),
            width: width.int(),
            height: height.int(),
            created_us: number(created),
            updated_us: number(updated),
            search: match number(search) {
                0 => Search::No,
                1 => Search::Scan,
                _ => Search::Index,
            },
            storage: match storage.int() {
                None => Storage::Local,
                Some(1) => Storage::Copying,
                Some(2) => Storage::Emptying,
                Some(_) => Storage::Bucket,
            },
        })
    }

    /// Stores it under a new id, which is returned; `self.id` is not looked at, and no bucket has anything of it yet.
    pub(crate) fn insert(&self, sql: &dyn Sql) -> Result<i64> {
        let inserted = rows::integer(
            sql,
            "INSERT INTO files (parent, name, kind, mime, size, chunks, metadata, width, height, created_us, updated_us,
                search) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            &self.params(),
        )?;
        inserted.ok_or_else(|| Error::internal("a row of files got no id"))
    }

    /// What is stored of it besides its id, in the order of the columns.
    fn params(&self) -> [Param<'_>; 12] {
        [
            self.parent.as_ref().into(),
            Param::Text(&self.name),
            Param::Int(self.kind as i64),
            Param::Text(&self.mime),
            Param::Int(self.size),
            Param::Int(self.chunks),
            self.metadata.as_ref().into(),
            self.width.into(),
            self.height.into(),
            Param::Int(self.created_us),
            Param::Int(self.updated_us),
            Param::Int(self.search as i64),
        ]
    }

    /// Writes everything of it again.
    pub(crate) fn update(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "UPDATE files SET parent = ?, name = ?, kind = ?, mime = ?, size = ?, chunks = ?, metadata = ?, width = ?,
                height = ?, created_us = ?, updated_us = ?, search = ? WHERE id = ?",
            &[&self.params()[..], &[Param::Int(self.id)]].concat(),
        )?;
        if self.storage == Storage::Local {
            return Ok(());
        }
        sql.run(
            "INSERT OR REPLACE INTO objects (id, storage) VALUES (?, ?)",
            &[Param::Int(self.id), Param::Int(self.storage as i64)],
        )
    }

    /// Its path; that of a row without a place is empty.
    pub(crate) fn path(&self) -> String {
        let path = self.parent.as_ref().map(|parent| FilePath::of(parent, &self.name).as_str().to_owned());
        path.unwrap_or_default()
    }

    /// Its version, as HTTP has it.
    pub(crate) fn etag(&self) -> String {
        format!("\"f{}\"", self.id)
    }

    /// What clients and tools see of it.
    pub(crate) fn record(&self) -> Result<FileRecord> {
        let metadata: Option<Map<String, Value>> = match &self.metadata {
            None => None,
            Some(text) => Some(serde_json::from_str(text).map_err(|error| {
                Error::internal(format!("the stored metadata of {} is damaged: {error}", self.path()))
            })?),
        };
        let pixels = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
        Ok(FileRecord {
            path: self.path(),
            name: self.name.clone(),
            mime_type: self.mime.clone(),
            storage: if self.storage.is_away() { "r2" } else { "local" },
            size: self.size.unsigned_abs(),
            is_directory: self.kind == Kind::Directory,
            metadata,
            width: pixels(self.width),
            height: pixels(self.height),
            created_at: self.created_us,
            updated_at: self.updated_us,
            is_chunked: self.chunks > 1,
            chunk_count: self.chunks.unsigned_abs(),
            etag: (self.kind == Kind::File).then(|| self.etag()),
        })
    }
}

/// Rows of a statement over all [`columns`].
pub(crate) fn read(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>> {
    let mut found = Vec::new();
    sql.each(statement, params, &mut |cells| {
        found.push(Row::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// What is at a path; nothing is stored for the root.
pub(crate) fn find(sql: &dyn Sql, path: &FilePath) -> Result<Option<Row>> {
    let Some((parent, name)) = path.split() else { return Ok(None) };
    let rows = read(
        sql,
        concat!("SELECT ", columns!(), " FROM files WHERE parent = ? AND name = ?"),
        &[Param::Text(parent), Param::Text(name)],
    )?;
    Ok(rows.into_iter().next())
}

/// The row with this id, wherever it is.
pub(crate) fn by_id(sql: &dyn Sql, id: i64) -> Result<Option<Row>> {
    let rows = read(sql, concat!("SELECT ", columns!(), " FROM files WHERE id = ?"), &[Param::Int(id)])?;
    Ok(rows.into_iter().next())
}

/// What may be deleted: contents that nobody has a place for any more, bodies that were being written, and uploads begun
/// by `expired` at the latest; a bounded number of them, without those that the bucket has something of.
pub(crate) fn placeless(sql: &dyn Sql, expired: i64) -> Result<Vec<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM files WHERE parent IS NULL AND (kind != 2 OR created_us <= ?)
          AND id NOT IN (SELECT id FROM objects) LIMIT 200"
    );
    read(sql, statement, &[Param::Int(expired)])
}

/// Uploads under way that were begun after `since`, and have an id beyond `after`.
pub(crate) fn uploads(sql: &dyn Sql, since: i64, after: i64, limit: i64) -> Result<Vec<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM files WHERE parent IS NULL AND kind = 2 AND created_us > ? AND id > ? ORDER BY id LIMIT ?"
    );
    read(sql, statement, &[Param::Int(since), Param::Int(after), Param::Int(limit)])
}

/// How many of them there are.
pub(crate) fn count_uploads(sql: &dyn Sql, since: i64) -> Result<usize> {
    let statement = "SELECT count(*) FROM files WHERE parent IS NULL AND kind = 2 AND created_us > ?";
    let count = rows::integer(sql, statement, &[Param::Int(since)])?;
    Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
}

/// Rows that are on their way to the bucket or out of it, a bounded number of them.
pub(crate) fn moving(sql: &dyn Sql) -> Result<Vec<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM files WHERE id IN (SELECT id FROM objects WHERE storage < 3 LIMIT 20)"
    );
    read(sql, statement, &[])
}

/// Ids beyond `after` that the bucket may have an object of, in order.
pub(crate) fn with_objects(sql: &dyn Sql, after: i64, limit: i64) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    let statement = "SELECT id FROM objects WHERE id > ? ORDER BY id LIMIT ?";
    sql.each(statement, &[Param::Int(after), Param::Int(limit)], &mut |cells| {
        ids.extend(cells.first().and_then(Cell::int));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(ids)
}

/// The bucket has nothing of a content any more.
pub(crate) fn forget_object(sql: &dyn Sql, file: i64) -> Result<()> {
    sql.run("DELETE FROM objects WHERE id = ?", &[Param::Int(file)])
}

/// Whether a directory has entries.
pub(crate) fn has_entries(sql: &dyn Sql, path: &FilePath) -> Result<bool> {
    let found =
        rows::integer(sql, "SELECT 1 FROM files WHERE parent = ? LIMIT 1", &[Param::Text(path.as_str())])?;
    Ok(found.is_some())
}

/// How many chunks content of so many bytes has.
pub(crate) fn chunks_of(size: u64) -> u64 {
    size.div_ceil(limits::FILE_CHUNK_BYTES as u64)
}

/// Stores a chunk, in place of an earlier one with that index.
pub(crate) fn put_chunk(sql: &dyn Sql, file: i64, index: i64, data: &[u8]) -> Result<()> {
    sql.run(
        "INSERT INTO chunks (id, data) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data",
        &[Param::Int((file << INDEX_BITS) + index), Param::Blob(data)],
    )
}

/// A chunk; `None` when it is gone.
pub(crate) fn chunk(sql: &dyn Sql, file: i64, index: i64) -> Result<Option<Bytes>> {
    let mut found = None;
    let id = Param::Int((file << INDEX_BITS) + index);
    sql.each("SELECT data FROM chunks WHERE id = ?", &[id], &mut |cells| {
        found = cells.first().and_then(Cell::blob).map(Bytes::copy_from_slice);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// The indexes of the chunks that are there, in order; a thumbnail is none of them.
pub(crate) fn stored_chunks(sql: &dyn Sql, file: i64) -> Result<Vec<i64>> {
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
    put_chunk(sql, file, THUMBNAIL, data)
}

/// The thumbnail, if one was given.
pub(crate) fn thumbnail(sql: &dyn Sql, file: i64) -> Result<Option<Bytes>> {
    chunk(sql, file, THUMBNAIL)
}

/// Deletes up to `limit` chunks of a content, its thumbnail too, and its row when that was all. How many it deleted.
pub(crate) fn delete(sql: &dyn Sql, row: &Row, limit: i64) -> Result<i64> {
    let deleted = delete_chunks(sql, row.id, THUMBNAIL + 1, limit)?;
    if deleted < limit {
        sql.run("DELETE FROM files WHERE id = ?", &[Param::Int(row.id)])?;
    }
    Ok(deleted)
}

/// Deletes up to `limit` chunks of a content and keeps its thumbnail. How many it deleted.
pub(crate) fn empty(sql: &dyn Sql, file: i64, limit: i64) -> Result<i64> {
    delete_chunks(sql, file, THUMBNAIL, limit)
}

/// Deletes up to `limit` chunks with a number below `end`.
fn delete_chunks(sql: &dyn Sql, file: i64, end: i64, limit: i64) -> Result<i64> {
    let first = file << INDEX_BITS;
    let some = [Param::Int(first), Param::Int(first + end), Param::Int(limit)];
    let there = rows::integer(
        sql,
        "SELECT count(*) FROM (SELECT id FROM chunks WHERE id >= ? AND id < ? LIMIT ?)",
        &some,
    )?;
    let there = there.unwrap_or(0);
    if there > 0 {
        sql.run(
            "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE id >= ? AND id < ? LIMIT ?)",
            &some,
        )?;
    }
    Ok(there)
}
