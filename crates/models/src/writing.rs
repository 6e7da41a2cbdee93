//! Request bodies, written as text: cached JSON of an earlier request is copied, and data for a provider is
//! not serialized again.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use bobbin_definitions::definitions::message::ToolStatus;
use bobbin_definitions::text::first_bytes;

/// A JSON object that is being written. Options may replace its entries.
pub struct Body<'a> {
    text: String,
    pub(crate) options: &'a Map<String, Value>,
}

impl<'a> Body<'a> {
    pub(crate) fn new(options: &'a Map<String, Value>) -> Body<'a> {
        Body { text: String::from("{"), options }
    }

    /// Writes an entry, unless options replace it.
    pub fn entry(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        if !self.options.contains_key(key) {
            // Serialization cannot fail here: keys are strings.
            self.raw(key, &serde_json::to_string(value).unwrap_or_default());
        }
    }

    /// Writes an entry that options cannot replace.
    pub fn raw(&mut self, key: &str, json: &str) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push_str(&quoted(key));
        self.text.push(':');
        self.text.push_str(json);
    }

    /// Completes the object with the options that are not refused. `null` omits a key.
    pub fn finish(mut self, refused: impl Fn(&str) -> bool) -> String {
        for (key, value) in self.options {
            if !value.is_null() && !refused(key) {
                self.raw(key, &value.to_string());
            }
        }
        self.text.push('}');
        self.text
    }
}

/// Words that show that a text already describes a failure, as the runtime's own texts do.
const FAILURE_WORDS: [&str; 10] =
    ["error", "fail", "denied", "refused", "invalid", "cannot", "not ", "no ", "stopped", "restarted"];

/// Bytes of a text that are searched for such a word.
const FAILURE_WITHIN: usize = 200;

/// A result for an API without a field for its status: an error gets a prefix, unless its text shows it.
pub fn result_text(content: &str, status: ToolStatus) -> Cow<'_, str> {
    let says_so = || {
        let start = first_bytes(content, FAILURE_WITHIN).to_ascii_lowercase();
        FAILURE_WORDS.iter().any(|word| start.contains(word))
    };
    match status {
        ToolStatus::Error if !says_so() => format!("Error: {content}").into(),
        ToolStatus::Error | ToolStatus::Success => content.into(),
    }
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    // A string always serializes.
    serde_json::to_string(text).unwrap_or_default()
}

/// Separates two entries.
pub fn comma(out: &mut String) {
    if !out.is_empty() {
        out.push(',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_an_error_says_so() {
        for (text, status, expected) in [
            ("quota", ToolStatus::Error, "Error: quota"),
            ("Error 12", ToolStatus::Error, "Error 12"),
            ("There is no tool \"x\" here.", ToolStatus::Error, "There is no tool \"x\" here."),
            ("é", ToolStatus::Error, "Error: é"),
            ("quota", ToolStatus::Success, "quota"),
        ] {
            assert_eq!(result_text(text, status), expected);
        }
    }
}
