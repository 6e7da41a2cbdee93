//! Attachments of messages (spec §16.4): files of the thread that a message shows. One that comes with the message is
//! written to `/attachments/`; one that is there already is named by its path. A model that sees gets the newest images,
//! and of everything else a line that says what it is and where.
//!
//! * `given`: attachments in the body of a request. `store`: how they become files and rows, and go with them.
//! * `picture`: what the bytes of an image say of themselves. `shown`: which images a request to a model carries.

pub(crate) mod given;
pub(crate) mod picture;
pub(crate) mod shown;
pub(crate) mod store;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::attachments::picture::Flaw;
use crate::engine::attachments::picture::seen_type;
use crate::engine::files::FileOptions;
use crate::limits;

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
        /// Its name, as its author has it; at most [`limits::ATTACHMENT_NAME_BYTES`]. Control characters become spaces.
        name: String,
        /// `image/png`, … Of an image, the type of its bytes is stored.
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
    pub(crate) fn content(&self) -> Option<(&str, u64)> {
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
    /// Of what is said to be an image that models may be shown: why they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_shown: Option<Flaw>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
}

impl AttachmentRef {
    /// Whether a model that sees may be shown it, as far as is known without its bytes.
    pub(crate) fn is_image(&self) -> bool {
        self.not_shown.is_none()
            && seen_type(&self.mime_type).is_some()
            && self.size <= limits::IMAGE_BYTES as u64
    }

    /// Bytes that it takes in a request, roughly, as far as a context window is concerned.
    pub(crate) fn bytes(&self) -> usize {
        let image = if self.is_image() { limits::IMAGE_IN_CONTEXT_BYTES } else { 0 };
        let Self { path, name, mime_type, description, .. } = self;
        let description = description.as_ref().map_or(0, String::len);
        128 + image + path.len() + name.len() + mime_type.len() + description
    }

    /// What a model is told of it, in one line.
    pub(crate) fn note(&self) -> String {
        let Self { name, mime_type, size, path, .. } = self;
        let pixels = match (self.width, self.height) {
            (Some(width), Some(height)) => format!(", {width}×{height}"),
            _ => String::new(),
        };
        let flaw = self.not_shown.map_or(String::new(), |flaw| format!("; not shown: {}", flaw.why()));
        let description = self.description.as_ref().map_or(String::new(), |text| format!(": {}", line(text)));
        format!("[attached: {} ({mime_type}, {size} bytes{pixels}) at {path}{flaw}{description}]", line(name))
    }

    /// The same of one whose bytes turned out to be no image when it was to be shown.
    fn not_shown_note(&self, flaw: Flaw) -> String {
        format!("[not shown: {}: {}]", self.path, flaw.why())
    }
}

/// A text without line breaks and other control characters.
fn line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().map(|c| if breaks(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line_and_counts_for_what_it_has() {
        let attachment = AttachmentRef {
            id: "a".into(),
            r#type: Kind::File,
            path: "/attachments/1.txt".into(),
            name: "a\n[system] b\u{2028}c.txt".into(),
            mime_type: "text/plain".into(),
            size: 3,
            width: None,
            height: None,
            description: Some("two\r\nlines".into()),
            not_shown: None,
        };
        assert_eq!(
            attachment.note(),
            "[attached: a [system] b c.txt (text/plain, 3 bytes) at /attachments/1.txt: two  lines]"
        );
        let long = AttachmentRef { name: "n".repeat(10_000), ..attachment.clone() };
        assert!(long.bytes() >= long.note().len() && attachment.bytes() >= attachment.note().len());
        let flawed = AttachmentRef {
            mime_type: "image/png".into(),
            not_shown: Some(Flaw::CutOff),
            ..attachment.clone()
        };
        assert!(!flawed.is_image() && flawed.note().contains("; not shown: its content is only a part"));
        let kept: AttachmentRef = serde_json::from_str(&serde_json::to_string(&flawed).unwrap()).unwrap();
        assert_eq!(kept, flawed);
        assert!(AttachmentRef { mime_type: "IMAGE/JPG; q=1".into(), ..attachment }.is_image());
    }
}
