//! Messages that code adds and changes (spec §14.4).

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::error::{Code, Error, Result};
use crate::json;
use crate::limits;
use crate::request::fields::{Unchecked, bounded};
use crate::store::file_record::FileOptions;
use crate::store::messages::Row;

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

/// A change to a message (spec §14.2); what is absent stays. A text alone is one, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageUpdate {
    /// Another text; not blank.
    pub content: Option<String>,
    /// Whether it is kept from people.
    pub silent: Option<bool>,
    /// Merged into what is there, key by key; `null` takes a key away.
    pub metadata: Option<Map<String, Value>>,
}

impl MessageUpdate {
    /// Fields of a body, or of `updates` in code.
    ///
    /// # Errors
    /// `missing_field` where nothing is to change; `invalid_field` for a field that is none, and for a blank text.
    pub(crate) fn of(body: Unchecked) -> Result<MessageUpdate> {
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

    /// What is given, as hooks see it.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.extend(self.content.as_deref().map(|text| ("content".to_owned(), text.into())));
        fields.extend(self.silent.map(|silent| ("silent".to_owned(), silent.into())));
        fields.extend(self.metadata.clone().map(|metadata| ("metadata".to_owned(), metadata.into())));
        Value::Object(fields)
    }

    /// The row as it is then.
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
        // What led to the old text goes with it.
        let reasoning = if self.content.is_some() { None } else { row.reasoning.clone() };
        let content = self.content.or_else(|| row.content.clone());
        Ok(Row { content, reasoning, metadata, silent: self.silent.unwrap_or(row.silent), ..row })
    }
}
