//! Indexing of documents: texts are chunked, and chunks get vectors, a batch at a time, each in one
//! transaction. The remaining work follows from the rows, so that a crash loses nothing and repeats nothing.

use crate::definitions::model::Model;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::memory::cut::cut;
use crate::memory::embed::bytes_of;
use crate::memory::embedding::TextRole;
use crate::memory::{MemoryStore, PendingWork};
use crate::models::{ProviderCode, ProviderError};
use crate::store::memory as stores;
use crate::store::memory::chunks::{Chunk, Numbers};
use crate::store::memory::docs::{Doc, DocState};
use crate::store::memory::pages::{Change, QuantizedVector};
use crate::store::memory::{Store, chunks, docs, pages, texts};

/// Steps of one attempt, each with at most one batch of texts.
pub(crate) const STEPS: u32 = 24;

/// Prefix of a document's error if the model refuses some of its text.
const REFUSED: &str = "embedding_refused: ";

/// A text that every model accepts.
const PROBE: &str = "text";

/// The result of one step.
#[derive(Debug)]
pub(crate) enum Step {
    /// More work may remain.
    More,
    /// Nothing remains.
    Done,
    /// The model failed. The texts are found by their words only.
    Failed(ProviderError),
}

impl MemoryStore<'_> {
    /// Runs one step. `attempt`: number of this request for the next vectors.
    pub(crate) async fn index(&self, attempt: u32) -> Result<Step> {
        if !self.memory_host.has_tables()? {
            return Ok(Step::Done);
        }
        let sql = self.sql();
        let Some(store) = stores::find(sql, &self.memory.name)? else { return Ok(Step::Done) };
        if store.embedding != self.identity() {
            self.rebuild(&store, 0)?;
            return Ok(Step::More);
        }
        if store.entered.is_some() {
            self.enter_again(PendingWork::Progress)?;
            return Ok(Step::More);
        }
        // Make all texts searchable by words before requesting any vector.
        if let Some(doc) = texts::next_document(sql, store.id)? {
            self.cut_next(&store, doc)?;
            return Ok(Step::More);
        }
        let Some(doc) = docs::unfinished(sql, store.id)? else { return Ok(Step::Done) };
        let Some(model) = self.model else {
            self.complete(&store, doc.id)?;
            return Ok(Step::More);
        };
        let batch = model.batch.unwrap_or(limits::EMBEDDING_BATCH);
        let wanted = chunks::without_slot(sql, store.id, batch)?;
        if wanted.first().is_none_or(|chunk| chunk.doc != doc.id) {
            self.complete(&store, doc.id)?;
            return Ok(Step::More);
        }
        self.embed_next(&store, model, &wanted, attempt).await
    }

    /// Rebuilds the vectors, because they no longer match the model.
    pub(super) fn rebuild(&self, store: &Store, dims: i64) -> Result<()> {
        let identity = self.identity();
        self.change(|sql| {
            stores::forget_vectors(sql, store.id, &identity, dims)?;
            docs::reopen(sql, store.id)?;
            Ok(((), PendingWork::Index))
        })
    }

    /// Indexes some words of an older build again. `left`: pending work if more remain.
    pub(super) fn enter_again(&self, left: PendingWork) -> Result<()> {
        self.change(|sql| {
            let Some(store) = stores::find(sql, &self.memory.name)? else {
                return Ok(((), PendingWork::Nothing));
            };
            let more = stores::enter_again(sql, &store)?;
            Ok(((), if more { left } else { PendingWork::Nothing }))
        })
    }

    /// Chunks the next pieces: one of a long text, or many of short ones.
    fn cut_next(&self, store: &Store, doc: i64) -> Result<()> {
        self.change(|sql| {
            let (mut next, mut bytes) = (Some(doc), 0);
            for _ in 0..limits::INDEX_BATCH {
                let Some(doc) = next.filter(|_| bytes < limits::DOCUMENT_PIECE_BYTES / 2) else { break };
                bytes += self.cut_piece(sql, store, doc)?;
                next = texts::next_document(sql, store.id)?;
            }
            Ok(((), PendingWork::Progress))
        })
    }

    /// Chunks the next piece of a document's text. Returns its size in bytes.
    fn cut_piece(&self, sql: &dyn Sql, store: &Store, doc: i64) -> Result<usize> {
        let now = self.now_us();
        let (Some(mut doc), Some(piece)) = (docs::by_id(sql, store.id, doc)?, texts::next(sql, doc)?) else {
            return texts::remove_of(sql, doc).map(|()| 0);
        };
        let parts = cut(&piece.text, self.memory.chunk);
        let room = i64::try_from(self.memory.limits.chunks).unwrap_or(i64::MAX);
        let added = i64::try_from(parts.len()).unwrap_or(i64::MAX);
        let have = stores::find(sql, &self.memory.name)?.map_or(0, |store| store.chunks);
        if have + added > room {
            return refuse(sql, doc, now).map(|()| piece.text.len());
        }
        let before = chunks::numbers(sql, doc.id, doc.next)?.all;
        for (n, part) in (before..).zip(&parts) {
            let chunk = Chunk {
                id: 0,
                doc: doc.id,
                n,
                start: piece.start + i64::try_from(part.start).unwrap_or_default(),
                len: i64::try_from(part.len).unwrap_or_default(),
                text: part.text.to_owned(),
            };
            chunks::insert(sql, doc.next, &chunk)?;
        }
        texts::remove(sql, piece.id)?;
        stores::count(sql, store.id, added)?;
        (doc.chunks, doc.state, doc.updated_us) = (before + added, DocState::Indexing, now);
        match self.model {
            Some(_) => docs::update(sql, &doc)?,
            // Without a model, words are the only way to find it.
            None => self.settle(sql, store.id, doc)?,
        }
        Ok(piece.text.len())
    }

    /// Requests vectors of the next chunks, possibly of several documents. A refused batch is halved until
    /// the refused texts are isolated. These are set aside, so that all others get vectors.
    async fn embed_next(&self, store: &Store, model: &Model, wanted: &[Chunk], attempt: u32) -> Result<Step> {
        let mut waiting = vec![wanted];
        let mut takes_texts = false;
        while let Some(part) = waiting.pop() {
            let texts: Vec<&str> = part.iter().map(|chunk| chunk.text.as_str()).collect();
            let error = match self.embed(model, TextRole::Document, &texts, attempt).await {
                Ok(vectors) => {
                    takes_texts = true;
                    match self.enter_vectors(store, part, &vectors)? {
                        true => continue,
                        false => break,
                    }
                }
                Err(error) => error,
            };
            // A model that accepts no text at all does not refuse a particular one: its name or options may
            // be wrong. After a status of 500 it may just have begun to fail.
            let known = takes_texts && (part.len() > 1 || error.status != Some(500));
            let refuses = is_refusal(&error, attempt)
                && (known || self.embed(model, TextRole::Document, &[PROBE], attempt).await.is_ok());
            if !refuses {
                return Ok(Step::Failed(error));
            }
            takes_texts = true;
            match part {
                [chunk] => self.set_aside(store, chunk, &error)?,
                _ => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([second, first]);
                }
            }
        }
        Ok(Step::More)
    }

    /// The current row of the memory, if its vectors still match those of the request.
    fn unchanged(&self, sql: &dyn Sql, store: &Store) -> Result<Option<Store>> {
        let now = stores::find(sql, &self.memory.name)?;
        Ok(now.filter(|now| now.id == store.id && now.embedding == self.identity()))
    }

    /// Stores vectors of chunks. Returns false if the memory has changed meanwhile.
    fn enter_vectors(&self, store: &Store, chunks: &[Chunk], vectors: &[Vec<f32>]) -> Result<bool> {
        let dims = vectors.first().map_or(0, Vec::len) as i64;
        self.change_and_log(|sql| {
            let Some(now) = self.unchanged(sql, store)? else { return Ok((false, PendingWork::Progress)) };
            if now.dims != 0 && now.dims != dims {
                // The model returns vectors of another length under the same name.
                stores::forget_vectors(sql, store.id, &now.embedding, dims)?;
                docs::reopen(sql, store.id)?;
                return Ok((false, PendingWork::Progress));
            }
            if now.dims == 0 {
                stores::set_dims(sql, store.id, dims)?;
            }
            let given: Vec<(&Chunk, &Vec<f32>)> = chunks.iter().zip(vectors).collect();
            for of_doc in given.chunk_by(|(a, _), (b, _)| a.doc == b.doc) {
                self.enter(sql, store.id, of_doc)?;
            }
            Ok((true, left_of(sql, store.id)?))
        })
    }

    /// Marks a chunk whose text the model refuses; it is found by its words only.
    fn set_aside(&self, store: &Store, chunk: &Chunk, error: &ProviderError) -> Result<()> {
        self.change_and_log(|sql| {
            if self.unchanged(sql, store)?.is_some()
                && let Some(mut doc) = docs::by_id(sql, store.id, chunk.doc)?
                && chunks::lacks_slot(sql, chunk.id, doc.next)?
            {
                chunks::refuse(sql, chunk.id)?;
                (doc.state, doc.error) = (DocState::Indexing, Some(format!("{REFUSED}{}", error.message)));
                doc.updated_us = self.now_us();
                self.settle(sql, store.id, doc)?;
            }
            Ok(((), left_of(sql, store.id)?))
        })
    }

    /// Stores vectors of the chunks of one document that still exist.
    fn enter(&self, sql: &dyn Sql, store: i64, given: &[(&Chunk, &Vec<f32>)]) -> Result<()> {
        let Some((first, _)) = given.first() else { return Ok(()) };
        let Some(mut doc) = docs::by_id(sql, store, first.doc)? else { return Ok(()) };
        let mut packed = Vec::with_capacity(given.len());
        for (chunk, vector) in given {
            if chunks::lacks_slot(sql, chunk.id, doc.next)? {
                packed.push((chunk.id, QuantizedVector::of(vector)));
            }
        }
        let live = doc.gen_ == doc.next;
        pages::put(sql, store, &packed, live, |chunk, slot| chunks::set_slot(sql, chunk, slot))?;
        doc.error = doc.error.filter(|error| error.starts_with(REFUSED));
        (doc.state, doc.updated_us) = (DocState::Indexing, self.now_us());
        self.settle(sql, store, doc)
    }

    /// Completes a document without remaining work.
    fn complete(&self, store: &Store, doc: i64) -> Result<()> {
        self.change(|sql| {
            if let Some(doc) = docs::by_id(sql, store.id, doc)?
                && texts::next(sql, doc.id)?.is_none()
            {
                self.settle(sql, store.id, Doc { updated_us: self.now_us(), ..doc })?;
            }
            Ok(((), left_of(sql, store.id)?))
        })
    }

    /// Counts the complete chunks of a document. When all are, its new generation replaces the old one.
    fn settle(&self, sql: &dyn Sql, store: i64, mut doc: Doc) -> Result<()> {
        let Numbers { all, embedded, refused } = chunks::numbers(sql, doc.id, doc.next)?;
        doc.chunks = all;
        doc.done = if self.model.is_some() { embedded } else { all };
        if doc.done + refused == all && texts::next(sql, doc.id)?.is_none() {
            if doc.gen_ != doc.next {
                let old = chunks::slots(sql, doc.id, Some(doc.gen_))?;
                pages::change(sql, &old, Change::Gone)?;
                let gone = chunks::remove(sql, doc.id, Some(doc.next))?;
                stores::count(sql, store, -gone)?;
                let new = chunks::slots(sql, doc.id, Some(doc.next))?;
                pages::change(sql, &new, Change::Found)?;
                doc.gen_ = doc.next;
            }
            (doc.state, doc.error) = match refused {
                0 => (DocState::Ready, None),
                _ => {
                    let why = doc.error.filter(|error| error.starts_with(REFUSED));
                    (
                        DocState::Refused,
                        Some(why.unwrap_or_else(|| format!("{REFUSED}{refused} of {all} chunks"))),
                    )
                }
            };
        }
        docs::update(sql, &doc)
    }
}

/// Whether the model may accept other parts of the request. Some servers report a text that is too long with
/// a status of 500, so that one is retried first.
fn is_refusal(error: &ProviderError, attempt: u32) -> bool {
    match error.status {
        _ if error.code == ProviderCode::ContextLength => true,
        Some(400 | 413 | 422) => true,
        Some(500) => attempt > 1,
        _ => false,
    }
}

/// Whether a memory has remaining work.
pub(crate) fn is_left(sql: &dyn Sql, store: &Store) -> Result<bool> {
    Ok(store.entered.is_some() || docs::unfinished(sql, store.id)?.is_some())
}

/// The remaining work after progress. If there is none, no request is running from then on.
fn left_of(sql: &dyn Sql, store: i64) -> Result<PendingWork> {
    Ok(if docs::unfinished(sql, store)?.is_some() { PendingWork::Progress } else { PendingWork::Settled })
}

/// Number and bytes of the texts in the next request for vectors; `None` if another step comes first.
pub(crate) fn next_request(sql: &dyn Sql, name: &str, model: &Model) -> Result<Option<(usize, usize)>> {
    if !stores::is_there(sql) {
        return Ok(None);
    }
    let Some(store) = stores::find(sql, name)? else { return Ok(None) };
    if store.entered.is_some() || texts::next_document(sql, store.id)?.is_some() {
        return Ok(None);
    }
    let Some(doc) = docs::unfinished(sql, store.id)? else { return Ok(None) };
    let batch = model.batch.unwrap_or(limits::EMBEDDING_BATCH);
    let mut wanted = chunks::without_slot(sql, store.id, batch)?;
    if wanted.first().is_some_and(|chunk| chunk.doc != doc.id) {
        wanted.clear();
    }
    let bytes = bytes_of(model, TextRole::Document, wanted.iter().map(|chunk| chunk.text.as_str()));
    Ok((!wanted.is_empty()).then_some((wanted.len(), bytes)))
}

/// Marks a document that does not fit the memory, and deletes its new chunks. An earlier generation stays.
fn refuse(sql: &dyn Sql, mut doc: Doc, now: i64) -> Result<()> {
    texts::remove_of(sql, doc.id)?;
    let slots = chunks::slots(sql, doc.id, Some(doc.next))?;
    pages::change(sql, &slots, Change::Gone)?;
    let keep = (doc.next != doc.gen_).then_some(doc.gen_);
    let gone = chunks::remove(sql, doc.id, keep)?;
    stores::count(sql, doc.store, -gone)?;
    let all = chunks::numbers(sql, doc.id, doc.gen_)?.all;
    (doc.next, doc.chunks, doc.done, doc.updated_us) = (doc.gen_, all, all, now);
    doc.state = DocState::Failed;
    // Try a later document with the same text again.
    doc.hash = String::new();
    doc.error = Some(
        "memory_full: the memory has no room for it. Delete documents, or raise `limits.chunks`.".to_owned(),
    );
    docs::update(sql, &doc)
}

/// Marks texts of a memory that wait for vectors after the model failed.
pub(crate) fn degrade(sql: &dyn Sql, name: &str, error: &str) -> Result<()> {
    let store = stores::find(sql, name)?.ok_or_else(|| Error::internal("a memory without a row"))?;
    let text = format!("embedding_failed: {error}");
    docs::set_unfinished(sql, store.id, DocState::Partial, Some(&text))
}
