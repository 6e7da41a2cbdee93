//! The context of a request to a model (spec §20): the prompt, the history that fits (`store/window`), the tools.
//!
//! * Here: the request. `space`: its parts, and how much of the model's window each takes. `history`: its
//!   messages.

pub(crate) mod history;
pub(crate) mod space;

use crate::definitions::Model;
use crate::engine::attachments::images::ImageAllowance;
use crate::engine::context::history::{History, pictured_from};
use crate::engine::context::space::{Space, SystemMessages};
use crate::engine::definitions::Definitions;
use crate::engine::ephemeral::request_parts::Offers;
use crate::engine::features::ModelContext;
use crate::engine::hooks::BlockReason;
use crate::engine::summary::plan::Cause;
use crate::engine::summary::{RequestContents, covered};
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::models::{CachedJson, ChatMessage, ChatRequest, JsonMode, Reasoning, ToolDefinition};
use crate::store::messages::SharedRow;
use crate::store::runs::Step;
use crate::store::state::State;
use crate::store::window::{Author, Entry, HistoryRange, Span, Window};

/// The number of system messages to keep: those of two sides, before and after a change.
const SYSTEMS: usize = 4;

/// The part of the messages that fits a request.
struct HistoryFit {
    /// Seq of the first one.
    cut: i64,
    /// Results before this one are shortened.
    short_below: i64,
    span: Span,
}

impl ModelContext<'_> {
    /// Builds the request for an open step, unless a hook blocks it. The cut and the shortening are stored
    /// when they move, which is rare.
    pub(super) async fn assemble(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
    ) -> Result<Result<ChatRequest, BlockReason>> {
        let prompt = definitions.prompt;
        let model = self.current_model(definitions, step)?;
        let rendered = prompt.render(&self.catalog, &|name| self.variables().prompt_env(definitions, name));
        let rendered = self.skills().with_skills(definitions, model, rendered)?;
        let rendered =
            self.hooks().after_system(definitions, step, self.variables().redact(rendered)).await?;
        let system = self.system(self.variables().redact(rendered));
        let parts = SystemMessages {
            memory: self.memories().recalled_message(definitions).await?,
            ..SystemMessages::of(system)
        };
        let (mut parts, mut space) = self.parts(definitions, model, parts)?;
        self.note_tools(definitions, model, &space)?;
        let mut fitted = self.fitted(definitions, step, &space)?;
        if self.summarizer().summary_before_step(definitions).await? {
            (parts, space) = self.parts(definitions, model, parts)?;
            fitted = self.fitted(definitions, step, &space)?;
        }
        let HistoryFit { cut, short_below, span } = fitted;
        let filtered = self.hooks().filtered(definitions, step, cut).await?;
        let messages = self.read(|state, sql| {
            let entries = state.window.as_ref().map_or(&[] as &[Entry], |window| window.since(cut));
            let entries = filtered.as_deref().unwrap_or(entries);
            let recent = if model.capabilities.supports_images { prompt.recent_image_threshold } else { 0 };
            let pictured = pictured_from(entries, span.below, recent);
            let author = Author::new(model, prompt);
            let history = History { entries, span, short_below, pictured, prompt, author };
            history.messages(parts, &mut ImageAllowance::default(), sql)
        })?;
        match self.hooks().prefiltered(definitions, step, messages).await? {
            Ok(messages) => self.request_of(definitions, model, messages).map(Ok),
            Err(blocked) => Ok(Err(blocked)),
        }
    }

    /// The parts of a request with the current summary, and the space that they leave.
    fn parts(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        parts: SystemMessages,
    ) -> Result<(SystemMessages, Space)> {
        let parts = SystemMessages { summary: self.summarizer().summary_part(definitions.prompt)?, ..parts };
        let space = self.space(definitions, model, &parts)?;
        Ok((parts, space))
    }

    /// Fits the messages into the space.
    fn fitted(&self, definitions: &Definitions<'_>, step: Step, space: &Space) -> Result<HistoryFit> {
        let budget = space.messages;
        let (fitted, jumped, shortened) = self.read_mut(|state, sql| {
            let (past, span, short_before) = next_span(definitions, state);
            let mut window = window_from(state, sql, past, &span, budget)?;
            let turn_from = window.opening(span.turn_from);
            let span = Span { turn_from, below: step.block, ..span };
            let cut = window.fit(past, &span, budget);
            let short_below = window.shorten(short_before, cut, &span, budget);
            let jumped = matches!(past, HistoryRange::From(from) if cut > from.max(1));
            let sent = RequestContents {
                cause: if jumped { Cause::Cut } else { Cause::Grown },
                window: &window,
                from: cut,
                span: &span,
                room: budget + space.summary,
                summary: space.summary,
            };
            self.summarizer().plan_summary(definitions, state, sql, &sent)?;
            if span.covered > 0 {
                window.cut(past.latest(turn_from));
            }
            state.window = Some(window);
            Ok((HistoryFit { cut, short_below, span }, jumped, short_below > short_before))
        })?;
        if jumped || shortened {
            self.transition(|state, sql| {
                if jumped {
                    state.meta.window_cut = fitted.cut;
                    state.meta.update(sql)?;
                    if let Some(window) = &mut state.window {
                        window.cut(fitted.cut);
                    }
                }
                let run = state.active_mut()?;
                run.turn_from = fitted.span.turn_from;
                run.short_below = fitted.short_below;
                run.update(sql)
            })?;
        }
        Ok(fitted)
    }

    /// The thread's history for another prompt, up to the running step. Read from the tables; nothing is
    /// stored.
    pub(super) fn history_for(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        system: CachedJson<ChatMessage>,
        room: &mut ImageAllowance,
    ) -> Result<Vec<CachedJson<ChatMessage>>> {
        let prompt = definitions.prompt;
        let parts = SystemMessages::of(system);
        let budget = self.space(definitions, model, &parts)?.messages;
        self.read(|state, sql| {
            let run = state.run.as_ref();
            let turn_from = run.map_or(i64::MAX, |run| run.turn_from);
            let below = run.filter(|run| run.block_open()).map_or(i64::MAX, |run| run.block);
            let past = match prompt.include_chat {
                true => HistoryRange::From(state.meta.window_cut.min(turn_from)),
                false => HistoryRange::Unanswered,
            };
            let window = Window::load(sql, past, turn_from, budget)?;
            let span = Span { turn_from, below, covered: 0, own: definitions.active.role() };
            let cut = window.fit(past, &span, budget);
            let short_below = window.shorten(0, cut, &span, budget);
            let entries = window.since(cut);
            let recent = if model.capabilities.supports_images { prompt.recent_image_threshold } else { 0 };
            let pictured = pictured_from(entries, span.below, recent);
            let author = Author::new(model, prompt);
            let history = History { entries, span, short_below, pictured, prompt, author };
            history.messages(parts, room, sql)
        })
    }

    /// The model and the parts of the next request besides messages. Runs no hooks and notes nothing.
    pub(crate) fn next_parts<'d>(
        &self,
        definitions: &Definitions<'d>,
    ) -> Result<(&'d Model, SystemMessages, Space)> {
        let model = self.current_model(definitions, Step::own(0))?;
        let rendered =
            definitions.prompt.render(&self.catalog, &|name| self.variables().prompt_env(definitions, name));
        let rendered = self.skills().as_with_skills(definitions, model, rendered)?;
        let system = CachedJson::from(ChatMessage::System(self.variables().redact(rendered)));
        let (parts, space) = self.parts(definitions, model, SystemMessages::of(system))?;
        Ok((model, parts, space))
    }

    /// A request with these messages.
    pub(crate) fn request_of(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        messages: Vec<CachedJson<ChatMessage>>,
    ) -> Result<ChatRequest> {
        let prompt = definitions.prompt;
        let tools = self.tools_for(definitions, model)?;
        let mut options = model.provider_options.clone();
        options.extend(prompt.provider_options.clone());
        Ok(ChatRequest {
            model: model.model.clone(),
            messages,
            tools,
            tool_choice: prompt.tool_choice,
            parallel_tool_calls: prompt.parallel_tool_calls,
            reasoning: Reasoning::of(prompt.reasoning.as_ref(), &model.capabilities),
            json: JsonMode::of(prompt.response_format.as_ref(), &model.capabilities),
            max_output_tokens: model.capabilities.max_output_tokens,
            api: model.api,
            output_limit_param: model.capabilities.output_limit_param,
            options,
            user: self.read(|state, _| Ok(Some(state.meta.thread_id.clone())))?,
        })
    }

    /// The system message; reuses that of an earlier request with the same text.
    fn system(&self, text: String) -> CachedJson<ChatMessage> {
        let message = ChatMessage::System(text);
        let mut sent = self.ephemeral.requests.system.borrow_mut();
        if let Some(sent) = sent.iter().find(|sent| ***sent == message) {
            return sent.clone();
        }
        let message = CachedJson::from(message);
        if sent.len() >= SYSTEMS {
            sent.remove(0);
        }
        sent.push(message.clone());
        message
    }

    /// The functions that a prompt offers. They are made strict once (spec §5.4), and again when its
    /// subagents have changed.
    pub(super) fn offers(&self, definitions: &Definitions<'_>) -> Result<CachedJson<Vec<ToolDefinition>>> {
        let prompt = definitions.prompt;
        let family = self.subagents().family(definitions)?;
        let mut known = self.ephemeral.requests.offers.borrow_mut();
        let place = known.iter().position(|offers| offers.prompt == prompt.name);
        if let Some(offers) =
            place.and_then(|place| known.get(place)).filter(|offers| offers.family == family)
        {
            return Ok(offers.tools.clone());
        }
        let tools = CachedJson::from(crate::engine::subagents::toolset::offers(
            &self.catalog,
            &prompt.tools,
            prompt.workers(),
            &family,
        ));
        if let Some(place) = place {
            known.swap_remove(place);
        }
        known.push(Offers { prompt: prompt.name.clone(), family, tools: tools.clone() });
        Ok(tools)
    }

    /// The functions for a model; none if it does not support tool calls.
    fn tools_for(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
    ) -> Result<CachedJson<Vec<ToolDefinition>>> {
        match model.capabilities.supports_tool_calls {
            true => self.offers(definitions),
            false => Ok(CachedJson::default()),
        }
    }

    /// Halves the window after the provider rejected a request as too long: the thread sends at most half of
    /// that request's message tokens from now on.
    pub(super) fn halve_window(&self) -> Result<()> {
        self.transition(|state, sql| {
            let sent = state.window.as_ref().map_or(0, Window::tokens);
            state.meta.window_tokens = Some((sent / 2).max(limits::LEAST_HISTORY_TOKENS));
            state.meta.update(sql)
        })
    }
}

/// The messages for the next request: before its turn, altogether, and the seq before which results are
/// shortened. A thread at rest has no turn, except for queued messages.
pub(crate) fn next_span(definitions: &Definitions<'_>, state: &State) -> (HistoryRange, Span, i64) {
    let prompt = definitions.prompt;
    let waiting = state.opens.unwrap_or(i64::MAX);
    let (turn_from, short_below) =
        state.active().map_or((waiting, 0), |run| (run.turn_from, run.short_below));
    let covered = covered(state, prompt);
    let past = match prompt.include_chat {
        true if covered > 0 => HistoryRange::From(state.meta.window_cut.max(covered + 1).min(turn_from)),
        true => HistoryRange::From(state.meta.window_cut.min(turn_from)),
        false => HistoryRange::Unanswered,
    };
    (past, Span { turn_from, below: i64::MAX, covered, own: definitions.active.role() }, short_below)
}

/// The window, if it holds the needed rows; otherwise it is loaded.
pub(crate) fn window_from(
    state: &mut State,
    sql: &dyn Sql,
    past: HistoryRange,
    span: &Span,
    budget: usize,
) -> Result<Window> {
    match state.window.take() {
        Some(window) if window.holds(past, span.turn_from, budget) => Ok(window),
        _ => Window::load(sql, past, span.turn_from, budget),
    }
}

/// All rows of the current turn, oldest first, because the result of the stop rules must not depend on what
/// is in memory. Missing rows are loaded, each bounded as in any request; the next request needs them as
/// well.
pub(super) fn turn_rows(state: &mut State, sql: &dyn Sql) -> Result<Vec<SharedRow>> {
    let turn_from = state.run.as_ref().map_or(0, |run| run.turn_from);
    let window = match state.window.take() {
        Some(window) if window.reaches(turn_from) => window,
        _ => Window::load(sql, HistoryRange::Unanswered, turn_from, 0)?,
    };
    let rows = window.since(turn_from).iter().map(|entry| entry.row.clone()).collect();
    state.window = Some(window);
    Ok(rows)
}
