//! The table `mem_texts`: texts of documents that wait to be chunked, in pieces.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::host::{Cell, Param, Sql, integer};
use crate::store::table::Table;

/// `start`: index of the first character in the document.
pub(super) const TABLE: Table = Table {
    create: &["CREATE TABLE IF NOT EXISTS mem_texts (
        id INTEGER PRIMARY KEY, store INTEGER NOT NULL, doc INTEGER NOT NULL, start INTEGER NOT NULL,
        text TEXT NOT NULL)"],
    drop: "DROP TABLE IF EXISTS mem_texts",
};

/// A piece to chunk.
pub(crate) struct Piece {
    pub(crate) id: i64,
    pub(crate) start: i64,
    pub(crate) text: String,
}

pub(crate) fn add(sql: &dyn Sql, store: i64, doc: i64, start: i64, text: &str) -> Result<()> {
    sql.run(
        "INSERT INTO mem_texts (store, doc, start, text) VALUES (?, ?, ?, ?)",
        &[Param::Int(store), Param::Int(doc), Param::Int(start), Param::Text(text)],
    )
}

/// The next piece of a document.
pub(crate) fn next(sql: &dyn Sql, doc: i64) -> Result<Option<Piece>> {
    let mut found = None;
    let statement = "SELECT id, start, text FROM mem_texts WHERE doc = ? ORDER BY id LIMIT 1";
    sql.each(statement, &[Param::Int(doc)], &mut |cells| {
        if let [id, start, text] = cells {
            let (id, start) = (id.int().unwrap_or_default(), start.int().unwrap_or_default());
            found = Some(Piece { id, start, text: text.text().unwrap_or_default().to_owned() });
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// The document whose text is chunked next.
pub(crate) fn next_document(sql: &dyn Sql, store: i64) -> Result<Option<i64>> {
    integer(sql, "SELECT doc FROM mem_texts WHERE store = ? ORDER BY id LIMIT 1", &[Param::Int(store)])
}

pub(crate) fn remove(sql: &dyn Sql, id: i64) -> Result<()> {
    sql.run("DELETE FROM mem_texts WHERE id = ?", &[Param::Int(id)])
}

pub(crate) fn remove_of(sql: &dyn Sql, doc: i64) -> Result<()> {
    sql.run("DELETE FROM mem_texts WHERE doc = ?", &[Param::Int(doc)])
}

/// Deletes the texts of hidden documents.
pub(crate) fn remove_hidden(sql: &dyn Sql, store: i64) -> Result<()> {
    sql.run(
        "DELETE FROM mem_texts WHERE store = ? AND doc NOT IN (SELECT id FROM mem_docs WHERE store = ?)",
        &[Param::Int(store), Param::Int(store)],
    )
}

pub(super) fn clear(sql: &dyn Sql, store: i64) -> Result<()> {
    sql.run("DELETE FROM mem_texts WHERE store = ?", &[Param::Int(store)])
}

/// Characters of texts that wait in a memory.
pub(crate) fn waiting(sql: &dyn Sql, store: i64) -> Result<i64> {
    let mut sum = 0;
    let statement = "SELECT sum(length(text)) FROM mem_texts WHERE store = ?";
    sql.each(statement, &[Param::Int(store)], &mut |cells| {
        sum = cells.first().and_then(Cell::int).unwrap_or_default();
        Ok(ControlFlow::Break(()))
    })?;
    Ok(sum)
}
