//! Attachments of messages, as the message's row stores them (spec §16.4).

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::protocols::responses::messages as responses;
pub(crate) use crate::protocols::responses::messages::AttachmentFlaw as Flaw;
use crate::tokens::tokens;

/// An attachment of a stored message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttachmentRef {
    pub(crate) id: String,
    pub(crate) r#type: Kind,
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) mime_type: String,
    /// Bytes.
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) width: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) height: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// The reason why a file declared as an image is not sent to models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_shown: Option<Flaw>,
}

impl AttachmentRef {
    /// Whether a model that supports images may receive it, judged without its bytes.
    pub(crate) fn is_image(&self) -> bool {
        self.not_shown.is_none()
            && seen_type(&self.mime_type).is_some()
            && self.size <= limits::IMAGE_BYTES as u64
    }

    /// Estimated tokens in a request: its note, and the image.
    pub(super) fn tokens(&self) -> usize {
        let image = if self.is_image() { limits::IMAGE_TOKENS } else { 0 };
        image + tokens(&self.note())
    }

    /// The public form.
    pub(crate) fn response(&self) -> responses::Attachment<'_> {
        responses::Attachment {
            id: &self.id,
            kind: match self.r#type {
                Kind::File => responses::AttachmentType::File,
            },
            path: &self.path,
            name: &self.name,
            mime_type: &self.mime_type,
            size: self.size,
            width: self.width,
            height: self.height,
            description: self.description.as_deref(),
            not_shown: self.not_shown,
        }
    }

    /// A line that describes it to a model.
    pub(crate) fn note(&self) -> String {
        let Self { name, mime_type, size, path, .. } = self;
        let pixels = match (self.width, self.height) {
            (Some(width), Some(height)) => format!(", {width}×{height}"),
            _ => String::new(),
        };
        let flaw = self.not_shown.map_or(String::new(), |flaw| format!("; not shown: {}", why(flaw)));
        let description = self.description.as_ref().map_or(String::new(), |text| format!(": {}", line(text)));
        format!("[attached: {} ({mime_type}, {size} bytes{pixels}) at {path}{flaw}{description}]", line(name))
    }

    /// The line for an attachment whose bytes turned out not to be an image.
    pub(crate) fn not_shown_note(&self, flaw: Flaw) -> String {
        format!("[not shown: {}: {}]", self.path, why(flaw))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    File,
}

/// The flaw, for a model.
const fn why(flaw: Flaw) -> &'static str {
    match flaw {
        Flaw::NoImage => "its content is no PNG, JPEG, GIF or WebP image",
        Flaw::CutOff => "its content is only a part of an image",
        Flaw::TooManyPixels => "it has too many pixels",
        Flaw::TooManyBytes => "it is too large",
    }
}

/// The registered media type of an image that models accept, regardless of case, parameters and aliases.
pub(crate) fn seen_type(mime: &str) -> Option<&'static str> {
    let essence = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "image/png" | "image/x-png" | "image/apng" => Some("image/png"),
        "image/jpeg" | "image/jpg" | "image/pjpeg" => Some("image/jpeg"),
        "image/gif" => Some("image/gif"),
        "image/webp" => Some("image/webp"),
        _ => None,
    }
}

/// The text with line breaks and other control characters replaced by spaces.
pub(crate) fn line(text: &str) -> String {
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
        assert!((10..60).contains(&attachment.tokens()), "{}", attachment.tokens());
        let image = AttachmentRef { mime_type: "image/png".into(), ..attachment.clone() };
        assert!(image.tokens() >= limits::IMAGE_TOKENS);
        let flawed = AttachmentRef {
            mime_type: "image/png".into(),
            not_shown: Some(Flaw::CutOff),
            ..attachment.clone()
        };
        assert!(!flawed.is_image() && flawed.note().contains("; not shown: its content is only a part"));
        let kept: AttachmentRef = crate::json::from_str(&serde_json::to_string(&flawed).unwrap()).unwrap();
        assert_eq!(kept, flawed);
        assert!(AttachmentRef { mime_type: "IMAGE/JPG; q=1".into(), ..attachment }.is_image());
    }

    #[test]
    fn types_of_images_have_one_form() {
        for (mime, seen) in [
            ("image/jpg", Some("image/jpeg")),
            ("IMAGE/PNG", Some("image/png")),
            ("image/png; x=y", Some("image/png")),
            (" image/webp ", Some("image/webp")),
            ("image/svg+xml", None),
            ("text/plain", None),
            ("", None),
        ] {
            assert_eq!(seen_type(mime), seen, "{mime}");
        }
    }
}
