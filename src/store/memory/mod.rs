//! The tables of memories (docs/memory.md): documents, their chunks, an index over the chunks' words, and
//! their vectors. They are created with the first document, so that threads without memories pay nothing.
//!
//! * here: the table `mem_stores`, a row for each memory. `docs`: documents; `texts`: texts that wait to be
//!   chunked. `chunks`: chunks, and the index over their words. `words`: tokens and queries of that index.
//!   `pages`: vectors.
//! * `shared`: only in the object of a shared memory. `sources`, `refusals`: only in a thread, for automatic
//!   ingestion.

pub(crate) mod chunks;
pub(crate) mod docs;
pub(crate) mod pages;
pub(crate) mod refusals;
pub(crate) mod shared;
pub(crate) mod sources;
pub(crate) mod texts;
pub(crate) mod words;

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::table::Table;

/// `embedding`: what made the vectors (`Embedder::identity`), then [`ENTERED`] and the last chunk whose words
/// are indexed by [`words::entered`], or nothing if all are. `dims`: length of the vectors, 0 while there are
/// none.
const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mem_stores (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, embedding TEXT NOT NULL DEFAULT '',
        dims INTEGER NOT NULL DEFAULT 0, chunks INTEGER NOT NULL DEFAULT 0)"],
    drop: "DROP TABLE IF EXISTS mem_stores",
};

/// Separates the progress of indexing. It is missing in memories that an older build has indexed.
const ENTERED: char = '\u{1f}';

/// All tables of memories.
const TABLES: [Table; 6] = [TABLE, docs::TABLE, texts::TABLE, chunks::TABLE, chunks::WORDS, pages::TABLE];

/// A row of `mem_stores`.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) id: i64,
    pub(crate) embedding: String,
    /// The last chunk whose words are indexed in the current form; `None` if all are.
    pub(crate) entered: Option<i64>,
    pub(crate) dims: i64,
    pub(crate) chunks: i64,
}

/// Whether the tables exist.
pub(crate) fn is_there(sql: &dyn Sql) -> bool {
    let statement = "SELECT 1 FROM sqlite_schema WHERE name = 'mem_stores'";
    matches!(integer(sql, statement, &[]), Ok(Some(_)))
}

/// Creates the tables if they are missing. Never call it in a transaction: if SQLite rolls back the creation
/// of an FTS5 table, the surrounding commit fails. `mem_stores` comes last, so that its existence implies the
/// others.
pub(crate) fn make(sql: &dyn Sql) -> Result<()> {
    let statements = TABLES.iter().rev().flat_map(|table| table.create);
    statements.into_iter().try_for_each(|statement| sql.run(statement, &[]))
}

/// Drops the tables inside the caller's transaction.
pub(super) fn drop_all(sql: &dyn Sql) -> Result<()> {
    TABLES.iter().try_for_each(|table| sql.run(table.drop, &[]))
}

/// The row of a memory; `None` before its first document.
pub(crate) fn find(sql: &dyn Sql, name: &str) -> Result<Option<Store>> {
    let mut found = None;
    let statement = "SELECT id, embedding, dims, chunks FROM mem_stores WHERE name = ?";
    sql.each(statement, &[Param::Text(name)], &mut |cells| {
        found = Some(read(cells)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

fn read(cells: &[Cell]) -> Result<Store> {
    let [id, embedding, dims, chunks] = cells else {
        return Err(Error::internal("a memory has the wrong number of columns"));
    };
    let embedding = embedding.text().unwrap_or_default();
    let (embedding, entered) = match embedding.split_once(ENTERED) {
        None => (embedding, Some(0)),
        Some((embedding, "")) => (embedding, None),
        Some((embedding, last)) => (embedding, Some(last.parse().unwrap_or(0))),
    };
    Ok(Store {
        id: id.int().unwrap_or_default(),
        embedding: embedding.to_owned(),
        entered,
        dims: dims.int().unwrap_or_default(),
        chunks: chunks.int().unwrap_or_default(),
    })
}

/// The row of a memory, inserted if it is missing.
pub(crate) fn open(sql: &dyn Sql, name: &str, embedding: &str) -> Result<Store> {
    if let Some(store) = find(sql, name)? {
        return Ok(store);
    }
    sql.run(
        "INSERT INTO mem_stores (name, embedding) VALUES (?, ? || char(31))",
        &[Param::Text(name), Param::Text(embedding)],
    )?;
    find(sql, name)?.ok_or_else(|| Error::internal("a memory that was just made is not there"))
}

/// Adds to the number of chunks.
pub(crate) fn count(sql: &dyn Sql, store: i64, more: i64) -> Result<()> {
    let params = [Param::Int(more), Param::Int(store)];
    sql.run("UPDATE mem_stores SET chunks = chunks + ? WHERE id = ?", &params)
}

/// Deletes all vectors; new ones come from this model and have this length.
pub(crate) fn forget_vectors(sql: &dyn Sql, store: i64, embedding: &str, dims: i64) -> Result<()> {
    pages::drop_of(sql, store)?;
    chunks::forget_slots(sql, store)?;
    sql.run(
        "UPDATE mem_stores SET embedding = ? || CASE instr(embedding, char(31)) WHEN 0 THEN ''
            ELSE substr(embedding, instr(embedding, char(31))) END, dims = ? WHERE id = ?",
        &[Param::Text(embedding), Param::Int(dims), Param::Int(store)],
    )
}

/// Indexes the next chunks of an older build in the current form. Returns whether more remain.
pub(crate) fn enter_again(sql: &dyn Sql, store: &Store) -> Result<bool> {
    let Some(entered) = store.entered else { return Ok(false) };
    let last = chunks::enter_again(sql, store.id, entered)?;
    let embedding =
        format!("{}{ENTERED}{}", store.embedding, last.map(|last| last.to_string()).unwrap_or_default());
    let params = [Param::Text(&embedding), Param::Int(store.id)];
    sql.run("UPDATE mem_stores SET embedding = ? WHERE id = ?", &params)?;
    Ok(last.is_some())
}

/// Stores the length of the vectors.
pub(crate) fn set_dims(sql: &dyn Sql, store: i64, dims: i64) -> Result<()> {
    sql.run("UPDATE mem_stores SET dims = ? WHERE id = ?", &[Param::Int(dims), Param::Int(store)])
}

/// Estimated bytes of texts and vectors.
pub(crate) fn bytes(sql: &dyn Sql, store: i64) -> Result<i64> {
    Ok(chunks::bytes(sql, store)? + pages::bytes(sql, store)?)
}

/// Deletes everything of a memory.
pub(crate) fn clear(sql: &dyn Sql, store: i64) -> Result<()> {
    chunks::clear(sql, store)?;
    texts::clear(sql, store)?;
    pages::drop_of(sql, store)?;
    docs::clear(sql, store)?;
    sql.run("DELETE FROM mem_stores WHERE id = ?", &[Param::Int(store)])
}
