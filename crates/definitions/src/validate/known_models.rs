//! Facts about models at their makers' own addresses: context windows, prices, and end dates. Used only for
//! warnings; no request depends on them. They are in `known.json`, and updated with releases.

use serde::Deserialize;

use crate::definitions::model::{Model, Provider};
use crate::definitions::template;
use crate::validate::{Check, Subject};

const KNOWN: &str = include_str!("known.json");

/// A price may differ from the list price by this factor. Beyond it, the unit is probably wrong.
const UNITS: f64 = 10.0;

/// A known model.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ModelFacts {
    provider: Provider,
    /// Its id, which is also the prefix of its snapshots.
    id: String,
    /// Context window in tokens.
    #[serde(default)]
    context: Option<u64>,
    /// USD per million tokens, each.
    #[serde(default)]
    input: Option<f64>,
    #[serde(default)]
    cached: Option<f64>,
    #[serde(default)]
    output: Option<f64>,
    /// The day on which its maker ends it.
    #[serde(default)]
    ends: Option<String>,
    /// The replacement that its maker recommends.
    #[serde(default)]
    replaced_by: Option<String>,
}

impl ModelFacts {
    /// Whether it is the model of an id, or of a snapshot: an id with a date.
    fn is(&self, id: &str) -> bool {
        let date = |rest: &str| {
            rest.strip_prefix('-')
                .is_some_and(|date| date.len() >= 8 && date.chars().all(|c| c.is_ascii_digit() || c == '-'))
        };
        id.strip_prefix(self.id.as_str())
            .is_some_and(|rest| rest.is_empty() || rest == "-latest" || date(rest))
    }
}

/// The entry for a model with the longest matching id.
fn known(provider: &Provider, id: &str) -> Option<ModelFacts> {
    // Cannot fail: a test parses the same text.
    let all: Vec<ModelFacts> = crate::json::from_str(KNOWN).unwrap_or_default();
    let fits = all.into_iter().filter(|known| known.provider == *provider && known.is(id));
    fits.max_by_key(|known| known.id.len())
}

impl Check<'_> {
    /// Warns about a model at its maker's own address. Other addresses have other windows, prices and dates.
    pub(super) fn known(&mut self, at: Subject<'_>, model: &Model) {
        let base = model.base_url.as_deref();
        let own =
            base.is_none_or(|base| template::names(base).into_iter().any(|name| model.means_default(name)));
        let Some(known) = known(&model.provider, model.model.trim()).filter(|_| own) else { return };
        let id = &model.model;
        if let Some(ends) = &known.ends {
            let instead = known.replaced_by.as_ref().map(|new| format!("; its replacement is \"{new}\""));
            let text = format!("its maker ends \"{id}\" on {ends}{}", instead.unwrap_or_default());
            self.warning(at, "model", text);
        }
        let window = model.capabilities.max_context_tokens;
        if let (Some(window), Some(most)) = (window, known.context)
            && window > most
        {
            self.warning(at, "capabilities.maxContextTokens", format!("\"{id}\" has {most}"));
        }
        for (field, given, list) in [
            ("inputPrice", model.input_price, known.input),
            ("cachedPrice", model.cached_price, known.cached),
            ("outputPrice", model.output_price, known.output),
        ] {
            if let (Some(given), Some(list)) = (given, list)
                && given > 0.0
                && (given > list * UNITS || given < list / UNITS)
            {
                let text = format!("\"{id}\" is listed at {list} USD for a million tokens");
                self.warning(at, field, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_can_be_read_and_no_replacement_ends_before() {
        let all: Vec<ModelFacts> = crate::json::from_str(KNOWN).unwrap();
        for entry in &all {
            assert_eq!(all.iter().filter(|other| other.id == entry.id).count(), 1, "{}", entry.id);
            if let Some(ends) = &entry.ends {
                assert_eq!(ends.len(), "2026-12-11".len(), "{ends}");
                let new = entry.replaced_by.as_deref().unwrap();
                let its_end = known(&entry.provider, new).and_then(|new| new.ends);
                assert!(its_end.is_none_or(|its| its > *ends), "{new} instead of {}", entry.id);
            }
            let prices = [entry.input, entry.cached, entry.output];
            assert!(prices.iter().all(Option::is_some) || prices.iter().all(Option::is_none), "{}", entry.id);
        }
    }

    #[test]
    fn snapshots_are_found_and_other_models_are_not() {
        for (id, found) in [
            ("gpt-5-mini", Some("gpt-5-mini")),
            ("gpt-5-mini-2025-08-07", Some("gpt-5-mini")),
            ("gpt-5", Some("gpt-5")),
            ("gpt-5.9", None),
            ("gpt-5-codex", None),
            ("gpt-4o-2024-05-13", Some("gpt-4o-2024-05-13")),
            ("gpt-4o-2024-11-20", Some("gpt-4o")),
            ("gpt-4.1-nano-2025-04-14", Some("gpt-4.1-nano")),
        ] {
            assert_eq!(known(&Provider::Openai, id).map(|known| known.id).as_deref(), found, "{id}");
        }
        let claude = known(&Provider::Anthropic, "claude-sonnet-4-5-20250929").unwrap();
        assert_eq!(claude.ends.as_deref(), Some("2026-11-30"));
        assert!(known(&Provider::Openai, "claude-sonnet-4-5").is_none());
        assert_eq!(known(&Provider::Anthropic, "claude-sonnet-4-20250514").unwrap().id, "claude-sonnet-4");
    }
}
