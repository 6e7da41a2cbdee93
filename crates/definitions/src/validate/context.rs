//! Context limits and summaries of prompts.

use crate::definitions::Prompt;
use crate::definitions::references::Kind;
use crate::validate::{Check, Subject};

impl Check<'_> {
    pub(super) fn summary(&mut self, at: Subject<'_>, prompt: &Prompt) {
        let Some(settings) = &prompt.summary else { return };
        if !prompt.include_chat {
            self.error(
                at,
                "summary",
                "needs `includeChat: true`: without earlier turns there is nothing to summarise",
            );
        }
        if let Some(model) = &settings.model {
            self.reference(at, "summary.model", Kind::Model, model);
        }
        if let Some(instruction) = &settings.prompt {
            self.reference(at, "summary.prompt", Kind::Prompt, instruction);
        }
        if settings.target_ratio.is_some_and(|ratio| !(ratio > 0.0 && ratio < 1.0)) {
            self.error(at, "summary.targetRatio", "a share of the budget: above 0, below 1, such as 0.5");
        }
        if settings.max_tokens.is_some_and(|tokens| !(50..=16_000).contains(&tokens)) {
            self.error(at, "summary.maxTokens", "must be from 50 to 16000");
        }
        if settings.min_turns == Some(0) {
            self.error(at, "summary.minTurns", "must be at least 1");
        }
    }

    pub(super) fn context(&mut self, at: Subject<'_>, prompt: &Prompt) {
        let limits = &prompt.context;
        if limits.trigger_ratio.is_some_and(|ratio| !(ratio > 0.0 && ratio <= 1.0)) {
            self.error(at, "context.triggerRatio", "a share of the budget: above 0, at most 1, such as 0.85");
        }
        if limits.max_input_tokens == Some(0) {
            self.error(
                at,
                "context.maxInputTokens",
                "must be more than 0: leave it out where the model's window is the limit",
            );
        }
        for model in self.catalog.model_chain(&prompt.model) {
            let (window, answer) =
                (model.capabilities.max_context_tokens, model.capabilities.max_output_tokens);
            if limits.safety_tokens.is_some() && limits.input(window, answer) == 0 {
                let text =
                    format!("leaves nothing of the window of \"{}\" for messages: give less", model.name);
                self.error(at, "context.safetyTokens", text);
            }
        }
    }
}
