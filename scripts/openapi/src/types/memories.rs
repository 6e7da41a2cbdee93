//! Memories: documents, and searches (docs/memory.md).

use schemars::JsonSchema;

use super::{Micros, Object};

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewDocument {
    key: Option<String>,
    title: Option<String>,
    /// The text. Alternative to `path`.
    text: Option<String>,
    /// The path of a file of the thread. Alternative to `text`.
    path: Option<String>,
    mime_type: Option<String>,
    url: Option<String>,
    #[schemars(length(max = 16))]
    tags: Option<Vec<String>>,
    metadata: Option<Object>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum DocumentState {
    Queued,
    Indexing,
    Partial,
    Ready,
    Failed,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Document {
    id: String,
    key: String,
    source: String,
    title: Option<String>,
    url: Option<String>,
    mime_type: Option<String>,
    tags: Vec<String>,
    metadata: Option<Object>,
    state: DocumentState,
    chunks: Option<i64>,
    done: i64,
    error: Option<String>,
    created_at: Micros,
    updated_at: Micros,
}

#[derive(JsonSchema)]
pub(crate) struct OneDocument {
    document: Document,
}

#[derive(JsonSchema)]
pub(crate) struct DocumentPage {
    documents: Vec<Document>,
    cursor: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum SearchMode {
    Hybrid,
    Text,
    Vector,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MemoryQuery {
    query: String,
    #[schemars(range(min = 1, max = 20))]
    top_k: Option<u32>,
    tags: Option<Vec<String>>,
    mode: Option<SearchMode>,
}

#[derive(JsonSchema)]
pub(crate) struct PlaceFound {
    score: f64,
    text: String,
    document: String,
    chunk: i64,
    start: i64,
    end: i64,
    title: Option<String>,
    url: Option<String>,
}

#[derive(JsonSchema)]
pub(crate) struct MemoryFound {
    results: Vec<PlaceFound>,
    degraded: bool,
    #[schemars(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Returns facts about a memory.
#[derive(JsonSchema)]
pub(crate) struct MemoryInfo {
    name: String,
    description: String,
    scope: String,
    documents: i64,
    chunks: i64,
    bytes: i64,
    embedding: Option<String>,
    state: String,
}

#[derive(JsonSchema)]
pub(crate) struct MemoryLogs {
    logs: Vec<super::logs::LogEntry>,
    cursor: Option<String>,
}
