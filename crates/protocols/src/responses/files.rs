//! Files of a thread, and uploads in chunks (docs/files.md).

use serde::Serialize;

use super::{Micros, Object};

/// The location of a file's content.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "the schema of a text")]
enum Storage {
    /// The database of the thread.
    Local,
    /// The bucket of the deployment.
    R2,
}

/// A file, or a directory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileRecord {
    /// The whole path, with its leading `/`.
    pub path: String,
    /// The last segment of the path. Empty for the root.
    pub name: String,
    /// The media type as given. `inode/directory` for a directory.
    pub mime_type: String,
    /// The location of the content: `local`, the thread's own database, or `r2`, the deployment's bucket.
    #[cfg_attr(feature = "schema", schemars(with = "Storage"))]
    pub storage: &'static str,
    /// Bytes.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Data of the file's author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// Pixels, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Pixels, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// The time of the first write at this path, in microseconds since 1970.
    pub created_at: Micros,
    /// The time of the current content, in microseconds since 1970.
    pub updated_at: Micros,
    /// Whether the content has more than one chunk.
    pub is_chunked: bool,
    /// The number of chunks.
    pub chunk_count: u64,
    /// The version of the content. Absent for a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// A file, or a directory.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneFile<'a> {
    /// The file.
    pub file: &'a FileRecord,
}

/// A page of a directory: directories first, then by name.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilePage<'a> {
    /// The entries of the directory.
    pub files: Vec<FileRecord>,
    /// The path of the directory.
    pub path: &'a str,
    /// The `cursor` of the next page. `null` on the last page.
    pub cursor: Option<String>,
}

/// Counts and total size of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileStats {
    /// The number of files.
    pub file_count: u64,
    /// The number of directories, without the root.
    pub directory_count: u64,
    /// Bytes of all files.
    pub total_size: u64,
}

/// The files whose paths match a pattern.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesFound<'a> {
    /// The files.
    pub files: Vec<FileRecord>,
    /// The pattern.
    pub pattern: &'a str,
    /// Whether there are more such files.
    pub truncated: bool,
}

/// A line that contains the searched text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LineFound"))]
pub struct GrepMatch {
    /// The number of the line, from 1.
    pub line: u64,
    /// The line, or a part of a long line around the first match.
    pub text: String,
}

/// A file that contains the searched text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MatchesOfFile"))]
pub struct GrepResult {
    /// The path of the file.
    pub path: String,
    /// The first lines with the text.
    pub matches: Vec<GrepMatch>,
}

/// The files that contain a text.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextFound<'a> {
    /// The files, each with its first matches.
    pub results: Vec<GrepResult>,
    /// The searched text.
    pub pattern: &'a str,
    /// Whether there are more matches.
    pub truncated: bool,
}

/// A page of the root directory, or the result of `stats`, `find` or `grep`.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
pub enum Files {
    /// A page of the root directory.
    Page(FilePage<'static>),
    /// With `stats`.
    Stats(FileStats),
    /// With `find`.
    Found(FilesFound<'static>),
    /// With `grep`.
    Text(TextFound<'static>),
}

/// A page of a directory, or with `stat=1` the record of a file.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
pub enum FileInfo {
    /// The record of a file.
    File(OneFile<'static>),
    /// A page of a directory.
    Page(FilePage<'static>),
}

/// An upload in chunks.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedUpload {
    /// The id of the upload.
    pub upload_id: String,
    /// The path of the future file.
    pub path: String,
    /// Bytes.
    pub size: i64,
    /// The media type of the future file.
    pub mime_type: String,
    /// Bytes of a chunk; the last one may be shorter.
    pub chunk_size: u64,
    /// The number of chunks.
    pub chunks: i64,
    /// The time at which the upload is given up, in microseconds since 1970.
    pub expires_at: Micros,
}

/// An upload in chunks, with its progress.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Upload {
    /// The upload.
    #[serde(flatten)]
    pub facts: ListedUpload,
    /// The indexes of the stored chunks.
    pub received: Vec<i64>,
}

/// A completed upload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompletedUpload {
    /// The id of the upload.
    pub upload_id: String,
    /// The file.
    pub file: FileRecord,
}

/// An upload, in progress or completed.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum UploadState {
    /// An upload in progress.
    Open(Upload),
    /// A completed upload.
    Completed(Box<CompletedUpload>),
}

/// A page of uploads in progress, oldest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UploadPage {
    /// The uploads.
    pub uploads: Vec<ListedUpload>,
    /// The `cursor` of the next page. `null` on the last page.
    pub cursor: Option<String>,
}

/// A stored chunk.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChunkTaken<'a> {
    /// The id of the upload.
    pub upload_id: &'a str,
    /// The index of the chunk, from 0.
    pub index: i64,
    /// Bytes.
    pub size: u64,
}
