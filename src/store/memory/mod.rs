//! The tables of memories (docs/memory.md): documents, the chunks that they are cut into, an index over the chunks' words, and
//! their vectors. They are made with the first document, so that whoever has none pays nothing.
//!
//! * Here: the table `mem_stores`, a row for each memory. `docs`: documents; `texts`: those that are still to be cut. `chunks`:
//!   chunks, and the index over their words. `words`: how that is asked. `pages`: vectors. `work`: what only the object of a shared memory has. `sources`,
//!   `refusals`: what only a thread has: what comes in by itself, and what was not taken in.

pub(crate) mod chunks;
pub(crate) mod docs;
pub(crate) mod pages;
pub(crate) mod refusals;
pub(crate) mod sources;
pub(crate) mod texts;
pub(crate) mod words;
pub(crate) mod work;

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::store::table::Table;

/// `embedding`: what made the vectors (`Embedder::identity`); behind [`ENTERED`], the last chunk whose words are entered as
/// [`words::entered`] has them, nothing where all are. `dims`: length of the vectors, 0 while there are none.
pub(crate) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mem_stores (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, embedding TEXT NOT NULL DEFAULT '',
        dims INTEGER NOT NULL DEFAULT 0, chunks INTEGER NOT NULL DEFAULT 0)"],
    drop: "DROP TABLE IF EXISTS mem_stores",
};

/// What follows it came later: an older build has entered the words of a memory where it is not there.
const ENTERED: char = '\u{1f}';

/// All tables of memories.
pub(crate) const TABLES: [Table; 6] =
    [TABLE, docs::TABLE, texts::TABLE, chunks::TABLE, chunks::WORDS, pages::TABLE];

/// A row of `mem_stores`.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) id: i64,
    pub(crate) embedding: String,
    /// The last chunk whose words are entered as they are today; `None` where all are.
    pub(crate) entered: Option<i64>,
    pub(crate) dims: i64,
    pub(crate) chunks: i64,
}

/// Whether the tables are there.
pub(crate) fn is_there(sql: &dyn Sql) -> bool {
    let statement = "SELECT 1 FROM sqlite_schema WHERE name = 'mem_stores'";
    matches!(integer(sql, statement, &[]), Ok(Some(_)))
}

/// Makes the tables, if they are not there. Never in a transaction: when SQLite takes the making of an FTS5 table back, the
/// commit around it fails. `mem_stores` comes last, so that it says that all are there.
pub(crate) fn make(sql: &dyn Sql) -> Result<()> {
    let statements = TABLES.iter().rev().flat_map(|table| table.create);
    statements.into_iter().try_for_each(|statement| sql.run(statement, &[]))
}

/// Drops them. Runs inside the caller's transaction.
pub(crate) fn drop_all(sql: &dyn Sql) -> Result<()> {
    TABLES.iter().try_for_each(|table| sql.run(table.drop, &[]))
}

/// The row of a memory; `None` while nothing came.
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

/// The row of a memory, made if there is none.
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

/// So many more chunks, or fewer.
pub(crate) fn count(sql: &dyn Sql, store: i64, more: i64) -> Result<()> {
    let params = [Param::Int(more), Param::Int(store)];
    sql.run("UPDATE mem_stores SET chunks = chunks + ? WHERE id = ?", &params)
}

/// Forgets all vectors: those that come are of this model and so long.
pub(crate) fn forget_vectors(sql: &dyn Sql, store: i64, embedding: &str, dims: i64) -> Result<()> {
    pages::drop_of(sql, store)?;
    chunks::forget_slots(sql, store)?;
    sql.run(
        "UPDATE mem_stores SET embedding = ? || CASE instr(embedding, char(31)) WHEN 0 THEN ''
            ELSE substr(embedding, instr(embedding, char(31))) END, dims = ? WHERE id = ?",
        &[Param::Text(embedding), Param::Int(dims), Param::Int(store)],
    )
}

/// Enters the words of the next chunks that an older build has entered otherwise. Whether there are more.
pub(crate) fn enter_again(sql: &dyn Sql, store: &Store) -> Result<bool> {
    let Some(entered) = store.entered else { return Ok(false) };
    let last = chunks::enter_again(sql, store.id, entered)?;
    let embedding =
        format!("{}{ENTERED}{}", store.embedding, last.map(|last| last.to_string()).unwrap_or_default());
    let params = [Param::Text(&embedding), Param::Int(store.id)];
    sql.run("UPDATE mem_stores SET embedding = ? WHERE id = ?", &params)?;
    Ok(last.is_some())
}

/// How long its vectors are.
pub(crate) fn set_dims(sql: &dyn Sql, store: i64, dims: i64) -> Result<()> {
    sql.run("UPDATE mem_stores SET dims = ? WHERE id = ?", &[Param::Int(dims), Param::Int(store)])
}

/// Bytes of its texts and vectors, about.
pub(crate) fn bytes(sql: &dyn Sql, store: i64) -> Result<i64> {
    Ok(chunks::bytes(sql, store)? + pages::bytes(sql, store)?)
}

/// Everything of a memory goes.
pub(crate) fn clear(sql: &dyn Sql, store: i64) -> Result<()> {
    chunks::clear(sql, store)?;
    texts::clear(sql, store)?;
    pages::drop_of(sql, store)?;
    docs::clear(sql, store)?;
    sql.run("DELETE FROM mem_stores WHERE id = ?", &[Param::Int(store)])
}
