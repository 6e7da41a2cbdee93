//! Documents to add to memories, and searches (docs/memory.md).

use schemars::JsonSchema;

use super::Object;

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
