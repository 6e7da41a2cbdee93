//! JSON, whose strings are scanned one by one. The rest is kept unchanged: numbers, white space and the order
//! of fields.

use serde_json::value::RawValue;

use crate::redact::step_count;
use crate::scrub::name::meaning;
use crate::scrub::{KEYWORD, Scrubber, byte, part, value};
use bobbin_definitions::definitions::scrub::ScrubAction;

/// Maximum bytes of a text that may be the name of a field.
const NAME_BYTES: usize = 128;

/// Whether a text, or a line of it, may be JSON with strings.
pub(super) fn may_be(text: &str) -> bool {
    let begins = |text: &str| text.trim_ascii_start().starts_with(['{', '[', '"']);
    begins(text) || (text.contains('\n') && text.lines().any(begins))
}

/// An open array or object.
#[derive(Clone, Copy, Default)]
struct OpenContainer {
    is_object: bool,
    /// Whether the next value is secret, by its name, or in an array by the array's name.
    secret: bool,
    /// Whether the object names another secret: `{"name": "DB_PASSWORD", "value": "…"}`.
    names: bool,
    /// Whether the next string is such a name.
    named: bool,
}

impl Scrubber<'_> {
    /// Scrubs a text of JSON. `None` when it is not JSON; an inner `None` when nothing was replaced.
    pub(super) fn json_text(&mut self, text: &str, depth: u32) -> Option<Option<String>> {
        if !text.trim_ascii_start().starts_with(['{', '[', '"']) {
            return None;
        }
        let _: &RawValue = bobbin_definitions::json::from_str(text).ok()?;
        let bytes = text.as_bytes();
        step_count::add(bytes.len());
        let mut walk = Walk { text, out: String::new(), copied: 0, open: vec![OpenContainer::default()] };
        let mut at = 0;
        while let Some(next) = bytes.get(at) {
            at = match next {
                b'"' => {
                    let end = literal_end(bytes, at);
                    self.literal(&mut walk, at, end, depth);
                    end
                }
                b'{' | b'[' => {
                    let secret = *next == b'[' && walk.top().secret;
                    walk.open.push(OpenContainer {
                        is_object: *next == b'{',
                        secret,
                        ..OpenContainer::default()
                    });
                    at + 1
                }
                b'}' | b']' => {
                    walk.open.pop();
                    walk.done();
                    at + 1
                }
                b'-' | b'0'..=b'9' => {
                    let number = part(bytes, at, bytes.len());
                    let digits = |byte: &&u8| byte.is_ascii_digit() || b".+-eE".contains(byte);
                    let end = at + number.iter().take_while(digits).count();
                    self.number(&mut walk, at, end);
                    end
                }
                _ => at + 1,
            };
        }
        Some(walk.finish())
    }

    /// Handles a string: the name of a field, or a value.
    fn literal(&mut self, walk: &mut Walk<'_>, start: usize, end: usize, depth: u32) {
        let raw = walk.text.get(start..end).unwrap_or_default();
        let inside = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
        let read: String;
        let value = if inside.contains('\\') {
            // A lone surrogate is valid in JSON, but not in a Rust string.
            read = bobbin_definitions::json::from_str(raw).unwrap_or_else(|_| inside.to_owned());
            &read
        } else {
            inside
        };
        let top = walk.top();
        if top.is_object && is_name(walk.text.as_bytes(), end) {
            let named = |text: &str| value.eq_ignore_ascii_case(text);
            let secret = self.is_secret(value) || (top.names && named("value"));
            if let Some(top) = walk.open.last_mut() {
                top.secret = secret;
                top.named = !secret && (named("name") || named("key"));
            }
            return;
        }
        if top.named
            && value.len() <= NAME_BYTES
            && self.is_secret(value)
            && let Some(top) = walk.open.last_mut()
        {
            top.names = true;
        }
        if top.secret && self.rules.keywords != ScrubAction::Off && is_value(value) {
            self.named(walk, start, end);
        } else if let Some(clean) = self.changed(value, depth + 1)
            && let Ok(clean) = serde_json::to_string(&clean)
        {
            walk.put(start, end, &clean);
        }
        walk.done();
    }

    fn number(&mut self, walk: &mut Walk<'_>, start: usize, end: usize) {
        let digits =
            part(walk.text.as_bytes(), start, end).iter().filter(|byte| byte.is_ascii_digit()).count();
        if walk.top().secret && digits >= 7 && self.rules.keywords != ScrubAction::Off {
            self.named(walk, start, end);
        }
        walk.done();
    }

    /// Handles the value of a secret field.
    fn named(&mut self, walk: &mut Walk<'_>, start: usize, end: usize) {
        if self.rules.keywords == ScrubAction::Redact {
            self.replaced.keywords += 1;
            walk.put(start, end, &format!("\"{KEYWORD}\""));
        } else {
            self.reported.keywords += 1;
        }
    }

    fn is_secret(&self, name: &str) -> bool {
        meaning(name.as_bytes(), &self.rules.extra).is_some()
    }
}

/// Whether a secret field has an actual value.
fn is_value(text: &str) -> bool {
    !value::is_none(value::credentials(text.as_bytes()))
}

/// The end of the string that starts at a position.
fn literal_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return at + 1,
            Some(_) => at += 1,
            None => return bytes.len(),
        }
    }
}

/// Whether a `:` follows.
fn is_name(bytes: &[u8], at: usize) -> bool {
    let blanks = part(bytes, at, bytes.len()).iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    byte(bytes, at + blanks) == b':'
}

struct Walk<'t> {
    text: &'t str,
    out: String,
    /// Length of the text that `out` contains.
    copied: usize,
    open: Vec<OpenContainer>,
}

impl Walk<'_> {
    fn top(&self) -> OpenContainer {
        self.open.last().copied().unwrap_or_default()
    }

    /// Ends a value: the next one has its own name.
    fn done(&mut self) {
        if let Some(top) = self.open.last_mut().filter(|top| top.is_object) {
            (top.secret, top.named) = (false, false);
        }
    }

    fn put(&mut self, start: usize, end: usize, text: &str) {
        self.out.push_str(self.text.get(self.copied..start).unwrap_or_default());
        self.out.push_str(text);
        self.copied = end;
    }

    fn finish(mut self) -> Option<String> {
        if self.copied == 0 {
            return None;
        }
        self.out.push_str(self.text.get(self.copied..).unwrap_or_default());
        Some(self.out)
    }
}
