//! Memories: documents, and searches (docs/memory.md).

use bobbin_definitions::definitions::memory::MemoryScope;
use bobbin_definitions::json_text::JsonText;
use serde::Serialize;

use super::logs::LogEntry;
use super::{Micros, Object};

/// The state of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DocumentState {
    /// Its text waits to be split.
    Queued,
    /// A part is complete.
    Indexing,
    /// Searches find it by its words only, because vectors are missing.
    Partial,
    /// Complete.
    Ready,
    /// Not indexed; `error` has the reason.
    Failed,
}

/// A document of a memory.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// The id of the document.
    pub id: String,
    /// The key of the document, unique in its memory.
    pub key: &'a str,
    /// `api`, `note`, `file` or `message`.
    pub source: &'a str,
    /// The title. `null` if it has none.
    pub title: Option<&'a str>,
    /// The address of the original. `null` if it has none.
    pub url: Option<&'a str>,
    /// The media type of the text. `null` if it is unknown.
    pub mime_type: Option<&'a str>,
    /// The tags.
    pub tags: &'a [String],
    /// Data of the document's author. `null` if there is none.
    pub metadata: Option<Object>,
    /// Whether searches find it.
    pub state: DocumentState,
    /// The number of chunks, once the text is split.
    pub chunks: Option<i64>,
    /// The number of indexed chunks.
    pub done: i64,
    /// Why it is not indexed. `null` if there is no error.
    pub error: Option<&'a str>,
    /// The time at which it was added, in microseconds since 1970.
    pub created_at: Micros,
    /// The time of the last change, in microseconds since 1970.
    pub updated_at: Micros,
}

/// A document.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneDocument<'a> {
    /// The document.
    pub document: Document<'a>,
}

/// A page of documents.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentPage {
    /// The documents.
    pub documents: Vec<JsonText<Document<'static>>>,
    /// The `cursor` of the next page. `null` on the last page.
    pub cursor: Option<String>,
}

/// A result of a search: a chunk of a document, or adjacent chunks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceFound<'a> {
    /// The relevance. Higher is better.
    pub score: f64,
    /// The text of the chunks.
    pub text: &'a str,
    /// The id of the document.
    pub document: &'a str,
    /// The index of the first chunk.
    pub chunk: i64,
    /// The first character in the document.
    pub start: i64,
    /// The character after the last one in the document.
    pub end: i64,
    /// The title of the document. `null` if it has none.
    pub title: Option<&'a str>,
    /// The address of the document's original. `null` if it has none.
    pub url: Option<&'a str>,
}

/// The results of a search, best first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryFound<'a> {
    /// The results, best first.
    pub results: Vec<PlaceFound<'a>>,
    /// Whether some or all vectors were missing.
    pub degraded: bool,
    /// Why the query has no vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The state of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemoryState {
    /// All documents are complete.
    Ready,
    /// A document is not complete yet.
    Indexing,
    /// Vectors of a document are missing.
    Partial,
    /// The model for vectors has changed.
    Reindexing,
}

/// Facts about a memory.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryInfo<'a> {
    /// The name of the memory.
    pub name: &'a str,
    /// What it contains, for models.
    pub description: &'a str,
    /// The threads that share it.
    pub scope: MemoryScope,
    /// The number of documents.
    pub documents: i64,
    /// The number of chunks.
    pub chunks: i64,
    /// Bytes of the texts.
    pub bytes: i64,
    /// The name of the model for vectors.
    pub embedding: Option<&'a str>,
    /// Whether searches find everything.
    pub state: MemoryState,
}

/// A page of requests for vectors.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryLogs {
    /// The requests, newest first.
    pub logs: Vec<JsonText<LogEntry>>,
    /// The `cursor` of the next page. `null` on the last page.
    pub cursor: Option<String>,
}
