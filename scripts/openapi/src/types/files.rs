//! Files of a thread, and uploads in chunks.

use schemars::JsonSchema;

use super::{Micros, Object};

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Storage {
    Local,
    R2,
}

/// A file, or a directory.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct FileRecord {
    path: String,
    name: String,
    mime_type: String,
    storage: Storage,
    /// Bytes.
    size: i64,
    is_directory: bool,
    #[schemars(skip_serializing_if = "Option::is_none")]
    metadata: Option<Object>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    created_at: Micros,
    updated_at: Micros,
    is_chunked: bool,
    chunk_count: i64,
    #[schemars(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
}

#[derive(JsonSchema)]
pub(crate) struct OneFile {
    file: FileRecord,
}

#[derive(JsonSchema)]
pub(crate) struct FilePage {
    files: Vec<FileRecord>,
    path: String,
    cursor: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct FileStats {
    file_count: i64,
    directory_count: i64,
    total_size: i64,
}

#[derive(JsonSchema)]
pub(crate) struct FilesFound {
    files: Vec<FileRecord>,
    pattern: String,
    truncated: bool,
}

#[derive(JsonSchema)]
pub(crate) struct LineFound {
    line: i64,
    text: String,
}

#[derive(JsonSchema)]
pub(crate) struct MatchesOfFile {
    path: String,
    matches: Vec<LineFound>,
}

#[derive(JsonSchema)]
pub(crate) struct TextFound {
    results: Vec<MatchesOfFile>,
    pattern: String,
    truncated: bool,
}

/// A page of the root directory, or the result of `stats`, `find` or `grep`.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Files {
    Page(FilePage),
    Stats(FileStats),
    Found(FilesFound),
    Text(TextFound),
}

/// A page of a directory, or with `stat=1` the record of a file.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum FileInfo {
    File(OneFile),
    Page(FilePage),
}

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

/// An upload in chunks.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Upload {
    upload_id: String,
    path: String,
    size: i64,
    mime_type: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    metadata: Option<Object>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    chunk_size: i64,
    chunks: i64,
    /// The indexes of the stored chunks.
    received: Vec<i64>,
    expires_at: Micros,
    /// The file of a completed upload.
    #[schemars(skip_serializing_if = "Option::is_none")]
    file: Option<FileRecord>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ListedUpload {
    upload_id: String,
    path: String,
    size: i64,
    #[schemars(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    expires_at: Micros,
    /// Bytes of a chunk; the last one may be shorter.
    chunk_size: i64,
    chunks: i64,
}

#[derive(JsonSchema)]
pub(crate) struct UploadPage {
    uploads: Vec<ListedUpload>,
    cursor: Option<String>,
}

/// A stored chunk.
#[derive(JsonSchema)]
pub(crate) struct ChunkTaken {
    index: i64,
}
