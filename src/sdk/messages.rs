//! Messages that code adds and changes (spec §14.4).

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::error::{Code, Error, Result};
use crate::json;
use crate::limits;
use crate::request::fields::{UncheckedBody, bounded};
use crate::store::file_record::FileOptions;
use crate::store::messages::Row;

/// A file to attach to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum NewAttachment {
    /// A file of this thread.
    Path {
        /// Its path.
        path: String,
        /// What it shows, for models that do not see images.
        description: Option<String>,
    },
    /// A file that comes with the message.
    Inline {
        /// Its original name; at most [`limits::ATTACHMENT_NAME_BYTES`]. Control characters become spaces.
        name: String,
        /// `image/png`, … For an image, the type of its bytes is stored instead.
        mime_type: String,
        /// Its content.
        data: Bytes,
        /// Its size in pixels is read from the content unless given.
        options: FileOptions,
        /// What it shows, for models that do not see images.
        description: Option<String>,
    },
}

impl NewAttachment {
    /// Type and size of a file that comes with the message.
    pub(crate) fn content(&self) -> Option<(&str, u64)> {
        match self {
            NewAttachment::Path { .. } => None,
            NewAttachment::Inline { mime_type, data, .. } => Some((mime_type, data.len() as u64)),
        }
    }
}

/// A change to a message (spec §14.2). Absent fields stay unchanged. A text alone is a change, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageUpdate {
    /// The new text; not blank.
    pub content: Option<String>,
    /// Whether it is hidden from users.
    pub silent: Option<bool>,
    /// Merged into the existing metadata, key by key; `null` removes a key.
    pub metadata: Option<Map<String, Value>>,
}

impl MessageUpdate {
    /// Parses the fields of a body, or of `updates` in code.
    ///
    /// # Errors
    /// `missing_field` when nothing is to change; `invalid_field` for an unknown field, and for a blank text.
    pub(crate) fn of(body: UncheckedBody) -> Result<MessageUpdate> {
        let mut body = body.known(&["content", "silent", "metadata"])?;
        let silent = match body.take("silent") {
            None => None,
            Some(Value::Bool(silent)) => Some(silent),
            Some(_) => return Err(Error::field("silent", "`silent` must be true or false.")),
        };
        let update =
            MessageUpdate { content: body.string("content")?, silent, metadata: body.object("metadata")? };
        update.check()?;
        Ok(update)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.content.is_none() && self.silent.is_none() && self.metadata.is_none() {
            return Err(Error::missing("content").hint("Give `content`, `silent` or `metadata`."));
        }
        let Some(content) = &self.content else { return Ok(()) };
        if content.trim().is_empty() {
            return Err(Error::field("content", "`content` must not be empty.")
                .hint("DELETE takes the message away."));
        }
        if content.len() > limits::CONTENT_BYTES {
            return Err(Error::new(
                Code::TooLarge,
                format!("`content` has {} bytes; the limit is {}.", content.len(), limits::CONTENT_BYTES),
            ));
        }
        Ok(())
    }

    /// The changed fields, as hooks see them.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.extend(self.content.as_deref().map(|text| ("content".to_owned(), text.into())));
        fields.extend(self.silent.map(|silent| ("silent".to_owned(), silent.into())));
        fields.extend(self.metadata.clone().map(|metadata| ("metadata".to_owned(), metadata.into())));
        Value::Object(fields)
    }

    /// Applies the change to a row.
    pub(crate) fn applied(self, row: Row) -> Result<Row> {
        let metadata = match self.metadata {
            None => row.metadata.clone(),
            Some(changes) => {
                let mut merged = row.metadata();
                for (key, value) in changes {
                    match value {
                        Value::Null => drop(merged.remove(&key)),
                        value => drop(merged.insert(key, value)),
                    }
                }
                let merged = Value::Object(merged);
                bounded("metadata", &merged)?;
                (merged != json!({})).then(|| merged.to_string())
            }
        };
        // The reasoning belongs to the old text.
        let reasoning = if self.content.is_some() { None } else { row.reasoning.clone() };
        let content = self.content.or_else(|| row.content.clone());
        Ok(Row { content, reasoning, metadata, silent: self.silent.unwrap_or(row.silent), ..row })
    }
}
