//! Undeclared texts that look like secrets: keys in logs, tokens in pages, passwords in configuration files
//! (docs/scrubbing.md). Declared secrets are replaced first, by [`crate::redact`].
//!
//! * `keywords`: secrets after a revealing name, and secrets with their own format. It uses `name`: such
//!   names; `value`: the end and the plausibility of a value; `loose`: values after names without an
//!   operator.
//! * `entropy`: long texts that look random. It uses `words`: long texts that are names, paths and words;
//!   `known`: tokens with known prefixes.
//! * `class`: classes of bytes.
//! * `json`: JSON, scanned string by string so that it stays valid.
//!
//! Every step is one forward pass over the text. Repeated scans are bounded.

pub mod class;
pub mod entropy;
pub mod json;
pub mod keywords;
pub mod known;
pub mod loose;
pub mod name;
#[cfg(test)]
mod tests;
pub mod value;
pub mod words;

use serde_json::Value;

use crate::redact::step_count;
use bobbin_definitions::definitions::scrub::{Scrub, ScrubAction, ScrubCounts};

/// Replaces a value after a name.
pub const KEYWORD: &str = "[REDACTED]";
/// Replaces a text that looks random.
pub const ENTROPY: &str = "[REDACTED:high-entropy]";
/// Maximum nesting of JSON in strings of JSON.
const NESTED: u32 = 4;

/// The scrubbing rules.
#[derive(Clone, Debug)]
pub struct Rules {
    keywords: ScrubAction,
    entropy: ScrubAction,
    /// Names in lower case, without separators.
    extra: Vec<Vec<u8>>,
    allow: Vec<String>,
}

impl Rules {
    /// The rules of the folder, combined with those of a tool.
    pub fn of(folder: &Scrub, tool: Option<&Scrub>) -> Rules {
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

/// The reason for a span, which determines the replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Keyword,
    /// Like `Keyword`, but the value lacks the quotes that its name has.
    Quoted(&'static str),
    Entropy,
    /// Public data: a certificate. It is kept, and not scanned.
    Public,
}

/// Replaces texts that look like secrets, and counts them.
pub struct Scrubber<'r> {
    rules: &'r Rules,
    /// Numbers of replaced texts.
    pub replaced: ScrubCounts,
    /// Numbers of found texts that were kept.
    pub reported: ScrubCounts,
}

impl<'r> Scrubber<'r> {
    /// Starts with no findings.
    pub fn new(rules: &'r Rules) -> Scrubber<'r> {
        Scrubber { rules, replaced: ScrubCounts::default(), reported: ScrubCounts::default() }
    }

    /// Scrubs a text.
    pub fn text(&mut self, text: String) -> String {
        self.changed(&text, 0).unwrap_or(text)
    }

    /// Scrubs any JSON value.
    pub fn json(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(_) | Value::Object(_) => {
                // Serialized, so that one implementation is enough.
                let text = value.to_string();
                match self.changed(&text, 0) {
                    None => value,
                    // It is still valid JSON, because only whole values were replaced.
                    Some(clean) => bobbin_definitions::json::from_str(&clean).unwrap_or(Value::String(clean)),
                }
            }
            other => other,
        }
    }

    /// Scrubs a text; `None` when nothing was replaced.
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

    /// Scrubs a text in which some lines are JSON.
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

    /// Scrubs a text that is not JSON.
    fn plain(&mut self, text: &str) -> Option<String> {
        let bytes = text.as_bytes();
        step_count::add(bytes.len());
        let mut spans = match self.rules.keywords {
            ScrubAction::Off => Vec::new(),
            _ => keywords::find(bytes, &self.rules.extra),
        };
        let named = spans.iter().filter(|span| span.kind != Kind::Public).count() as u32;
        match self.rules.keywords {
            ScrubAction::Redact => self.replaced.keywords += named,
            // Kept texts may still look random.
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

/// Replaces each span.
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
    // Spans are delimited by ASCII, so they do not split characters.
    String::from_utf8(clean).unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned())
}

/// The byte at a position; 0 outside the text.
fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// The byte before a position.
fn before(bytes: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(0, |at| byte(bytes, at))
}

/// Whether a text continues with `with` at a position.
fn continues(bytes: &[u8], at: usize, with: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(with))
}

/// A range of a text, clamped to its length.
fn part(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    bytes.get(start..end.min(bytes.len())).unwrap_or_default()
}
