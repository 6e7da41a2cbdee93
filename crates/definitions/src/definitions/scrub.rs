//! What becomes of texts in results of tools that look like secrets (docs/scrubbing.md): settings of the folder and of a
//! tool, and how many such texts a result had.

use serde::{Deserialize, Serialize};

use crate::definitions::variable::is_default;

/// The treatment of texts that look like secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scrub {
    /// The action for private keys and for values of fields with the name of a secret, such as `api_key`. A
    /// tool can only be stricter than `bobbin.json`. Default: `redact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keywords: Option<ScrubAction>,
    /// The action for long texts that look random. Default: `redact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<ScrubAction>,
    /// Additional names of fields whose values are secrets, such as `session_id`.
    #[serde(skip_serializing_if = "is_default")]
    pub extra_keywords: Vec<String>,
    /// The random-looking texts to keep. `*` matches any characters, as in `arn:*`.
    #[serde(skip_serializing_if = "is_default")]
    pub allow: Vec<String>,
}

/// The action for a text that looks like a secret. Later values are stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ScrubAction {
    /// Bobbin does not look for these texts.
    Off,
    /// Bobbin keeps the text and adds a diagnostic to the run.
    Report,
    /// Bobbin removes the text.
    #[default]
    Redact,
}

impl Scrub {
    /// Entries that `extraKeywords` and `allow` may have, each.
    pub const ENTRIES: usize = 64;
    /// Characters of an entry.
    pub const ENTRY_CHARS: usize = 128;

    /// What is wrong with it: field, and why. `folder`: what holds without it, where it is a tool's.
    pub fn problems(&self, folder: Option<&Scrub>) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let weakest = folder.and_then(|folder| folder.keywords).unwrap_or_default();
        if folder.is_some() && self.keywords.is_some_and(|own| own < weakest) {
            let text = "a tool can only be stricter here than bobbin.json, which says what holds without it";
            problems.push(("keywords".to_owned(), text.to_owned()));
        }
        for (field, entries) in [("extraKeywords", &self.extra_keywords), ("allow", &self.allow)] {
            if entries.len() > Self::ENTRIES {
                problems.push((field.to_owned(), format!("has {} entries at most", Self::ENTRIES)));
            }
            for (index, entry) in entries.iter().enumerate() {
                let letters = entry.bytes().filter(u8::is_ascii_alphanumeric).count();
                let name = entry.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
                let wrong = if entry.chars().count() > Self::ENTRY_CHARS {
                    format!("has {} characters at most", Self::ENTRY_CHARS)
                } else if field == "extraKeywords" && (letters < 2 || !name) {
                    "the name of a field has letters, digits, `-` and `_`, and at least two of the first two"
                        .to_owned()
                } else if field == "allow" && letters == 0 {
                    "would allow everything: `\"entropy\": \"off\"` says that".to_owned()
                } else {
                    continue;
                };
                problems.push((format!("{field}[{index}]"), wrong));
            }
        }
        problems
    }
}

/// How many texts were found in a result, by what gave them away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubCounts {
    /// By the name before them, or by their shape.
    pub keywords: u32,
    /// Because they look random.
    pub entropy: u32,
}

impl ScrubCounts {
    /// Whether there were none.
    pub fn is_none(&self) -> bool {
        *self == ScrubCounts::default()
    }

    /// How many there were, of both kinds.
    pub const fn total(&self) -> u32 {
        self.keywords.saturating_add(self.entropy)
    }
}
