//! The forms of files for clients and tools.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
pub use crate::protocols::responses::files::{FileRecord, FileStats, GrepMatch, GrepResult};
use crate::request::fields::Body;
use crate::store::base64_text;

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
