//! The tables `mem_chunks` and `mem_fts`: the chunks of documents, and the index over their words. rowid of
//! the index: the chunk's.

use std::borrow::Cow;
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer, pairs};
use crate::store::memory::words;
use crate::store::table::Table;

/// Value of `slot` for a text that the model refuses; only its words are found.
const REFUSED: i64 = -1;

/// Chunks that one step indexes again.
const AGAIN: i64 = 256;

/// `start`, `len`: characters of the document. `slot`: slot of its vector; NULL while it has none,
/// [`REFUSED`] for good.
pub(super) const TABLE: Table = Table {
    create: &[
        "CREATE TABLE IF NOT EXISTS mem_chunks (
        id INTEGER PRIMARY KEY AUTOINCREMENT, doc INTEGER NOT NULL, gen INTEGER NOT NULL, n INTEGER NOT NULL,
        start INTEGER NOT NULL, len INTEGER NOT NULL, text TEXT NOT NULL, slot INTEGER)",
        "CREATE INDEX IF NOT EXISTS mem_chunks_doc ON mem_chunks (doc, gen, n)",
    ],
    drop: "DROP TABLE IF EXISTS mem_chunks",
};

/// Stores only words and positions: searches read the texts anyway.
pub(super) const WORDS: Table = Table {
    create: &["CREATE VIRTUAL TABLE IF NOT EXISTS mem_fts USING fts5(text, content='', contentless_delete=1,
            tokenize='unicode61 remove_diacritics 2')"],
    drop: "DROP TABLE IF EXISTS mem_fts",
};

/// A row of `mem_chunks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) id: i64,
    pub(crate) doc: i64,
    pub(crate) n: i64,
    pub(crate) start: i64,
    pub(crate) len: i64,
    pub(crate) text: String,
}

fn read(cells: &[Cell]) -> Result<Chunk> {
    let [id, doc, n, start, len, text] = cells else {
        return Err(Error::internal("a chunk has the wrong number of columns"));
    };
    let int = |cell: &Cell| cell.int().unwrap_or_default();
    let text = text.text().unwrap_or_default().to_owned();
    Ok(Chunk { id: int(id), doc: int(doc), n: int(n), start: int(start), len: int(len), text })
}

fn list(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Chunk>> {
    let mut found = Vec::new();
    sql.each(statement, params, &mut |cells| {
        found.push(read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Stores a chunk of a generation, and indexes its words.
pub(crate) fn insert(sql: &dyn Sql, generation: i64, chunk: &Chunk) -> Result<()> {
    let id = integer(
        sql,
        "INSERT INTO mem_chunks (doc, gen, n, start, len, text) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
        &[
            Param::Int(chunk.doc),
            Param::Int(generation),
            Param::Int(chunk.n),
            Param::Int(chunk.start),
            Param::Int(chunk.len),
            Param::Text(&chunk.text),
        ],
    )?;
    let id = id.ok_or_else(|| Error::internal("a chunk has no number"))?;
    let words = words::entered(&chunk.text);
    sql.run("INSERT INTO mem_fts (rowid, text) VALUES (?, ?)", &[Param::Int(id), Param::Text(&words)])
}

/// Indexes the chunks of a memory after `after` again if their current form differs from the plain text that
/// older builds indexed. Returns the last chunk that was checked, or `None` at the end.
pub(super) fn enter_again(sql: &dyn Sql, store: i64, after: i64) -> Result<Option<i64>> {
    let statement = "SELECT c.id, c.text FROM mem_chunks c CROSS JOIN mem_docs d ON d.id = c.doc
        WHERE c.id > ?1 AND d.store IN (?2, -?2) ORDER BY c.id LIMIT ?3";
    let (mut seen, mut last, mut changed) = (0, None, Vec::new());
    sql.each(statement, &[Param::Int(after), Param::Int(store), Param::Int(AGAIN)], &mut |cells| {
        if let [id, text] = cells {
            let (id, text) = (id.int().unwrap_or_default(), text.text().unwrap_or_default());
            if let Cow::Owned(words) = words::entered(text) {
                changed.push((id, words));
            }
            (seen, last) = (seen + 1, Some(id));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for (id, words) in &changed {
        let params = [Param::Int(*id), Param::Text(words)];
        sql.run("INSERT OR REPLACE INTO mem_fts (rowid, text) VALUES (?, ?)", &params)?;
    }
    Ok(last.filter(|_| seen == AGAIN))
}

/// A chunk that searches may return: its generation is the document's current one.
pub(crate) fn found(sql: &dyn Sql, store: i64, id: i64) -> Result<Option<Chunk>> {
    let statement =
        "SELECT c.id, c.doc, c.n, c.start, c.len, c.text FROM mem_chunks c JOIN mem_docs d ON d.id = c.doc
        WHERE c.id = ? AND d.store = ? AND c.gen = d.gen";
    Ok(list(sql, statement, &[Param::Int(id), Param::Int(store)])?.pop())
}

/// The next chunks without a vector, from the oldest incomplete document on.
pub(crate) fn without_slot(sql: &dyn Sql, store: i64, limit: usize) -> Result<Vec<Chunk>> {
    let statement = "SELECT c.id, c.doc, c.n, c.start, c.len, c.text FROM mem_docs d
        JOIN mem_chunks c ON c.doc = d.id AND c.gen = d.next
        WHERE d.store = ? AND d.state IN ('queued', 'indexing', 'partial') AND c.slot IS NULL ORDER BY d.id, c.n LIMIT ?";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    list(sql, statement, &[Param::Int(store), Param::Int(limit)])
}

/// Whether a chunk belongs to this generation and has no vector.
pub(crate) fn lacks_slot(sql: &dyn Sql, id: i64, generation: i64) -> Result<bool> {
    let statement = "SELECT 1 FROM mem_chunks WHERE id = ? AND gen = ? AND slot IS NULL";
    Ok(integer(sql, statement, &[Param::Int(id), Param::Int(generation)])?.is_some())
}

pub(crate) fn set_slot(sql: &dyn Sql, id: i64, slot: i64) -> Result<()> {
    sql.run("UPDATE mem_chunks SET slot = ? WHERE id = ?", &[Param::Int(slot), Param::Int(id)])
}

/// Marks a chunk whose text the model refuses.
pub(crate) fn refuse(sql: &dyn Sql, id: i64) -> Result<()> {
    set_slot(sql, id, REFUSED)
}

/// Counts of the chunks in a generation of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) all: i64,
    /// Chunks with a vector.
    pub(crate) embedded: i64,
    /// Chunks whose text the model refuses.
    pub(crate) refused: i64,
}

/// Counts the chunks in a generation of a document.
pub(crate) fn numbers(sql: &dyn Sql, doc: i64, generation: i64) -> Result<Numbers> {
    let statement =
        "SELECT count(*), count(slot), count(nullif(slot >= 0, 0)) FROM mem_chunks WHERE doc = ? AND gen = ?";
    let mut found = Numbers::default();
    sql.each(statement, &[Param::Int(doc), Param::Int(generation)], &mut |cells| {
        if let [all, settled, embedded] = cells {
            let int = |cell: &Cell| cell.int().unwrap_or_default();
            found = Numbers { all: int(all), embedded: int(embedded), refused: int(settled) - int(embedded) };
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The slots of a document's vectors, of one generation or of all.
pub(crate) fn slots(sql: &dyn Sql, doc: i64, generation: Option<i64>) -> Result<Vec<i64>> {
    let statement =
        "SELECT slot, slot FROM mem_chunks WHERE doc = ? AND gen = coalesce(?, gen) AND slot >= 0";
    let found = pairs(sql, statement, &[Param::Int(doc), generation.into()])?;
    Ok(found.into_iter().map(|(slot, _)| slot).collect())
}

/// Deletes chunks of a document and their words: those of generations other than `keep`, or all. Returns how
/// many.
pub(crate) fn remove(sql: &dyn Sql, doc: i64, keep: Option<i64>) -> Result<i64> {
    let params = [Param::Int(doc), keep.into()];
    let count = "SELECT count(*) FROM mem_chunks WHERE doc = ? AND gen IS NOT ?";
    let gone = integer(sql, count, &params)?.unwrap_or_default();
    if gone > 0 {
        sql.run(
            "DELETE FROM mem_fts WHERE rowid IN (SELECT id FROM mem_chunks WHERE doc = ? AND gen IS NOT ?)",
            &params,
        )?;
        sql.run("DELETE FROM mem_chunks WHERE doc = ? AND gen IS NOT ?", &params)?;
    }
    Ok(gone)
}

/// Removes the slots of all chunks of a memory.
pub(super) fn forget_slots(sql: &dyn Sql, store: i64) -> Result<()> {
    sql.run(
        "UPDATE mem_chunks SET slot = NULL WHERE slot IS NOT NULL AND doc IN (SELECT id FROM mem_docs WHERE store IN (?1, -?1))",
        &[Param::Int(store)],
    )
}

/// Whether a chunk that searches may return has no vector.
pub(crate) fn any_without_slot(sql: &dyn Sql, store: i64) -> Result<bool> {
    let statement = "SELECT 1 FROM mem_docs WHERE store = ? AND state IN ('queued', 'indexing', 'partial') AND gen = next AND chunks > done LIMIT 1";
    Ok(integer(sql, statement, &[Param::Int(store)])?.is_some())
}

/// Passes chunks that match the words to `look`, best first, until it breaks: chunk, document, and a score
/// that is higher for better matches.
pub(crate) fn by_words(
    sql: &dyn Sql,
    store: i64,
    question: &str,
    mut look: impl FnMut(i64, i64, f64) -> ControlFlow<()>,
) -> Result<()> {
    let statement = "SELECT c.id, c.doc, bm25(mem_fts) AS fit FROM mem_fts
        JOIN mem_chunks c ON c.id = mem_fts.rowid JOIN mem_docs d ON d.id = c.doc
        WHERE mem_fts MATCH ? AND d.store = ? AND c.gen = d.gen ORDER BY fit, c.id DESC";
    sql.each(statement, &[Param::Text(question), Param::Int(store)], &mut |cells| {
        let [id, doc, fit] = cells else {
            return Err(Error::internal("a search has the wrong number of columns"));
        };
        let (id, doc) = (id.int().unwrap_or_default(), doc.int().unwrap_or_default());
        // SQLite's scores are lower for better matches.
        Ok(look(id, doc, -fit.real().unwrap_or_default()))
    })
}

/// Bytes of the texts of a memory.
pub(super) fn bytes(sql: &dyn Sql, store: i64) -> Result<i64> {
    let statement = "SELECT sum(length(CAST(text AS BLOB))) FROM mem_chunks WHERE doc IN (SELECT id FROM mem_docs WHERE store = ?)";
    Ok(integer(sql, statement, &[Param::Int(store)])?.unwrap_or_default())
}

/// Deletes all chunks of a memory.
pub(super) fn clear(sql: &dyn Sql, store: i64) -> Result<()> {
    let of = [Param::Int(store)];
    sql.run(
        "DELETE FROM mem_fts WHERE rowid IN (SELECT c.id FROM mem_chunks c JOIN mem_docs d ON d.id = c.doc
            WHERE d.store IN (?1, -?1))",
        &of,
    )?;
    sql.run("DELETE FROM mem_chunks WHERE doc IN (SELECT id FROM mem_docs WHERE store IN (?1, -?1))", &of)
}
