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
    pub id: String,
    pub key: &'a str,
    /// `api`, `note`, `file` or `message`.
    pub source: &'a str,
    pub title: Option<&'a str>,
    pub url: Option<&'a str>,
    pub mime_type: Option<&'a str>,
    pub tags: &'a [String],
    pub metadata: Option<Object>,
    pub state: DocumentState,
    /// The number of chunks, once the text is split.
    pub chunks: Option<i64>,
    /// The number of indexed chunks.
    pub done: i64,
    pub error: Option<&'a str>,
    pub created_at: Micros,
    pub updated_at: Micros,
}

/// A document.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneDocument<'a> {
    pub document: Document<'a>,
}

/// A page of documents.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentPage {
    pub documents: Vec<JsonText<Document<'static>>>,
    pub cursor: Option<String>,
}

/// A result of a search: a chunk of a document, or adjacent chunks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceFound<'a> {
    pub score: f64,
    pub text: &'a str,
    /// The id of the document.
    pub document: &'a str,
    /// The index of the first chunk.
    pub chunk: i64,
    /// The first character in the document.
    pub start: i64,
    /// The character after the last one in the document.
    pub end: i64,
    pub title: Option<&'a str>,
    pub url: Option<&'a str>,
}

/// The results of a search, best first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryFound<'a> {
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
    pub name: &'a str,
    pub description: &'a str,
    pub scope: MemoryScope,
    /// The number of documents.
    pub documents: i64,
    /// The number of chunks.
    pub chunks: i64,
    /// Bytes of the texts.
    pub bytes: i64,
    /// The name of the model for vectors.
    pub embedding: Option<&'a str>,
    pub state: MemoryState,
}

/// A page of requests for vectors.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryLogs {
    pub logs: Vec<JsonText<LogEntry>>,
    pub cursor: Option<String>,
}
