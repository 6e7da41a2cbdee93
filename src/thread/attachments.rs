//! Attachments of messages (spec §16.4): files of the thread that a message shows. One that comes with the message is
//! written to `/attachments/`; one that is there already is named by its path. A model that sees gets the newest images,
//! and of everything else a line that says what it is and where.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body::Body;
use super::files::{self, FileOptions, Received};
use super::host::{Host, Sql};
use super::state::State;
use crate::error::{Code, Error, Result};
use crate::limits;
use crate::models::Part;

/// Where attachments that come with a message are written.
const FOLDER: &str = "/attachments";
/// Kinds of images that the models' providers take.
const SEEN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A file to be attached to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum NewAttachment {
    /// A file of this thread.
    Path {
        /// Where it is.
        path: String,
        /// What it shows, for models that do not see it.
        description: Option<String>,
    },
    /// One that comes with the message.
    Inline {
        /// Its name, as its author has it.
        name: String,
        /// `image/png`, …
        mime_type: String,
        /// Its content.
        data: Bytes,
        /// Its size in pixels is read from its content where it is not given.
        options: FileOptions,
        /// What it shows, for models that do not see it.
        description: Option<String>,
    },
}

impl NewAttachment {
    /// The type and the bytes of what comes with the message.
    pub(super) fn content(&self) -> Option<(&str, u64)> {
        match self {
            NewAttachment::Path { .. } => None,
            NewAttachment::Inline { mime_type, data, .. } => Some((mime_type, data.len() as u64)),
        }
    }
}

/// An attachment of a stored message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttachmentRef {
    id: String,
    r#type: Kind,
    pub(crate) path: String,
    name: String,
    mime_type: String,
    /// Bytes.
    size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
}

/// The `attachments` of a request's body: `[{name, mimeType, data, …} | {path, …}]`.
pub(super) fn parse(body: &mut Body) -> Result<Vec<NewAttachment>> {
    let Some(list) = body.take("attachments") else { return Ok(Vec::new()) };
    let Value::Array(list) = list else {
        return Err(Error::field("attachments", "`attachments` must be a list."));
    };
    if list.len() > limits::ATTACHMENTS {
        let message =
            format!("{} attachments are too many; the limit is {}.", list.len(), limits::ATTACHMENTS);
        return Err(too_large("attachments", message));
    }
    let mut left = limits::ATTACHMENT_BYTES;
    let parsed = list.into_iter().enumerate().map(|(at, item)| {
        // An error names the field within the item.
        one(item, &mut left).map_err(|error| {
            let field = error.field.as_deref().map_or(String::new(), |field| format!(".{field}"));
            Error { field: Some(format!("attachments[{at}]{field}")), ..error }
        })
    });
    parsed.collect()
}

fn one(item: Value, left: &mut usize) -> Result<NewAttachment> {
    let Value::Object(fields) = item else {
        return Err(Error::new(Code::InvalidField, "An attachment must be an object."));
    };
    let mut body = Body::of(fields);
    let description = body.string("description")?;
    if let Some(text) = description.as_ref().filter(|text| text.len() > limits::ATTACHMENT_TEXT_BYTES) {
        let limit = limits::ATTACHMENT_TEXT_BYTES;
        return Err(too_large(
            "description",
            format!("`description` has {} bytes; the limit is {limit}.", text.len()),
        ));
    }
    let data = body.string("data")?;
    let Some(data) = data else {
        let path = body.string("path")?.ok_or_else(|| {
            Error::missing("data")
                .hint("Give `name`, `mimeType` and `data` in base64, or the `path` of a file.")
        })?;
        return Ok(NewAttachment::Path { path, description });
    };
    let data = data.split_once(";base64,").map_or(data.as_str(), |(_, data)| data);
    let data = STANDARD
        .decode(data)
        .map_err(|error| Error::field("data", format!("`data` is not base64: {error}.")))?;
    *left = left.checked_sub(data.len()).ok_or_else(|| {
        let limit = limits::ATTACHMENT_BYTES;
        too_large("data", format!("The attachments of a message have at most {limit} bytes together."))
            .hint("Write larger files with PUT …/fs/{path}, and attach them by their `path`.")
    })?;
    let name = body.string("name")?.ok_or_else(|| Error::missing("name"))?;
    let mime_type = body.string("mimeType")?.ok_or_else(|| Error::missing("mimeType"))?;
    let options = files::options(&mut body)?;
    Ok(NewAttachment::Inline { name, mime_type, data: data.into(), options, description })
}

fn too_large(field: &str, message: String) -> Error {
    Error { field: Some(field.to_owned()), ..Error::new(Code::TooLarge, message) }
}

/// Stores what is to be attached, in the transition that stores the message. `random` gives each its name.
pub(super) fn store<S: Sql>(
    state: &mut State,
    sql: &S,
    new: &[NewAttachment],
    random: impl Fn() -> [u8; 16],
    now: i64,
) -> Result<Vec<AttachmentRef>> {
    let mut stored = Vec::new();
    for (at, new) in new.iter().enumerate() {
        let (id, place) = named(random(), now);
        stored.push(match new {
            NewAttachment::Path { path, description } => by_path(sql, id, at, path, description.clone())?,
            NewAttachment::Inline { name, mime_type, data, options, description } => {
                let path = format!("{place}.{}", extension(name, mime_type));
                let size = size_of(mime_type, data);
                let mut options = options.clone();
                options.width = options.width.or(size.map(|(width, _)| width));
                options.height = options.height.or(size.map(|(_, height)| height));
                // Who it belongs to: it goes with its message.
                options.metadata.get_or_insert_default().insert("attachment".into(), json!(id));
                let record = files::put(state, sql, &path, mime_type, data, options, now)?;
                let name = if name.trim().is_empty() { record.name.clone() } else { name.clone() };
                AttachmentRef {
                    id,
                    r#type: Kind::File,
                    path: record.path,
                    name,
                    mime_type: record.mime_type,
                    size: record.size,
                    width: record.width,
                    height: record.height,
                    description: description.clone(),
                }
            }
        });
    }
    Ok(stored)
}

/// An id, and the path without its end that goes with it.
fn named(random: [u8; 16], now: i64) -> (String, String) {
    let hex: String = random.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let ms = now / 1_000;
    (format!("a_{ms}_{hex}"), format!("{FOLDER}/{ms}-{hex}"))
}

/// Gives files that came from another thread their places, in the transition that stores the message that shows them.
pub(super) fn adopt<H: Host>(
    state: &mut State,
    sql: &H::Sql,
    files: &[Received<H>],
    random: impl Fn() -> [u8; 16],
    now: i64,
) -> Result<Vec<AttachmentRef>> {
    let mut adopted = Vec::new();
    for received in files {
        let (id, place) = named(random(), now);
        let (name, mime) = (&received.file.name, &received.file.mime_type);
        let mut options = received.options();
        if options.width.is_none() && mime.starts_with("image/") {
            let size = received.beginning(sql)?.and_then(|bytes| size_of(mime, &bytes));
            (options.width, options.height) = size.unzip();
        }
        // Who it belonged to is not here; it goes with its new message.
        options.metadata.get_or_insert_default().insert("attachment".into(), json!(id));
        let (width, height) = (options.width, options.height);
        let path = format!("{place}.{}", extension(name, mime));
        let record = received.install(state, sql, &path, options, now)?;
        adopted.push(AttachmentRef {
            id,
            r#type: Kind::File,
            path: record.path,
            name: name.clone(),
            mime_type: record.mime_type,
            size: record.size,
            width,
            height,
            description: None,
        });
    }
    Ok(adopted)
}

fn by_path<S: Sql>(
    sql: &S,
    id: String,
    at: usize,
    path: &str,
    description: Option<String>,
) -> Result<AttachmentRef> {
    let field = format!("attachments[{at}].path");
    let missing = || Error::field(&field, format!("This thread has no file {path}."));
    let record = files::stat(sql, &field, path)?.ok_or_else(missing)?;
    let size = match (record.width, record.height) {
        (Some(width), Some(height)) => Some((width, height)),
        _ if !record.mime_type.starts_with("image/") => None,
        _ => files::beginning(sql, &record.path)?.and_then(|bytes| size_of(&record.mime_type, &bytes)),
    };
    Ok(AttachmentRef {
        id,
        r#type: Kind::File,
        path: record.path,
        name: record.name,
        mime_type: record.mime_type,
        size: record.size,
        width: size.map(|(width, _)| width),
        height: size.map(|(_, height)| height),
        description,
    })
}

/// Takes away the files that came with a message.
pub(super) fn remove<S: Sql>(state: &mut State, sql: &S, attachments: &[AttachmentRef]) -> Result<()> {
    for attachment in attachments {
        files::remove_if(state, sql, &attachment.path, |record| {
            record.metadata.as_ref().is_some_and(|data| data.get("attachment") == Some(&json!(attachment.id)))
        })?;
    }
    Ok(())
}

impl AttachmentRef {
    /// Whether a model that sees may be shown it: of a kind and a size that providers take.
    pub(crate) fn is_image(&self) -> bool {
        SEEN.contains(&self.mime_type.as_str()) && self.size <= limits::IMAGE_BYTES as u64
    }

    /// Bytes that it takes in a request, roughly, as far as a context window is concerned.
    pub(crate) fn bytes(&self) -> usize {
        let image = if self.is_image() { limits::IMAGE_IN_CONTEXT_BYTES } else { 0 };
        128 + image + self.description.as_ref().map_or(0, String::len)
    }

    /// Bytes of the file.
    pub(crate) fn size(&self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }

    /// What a model is told of it.
    pub(crate) fn note(&self) -> String {
        let Self { name, mime_type, size, path, .. } = self;
        let pixels = match (self.width, self.height) {
            (Some(width), Some(height)) => format!(", {width}×{height}"),
            _ => String::new(),
        };
        let description = self.description.as_ref().map_or(String::new(), |text| format!(": {text}"));
        format!("[attached: {name} ({mime_type}, {size} bytes{pixels}) at {path}{description}]")
    }

    /// The image itself; `None` when the file is gone or has become too long.
    pub(crate) fn image<S: Sql>(&self, sql: &S) -> Result<Option<Part>> {
        let content = files::content(sql, &self.path, limits::IMAGE_BYTES)?;
        Ok(content
            .map(|bytes| Part::Image { media_type: self.mime_type.clone(), data: STANDARD.encode(bytes) }))
    }
}

/// Width and height of an image in pixels, as its content says.
fn size_of(mime: &str, content: &[u8]) -> Option<(u32, u32)> {
    if !mime.starts_with("image/") {
        return None;
    }
    let size = imagesize::blob_size(content).ok()?;
    Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?))
}

/// The last part of a name, or what its type says.
fn extension(name: &str, mime: &str) -> String {
    let plain =
        |text: &&str| (1..=10).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric());
    let of_name = name.rsplit_once('.').map(|(_, end)| end).filter(plain);
    let of_type = mime.split([';', '+']).next().and_then(|mime| mime.rsplit('/').next()).map(str::trim);
    of_name.or(of_type.filter(plain)).unwrap_or("bin").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_ends() {
        for (name, mime, end) in [
            ("a.PNG", "image/png", "png"),
            ("archive.tar.gz", "application/gzip", "gz"),
            ("noend", "image/svg+xml", "svg"),
            ("no.e/d", "text/plain; charset=utf-8", "plain"),
            ("..", "application/vnd.oasis.opendocument.text", "bin"),
            ("", "x/y", "y"),
        ] {
            assert_eq!(extension(name, mime), end, "{name} {mime}");
        }
    }

    #[test]
    fn what_is_no_image_has_no_size() {
        let gif = b"GIF89a\x03\x00\x02\x00\x00\x00\x00";
        assert_eq!(size_of("image/gif", gif), Some((3, 2)));
        assert_eq!(size_of("text/plain", gif), None);
        for broken in [&b""[..], b"GIF8", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBPVP8 "] {
            assert_eq!(size_of("image/png", broken), None);
        }
    }
}
