//! Limits of a model's code, and their errors.

use crate::definitions::execute_code_options::Settings;
use crate::definitions::message::ToolResult;

/// The limit that the code exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitKind {
    /// The code is too long; its size in bytes.
    CodeSize(usize),
    /// Too many calls of tools.
    ToolCalls,
    /// Time limit.
    Time,
}

impl LimitKind {
    /// The option for the limit.
    const fn option(self) -> &'static str {
        match self {
            LimitKind::CodeSize(_) => "maxCodeSize",
            LimitKind::ToolCalls => "maxToolCalls",
            LimitKind::Time => "codeTimeoutMs",
        }
    }

    /// The error result, with the option as its code.
    pub(super) fn result(self, text: String) -> ToolResult {
        ToolResult { error_code: Some(self.option().to_owned()), ..ToolResult::error(text) }
    }

    /// The text for the model.
    pub(super) fn text(self, settings: &Settings) -> String {
        let option = self.option();
        match self {
            LimitKind::CodeSize(bytes) => format!(
                "The code has {bytes} bytes; the limit is {} ({option}). Write less, or split the work.",
                settings.max_code_size
            ),
            LimitKind::ToolCalls => {
                format!("The code called more than {} tools ({option}).", settings.max_tool_calls)
            }
            LimitKind::Time => {
                let seconds = settings.code_timeout_ms as f64 / 1000.0;
                format!("The code ran for more than {seconds} s ({option}).")
            }
        }
    }
}
