//! What a prompt says of its requests' size: how much of the model's window they may fill, and how a summary takes the place of
//! older messages.

use serde::{Deserialize, Deserializer, Serialize};

use crate::definitions::subagent;
use crate::definitions::variable::is_default;
use crate::limits;

/// How much of its model's window a request may fill, and when room is made in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextLimits {
    /// Share of the tokens left for messages from which on a summary takes the place of the older ones: above 0, at most 1;
    /// 0.85 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_ratio: Option<f64>,
    /// Tokens that are left free, because requests are only estimated: 1,024 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safety_tokens: Option<u64>,
    /// Tokens of a request at most, where that is less than its model takes.
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

/// How a summary is made that stands in requests for the older messages of the thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummarySettings {
    /// Name of the model that writes it; the prompt's unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Name of a prompt whose text says how it is written; there is a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Tokens that it has at most; 1,500 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Complete turns that must have come since the last one; 6 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_turns: Option<u32>,
    /// Share of the tokens left for messages that stays with messages after it: above 0, below 1; 0.5 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ratio: Option<f64>,
    /// When it is written.
    #[serde(skip_serializing_if = "is_default")]
    pub mode: SummaryMode,
}

/// When a summary is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SummaryMode {
    /// Beside the run.
    #[default]
    Background,
    /// The step that needs it waits for it, a minute at most.
    BeforeStep,
    /// Never.
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
