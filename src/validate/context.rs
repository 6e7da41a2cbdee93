//! What a prompt says of the size of its requests.

use crate::spec::Prompt;
use crate::validate::{Check, Place};

impl Check<'_> {
    pub(crate) fn context(&mut self, at: Place<'_>, prompt: &Prompt) {
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
