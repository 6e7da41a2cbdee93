//! What clients and tools see of the files.

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
    /// Its last part; empty for the root.
    pub name: String,
    /// As it was given; `inode/directory` for a directory.
    pub mime_type: String,
    /// Where the content is: `local`, the thread's own database, or `r2`, the deployment's bucket.
    pub storage: &'static str,
    /// Bytes.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Whatever its author wants to find again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Pixels, as they were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Pixels, as they were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// When something was first written there, microseconds since 1970.
    pub created_at: i64,
    /// When it got the content that it has, microseconds since 1970.
    pub updated_at: i64,
    /// Whether the content has more than one chunk.
    pub is_chunked: bool,
    /// Rows that the content takes.
    pub chunk_count: u64,
    /// The content's version; a directory has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// What may be said of a file besides its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileOptions {
    /// Pixels.
    pub width: Option<u32>,
    /// Pixels.
    pub height: Option<u32>,
    /// At most [`crate::limits::METADATA_BYTES`] as JSON.
    pub metadata: Option<Map<String, Value>>,
    /// A small picture of it, at most [`crate::limits::THUMBNAIL_BYTES`].
    pub thumbnail: Option<Bytes>,
}

/// A piece of a file that is read as a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct FileChunk {
    /// The bytes.
    pub data: Bytes,
    /// Its place, from 0.
    pub index: u64,
    /// How many there are.
    pub total_chunks: u64,
    /// Whether it is the last one.
    pub is_last: bool,
}

/// How much there is.
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

/// A file in which a text was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrepResult {
    /// The file.
    pub path: String,
    /// Its lines that have the text, at most [`crate::limits::FOUND_LINES`].
    pub matches: Vec<GrepMatch>,
}

/// A line in which a text was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrepMatch {
    /// Its number, from 1.
    pub line: u64,
    /// The line, or [`crate::limits::FOUND_LINE_CHARS`] of it around the first match.
    pub text: String,
}

/// `width`, `height`, `metadata` and `thumbnail` of a body.
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

/// The type of what nobody gave a type.
pub(crate) const BYTES: &str = "application/octet-stream";

pub(crate) fn base64(body: &mut Body, name: &str) -> Result<Option<Bytes>> {
    let Some(text) = body.string(name)? else { return Ok(None) };
    base64_text::decode(&text)
        .map(|bytes| Some(Bytes::from(bytes)))
        .map_err(|error| Error::field(name, format!("`{name}` {error}.")))
}
