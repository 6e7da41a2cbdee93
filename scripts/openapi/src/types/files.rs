//! Files to write, and uploads to begin.

use schemars::JsonSchema;

use super::Object;

/// A file in JSON: `content`, `data` or `directory`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewFile {
    content: Option<String>,
    /// Base64.
    data: Option<String>,
    directory: Option<bool>,
    mime_type: Option<String>,
    metadata: Option<Object>,
    width: Option<u32>,
    height: Option<u32>,
    /// Base64.
    thumbnail: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct FileMove {
    /// The new path.
    path: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewUpload {
    path: String,
    /// Bytes.
    size: i64,
    mime_type: Option<String>,
    metadata: Option<Object>,
    width: Option<u32>,
    height: Option<u32>,
    /// Base64.
    thumbnail: Option<String>,
}
