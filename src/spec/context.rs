//! What a prompt says of its requests' size: how much of the model's window they may fill.

use serde::{Deserialize, Serialize};

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
