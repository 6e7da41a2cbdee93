//! Known secrets in texts. Each is replaced by `[redacted NAME]`, also in encoded forms (docs/variables.md
//! lists them).
//!
//! * `copies`: a text without its escapes. `find`, `automaton`: a search for many texts at once. `redacted`: a
//!   type for texts without secrets. `step_count`: counts steps in tests.
//!
//! The time depends on the length of the text, not on the number of secrets. Secrets under eight characters
//! are not replaced, because they would match by chance.

mod automaton;
pub mod copies;
pub mod find;
pub mod redacted;
pub(crate) mod step_count;
#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::redact::copies::{DecodedText, is_printable};
use crate::redact::find::{Finder, LEAST_BYTES, Span};
pub use crate::redact::redacted::{Redact, Redacted};

/// Minimum characters of a secret.
const LEAST_CHARS: usize = 8;

/// Replaces known secrets in texts.
#[derive(Default)]
pub struct Redactor {
    /// Names and values.
    secrets: Vec<(String, String)>,
    /// The secrets unchanged, in base64 and in hexadecimal.
    plain: Finder,
    /// The same without escapes.
    bare: Finder,
    /// Base64 and hexadecimal without white space.
    unwrapped: Finder,
    /// Whether a `+` may be a space in a secret.
    has_space: bool,
    /// Whether a number may contain a secret.
    has_digits: bool,
}

/// Shows only names.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.secrets.iter().map(|(name, _)| name)).finish()
    }
}

impl Redactor {
    /// A redactor for secrets, as names and values.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Redactor {
        let mut redactor = Redactor::default();
        for (name, value) in secrets {
            // Secrets from a file often end in a line break, which is easily lost.
            let value = value.trim();
            if value.chars().count() >= LEAST_CHARS
                && redactor.secrets.iter().all(|(_, known)| known != value)
            {
                redactor.learn(name, value);
            }
        }
        redactor
    }

    fn learn(&mut self, name: &str, value: &str) {
        let secret = self.secrets.len();
        self.secrets.push((name.to_owned(), value.to_owned()));
        self.has_space |= value.contains(' ');
        self.has_digits |= value.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte));
        // Most forms are the same text, and secrets may be long.
        let shared = |text: Vec<u8>, other: &Rc<[u8]>| {
            if text.as_slice() == &**other { other.clone() } else { text.into() }
        };
        for (text, is_code) in
            encoded(value).into_iter().map(|text| (text, true)).chain([(value.to_owned(), false)])
        {
            let plain: Rc<[u8]> = text.as_bytes().into();
            let bare = shared(bare(&text), &plain);
            if is_code {
                let letters = bare.iter().copied().filter(|byte| *byte != b' ').collect();
                self.unwrapped.add(shared(letters, &bare), secret);
            }
            self.bare.add(bare, secret);
            self.plain.add(plain, secret);
        }
    }

    /// Whether it knows no secrets.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Replaces the secrets in a text.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.bytes(text.as_bytes()) {
            None => Cow::Borrowed(text),
            Some(clean) => match String::from_utf8(clean) {
                Ok(clean) => Cow::Owned(clean),
                // Cannot happen: spans do not split characters.
                Err(odd) => Cow::Owned(String::from_utf8_lossy(odd.as_bytes()).into_owned()),
            },
        }
    }

    /// Replaces the secrets in bytes; `None` when there are none.
    pub fn bytes(&self, text: &[u8]) -> Option<Vec<u8>> {
        if self.is_empty() || text.len() < LEAST_BYTES {
            return None;
        }
        let spans = self.spans(text);
        if spans.is_empty() { None } else { Some(self.without(text, spans)) }
    }

    /// Like `text`, for an owned text.
    pub fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }

    /// Like `text`, for every string in a JSON value, including names of fields.
    pub fn json(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.owned(text)),
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| (self.owned(name), self.json(value))).collect()
            }
            Value::Number(number) if self.has_digits => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(clean) => Value::String(clean),
            },
            other => other,
        }
    }

    /// All occurrences of secrets, in the text and in its decoded copies.
    fn spans(&self, text: &[u8]) -> Vec<Span> {
        let mut spans = self.plain.find(text);
        let mut look = |finder: &Finder, copy: &DecodedText| {
            spans.extend(finder.find(&copy.bytes).into_iter().map(|span| {
                let (start, end) = copy.source(span.start, span.end);
                Span { start, end, ..span }
            }));
        };
        let has = |wanted: u8| text.contains(&wanted);
        let (escapes, percent) = (has(b'\\'), has(b'%'));
        if escapes {
            look(&self.plain, &DecodedText::json(text));
        }
        if percent {
            look(&self.plain, &DecodedText::percent(text));
        }
        let lines = has(b'\n');
        if escapes || percent || lines || has(b'&') || (self.has_space && has(b'+')) {
            let copy = DecodedText::bare(text);
            look(&self.bare, &copy);
            if copy.bytes.contains(&b'\n') {
                look(&self.unwrapped, &copy.unwrapped());
            }
        }
        if is_printable(text) {
            look(&self.plain, &DecodedText::printable(text));
        }
        spans
    }

    /// Replaces each span by its name. Overlapping spans become one, with the name of the longest secret.
    fn without(&self, text: &[u8], mut spans: Vec<Span>) -> Vec<u8> {
        for span in &mut spans {
            while span.end > span.start + 1 && text.get(span.end - 1).is_some_and(u8::is_ascii_whitespace) {
                span.end -= 1;
            }
        }
        spans.sort_unstable_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        let mut whole: Vec<(Span, usize)> = Vec::new();
        for span in spans {
            let length = self.secrets.get(span.secret).map_or(0, |(_, value)| value.len());
            match whole.last_mut().filter(|(last, _)| span.start < last.end) {
                Some((last, longest)) => {
                    last.end = last.end.max(span.end);
                    if length > *longest {
                        (last.secret, *longest) = (span.secret, length);
                    }
                }
                None => whole.push((span, length)),
            }
        }
        let mut clean = Vec::with_capacity(text.len());
        let mut from = 0;
        for (span, _) in whole {
            clean.extend_from_slice(text.get(from..span.start).unwrap_or_default());
            let name = self.secrets.get(span.secret).map_or("", |(name, _)| name.as_str());
            clean.extend_from_slice(format!("[redacted {name}]").as_bytes());
            from = span.end;
        }
        clean.extend_from_slice(text.get(from..).unwrap_or_default());
        clean
    }
}

/// Removes escapes. An incomplete escape at the end is dropped, because the following text could complete it.
fn bare(text: &str) -> Vec<u8> {
    let mut bytes = DecodedText::bare(text.as_bytes()).bytes;
    let open = bytes.iter().rposition(|byte| matches!(byte, b'%' | b'&'));
    if let Some(open) = open.filter(|open| bytes.len() - open <= 10) {
        let rest = bytes.get(open + 1..).unwrap_or_default();
        let unfinished = match bytes.get(open) {
            Some(b'%') => rest.len() < 2 && rest.iter().all(u8::is_ascii_hexdigit),
            _ => rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#'),
        };
        if unfinished {
            bytes.truncate(open);
        }
    }
    bytes
}

/// The value in hexadecimal, and in base64 within longer data, for each of the three alignments.
fn encoded(value: &str) -> Vec<String> {
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![hex.to_ascii_uppercase(), hex];
    for before in 0..3 {
        let bytes = [vec![0; before], value.as_bytes().to_vec()].concat();
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for text in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            forms.push(text.get(from..to).unwrap_or_default().to_owned());
        }
    }
    forms
}
