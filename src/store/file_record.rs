//! The forms of files for clients and tools.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::request::fields::Body;
use crate::store::base64_text;

/// A file or a directory (spec §16.1).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileRecord {
    /// The whole path, with its leading `/`.
    pub path: String,
    /// Last segment of the path; empty for the root.
    pub name: String,
    /// Media type as given; `inode/directory` for a directory.
    pub mime_type: String,
    /// Location of the content: `local`, the thread's own database, or `r2`, the deployment's bucket.
    pub storage: &'static str,
    /// Bytes.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Data of the file's author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Pixels, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Pixels, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Time of the first write at this path, microseconds since 1970.
    pub created_at: i64,
    /// Time of the current content, microseconds since 1970.
    pub updated_at: i64,
    /// Whether the content has more than one chunk.
    pub is_chunked: bool,
    /// Number of chunks.
    pub chunk_count: u64,
    /// Version of the content; `None` for a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// Optional data of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileOptions {
    /// Pixels.
    pub width: Option<u32>,
    /// Pixels.
    pub height: Option<u32>,
    /// At most [`crate::limits::METADATA_BYTES`] as JSON.
    pub metadata: Option<Map<String, Value>>,
    /// A preview image of at most [`crate::limits::THUMBNAIL_BYTES`].
    pub thumbnail: Option<Bytes>,
}

/// A piece of a file that is read as a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct FileChunk {
    /// The bytes.
    pub data: Bytes,
    /// Index, from 0.
    pub index: u64,
    /// Number of chunks.
    pub total_chunks: u64,
    /// Whether it is the last one.
    pub is_last: bool,
}

/// Counts and total size of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileStats {
    /// Files.
    pub file_count: u64,
    /// Directories, without the root.
    pub directory_count: u64,
    /// Bytes of all files.
    pub total_size: u64,
}

/// A file that contains the searched text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrepResult {
    /// The file.
    pub path: String,
    /// The lines with the text, at most [`crate::limits::FOUND_LINES`].
    pub matches: Vec<GrepMatch>,
}

/// A line that contains the searched text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrepMatch {
    /// Line number, from 1.
    pub line: u64,
    /// The line, or [`crate::limits::FOUND_LINE_CHARS`] of it around the first match.
    pub text: String,
}

/// Takes `width`, `height`, `metadata` and `thumbnail` from a body.
pub(crate) fn options(body: &mut Body) -> Result<FileOptions> {
    let mut pixels = |name: &str| {
        let Some(value) = body.take(name) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number
            .map(Some)
            .ok_or_else(|| Error::field(name, format!("`{name}` must be a whole number of pixels.")))
    };
    let (width, height) = (pixels("width")?, pixels("height")?);
    Ok(FileOptions {
        width,
        height,
        metadata: body.object("metadata")?,
        thumbnail: base64(body, "thumbnail")?,
    })
}

/// The default media type.
pub(crate) const BYTES: &str = "application/octet-stream";

pub(crate) fn base64(body: &mut Body, name: &str) -> Result<Option<Bytes>> {
    let Some(text) = body.string(name)? else { return Ok(None) };
    base64_text::decode(&text)
        .map(|bytes| Some(Bytes::from(bytes)))
        .map_err(|error| Error::field(name, format!("`{name}` {error}.")))
}
