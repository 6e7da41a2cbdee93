//! Secrets in texts: each is replaced by `[redacted NAME]`, also where it stands percent-encoded, in base64 or escaped as
//! in JSON. A secret shorter than eight characters would be found in every other text and is left alone.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

/// Characters that a secret has at least.
const LEAST_CHARS: usize = 8;
/// Characters of base64 that are looked for at least: fewer are found by chance.
const LEAST_BASE64: usize = 12;

/// Knows secrets and takes them out of texts.
#[derive(Default)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another goes as a whole.
    needles: Vec<Needle>,
}

struct Needle {
    text: String,
    name: String,
}

/// Shows names alone.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.needles.iter().map(|needle| &needle.name)).finish()
    }
}

impl Redactor {
    /// One that knows these: name and value.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Redactor {
        let mut needles: Vec<Needle> = Vec::new();
        for (name, value) in secrets {
            // Those that come from a file often end in a line break, which gets lost on the way.
            let value = value.trim();
            if value.chars().count() < LEAST_CHARS {
                continue;
            }
            for text in forms(value) {
                if needles.iter().all(|needle| needle.text != text) {
                    let place = needles.iter().take_while(|needle| needle.text.len() >= text.len()).count();
                    needles.insert(place, Needle { text, name: name.to_owned() });
                }
            }
        }

        Redactor { needles }
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        for needle in &self.needles {
            if clean.contains(&needle.text) {
                clean = Cow::Owned(clean.replace(&needle.text, &format!("[redacted {}]", needle.name)));
            }
        }
        clean
    }

    /// The same for a text that is owned.
    pub fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }

    /// The same for every text in a JSON value, names of fields too.
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
            other => other,
        }
    }
}

/// The value, and how it looks where it was encoded.
fn forms(value: &str) -> Vec<String> {
    let escaped = Value::from(value).to_string();
    let escaped = escaped.get(1..escaped.len() - 1).unwrap_or_default().to_owned();
    let mut forms = vec![value.to_owned(), escaped, percent(value, false), percent(value, true)];
    // In the middle of something longer, a value's base64 begins at one of three places in a group.
    for before in 0..3 {
        let bytes = [vec![0; before], value.as_bytes().to_vec()].concat();
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for text in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            let sure = text.get(from..to).unwrap_or_default();
            if sure.len() >= LEAST_BASE64 {
                forms.push(sure.to_owned());
            }
        }
    }
    forms
}

/// As in a URL or, with `+` for a space, in a form.
fn percent(value: &str, form: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b' ' if form => out.push('+'),
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => out.push(char::from(byte)),
            byte => {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use serde_json::json;

    use super::*;

    const KEY: &str = "s3cr\"t/ke y+ü\nend";

    fn redactor() -> Redactor {
        Redactor::new([
            ("KEY", KEY),
            ("LONG", "longer-s3cret-value"),
            ("PART", "s3cret-value"),
            ("SHORT", "1234567"),
        ])
    }

    #[test]
    fn a_secret_goes_in_every_form() {
        let redactor = redactor();
        assert_eq!(redactor.text(&format!("a {KEY} b")), "a [redacted KEY] b");
        assert_eq!(redactor.text(&json!({ "k": KEY }).to_string()), r#"{"k":"[redacted KEY]"}"#);
        assert_eq!(redactor.text("/x?k=s3cr%22t%2Fke%20y%2B%C3%BC%0Aend&b"), "/x?k=[redacted KEY]&b");
        assert_eq!(redactor.text("k=s3cr%22t%2Fke+y%2B%C3%BC%0Aend"), "k=[redacted KEY]");
        for around in ["", "u", "us", "user:"] {
            for text in
                [STANDARD.encode(format!("{around}{KEY}")), URL_SAFE.encode(format!("{around}{KEY}!"))]
            {
                assert!(redactor.text(&text).contains("[redacted KEY]"), "{around}: {text}");
            }
        }
    }

    #[test]
    fn the_longest_goes_first_short_ones_and_other_texts_stay() {
        let redactor = redactor();
        assert_eq!(redactor.text("longer-s3cret-value, s3cret-value"), "[redacted LONG], [redacted PART]");
        assert!(matches!(redactor.text("1234567 is short"), Cow::Borrowed("1234567 is short")));
        assert!(Redactor::new([("SHORT", "1234567"), ("BLANK", "          ")]).is_empty());
        assert_eq!(Redactor::new([("PEM", "0123456789\n")]).text("0123456789"), "[redacted PEM]");
        assert_eq!(
            redactor.json(json!({ "a": ["s3cret-value", 1, null], "s3cret-value": true })),
            json!({ "a": ["[redacted PART]", 1, null], "[redacted PART]": true })
        );
        assert!(!format!("{redactor:?}").contains("s3cret"));
    }
}
