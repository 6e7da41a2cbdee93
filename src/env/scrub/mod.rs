//! Texts that look like secrets and that nobody declared: keys in logs, tokens in pages, passwords in files of settings
//! (docs/scrubbing.md). What is declared is [`crate::env::redact`]'s, and goes first.
//!
//! * `keywords`: what stands behind a name that says so, and what has the shape of a secret; with `name`: which names these
//!   are, `value`: where a value ends, and whether it is one, and `loose`: values that stand behind names in other ways.
//! * `entropy`: long texts that look random; with `words`: which long texts are names, paths and words, and `known`: tokens
//!   that their first letters give away.
//! * `class`: what each byte may be a part of.
//! * `json`: JSON, whose values are looked at one by one, so that it stays JSON.
//!
//! Every step is a pass over the text that goes forward; what is looked at again is bounded.

pub(crate) mod class;
pub(crate) mod entropy;
pub(crate) mod json;
pub(crate) mod keywords;
pub(crate) mod known;
pub(crate) mod loose;
pub(crate) mod name;
#[cfg(test)]
mod tests;
pub(crate) mod value;
pub(crate) mod words;

use serde_json::Value;

use crate::env::redact::work;
use crate::spec::scrub::{Scrub, ScrubAction, Scrubbed};

/// What stands for a value behind a name.
pub(crate) const KEYWORD: &str = "[REDACTED]";
/// What stands for a text that looks random.
pub(crate) const ENTROPY: &str = "[REDACTED:high-entropy]";
/// JSON within texts of JSON, so often.
const NESTED: u32 = 4;

/// What is looked for, and what is done with it.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) keywords: ScrubAction,
    pub(crate) entropy: ScrubAction,
    /// Names in small letters, without what joins their words.
    extra: Vec<Vec<u8>>,
    allow: Vec<String>,
}

impl Rules {
    /// Those of the folder, and of a tool in it.
    pub(crate) fn of(folder: &Scrub, tool: Option<&Scrub>) -> Rules {
        let both = || [Some(folder), tool].into_iter().flatten();
        let folder_says = folder.keywords.unwrap_or_default();
        let squeezed = |name: &String| {
            name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase()).collect()
        };
        Rules {
            keywords: tool.and_then(|tool| tool.keywords).map_or(folder_says, |own| own.max(folder_says)),
            entropy: tool.and_then(|tool| tool.entropy).or(folder.entropy).unwrap_or_default(),
            extra: both().flat_map(|scrub| scrub.extra_keywords.iter().map(squeezed)).collect(),
            allow: both().flat_map(|scrub| scrub.allow.iter().cloned()).collect(),
        }
    }
}

/// A text that looks like a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    kind: Kind,
}

/// What gave it away, and what stands in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Keyword,
    /// The same, where quotes are missing that the name has.
    Quoted(&'static str),
    Entropy,
    /// It is public: a certificate. It stays, and is not looked at.
    Public,
}

/// Takes what looks like a secret out of texts, and counts.
pub(crate) struct Scrubber<'r> {
    rules: &'r Rules,
    /// What was taken out.
    pub(crate) replaced: Scrubbed,
    /// What was found and left.
    pub(crate) reported: Scrubbed,
}

impl<'r> Scrubber<'r> {
    pub(crate) fn new(rules: &'r Rules) -> Scrubber<'r> {
        Scrubber { rules, replaced: Scrubbed::default(), reported: Scrubbed::default() }
    }

    /// A text without what looks like a secret.
    pub(crate) fn text(&mut self, text: String) -> String {
        self.changed(&text, 0).unwrap_or(text)
    }

    /// Any JSON.
    pub(crate) fn json(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(_) | Value::Object(_) => {
                // One way of looking at JSON is enough.
                let text = value.to_string();
                match self.changed(&text, 0) {
                    None => value,
                    // It was JSON, and still is: nothing but whole values was replaced.
                    Some(clean) => crate::json::from_str(&clean).unwrap_or(Value::String(clean)),
                }
            }
            other => other,
        }
    }

    /// The text as it is then; `None` when nothing was taken out.
    fn changed(&mut self, text: &str, depth: u32) -> Option<String> {
        if self.rules.keywords == ScrubAction::Off && self.rules.entropy == ScrubAction::Off {
            return None;
        }
        if depth < NESTED && json::may_be(text) {
            if let Some(outcome) = self.json_text(text, depth) {
                return outcome;
            }
            if text.contains('\n') {
                return self.lines(text, depth);
            }
        }
        self.plain(text)
    }

    /// A text of which some lines are JSON.
    fn lines(&mut self, text: &str, depth: u32) -> Option<String> {
        let mut out = String::new();
        let mut changed = false;
        let mut plain = 0;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            if !json::may_be(line) {
                continue;
            }
            let Some(outcome) = self.json_text(line, depth) else { continue };
            let before = text.get(plain..start).unwrap_or_default();
            let before_changed = self.plain(before);
            changed |= before_changed.is_some() || outcome.is_some();
            out.push_str(before_changed.as_deref().unwrap_or(before));
            out.push_str(outcome.as_deref().unwrap_or(line));
            plain = at;
        }
        let rest = text.get(plain..).unwrap_or_default();
        let rest_changed = self.plain(rest);
        changed |= rest_changed.is_some();
        out.push_str(rest_changed.as_deref().unwrap_or(rest));
        changed.then_some(out)
    }

    /// A text that is no JSON.
    fn plain(&mut self, text: &str) -> Option<String> {
        let bytes = text.as_bytes();
        work::add(bytes.len());
        let mut spans = match self.rules.keywords {
            ScrubAction::Off => Vec::new(),
            _ => keywords::find(bytes, &self.rules.extra),
        };
        let named = spans.iter().filter(|span| span.kind != Kind::Public).count() as u32;
        match self.rules.keywords {
            ScrubAction::Redact => self.replaced.keywords += named,
            // What stays may still look random.
            _ => {
                self.reported.keywords += named;
                spans.retain(|span| span.kind == Kind::Public);
            }
        }
        if self.rules.entropy != ScrubAction::Off {
            let random = entropy::find(bytes, &spans, &self.rules.allow);
            match self.rules.entropy {
                ScrubAction::Redact => {
                    self.replaced.entropy += random.len() as u32;
                    spans.extend(random);
                    spans.sort_unstable_by_key(|span| span.start);
                }
                _ => self.reported.entropy += random.len() as u32,
            }
        }
        spans.retain(|span| span.kind != Kind::Public);
        if spans.is_empty() { None } else { Some(without(bytes, &spans)) }
    }
}

/// The text with something else in the place of each span.
fn without(bytes: &[u8], spans: &[Span]) -> String {
    let mut clean = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for span in spans {
        clean.extend_from_slice(bytes.get(from..span.start).unwrap_or_default());
        let quote = if let Kind::Quoted(quote) = span.kind { quote } else { "" };
        let mark = if span.kind == Kind::Entropy { ENTROPY } else { KEYWORD };
        for part in [quote, mark, quote] {
            clean.extend_from_slice(part.as_bytes());
        }
        from = span.end;
    }
    clean.extend_from_slice(bytes.get(from..).unwrap_or_default());
    // Spans begin and end beside ASCII, so that nothing is cut within a character.
    String::from_utf8(clean).unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned())
}

/// The byte at a place; 0 beyond the ends.
fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// The byte before a place.
fn before(bytes: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(0, |at| byte(bytes, at))
}

/// Whether a text goes on like this from a place.
fn continues(bytes: &[u8], at: usize, with: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(with))
}

/// A part of a text, as far as there is one.
fn part(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    bytes.get(start..end.min(bytes.len())).unwrap_or_default()
}
