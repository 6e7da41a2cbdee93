//! Limits on the size of a prompt's requests: how much of the model's window they may fill, and how a summary replaces
//! older messages.

use serde::{Deserialize, Deserializer, Serialize};

use crate::definitions::subagent;
use crate::definitions::variable::is_default;
use crate::limits;

/// The part of the model's context window that a request may fill, and the point at which a summary replaces
/// older messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextLimits {
    /// The fraction of the token budget for messages at which a summary replaces the older ones: more than 0,
    /// at most 1. Default: 0.85.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_ratio: Option<f64>,
    /// The number of tokens to keep free, because the size of a request is an estimate. Default: 1,024, at
    /// most a quarter of the context window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safety_tokens: Option<u64>,
    /// The maximum size of a request, in tokens, if it is less than the model accepts. Default: no other
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
}

impl ContextLimits {
    /// See [`ContextLimits::trigger_ratio`].
    pub fn trigger(&self) -> f64 {
        self.trigger_ratio.unwrap_or(limits::TRIGGER_RATIO)
    }

    /// Tokens, as its provider counts them, that a request to a model may have: its window without the answer and a buffer.
    pub fn input(&self, window: Option<u64>, answer: Option<u64>) -> u64 {
        let window = window.unwrap_or(limits::WINDOW_TOKENS);
        let answer = answer.unwrap_or(limits::ANSWER_TOKENS).min(window / 4);
        let safety = self.safety_tokens.unwrap_or_else(|| limits::SAFETY_TOKENS.min(window / 4));
        let input = window.saturating_sub(answer).saturating_sub(safety);
        self.max_input_tokens.map_or(input, |most| input.min(most))
    }
}

/// The settings of the summary that replaces the older messages of the thread in requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummarySettings {
    /// The name of the model that writes the summary. Default: the prompt's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name of a prompt whose text has the instructions for the summary. Default: built-in instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The maximum length of the summary, in tokens. Default: 1,500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The minimum number of complete turns between two summaries. Default: 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_turns: Option<u32>,
    /// The fraction of the token budget for messages that remains for messages after a summary: more than 0,
    /// less than 1. Default: 0.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ratio: Option<f64>,
    /// The time at which the summary is written. Default: `background`.
    #[serde(skip_serializing_if = "is_default")]
    pub mode: SummaryMode,
}

/// The time at which a summary is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SummaryMode {
    /// The summary is written beside the run. Requests continue without it until it is ready.
    #[default]
    Background,
    /// The step that needs the summary waits for it, at most one minute.
    BeforeStep,
    /// No summary is written or sent.
    Off,
}

impl SummarySettings {
    /// See [`SummarySettings::max_tokens`].
    pub fn most(&self) -> usize {
        self.max_tokens.map_or(limits::SUMMARY_TOKENS, |tokens| tokens as usize)
    }

    /// See [`SummarySettings::min_turns`].
    pub fn turns(&self) -> u32 {
        self.min_turns.unwrap_or(limits::SUMMARY_TURNS)
    }

    /// See [`SummarySettings::target_ratio`].
    pub fn target(&self) -> f64 {
        self.target_ratio.unwrap_or(limits::SUMMARY_TARGET)
    }
}

/// `summary`: `true`, `false`, or how.
pub fn summary<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SummarySettings>, D::Error> {
    deserializer.deserialize_any(subagent::Switch::on())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_room_for_the_answer_and_a_buffer() {
        let usual = ContextLimits::default();
        assert_eq!(usual.input(Some(128_000), None), 118_784);
        assert_eq!(usual.input(None, None), 48_000 - 8_192 - 1_024);
        assert_eq!(usual.input(Some(8_192), Some(4_096)), 8_192 - 2_048 - 1_024);
        assert_eq!(usual.input(Some(8_192), Some(500)), 8_192 - 500 - 1_024);
        assert_eq!(usual.input(Some(400), None), 200, "a small window is not all buffer");
        let own = ContextLimits { safety_tokens: Some(0), max_input_tokens: Some(5_000), ..usual };
        assert_eq!((own.input(Some(8_192), None), own.input(Some(4_000), None)), (5_000, 3_000));
        assert_eq!(ContextLimits { safety_tokens: Some(9_000), ..usual }.input(Some(8_192), None), 0);
    }
}
