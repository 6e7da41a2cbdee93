//! Adding, listing and deleting documents.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::skill::hash;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::json_text::JsonText;
use crate::limits;
use crate::memory::{MemoryStore, PendingWork};
use crate::page::Page;
use crate::protocols::responses::memories::{DocumentPage, MemoryInfo, MemoryState};
use crate::request::Query;
use crate::store::memory as stores;
use crate::store::memory::docs::{Doc, DocState};
use crate::store::memory::pages::Change;
use crate::store::memory::{Store, chunks, docs, pages, texts};
use crate::text::{boundary, first_bytes};

/// A new document. Only its text is searched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct NewDocument {
    pub(crate) key: String,
    /// `api`, `note`, `file`, `message`.
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) url: Option<String>,
    #[serde(default)]
    pub(crate) mime: Option<String>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) meta: Option<Map<String, Value>>,
    pub(crate) text: String,
    /// Whether another text under the same key is an error, because the key is an idempotency key.
    #[serde(default)]
    pub(crate) once: bool,
    /// Time of the message, for messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at_us: Option<i64>,
}

impl NewDocument {
    /// A hash of the text and, separated by a space, one of the other data.
    fn hash(&self) -> String {
        let all = json!([self.title, self.url, self.mime, self.tags, self.meta]);
        format!("{} {}", hash(&self.text), hash(&all.to_string()))
    }
}

impl MemoryStore<'_> {
    /// Adds a document, and schedules its indexing.
    pub(super) fn add(&self, document: NewDocument) -> Result<Doc> {
        let document = self.cleaned(document)?;
        if !self.memory_host.has_tables()? {
            self.memory_host.make_tables()?;
        }
        let identity = self.identity();
        self.change(|sql| {
            let store = stores::open(sql, &self.memory.name, &identity)?;
            self.store(sql, &store, &document)
        })
    }

    /// Adds a document with a cleaned text, inside a transaction.
    pub(crate) fn store(
        &self,
        sql: &dyn Sql,
        store: &Store,
        document: &NewDocument,
    ) -> Result<(Doc, PendingWork)> {
        let hash = document.hash();
        let known = docs::by_key(sql, store.id, &document.key)?;
        if let Some(known) = &known {
            if known.hash == hash {
                return Ok((known.clone(), PendingWork::Nothing));
            }
            if document.once {
                let text = "This Idempotency-Key was used with another document.";
                return Err(Error::new(Code::IdempotencyMismatch, text));
            }
            if text_of(&known.hash) == text_of(&hash) {
                let doc = Doc { hash, updated_us: self.now_us(), ..with_facts(known.clone(), document) };
                docs::update(sql, &doc)?;
                return Ok((doc, PendingWork::Nothing));
            }
        }
        self.check_room(sql, store, known.as_ref(), &document.text)?;
        let now = self.now_us();
        let mut doc = new_row(store, document, hash, now);
        match known {
            None => doc.id = docs::insert(sql, &doc)?,
            Some(known) => {
                drop_next(sql, &known)?;
                (doc.id, doc.created_us) = (known.id, known.created_us);
                (doc.gen_, doc.next) = (known.gen_, known.gen_ + 1);
                docs::update(sql, &doc)?;
            }
        }
        let mut start = 0;
        for piece in pieces(&document.text) {
            texts::add(sql, store.id, doc.id, start, piece)?;
            start += piece.chars().count() as i64;
        }
        Ok((doc, PendingWork::Index))
    }

    pub(crate) fn cleaned(&self, mut document: NewDocument) -> Result<NewDocument> {
        let clean = |text: String| self.memory_host.clean(text);
        document.title = document.title.map(clean);
        document.url = document.url.map(clean);
        document.text = self.memory_host.clean(std::mem::take(&mut document.text));
        if document.text.trim().is_empty() {
            return Err(Error::field("text", "The document has no text."));
        }
        Ok(document)
    }

    fn check_room(&self, sql: &dyn Sql, store: &Store, known: Option<&Doc>, text: &str) -> Result<()> {
        let chunk = self.memory.chunk;
        let step = i64::try_from(chunk.chars.saturating_sub(chunk.overlap).max(1)).unwrap_or(i64::MAX);
        let chunks_of = |chars: i64| if chars > 0 { chars / step + 1 } else { 0 };
        let new = chunks_of(text.chars().count() as i64);
        let waiting = chunks_of(texts::waiting(sql, store.id)?);
        let replaced = known.map_or(0, |doc| doc.chunks);
        let room = i64::try_from(self.memory.limits.chunks).unwrap_or(i64::MAX);
        if store.chunks - replaced + waiting + new <= room {
            return Ok(());
        }
        let text = format!(
            "The memory “{}” holds {} of {room} chunks, and the document has about {new}.",
            self.memory.name,
            store.chunks + waiting
        );
        Err(Error::new(Code::MemoryFull, text).hint("Delete documents, or raise `limits.chunks`."))
    }

    /// Lists the documents, newest first.
    pub(super) fn list(&self, query: &Query) -> Result<DocumentPage> {
        let limit = query.number("limit", limits::PAGE_DEFAULT, limits::PAGE_MAX)?;
        let before = match query.get("cursor").filter(|cursor| !cursor.is_empty()) {
            None => i64::MAX >> 11,
            Some(cursor) => docs::parse_id(cursor).ok_or_else(|| {
                Error::new(Code::BadCursor, format!("`cursor` is none of this list: “{cursor}”."))
                    .at("cursor")
            })?,
        };
        let tag = query.get("tag").filter(|tag| !tag.is_empty());
        let mut page = Page::new(limit);
        let mut last = None;
        if let Some(store) = self.store_row()? {
            docs::page(self.sql(), store.id, before, |doc| {
                if tag.is_some_and(|tag| !doc.tags.iter().any(|own| own == tag)) {
                    return Ok(ControlFlow::Continue(()));
                }
                let id = doc.public_id();
                let flow = page.add_text(|| JsonText::new(&doc.response()))?;
                if flow.is_continue() {
                    last = Some(id);
                }
                Ok(flow)
            })?;
        }
        let cursor = last.filter(|_| page.has_more());
        Ok(DocumentPage { documents: page.into_rows(), cursor })
    }

    /// The row of this memory; `None` before its first document.
    fn store_row(&self) -> Result<Option<Store>> {
        if !self.memory_host.has_tables()? {
            return Ok(None);
        }
        stores::find(self.sql(), &self.memory.name)
    }

    /// A document by its id, such as `doc_41`, or by its key.
    pub(super) fn document(&self, id: &str) -> Result<Doc> {
        let found = match self.store_row()? {
            None => None,
            Some(store) => match docs::parse_id(id) {
                Some(number) => docs::by_id(self.sql(), store.id, number)?,
                None => docs::by_key(self.sql(), store.id, id)?,
            },
        };
        found.ok_or_else(|| self.no_document(id))
    }

    pub(super) fn no_document(&self, id: &str) -> Error {
        let text = format!("The memory “{}” has no document “{id}”.", self.memory.name);
        Error::new(Code::NotFound, text)
    }

    /// Deletes a document; searches no longer find it.
    pub(super) fn delete(&self, id: &str) -> Result<()> {
        let doc = self.document(id)?;
        self.change(|sql| Ok((delete(sql, &doc)?, PendingWork::Nothing)))
    }

    /// Deletes everything.
    pub(super) fn clear(&self) -> Result<()> {
        let Some(store) = self.store_row()? else { return Ok(()) };
        self.change(|sql| Ok((stores::clear(sql, store.id)?, PendingWork::Nothing)))
    }

    /// Describes the memory in numbers.
    pub(super) fn describe(&self) -> Result<MemoryInfo<'_>> {
        let memory = self.memory;
        let info = MemoryInfo {
            name: &memory.name,
            description: &memory.description,
            scope: memory.scope,
            documents: 0,
            chunks: 0,
            bytes: 0,
            embedding: memory.embedding.as_deref(),
            state: MemoryState::Ready,
        };
        let Some(store) = self.store_row()? else { return Ok(info) };
        let sql = self.sql();
        let state = match docs::unfinished(sql, store.id)? {
            _ if store.embedding != self.identity() || store.entered.is_some() => MemoryState::Reindexing,
            None => MemoryState::Ready,
            Some(doc) if doc.state == DocState::Partial => MemoryState::Partial,
            Some(_) => MemoryState::Indexing,
        };
        let (documents, bytes) = (docs::number(sql, store.id)?, stores::bytes(sql, store.id)?);
        Ok(MemoryInfo { documents, chunks: store.chunks, bytes, state, ..info })
    }
}

/// The part of a hash that covers the text.
fn text_of(hash: &str) -> &str {
    hash.split(' ').next().unwrap_or_default()
}

/// The row of a new document, without an id.
fn new_row(store: &Store, document: &NewDocument, hash: String, now: i64) -> Doc {
    let doc = Doc {
        id: 0,
        store: store.id,
        key: document.key.clone(),
        source: document.source.clone(),
        title: None,
        url: None,
        mime: None,
        tags: Vec::new(),
        meta: None,
        hash,
        state: DocState::Queued,
        gen_: 0,
        next: 0,
        chunks: 0,
        done: 0,
        error: None,
        created_us: document.at_us.unwrap_or(now),
        updated_us: now,
    };
    with_facts(doc, document)
}

/// The row with the document's data other than its text.
fn with_facts(doc: Doc, document: &NewDocument) -> Doc {
    let meta = document.meta.as_ref().map(|meta| Value::Object(meta.clone()).to_string());
    let NewDocument { title, url, mime, tags, .. } = document;
    Doc { title: title.clone(), url: url.clone(), mime: mime.clone(), tags: tags.clone(), meta, ..doc }
}

/// Deletes a document with its chunks, words and vectors.
pub(crate) fn delete(sql: &dyn Sql, doc: &Doc) -> Result<()> {
    let slots = chunks::slots(sql, doc.id, None)?;
    pages::change(sql, &slots, Change::Gone)?;
    let gone = chunks::remove(sql, doc.id, None)?;
    stores::count(sql, doc.store, -gone)?;
    texts::remove_of(sql, doc.id)?;
    docs::remove(sql, doc.id)
}

/// Deletes the incomplete next generation of a document, because another one replaces it.
fn drop_next(sql: &dyn Sql, doc: &Doc) -> Result<()> {
    texts::remove_of(sql, doc.id)?;
    if doc.next == doc.gen_ {
        return Ok(());
    }
    let slots = chunks::slots(sql, doc.id, Some(doc.next))?;
    pages::change(sql, &slots, Change::Gone)?;
    let gone = chunks::remove(sql, doc.id, Some(doc.gen_))?;
    stores::count(sql, doc.store, -gone)
}

/// Splits a text into pieces that fit a row, preferably at paragraphs or lines.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > limits::DOCUMENT_PIECE_BYTES {
        let most = first_bytes(rest, limits::DOCUMENT_PIECE_BYTES);
        let half = boundary(most, most.len() / 2);
        let later = most.get(half..).unwrap_or_default();
        let ends = ["\n\n", "\n", ". ", " "]
            .into_iter()
            .find_map(|end| later.rfind(end).map(|at| half + at + end.len()));
        let (piece, behind) = rest.split_at(ends.unwrap_or(most.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    pieces
}

/// Checks the tags of a document.
pub(crate) fn check_tags(tags: &[String]) -> Result<()> {
    if tags.len() > limits::MEMORY_TAGS {
        let most = limits::MEMORY_TAGS;
        return Err(Error::field(
            "tags",
            format!("There are {} tags; at most {most} are allowed.", tags.len()),
        ));
    }
    let wrong = |tag: &&String| {
        let chars = tag.chars().count();
        chars == 0 || chars > limits::MEMORY_TAG_CHARS || tag.contains(',') || tag.to_lowercase() != **tag
    };
    match tags.iter().find(wrong) {
        None => Ok(()),
        Some(tag) => Err(Error::field(
            "tags",
            format!(
                "“{tag}” is no tag: it has 1 to {} characters, small letters and no comma.",
                limits::MEMORY_TAG_CHARS
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let prose = "A sentence of some words. Another one!\n\n".repeat(9_000);
        let solid = "語".repeat(100_000);
        for text in [prose.as_str(), &solid, "", "short"] {
            let pieces = pieces(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| piece.len() <= limits::DOCUMENT_PIECE_BYTES));
        }
        assert!(pieces(&prose)[0].ends_with("\n\n"));
    }

    #[test]
    fn tags_are_checked() {
        let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        assert!(check_tags(&tags(&["billing", "2026", "größe"])).is_ok());
        for wrong in [&[""][..], &["Upper"], &["a,b"], &["x"; 17]] {
            assert!(check_tags(&tags(wrong)).is_err(), "{wrong:?}");
        }
    }
}
