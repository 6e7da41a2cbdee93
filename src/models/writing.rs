//! The bodies of requests, written as text: what was kept of an earlier request is copied into them, and what a provider
//! wants back is not serialised again.

use serde::Serialize;
use serde_json::{Map, Value};

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
