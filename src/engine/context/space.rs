//! The parts of a request, and the share of its model's window that each takes (docs/context.md).

use crate::definitions::Model;
use crate::engine::definitions::Definitions;
use crate::engine::features::ModelContext;
use crate::error::Result;
use crate::models::{CachedJson, ChatMessage};
use crate::store::runs::diagnostics::{Diagnostic, Kind};

/// The system messages of a request. Their order keeps the beginning of the request stable, so that the
/// provider's cache stays valid.
#[derive(Clone)]
pub(crate) struct SystemMessages {
    pub(crate) system: CachedJson<ChatMessage>,
    /// Behind the system prompt.
    pub(crate) summary: Option<CachedJson<ChatMessage>>,
    /// Between the history and the messages of the current turn, because it changes in each turn.
    pub(crate) memory: Option<CachedJson<ChatMessage>>,
}

impl SystemMessages {
    /// The system prompt alone.
    pub(crate) const fn of(system: CachedJson<ChatMessage>) -> SystemMessages {
        SystemMessages { system, summary: None, memory: None }
    }
}

/// The estimated tokens of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    /// The limit on tokens, as the provider counts them.
    pub(crate) input: u64,
    /// The factor from estimated to counted tokens.
    pub(crate) factor: f64,
    pub(crate) system: usize,
    pub(crate) tools: usize,
    pub(crate) summary: usize,
    pub(crate) memory: usize,
    /// The rest, for messages.
    pub(crate) messages: usize,
}

impl Space {
    /// Converts an estimate to tokens as the provider counts them.
    pub(crate) fn counted(&self, tokens: usize) -> u64 {
        (tokens as f64 * self.factor).round() as u64
    }

    /// The limit in estimated tokens.
    fn whole(&self) -> usize {
        (self.input as f64 / self.factor) as usize
    }
}

impl ModelContext<'_> {
    /// Divides the window of a model among the parts of a request.
    pub(crate) fn space(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        parts: &SystemMessages,
    ) -> Result<Space> {
        let of = |part: &Option<CachedJson<ChatMessage>>| {
            part.as_ref().map_or(0, CachedJson::<ChatMessage>::tokens)
        };
        let tools = self.tools_for(definitions, model)?.tokens();
        let (factor, most) =
            self.read(|state, _| Ok((state.meta.calibration.factor(&model.name), state.meta.window_tokens)))?;
        let able = &model.capabilities;
        let mut space = Space {
            input: definitions.prompt.context.input(able.max_context_tokens, able.max_output_tokens),
            factor,
            system: parts.system.tokens(),
            tools,
            summary: of(&parts.summary),
            memory: of(&parts.memory),
            messages: 0,
        };
        let taken = space.system + space.tools + space.summary + space.memory;
        space.messages = space.whole().saturating_sub(taken).min(most.unwrap_or(usize::MAX));
        Ok(space)
    }

    /// Notes tools that take more than half of a request. The request is sent anyway.
    pub(super) fn note_tools(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        space: &Space,
    ) -> Result<()> {
        if space.tools <= space.whole() / 2 {
            return Ok(());
        }
        let (prompt, tools, whole) = (&definitions.prompt.name, space.tools, space.whole());
        let text = format!(
            "The tools of \"{prompt}\" take about {tools} of the {whole} tokens that a request to \"{}\" may have.",
            model.name
        );
        let now = self.host.now_us();
        self.diagnosis().note(Diagnostic::warning(
            Kind::Requirement,
            "context.tools",
            ("prompt", prompt),
            text,
            now,
        ))
    }
}
