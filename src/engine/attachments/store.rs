//! Writes an attachment as a file, and deletes the file with its message. All of it runs inside the
//! transition that stores or deletes the message.

use bytes::Bytes;
use serde_json::Value;

use crate::engine::attachments::picture;
use crate::engine::attachments::picture::{Picture, has_image_type};
use crate::engine::files::staged::StagedFile;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::sdk::attachment_input::{check, within};
use crate::sdk::messages::NewAttachment;
use crate::store::attachment::{AttachmentRef, Flaw, Kind, line, seen_type};
use crate::store::file_record::{FileOptions, FileRecord};
use crate::store::state::State;

/// The directory of attachments that are sent with a message.
const FOLDER: &str = "/attachments";

/// Stores attachments, in the transition that stores the message. `random` gives each its name.
///
/// # Errors
/// The error in one of them, as `attachments[<place>].<field>`.
pub(crate) fn store(
    state: &mut State,
    sql: &dyn Sql,
    new: &[NewAttachment],
    random: impl Fn() -> [u8; 16],
    now: i64,
) -> Result<Vec<AttachmentRef>> {
    let mut stored = Vec::new();
    let mut look = ReadAllowance(limits::IMAGES_BYTES);
    for (at, new) in new.iter().enumerate() {
        let named = named(random(), now);
        let one = check(new).and_then(|()| match new {
            NewAttachment::Path { path, description } => {
                by_path(sql, named.0, path, description.clone(), &mut look)
            }
            NewAttachment::Inline { name, mime_type, data, options, description } => {
                let looked = match has_image_type(mime_type) {
                    true => FileFacts::whole(mime_type, data),
                    false => FileFacts::default(),
                };
                let file = (looked.mime(mime_type), &data[..], options.clone());
                let record = write(state, sql, &named, name, file, &looked, now)?;
                let name = line(name).trim().to_owned();
                let name = if name.is_empty() { record.name.clone() } else { name };
                Ok(shows(named.0, record, name, &looked, description.clone()))
            }
        });
        stored.push(one.map_err(|error| within(at, error))?);
    }
    Ok(stored)
}

/// Attachments that were stored before their message.
///
/// # Errors
/// `internal` for an invalid value.
pub(crate) fn stored(given: &[Value]) -> Result<Vec<AttachmentRef>> {
    let read = |value: &Value| crate::json::from_value(value.clone());
    given.iter().map(read).collect::<Result<_, _>>().map_err(Error::internal)
}

/// Attachments in the form in which a result keeps them until its message is stored.
pub(crate) fn kept(attachments: &[AttachmentRef]) -> Result<Vec<Value>> {
    attachments.iter().map(|one| serde_json::to_value(one).map_err(Error::internal)).collect()
}

/// The facts in a file's bytes, as far as they were read.
#[derive(Clone, Copy, Default)]
struct FileFacts {
    /// The type, if it is an image that models may be shown.
    media_type: Option<&'static str>,
    flaw: Option<Flaw>,
    /// The size of any image.
    pixels: Option<(u32, u32)>,
}

impl FileFacts {
    /// Checks the whole content of a file with an image type.
    fn whole(mime: &str, content: &[u8]) -> FileFacts {
        let found = picture::look(content);
        FileFacts {
            media_type: found.ok().map(|Picture { media_type, .. }| media_type),
            // Files with other types are not shown to models, so their flaws do not matter.
            flaw: found.err().filter(|_| seen_type(mime).is_some()),
            pixels: picture::pixels(content),
        }
    }

    /// Checks the beginning of a file of this size. Its completeness is checked when it is shown.
    fn beginning(mime: &str, size: u64, content: &[u8]) -> FileFacts {
        let media_type = picture::kind(content);
        let flaw = match media_type {
            None => Some(Flaw::NoImage),
            Some(_) if size > limits::IMAGE_BYTES as u64 => Some(Flaw::TooManyBytes),
            Some(_) => None,
        };
        FileFacts {
            media_type,
            flaw: flaw.filter(|_| seen_type(mime).is_some()),
            pixels: picture::pixels(content),
        }
    }

    /// The type found in the bytes, otherwise the declared one.
    fn mime<'a>(&self, said: &'a str) -> &'a str {
        self.media_type.unwrap_or(said)
    }

    fn width(&self) -> Option<u32> {
        self.pixels.map(|(width, _)| width)
    }

    fn height(&self) -> Option<u32> {
        self.pixels.map(|(_, height)| height)
    }
}

/// Bytes of the files of one message that may still be read, up to the size that it may show.
struct ReadAllowance(usize);

impl ReadAllowance {
    /// Reads a file of this thread or of another: all of it, or its beginning.
    fn at(
        &mut self,
        mime: &str,
        size: u64,
        whole: impl FnOnce(usize) -> Result<Option<Vec<u8>>>,
        beginning: impl FnOnce() -> Result<Option<Bytes>>,
    ) -> Result<FileFacts> {
        if !has_image_type(mime) {
            return Ok(FileFacts::default());
        }
        let limit = self.0.min(limits::IMAGE_BYTES);
        if size <= limit as u64
            && let Some(content) = whole(limit)?
        {
            self.0 -= content.len();
            return Ok(FileFacts::whole(mime, &content));
        }
        Ok(FileFacts::beginning(mime, size, &beginning()?.unwrap_or_default()))
    }
}

/// Writes the file of an attachment. Its metadata names the attachment, so that it is deleted with its
/// message.
fn write(
    state: &mut State,
    sql: &dyn Sql,
    (id, place): &(String, String),
    name: &str,
    (mime, content, mut options): (&str, &[u8], FileOptions),
    looked: &FileFacts,
    now: i64,
) -> Result<FileRecord> {
    let path = format!("{place}.{}", extension(name, mime));
    options.width = options.width.or(looked.width());
    options.height = options.height.or(looked.height());
    options.metadata.get_or_insert_default().insert("attachment".into(), json!(id));
    crate::engine::files::attach::put(state, sql, &path, mime, content, options, now)
}

/// The attachment of an existing file.
fn shows(
    id: String,
    record: FileRecord,
    name: String,
    looked: &FileFacts,
    description: Option<String>,
) -> AttachmentRef {
    AttachmentRef {
        id,
        r#type: Kind::File,
        mime_type: looked.mime(&record.mime_type).to_owned(),
        path: record.path,
        name,
        size: record.size,
        width: record.width.or(looked.width()),
        height: record.height.or(looked.height()),
        description,
        not_shown: looked.flaw,
    }
}

/// An id, and the path that belongs to it, without an extension.
fn named(random: [u8; 16], now: i64) -> (String, String) {
    let hex: String = random.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let ms = now / 1_000;
    (format!("a_{ms}_{hex}"), format!("{FOLDER}/{ms}-{hex}"))
}

/// Gives paths to files from another thread, in the transition that stores the message that shows them.
pub(crate) fn adopt(
    state: &mut State,
    sql: &dyn Sql,
    files: &[StagedFile],
    random: impl Fn() -> [u8; 16],
    now: i64,
) -> Result<Vec<AttachmentRef>> {
    let mut adopted = Vec::new();
    let mut look = ReadAllowance(limits::IMAGES_BYTES);
    for received in files {
        let (id, place) = named(random(), now);
        let (name, mime) = (&received.file.name, &received.file.mime_type);
        let whole = |limit| received.content(sql, limit);
        let looked = look.at(mime, received.file.size, whole, || received.beginning(sql))?;
        let mut options = received.options();
        options.width = options.width.or(looked.width());
        options.height = options.height.or(looked.height());
        // The attachment of the other thread does not exist here. The file is deleted with its new message.
        options.metadata.get_or_insert_default().insert("attachment".into(), json!(id));
        let path = format!("{place}.{}", extension(name, mime));
        let record = received.install(state, sql, &path, options, now)?;
        adopted.push(shows(id, record, line(name), &looked, None));
    }
    Ok(adopted)
}

fn by_path(
    sql: &dyn Sql,
    id: String,
    path: &str,
    description: Option<String>,
    look: &mut ReadAllowance,
) -> Result<AttachmentRef> {
    let missing = || Error::field("path", format!("This thread has no file {path}."));
    let record = crate::engine::files::attach::stat(sql, "path", path)?.ok_or_else(missing)?;
    let whole = |limit| crate::engine::files::attach::content(sql, &record.path, limit);
    let looked = look.at(&record.mime_type, record.size, whole, || {
        crate::engine::files::attach::beginning(sql, &record.path)
    })?;
    let name = record.name.clone();
    Ok(shows(id, record, name, &looked, description))
}

/// Deletes the files that were sent with a message.
pub(crate) fn remove(state: &mut State, sql: &dyn Sql, attachments: &[AttachmentRef]) -> Result<()> {
    for attachment in attachments {
        crate::engine::files::attach::remove_if(state, sql, &attachment.path, |record| {
            record.metadata.as_ref().is_some_and(|data| data.get("attachment") == Some(&json!(attachment.id)))
        })?;
    }
    Ok(())
}

/// The extension of a name, or one for the type.
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
        assert_eq!(FileFacts::whole("image/gif", gif).pixels, Some((3, 2)));
        for broken in [&b""[..], b"GIF8", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBPVP8 "] {
            let looked = FileFacts::whole("image/png", broken);
            assert!(looked.pixels.is_none() && looked.flaw.is_some());
        }
        assert!(FileFacts::whole("image/svg+xml", b"<svg/>").flaw.is_none());
    }
}
