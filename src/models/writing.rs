//! The bodies of requests, written as text: what was kept of an earlier request is copied into them, and what a provider
//! wants back is not serialised again.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::spec::message::ToolStatus;
use crate::text::first_bytes;

/// A JSON object that is being written, whose entries options may replace.
pub(crate) struct Body<'a> {
    text: String,
    pub(crate) options: &'a Map<String, Value>,
}

impl<'a> Body<'a> {
    pub(crate) fn new(options: &'a Map<String, Value>) -> Body<'a> {
        Body { text: String::from("{"), options }
    }

    /// An entry that options may replace.
    pub(crate) fn entry(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        if !self.options.contains_key(key) {
            // Nothing that is given here can fail to serialize: keys are strings.
            self.raw(key, &serde_json::to_string(value).unwrap_or_default());
        }
    }

    /// One that they cannot.
    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push_str(&quoted(key));
        self.text.push(':');
        self.text.push_str(json);
    }

    /// The whole, with the options but those that are refused; `null` takes a key out.
    pub(crate) fn finish(mut self, refused: impl Fn(&str) -> bool) -> String {
        for (key, value) in self.options {
            if !value.is_null() && !refused(key) {
                self.raw(key, &value.to_string());
            }
        }
        self.text.push('}');
        self.text
    }
}

/// Words of a text that tells by itself that something went wrong, as those of the runtime do.
const FAILURE_WORDS: [&str; 10] =
    ["error", "fail", "denied", "refused", "invalid", "cannot", "not ", "no ", "stopped", "restarted"];

/// Bytes of a text that are looked through for such a word.
const FAILURE_WITHIN: usize = 200;

/// A result as a model reads it where the API has no field for its status: an error is marked as one, unless its text says so.
pub(crate) fn result_text(content: &str, status: ToolStatus) -> Cow<'_, str> {
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
pub(crate) fn quoted(text: &str) -> String {
    // A string cannot fail to serialize.
    serde_json::to_string(text).unwrap_or_default()
}

/// What stands between two entries.
pub(crate) fn comma(out: &mut String) {
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
