//! The parts of a request, and how much of its model's window each of them takes (docs/context.md).

use crate::engine::definitions::Definitions;
use crate::engine::features::ModelContext;
use crate::error::Result;
use crate::models::{CachedJson, ChatMessage};
use crate::spec::Model;
use crate::store::runs::diagnostics::{Diagnostic, Kind};

/// What a request holds besides its tools and its messages: system messages. They stand where they change the beginning of
/// the request least often, so that a provider's cache of it holds.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) system: CachedJson<ChatMessage>,
    /// Behind the system prompt.
    pub(crate) summary: Option<CachedJson<ChatMessage>>,
    /// Between what was said before and the messages that opened the turn: it is another one in each turn.
    pub(crate) memory: Option<CachedJson<ChatMessage>>,
}

impl Parts {
    /// The system prompt alone.
    pub(crate) const fn of(system: CachedJson<ChatMessage>) -> Parts {
        Parts { system, summary: None, memory: None }
    }
}

/// The tokens of a request, as they are estimated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    /// Tokens that it may have, as its provider counts them.
    pub(crate) input: u64,
    /// What an estimate is multiplied by for that.
    pub(crate) factor: f64,
    pub(crate) system: usize,
    pub(crate) tools: usize,
    pub(crate) summary: usize,
    pub(crate) memory: usize,
    /// What is left for messages.
    pub(crate) messages: usize,
}

impl Space {
    /// An estimate as the provider would count it.
    pub(crate) fn counted(&self, tokens: usize) -> u64 {
        (tokens as f64 * self.factor).round() as u64
    }

    /// What it may have altogether.
    fn whole(&self) -> usize {
        (self.input as f64 / self.factor) as usize
    }
}

impl ModelContext<'_> {
    /// How the window of a model is shared out among the parts of a request.
    pub(crate) fn space(&self, definitions: &Definitions<'_>, model: &Model, parts: &Parts) -> Result<Space> {
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

    /// Tells of tools that take more than half of a request. It is sent all the same.
    pub(crate) fn note_tools(
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
