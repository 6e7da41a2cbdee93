//! The images of one request to a model: the newest ones, up to the limit of a request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::engine::attachments::picture;
use crate::engine::attachments::picture::Picture;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::models::{CachedJson, ChatMessage, Part};
use crate::store::attachment::Flaw;
use crate::store::messages::SharedRow;

/// Messages of a request whose files a model may be shown, oldest first.
#[derive(Default)]
pub(crate) struct ImageMessages(Vec<(usize, SharedRow)>);

/// The remaining number and size of images in a request. Files that turn out not to be images count too,
/// which bounds the reads.
pub(crate) struct ImageAllowance {
    bytes: usize,
    images: usize,
}

impl Default for ImageAllowance {
    fn default() -> ImageAllowance {
        ImageAllowance { bytes: limits::IMAGES_BYTES, images: limits::IMAGES }
    }
}

impl ImageMessages {
    /// Records the next message of the request, if its row has images.
    pub(crate) fn note(&mut self, out: &[CachedJson<ChatMessage>], row: &SharedRow) {
        if row.has_images() {
            self.0.push((out.len(), row.clone()));
        }
    }

    /// Puts the images into the messages, newest first, up to the limits of a request. A file that is not an
    /// image is described in words, whatever its type says. Messages with images are built again for each
    /// request: images are large, and are not kept in memory. No provider's format allows images in replies,
    /// so they follow in a user's message, after all calls have their results.
    pub(crate) fn show(
        self,
        out: &mut Vec<CachedJson<ChatMessage>>,
        room: &mut ImageAllowance,
        sql: &dyn Sql,
    ) -> Result<()> {
        for (place, row) in self.0.iter().rev() {
            if room.images == 0 {
                break;
            }
            let Some(message) = out.get_mut(*place) else { continue };
            let (mut images, mut notes) = (Vec::new(), Vec::new());
            for attachment in row.attachments.iter().rev().filter(|attachment| attachment.is_image()) {
                match room.image(sql, &attachment.path)? {
                    ImageLookup::Image(part) => images.push(part),
                    ImageLookup::Flawed(flaw) => notes.push(attachment.not_shown_note(flaw)),
                    // The line about the attachment is enough.
                    ImageLookup::Gone | ImageLookup::NoRoom => {}
                }
            }
            if !images.is_empty() || !notes.is_empty() {
                images.reverse();
                notes.reverse();
                match **message {
                    ChatMessage::Assistant { .. } => {
                        let results = |message: &&CachedJson<ChatMessage>| {
                            matches!(***message, ChatMessage::Tool { .. })
                        };
                        let after = out.iter().skip(place + 1).take_while(results).count();
                        out.insert(place + 1 + after, of_reply(images, &notes).into());
                    }
                    _ => *message = with(message, images, &notes).into(),
                }
            }
        }
        Ok(())
    }
}

enum ImageLookup {
    Image(Part),
    Flawed(Flaw),
    Gone,
    NoRoom,
}

impl ImageAllowance {
    /// The current file at a path.
    fn image(&mut self, sql: &dyn Sql, path: &str) -> Result<ImageLookup> {
        if self.images == 0 {
            return Ok(ImageLookup::NoRoom);
        }
        let Some(size) = crate::engine::files::attach::size(sql, path)? else { return Ok(ImageLookup::Gone) };
        if size > limits::IMAGE_BYTES as u64 {
            return Ok(ImageLookup::Flawed(Flaw::TooManyBytes));
        }
        if size > self.bytes as u64 {
            // Older images must not be shown instead.
            self.images = 0;
            return Ok(ImageLookup::NoRoom);
        }
        let Some(content) = crate::engine::files::attach::content(sql, path, self.bytes)? else {
            return Ok(ImageLookup::Gone);
        };
        self.bytes = self.bytes.saturating_sub(content.len());
        Ok(match picture::look(&content) {
            Err(flaw) => ImageLookup::Flawed(flaw),
            Ok(Picture { media_type, .. }) => {
                self.images -= 1;
                let data = STANDARD.encode(content);
                ImageLookup::Image(Part::Image { media_type: media_type.to_owned(), data })
            }
        })
    }
}

/// The message with the images of a reply.
fn of_reply(shown: Vec<Part>, notes: &[String]) -> ChatMessage {
    let about = if shown.is_empty() { REPLY_NOTES } else { REPLY_IMAGES };
    let text = std::iter::once(about).chain(notes.iter().map(String::as_str)).collect::<Vec<_>>().join("\n");
    ChatMessage::User(std::iter::once(Part::Text(text)).chain(shown).collect())
}

/// The text before the images of a reply.
const REPLY_IMAGES: &str = "[images of your message before]";
/// The text before notes about files that are not images.
const REPLY_NOTES: &str = "[about files of your message before]";

/// A message with its images, and with additional lines.
fn with(message: &ChatMessage, shown: Vec<Part>, notes: &[String]) -> ChatMessage {
    let add = |text: &mut String| {
        notes.iter().for_each(|note| {
            text.push('\n');
            text.push_str(note);
        })
    };
    let mut message = message.clone();
    match &mut message {
        ChatMessage::User(parts) => {
            if let Some(Part::Text(text)) = parts.first_mut() {
                add(text);
            }
            parts.extend(shown);
        }
        ChatMessage::Tool { content, images, .. } => {
            add(content);
            *images = shown;
        }
        ChatMessage::System(_) | ChatMessage::Assistant { .. } => {}
    }
    message
}
