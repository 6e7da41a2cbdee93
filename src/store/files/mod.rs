//! The table `files`: the files of a thread (spec §16), one row for each file, directory and unfinished
//! content. `chunks` has the contents; `objects` lists those that have an object in the bucket.
//!
//! * here: rows by path or id, and rows outside the tree. `tree`: queries over the tree.
//!
//! An id is never assigned twice, and the content of an id never changes: new content gets a new id. Hence
//! the id is the version (the ETag), and a reader that misses a chunk knows that the file was replaced.

pub(crate) mod tree;

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::file_path::FilePath;
use crate::store::file_record::FileRecord;
use crate::store::objects::Storage;
use crate::store::table::Table;
use crate::store::{chunks, objects};

/// A row without `parent` is outside the tree: content that is being written, or that was replaced.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE files (
        id INTEGER PRIMARY KEY AUTOINCREMENT, parent TEXT, name TEXT NOT NULL, kind INTEGER NOT NULL,
        mime TEXT NOT NULL, size INTEGER NOT NULL, chunks INTEGER NOT NULL, metadata TEXT, width INTEGER,
        height INTEGER, created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, search INTEGER NOT NULL,
        UNIQUE (parent, name))"],
    drop: "DROP TABLE files",
};

/// The kind of a row. The first two are in the tree; a later write deletes the remains of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A directory. Directories are listed first.
    Directory = 0,
    /// A file.
    File = 1,
    /// An incomplete upload in chunks; `name` is its future path.
    Upload = 2,
    /// A body that is being written.
    Write = 3,
    /// Content that was replaced or removed and cannot be deleted at once: it is too large, or has an object
    /// in the bucket.
    Gone = 4,
}

/// Method of text search in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The file is not searched.
    No = 0,
    /// The file is read.
    Scan = 1,
    /// The index is queried, then the file is read.
    Index = 2,
}

/// A row of `files`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: i64,
    /// The directory that contains it; `None` outside the tree.
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) mime: String,
    /// Bytes; for an upload, the announced size.
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

/// The columns of [`Row`], in the order of [`Row::read`], including the state of its object in the bucket.
macro_rules! columns {
    () => {
        "id, parent, name, kind, mime, size, chunks, metadata, width, height, created_us, updated_us, search,
         (SELECT storage FROM objects WHERE objects.id = files.id)"
    };
}
use columns;

impl Row {
    fn read(cells: &[Cell]) -> Result<Row> {
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
            storage: Storage::of(storage.int()),
        })
    }

    /// Inserts the row under a new id and returns the id. Ignores `self.id`; the bucket has no object for it
    /// yet.
    pub(crate) fn insert(&self, sql: &dyn Sql) -> Result<i64> {
        let inserted = integer(
            sql,
            "INSERT INTO files (parent, name, kind, mime, size, chunks, metadata, width, height, created_us, updated_us,
                search) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            &self.params(),
        )?;
        inserted.ok_or_else(|| Error::internal("a row of files got no id"))
    }

    /// The columns except the id, in order.
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

    /// Writes all columns.
    pub(crate) fn update(&self, sql: &dyn Sql) -> Result<()> {
        sql.run(
            "UPDATE files SET parent = ?, name = ?, kind = ?, mime = ?, size = ?, chunks = ?, metadata = ?, width = ?,
                height = ?, created_us = ?, updated_us = ?, search = ? WHERE id = ?",
            &[&self.params()[..], &[Param::Int(self.id)]].concat(),
        )?;
        if self.storage == Storage::Local {
            return Ok(());
        }
        objects::put(sql, self.id, self.storage)
    }

    /// The path; empty for a row outside the tree.
    pub(crate) fn path(&self) -> String {
        let path = self.parent.as_ref().map(|parent| FilePath::of(parent, &self.name).as_str().to_owned());
        path.unwrap_or_default()
    }

    /// The ETag.
    pub(crate) fn etag(&self) -> String {
        format!("\"f{}\"", self.id)
    }

    /// The form for clients and tools.
    pub(crate) fn record(&self) -> Result<FileRecord> {
        let metadata: Option<Map<String, Value>> = match &self.metadata {
            None => None,
            Some(text) => Some(crate::json::from_str(text).map_err(|error| {
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

/// Reads the rows of a statement over all [`columns`].
fn read(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>> {
    let mut found = Vec::new();
    sql.each(statement, params, &mut |cells| {
        found.push(Row::read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The row at a path; the root has none.
pub(crate) fn find(sql: &dyn Sql, path: &FilePath) -> Result<Option<Row>> {
    let Some((parent, name)) = path.split() else { return Ok(None) };
    let rows = read(
        sql,
        concat!("SELECT ", columns!(), " FROM files WHERE parent = ? AND name = ?"),
        &[Param::Text(parent), Param::Text(name)],
    )?;
    Ok(rows.into_iter().next())
}

/// The row with this id, inside or outside the tree.
pub(crate) fn by_id(sql: &dyn Sql, id: i64) -> Result<Option<Row>> {
    let rows = read(sql, concat!("SELECT ", columns!(), " FROM files WHERE id = ?"), &[Param::Int(id)])?;
    Ok(rows.into_iter().next())
}

/// Rows that may be deleted: replaced contents, bodies that were being written, and uploads begun no later
/// than `expired`. Limited in number, without rows that have an object in the bucket.
pub(crate) fn placeless(sql: &dyn Sql, expired: i64) -> Result<Vec<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM files WHERE parent IS NULL AND (kind != 2 OR created_us <= ?)
          AND id NOT IN (SELECT id FROM objects) LIMIT 200"
    );
    read(sql, statement, &[Param::Int(expired)])
}

/// Open uploads begun after `since` with an id greater than `after`.
pub(crate) fn uploads(sql: &dyn Sql, since: i64, after: i64, limit: i64) -> Result<Vec<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM files WHERE parent IS NULL AND kind = 2 AND created_us > ? AND id > ? ORDER BY id LIMIT ?"
    );
    read(sql, statement, &[Param::Int(since), Param::Int(after), Param::Int(limit)])
}

/// Number of open uploads begun after `since`.
pub(crate) fn count_uploads(sql: &dyn Sql, since: i64) -> Result<usize> {
    let statement = "SELECT count(*) FROM files WHERE parent IS NULL AND kind = 2 AND created_us > ?";
    let count = integer(sql, statement, &[Param::Int(since)])?;
    Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
}

/// Rows that are moving to the bucket or out of it, limited in number.
pub(crate) fn moving(sql: &dyn Sql) -> Result<Vec<Row>> {
    let statement = concat!(
        "SELECT ",
        columns!(),
        " FROM files WHERE id IN (SELECT id FROM objects WHERE storage < 3 LIMIT 20)"
    );
    read(sql, statement, &[])
}

/// Whether a directory has entries.
pub(crate) fn has_entries(sql: &dyn Sql, path: &FilePath) -> Result<bool> {
    let found = integer(sql, "SELECT 1 FROM files WHERE parent = ? LIMIT 1", &[Param::Text(path.as_str())])?;
    Ok(found.is_some())
}

/// Deletes up to `limit` chunks of a content with its thumbnail, and the row with the last one. Returns how
/// many.
pub(crate) fn delete(sql: &dyn Sql, row: &Row, limit: i64) -> Result<i64> {
    let deleted = chunks::delete(sql, row.id, limit)?;
    if deleted < limit {
        sql.run("DELETE FROM files WHERE id = ?", &[Param::Int(row.id)])?;
    }
    Ok(deleted)
}
