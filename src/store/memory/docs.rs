//! The table `mem_docs`: documents of memories. A replaced document keeps its row: searches find the chunks
//! of its generation `gen` until those of the next one are complete.

use std::ops::ControlFlow;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::host::{Cell, Param, Sql, integer};
use crate::protocols::responses::memories::{Document, DocumentState};
use crate::store::table::Table;

/// `tags`: `,a,b,`. `next`: the generation that is being indexed, or `gen`. `chunks`, `done`: the number of
/// its chunks, and of the complete ones.
pub(super) const TABLE: Table = Table {
    create: &[
        "CREATE TABLE IF NOT EXISTS mem_docs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, store INTEGER NOT NULL, key TEXT NOT NULL, source TEXT NOT NULL, title TEXT,
        url TEXT, mime TEXT, tags TEXT NOT NULL DEFAULT '', meta TEXT, hash TEXT NOT NULL, state TEXT NOT NULL,
        gen INTEGER NOT NULL, next INTEGER NOT NULL, chunks INTEGER NOT NULL, done INTEGER NOT NULL, error TEXT,
        created_us INTEGER NOT NULL, updated_us INTEGER NOT NULL, UNIQUE (store, key))",
        // A memory may have many complete documents, and is queried often for incomplete ones.
        "CREATE INDEX IF NOT EXISTS mem_docs_open ON mem_docs (store, id) WHERE state IN ('queued', 'indexing', 'partial')",
    ],
    drop: "DROP TABLE IF EXISTS mem_docs",
};

/// The state of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocState {
    /// Its text waits to be chunked.
    Queued,
    /// A part is complete.
    Indexing,
    /// Found by its words only; vectors are missing.
    Partial,
    /// Complete, except for chunks that the model refuses; these are found by their words only.
    Refused,
    /// Complete.
    Ready,
    /// Not indexed; `error` has the reason.
    Failed,
}

impl DocState {
    const fn as_str(self) -> &'static str {
        match self {
            DocState::Queued => "queued",
            DocState::Indexing => "indexing",
            DocState::Partial => "partial",
            DocState::Refused => "refused",
            DocState::Ready => "ready",
            DocState::Failed => "failed",
        }
    }

    fn parse(text: &str) -> DocState {
        let known = [
            DocState::Queued,
            DocState::Indexing,
            DocState::Partial,
            DocState::Refused,
            DocState::Ready,
            DocState::Failed,
        ];
        known.into_iter().find(|state| state.as_str() == text).unwrap_or(DocState::Failed)
    }

    /// The state for clients.
    const fn response(self) -> DocumentState {
        match self {
            DocState::Queued => DocumentState::Queued,
            DocState::Indexing => DocumentState::Indexing,
            DocState::Partial | DocState::Refused => DocumentState::Partial,
            DocState::Ready => DocumentState::Ready,
            DocState::Failed => DocumentState::Failed,
        }
    }
}

/// A row of `mem_docs`.
#[derive(Clone, Debug)]
pub(crate) struct Doc {
    pub(crate) id: i64,
    pub(crate) store: i64,
    pub(crate) key: String,
    pub(crate) source: String,
    pub(crate) title: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) meta: Option<String>,
    pub(crate) hash: String,
    pub(crate) state: DocState,
    pub(crate) gen_: i64,
    pub(crate) next: i64,
    pub(crate) chunks: i64,
    pub(crate) done: i64,
    pub(crate) error: Option<String>,
    pub(crate) created_us: i64,
    pub(crate) updated_us: i64,
}

const COLUMNS: usize = 18;

impl Doc {
    /// The id for clients.
    pub(crate) fn public_id(&self) -> String {
        public_id(self.id)
    }

    /// The public form.
    pub(crate) fn response(&self) -> Document<'_> {
        let cut = self.state != DocState::Queued;
        let metadata =
            self.meta.as_deref().and_then(|text| crate::json::from_str::<Map<String, Value>>(text).ok());
        Document {
            id: self.public_id(),
            key: &self.key,
            source: &self.source,
            title: self.title.as_deref(),
            url: self.url.as_deref(),
            mime_type: self.mime.as_deref(),
            tags: &self.tags,
            metadata,
            state: self.state.response(),
            chunks: cut.then_some(self.chunks),
            done: self.done,
            error: self.error.as_deref(),
            created_at: self.created_us,
            updated_at: self.updated_us,
        }
    }
}

/// `doc_41`.
fn public_id(id: i64) -> String {
    format!("doc_{id}")
}

/// The number in `doc_41`.
pub(crate) fn parse_id(text: &str) -> Option<i64> {
    text.strip_prefix("doc_").and_then(|number| number.parse().ok())
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, store, key, source, title, url, mime, tags, meta, hash, state, gen, next, chunks, done, error,
                created_us, updated_us FROM mem_docs ",
            $rest
        )
    };
}

fn read(cells: &[Cell]) -> Result<Doc> {
    let Ok(cells) = <&[Cell; COLUMNS]>::try_from(cells) else {
        return Err(Error::internal("a document has the wrong number of columns"));
    };
    let [
        id,
        store,
        key,
        source,
        title,
        url,
        mime,
        tags,
        meta,
        hash,
        state,
        gen_,
        next,
        chunks,
        done,
        error,
        created,
        updated,
    ] = cells;
    let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
    let maybe = |cell: &Cell| cell.text().map(str::to_owned);
    let int = |cell: &Cell| cell.int().unwrap_or_default();
    let tags = tags.text().unwrap_or_default();
    Ok(Doc {
        id: int(id),
        store: int(store),
        key: text(key),
        source: text(source),
        title: maybe(title),
        url: maybe(url),
        mime: maybe(mime),
        tags: tags.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
        meta: maybe(meta),
        hash: text(hash),
        state: DocState::parse(state.text().unwrap_or_default()),
        gen_: int(gen_),
        next: int(next),
        chunks: int(chunks),
        done: int(done),
        error: maybe(error),
        created_us: int(created),
        updated_us: int(updated),
    })
}

fn list(sql: &dyn Sql, statement: &'static str, params: &[Param<'_>]) -> Result<Vec<Doc>> {
    let mut found = Vec::new();
    sql.each(statement, params, &mut |cells| {
        found.push(read(cells)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The document with a key.
pub(crate) fn by_key(sql: &dyn Sql, store: i64, key: &str) -> Result<Option<Doc>> {
    Ok(list(sql, select!("WHERE store = ? AND key = ?"), &[Param::Int(store), Param::Text(key)])?.pop())
}

/// The document with a number.
pub(crate) fn by_id(sql: &dyn Sql, store: i64, id: i64) -> Result<Option<Doc>> {
    Ok(list(sql, select!("WHERE id = ? AND store = ?"), &[Param::Int(id), Param::Int(store)])?.pop())
}

/// Passes documents older than `before` to `look`, newest first.
pub(crate) fn page(
    sql: &dyn Sql,
    store: i64,
    before: i64,
    mut look: impl FnMut(Doc) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let statement = select!("WHERE store = ? AND id < ? ORDER BY id DESC");
    sql.each(statement, &[Param::Int(store), Param::Int(before)], &mut |cells| look(read(cells)?))
}

/// Inserts a document and returns its number; ignores its `id`.
pub(crate) fn insert(sql: &dyn Sql, doc: &Doc) -> Result<i64> {
    let id = integer(
        sql,
        "INSERT INTO mem_docs (store, key, source, title, url, mime, tags, meta, hash, state, gen, next, chunks, done,
            created_us, updated_us)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?) RETURNING id",
        &[
            Param::Int(doc.store),
            Param::Text(&doc.key),
            Param::Text(&doc.source),
            doc.title.as_ref().into(),
            doc.url.as_ref().into(),
            doc.mime.as_ref().into(),
            Param::Text(&joined(&doc.tags)),
            doc.meta.as_ref().into(),
            Param::Text(&doc.hash),
            Param::Text(doc.state.as_str()),
            Param::Int(doc.gen_),
            Param::Int(doc.next),
            Param::Int(doc.created_us),
            Param::Int(doc.updated_us),
        ],
    )?;
    id.ok_or_else(|| Error::internal("a document has no number"))
}

fn joined(tags: &[String]) -> String {
    if tags.is_empty() { String::new() } else { format!(",{},", tags.join(",")) }
}

/// Writes the columns that may change.
pub(crate) fn update(sql: &dyn Sql, doc: &Doc) -> Result<()> {
    sql.run(
        "UPDATE mem_docs SET title = ?, url = ?, mime = ?, tags = ?, meta = ?, hash = ?, state = ?, gen = ?, next = ?,
            chunks = ?, done = ?, error = ?, updated_us = ? WHERE id = ?",
        &[
            doc.title.as_ref().into(),
            doc.url.as_ref().into(),
            doc.mime.as_ref().into(),
            Param::Text(&joined(&doc.tags)),
            doc.meta.as_ref().into(),
            Param::Text(&doc.hash),
            Param::Text(doc.state.as_str()),
            Param::Int(doc.gen_),
            Param::Int(doc.next),
            Param::Int(doc.chunks),
            Param::Int(doc.done),
            doc.error.as_ref().into(),
            Param::Int(doc.updated_us),
            Param::Int(doc.id),
        ],
    )
}

/// The oldest incomplete document.
pub(crate) fn unfinished(sql: &dyn Sql, store: i64) -> Result<Option<Doc>> {
    let statement =
        select!("WHERE store = ? AND state IN ('queued', 'indexing', 'partial') ORDER BY id LIMIT 1");
    Ok(list(sql, statement, &[Param::Int(store)])?.pop())
}

/// Sets the state and the error of all documents that are being indexed.
pub(crate) fn set_unfinished(sql: &dyn Sql, store: i64, state: DocState, error: Option<&str>) -> Result<()> {
    sql.run(
        "UPDATE mem_docs SET state = ?, error = ? WHERE store = ? AND state IN ('indexing', 'partial')",
        &[Param::Text(state.as_str()), error.into(), Param::Int(store)],
    )
}

/// Sets complete documents to be indexed again, because their vectors are deleted.
pub(crate) fn reopen(sql: &dyn Sql, store: i64) -> Result<()> {
    sql.run(
        "UPDATE mem_docs SET state = 'indexing', done = 0, error = NULL
         WHERE store = ? AND state IN ('ready', 'refused', 'indexing', 'partial')",
        &[Param::Int(store)],
    )
}

/// Number of documents.
pub(crate) fn number(sql: &dyn Sql, store: i64) -> Result<i64> {
    let statement = "SELECT count(*) FROM mem_docs WHERE store = ?";
    Ok(integer(sql, statement, &[Param::Int(store)])?.unwrap_or_default())
}

pub(crate) fn remove(sql: &dyn Sql, id: i64) -> Result<()> {
    sql.run("DELETE FROM mem_docs WHERE id = ?", &[Param::Int(id)])
}

/// Hides documents with keys in a range from searches. They are moved to a store that does not exist, and
/// deleted one by one later. Returns whether there were any.
pub(crate) fn hide(sql: &dyn Sql, store: i64, (from, to): (&str, &str)) -> Result<bool> {
    let params = [Param::Int(store), Param::Text(from), Param::Text(to)];
    let any =
        integer(sql, "SELECT 1 FROM mem_docs WHERE store = ? AND key >= ? AND key < ? LIMIT 1", &params)?;
    if any.is_none() {
        return Ok(false);
    }
    // Without RETURNING: with several rows, the statement would still be open at the commit.
    let statement =
        "UPDATE mem_docs SET store = -store, key = 'gone:' || id WHERE store = ? AND key >= ? AND key < ?";
    sql.run(statement, &params)?;
    Ok(true)
}

/// Some hidden documents.
pub(crate) fn hidden(sql: &dyn Sql, store: i64, limit: usize) -> Result<Vec<Doc>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = list(sql, select!("WHERE store = -? LIMIT ?"), &[Param::Int(store), Param::Int(limit)])?;
    Ok(found.into_iter().map(|doc| Doc { store, ..doc }).collect())
}

/// Replaces the prefix `from` of keys in a range.
pub(crate) fn rekey(sql: &dyn Sql, store: i64, (from, end): (&str, &str), to: &str) -> Result<()> {
    sql.run(
        "UPDATE mem_docs SET key = ? || substr(key, ?) WHERE store = ? AND key >= ? AND key < ?",
        &[
            Param::Text(to),
            Param::Int(from.chars().count() as i64 + 1),
            Param::Int(store),
            Param::Text(from),
            Param::Text(end),
        ],
    )
}

/// Passes numbers and keys in a range to `look`, by number, after one.
pub(crate) fn keys(
    sql: &dyn Sql,
    store: i64,
    (from, to): (&str, &str),
    after: i64,
    mut look: impl FnMut(i64, &str) -> ControlFlow<()>,
) -> Result<()> {
    let statement =
        "SELECT id, key FROM mem_docs WHERE id > ? AND +store = ? AND key >= ? AND key < ? ORDER BY id";
    let params = [Param::Int(after), Param::Int(store), Param::Text(from), Param::Text(to)];
    sql.each(statement, &params, &mut |cells| {
        let [id, key] = cells else {
            return Err(Error::internal("a document has the wrong number of columns"));
        };
        Ok(look(id.int().unwrap_or_default(), key.text().unwrap_or_default()))
    })
}

pub(super) fn clear(sql: &dyn Sql, store: i64) -> Result<()> {
    sql.run("DELETE FROM mem_docs WHERE store IN (?1, -?1)", &[Param::Int(store)])
}
