//! Searches: chunks that match by words and chunks that match by vectors, fused.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::definitions::memory::Retrieval;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::memory::embed::VectorRequest;
use crate::memory::fuse::{Side, fuse};
use crate::memory::notes::MESSAGE;
use crate::memory::{MemoryStore, PendingWork};
use crate::protocols::responses::memories::PlaceFound;
use crate::store::memory as stores;
use crate::store::memory::chunks::Chunk;
use crate::store::memory::pages::Question;
use crate::store::memory::{Store, chunks, docs, pages, words};

/// The sides of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Words and vectors.
    #[default]
    Hybrid,
    /// Words only.
    Text,
    /// Vectors only.
    Vector,
}

/// The parameters of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SearchQuery {
    pub(crate) query: String,
    pub(crate) top_k: usize,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) mode: Mode,
    /// Most requests for the query's vector; `None` follows the policy.
    #[serde(default)]
    pub(crate) requests: Option<u32>,
}

/// A result: a chunk, or adjacent chunks that were joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hit {
    pub(crate) score: f64,
    pub(crate) text: String,
    pub(crate) document: String,
    pub(crate) key: String,
    /// Index of its first chunk in the document.
    pub(crate) chunk: i64,
    /// Range of characters in the document.
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) title: Option<String>,
    pub(crate) url: Option<String>,
    /// Source: `api`, `note`, `file`, `message`.
    pub(crate) source: String,
    pub(crate) at_us: i64,
    /// Numbers of its chunks.
    pub(crate) chunks: Vec<i64>,
}

impl Hit {
    /// The public form.
    pub(super) fn response(&self) -> PlaceFound<'_> {
        PlaceFound {
            score: self.score,
            text: &self.text,
            document: &self.document,
            chunk: self.chunk,
            start: self.start,
            end: self.end,
            title: self.title.as_deref(),
            url: self.url.as_deref(),
        }
    }
}

/// The results of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SearchResults {
    pub(crate) hits: Vec<Hit>,
    /// Whether some or all vectors were missing.
    pub(crate) degraded: bool,
    /// The reason if the query has no vector.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// Requests for the query's vector that the caller must log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked: Vec<VectorRequest>,
}

/// The reason if no budget pays for the query's vector.
const UNPAID: &str = "the budget does not pay for it";

impl MemoryStore<'_> {
    pub(crate) async fn search(&self, wanted: &SearchQuery) -> Result<SearchResults> {
        check_query(&wanted.query)?;
        if !self.memory_host.has_tables()? || stores::find(self.sql(), &self.memory.name)?.is_none() {
            return Ok(SearchResults::default());
        }
        let mut found = SearchResults::default();
        let question = match self.model.filter(|_| wanted.mode != Mode::Text) {
            None => None,
            Some(_) if wanted.requests == Some(0) => {
                (found.degraded, found.error) = (true, Some(UNPAID.to_owned()));
                None
            }
            Some(model) => match self.embed_question(model, &wanted.query, wanted.requests).await {
                Ok(vectors) => vectors.first().map(|vector| Question::of(vector)),
                Err(error) => {
                    found.degraded = true;
                    found.error = Some(error.message);
                    None
                }
            },
        };
        // Read again: the memory may have changed during the request.
        let Some(store) = stores::find(self.sql(), &self.memory.name)? else { return Ok(found) };
        if store.entered.is_some() {
            self.enter_again(PendingWork::Index)?;
        }
        let question = self.comparable(&store, question, &mut found)?;
        let mut retrieval = self.memory.retrieval;
        retrieval.top_k = wanted.top_k.clamp(1, limits::RECALL_TOP_K_MAX);
        let ranked = self.ranked(&store, wanted, question.as_ref(), &retrieval)?;
        found.hits = hits(self.sql(), store.id, &ranked)?;
        Ok(found)
    }

    /// The query's vector, if it is comparable with the stored ones.
    fn comparable(
        &self,
        store: &Store,
        question: Option<Question>,
        found: &mut SearchResults,
    ) -> Result<Option<Question>> {
        let Some(question) = question else { return Ok(None) };
        let dims = question.dims() as i64;
        if store.embedding != self.identity() || (store.dims != 0 && store.dims != dims) {
            self.rebuild(store, dims)?;
            found.degraded = true;
            return Ok(None);
        }
        if chunks::any_without_slot(self.sql(), store.id)? {
            found.degraded = true;
            // The model works again, so waiting texts need not wait longer.
            self.change(|_| Ok(((), PendingWork::Index)))?;
        }
        Ok(Some(question))
    }

    fn ranked(
        &self,
        store: &Store,
        wanted: &SearchQuery,
        question: Option<&Question>,
        retrieval: &Retrieval,
    ) -> Result<Vec<(i64, f64)>> {
        let sql = self.sql();
        let most = retrieval.top_k * limits::CANDIDATES;
        let tagged = tagged(sql, store.id, &wanted.tags)?;
        let vector;
        let mut text = Vec::new();
        let mut sides = Vec::new();
        if let Some(question) = question {
            let allowed = tagged.as_ref().map(|docs| slots_of(sql, docs)).transpose()?;
            vector = pages::nearest(sql, store.id, question, most, allowed.as_deref())?;
            sides.push(Side { found: &vector, weight: retrieval.vector_weight });
        }
        if wanted.mode != Mode::Vector
            && let Some(words) = words::match_query(&wanted.query)
        {
            chunks::by_words(sql, store.id, &words, |chunk, doc, fit| {
                if tagged.as_ref().is_none_or(|docs| docs.binary_search(&doc).is_ok()) {
                    text.push((chunk, fit));
                }
                if text.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            sides.push(Side { found: &text, weight: retrieval.text_weight });
        }
        let mut ranked = fuse(&sides, retrieval);
        ranked.truncate(retrieval.top_k);
        Ok(ranked)
    }
}

/// Refuses an empty or too long query.
pub(super) fn check_query(query: &str) -> Result<()> {
    if query.trim().is_empty() {
        return Err(Error::field("query", "`query` must not be empty."));
    }
    if query.len() > limits::MEMORY_QUERY_BYTES {
        let most = limits::MEMORY_QUERY_BYTES;
        return Err(Error::field(
            "query",
            format!("`query` has {} bytes; the limit is {most}.", query.len()),
        ));
    }
    Ok(())
}

/// Documents with all of these tags, sorted; `None` without tags.
fn tagged(sql: &dyn Sql, store: i64, tags: &[String]) -> Result<Option<Vec<i64>>> {
    if tags.is_empty() {
        return Ok(None);
    }
    let mut found = Vec::new();
    docs::page(sql, store, i64::MAX >> 11, |doc| {
        if tags.iter().all(|tag| doc.tags.contains(tag)) {
            found.push(doc.id);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    found.sort_unstable();
    Ok(Some(found))
}

fn slots_of(sql: &dyn Sql, of: &[i64]) -> Result<Vec<i64>> {
    let mut slots = Vec::new();
    for doc in of {
        slots.extend(chunks::slots(sql, *doc, None)?);
    }
    slots.sort_unstable();
    Ok(slots)
}

/// The current text of earlier results; `None` if it was deleted.
pub(crate) fn current_hit(sql: &dyn Sql, name: &str, chunks: &[i64], score: f64) -> Result<Option<Hit>> {
    let Some(store) = stores::find(sql, name)? else { return Ok(None) };
    let ranked: Vec<(i64, f64)> = chunks.iter().map(|chunk| (*chunk, score)).collect();
    Ok(hits(sql, store.id, &ranked)?.into_iter().next())
}

/// The texts of ranked chunks, best first; adjacent chunks of a document are joined.
fn hits(sql: &dyn Sql, store: i64, ranked: &[(i64, f64)]) -> Result<Vec<Hit>> {
    let mut found: Vec<(Chunk, f64)> = Vec::with_capacity(ranked.len());
    for (id, score) in ranked {
        if let Some(chunk) = chunks::found(sql, store, *id)? {
            found.push((chunk, *score));
        }
    }
    found.sort_by_key(|(chunk, _)| (chunk.doc, chunk.n));
    let mut hits: Vec<Hit> = Vec::new();
    let mut last: Option<(i64, i64)> = None;
    for (chunk, score) in found {
        let joins = last == Some((chunk.doc, chunk.n - 1));
        last = Some((chunk.doc, chunk.n));
        if let Some(hit) = hits.last_mut().filter(|hit| joins && chunk.start >= hit.start) {
            join(hit, &chunk, score);
            continue;
        }
        let Some(doc) = docs::by_id(sql, store, chunk.doc)? else { continue };
        hits.push(Hit {
            score,
            document: doc.public_id(),
            chunk: chunk.n,
            start: chunk.start,
            end: chunk.start + chunk.len,
            text: chunk.text,
            title: doc.title,
            url: doc.url,
            // A message keeps its own time, whenever it was ingested.
            at_us: if doc.source == MESSAGE { doc.created_us } else { doc.updated_us },
            source: doc.source,
            key: doc.key,
            chunks: vec![chunk.id],
        });
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.chunks.cmp(&a.chunks)));
    Ok(hits)
}

/// Appends the next chunk without the text that both share; skipped spaces become a line break.
fn join(hit: &mut Hit, next: &Chunk, score: f64) {
    let end = next.start + next.len;
    if end > hit.end {
        let shared = usize::try_from(hit.end - next.start).unwrap_or(0);
        if next.start > hit.end {
            hit.text.push('\n');
        }
        hit.text.extend(next.text.chars().skip(shared));
        hit.end = end;
    }
    hit.score = hit.score.max(score);
    hit.chunks.push(next.id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_have_what_they_share_once() {
        let chunk = |id, n, start, text: &str| Chunk {
            id,
            doc: 1,
            n,
            start,
            len: text.chars().count() as i64,
            text: text.into(),
        };
        let mut hit =
            Hit { text: "one two three".into(), start: 10, end: 23, chunks: vec![1], ..Hit::default() };
        join(&mut hit, &chunk(2, 1, 18, "three four"), 0.5);
        assert_eq!((hit.text.as_str(), hit.end), ("one two three four", 28));
        join(&mut hit, &chunk(3, 2, 30, "five"), 0.1);
        assert_eq!((hit.text.as_str(), hit.end, hit.score), ("one two three four\nfive", 34, 0.5));
        assert_eq!(hit.chunks, [1, 2, 3]);
    }
}
