//! What a request to a model holds (spec §20): the prompt, the history that fits (`window`), the tools.
//!
//! * Here: the request. `space`: its parts, and how much of the model's window each takes. `history`: its messages.

pub(crate) mod history;
pub(crate) mod space;

use std::rc::Rc;

use crate::engine::attachments::shown::Room;
use crate::engine::context::history::{History, pictured_from};
use crate::engine::context::space::Parts;
use crate::engine::definitions::Definitions;
use crate::engine::ephemeral::offers::Offers;
use crate::engine::hooks::Blocked;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::models::{CachedJson, ChatMessage, ChatRequest, JsonMode, Reasoning, ToolDefinition};
use crate::spec::Model;
use crate::store::messages::Shared;
use crate::store::runs::Step;
use crate::store::state::State;
use crate::store::window::{Author, Entry, Window};

/// System messages that are kept: those of two sides, before and after a change.
const SYSTEMS: usize = 4;

/// What of the messages a request has.
struct Fitted {
    /// Seq of the first one.
    cut: i64,
    /// Results before this one are shortened.
    short_below: i64,
}

impl Thread {
    /// The request for an open step, unless a hook forbids it. The cut and the shortening are stored when they move, which is seldom.
    pub(crate) async fn assemble(
        self: &Rc<Self>,
        definitions: &Definitions<'_>,
        step: Step,
    ) -> Result<Result<ChatRequest, Blocked>> {
        let prompt = definitions.prompt;
        let model = self.current_model(definitions, step)?;
        let own = definitions.active.role();
        let rendered = prompt.render(&self.catalog, &|name| self.prompt_env(definitions, name));
        let rendered = self.with_skills(definitions, model, rendered)?;
        let rendered = self.after_system(definitions, step, self.redact(rendered)).await?;
        let parts = Parts::of(self.system(self.redact(rendered)));
        let space = self.space(definitions, model, &parts)?;
        self.note_tools(definitions, model, &space)?;
        let Fitted { cut, short_below } = self.fitted(definitions, step, space.messages)?;
        let filtered = self.filtered(definitions, step, cut).await?;
        let messages = self.read(|state, sql| {
            let run_turn = state.run.as_ref().map_or(0, |run| run.turn_from);
            let entries = state.window.as_ref().map_or(&[] as &[Entry], |window| window.since(cut));
            let entries = filtered.as_deref().unwrap_or(entries);
            let below = step.block;
            let recent = if model.capabilities.supports_images { prompt.recent_image_threshold } else { 0 };
            let pictured = pictured_from(entries, below, recent);
            let author = Author::new(model, prompt);
            let history =
                History { entries, turn_from: run_turn, below, short_below, pictured, own, prompt, author };
            history.messages(parts, &mut Room::default(), sql)
        })?;
        match self.prefiltered(definitions, step, messages).await? {
            Ok(messages) => self.request_of(definitions, model, messages).map(Ok),
            Err(blocked) => Ok(Err(blocked)),
        }
    }

    /// Sees to it that the messages fit.
    fn fitted(&self, definitions: &Definitions<'_>, step: Step, budget: usize) -> Result<Fitted> {
        let (prompt, own) = (definitions.prompt, definitions.active.role());
        let (cut, short_below, moved) = self.read_mut(|state, sql| {
            let run = state.active_mut()?;
            let (turn_from, short_before) = (run.turn_from, run.short_below);
            let from = if prompt.include_chat { state.meta.window_cut.min(turn_from) } else { turn_from };
            let window = match state.window.take() {
                Some(window) if window.reaches(from) => window,
                _ => Window::load(sql, from, turn_from, budget)?,
            };
            let cut = window.fit(from, turn_from, step.block, budget, own);
            let short_below = window.shorten(short_before, turn_from, step.block, budget);
            state.window = Some(window);
            let moved =
                (prompt.include_chat && cut > state.meta.window_cut.max(1)) || short_below > short_before;
            Ok((cut, short_below, moved))
        })?;
        if moved {
            self.transition(|state, sql| {
                if prompt.include_chat {
                    state.meta.window_cut = cut;
                    state.meta.update(sql)?;
                }
                if let Some(window) = &mut state.window {
                    window.cut(cut);
                }
                let run = state.active_mut()?;
                run.short_below = short_below;
                run.update(sql)
            })?;
        }
        Ok(Fitted { cut, short_below })
    }

    /// The thread's history as another prompt would see it, up to the step that runs; read anew, and nothing is stored.
    pub(crate) fn history_for(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
        system: CachedJson<ChatMessage>,
        room: &mut Room,
    ) -> Result<Vec<CachedJson<ChatMessage>>> {
        let (prompt, own) = (definitions.prompt, definitions.active.role());
        let parts = Parts::of(system);
        let budget = self.space(definitions, model, &parts)?.messages;
        self.read(|state, sql| {
            let run = state.run.as_ref();
            let turn_from = run.map_or(i64::MAX, |run| run.turn_from);
            let below = run.filter(|run| run.block_open()).map_or(i64::MAX, |run| run.block);
            let from = if prompt.include_chat { state.meta.window_cut.min(turn_from) } else { turn_from };
            let window = Window::load(sql, from, turn_from, budget)?;
            let cut = window.fit(from, turn_from, below, budget, own);
            let short_below = window.shorten(0, turn_from, below, budget);
            let entries = window.since(cut);
            let recent = if model.capabilities.supports_images { prompt.recent_image_threshold } else { 0 };
            let pictured = pictured_from(entries, below, recent);
            let author = Author::new(model, prompt);
            let history = History { entries, turn_from, below, short_below, pictured, own, prompt, author };
            history.messages(parts, room, sql)
        })
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
            output_limit_param: model.capabilities.output_limit_param,
            options,
            user: self.read(|state, _| Ok(Some(state.meta.thread_id.clone())))?,
        })
    }

    /// The system message; that of an earlier request while it says the same.
    fn system(&self, text: String) -> CachedJson<ChatMessage> {
        let message = ChatMessage::System(text);
        let mut sent = self.ephemeral.system.borrow_mut();
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

    /// The functions that a prompt offers, made strict once (spec §5.4), and again when what it offers of subagents has
    /// changed.
    pub(crate) fn offers(&self, definitions: &Definitions<'_>) -> Result<CachedJson<Vec<ToolDefinition>>> {
        let prompt = definitions.prompt;
        let family = self.family(definitions)?;
        let mut known = self.ephemeral.offers.borrow_mut();
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

    /// What a model is offered; nothing where it calls no tools.
    pub(crate) fn tools_for(
        &self,
        definitions: &Definitions<'_>,
        model: &Model,
    ) -> Result<CachedJson<Vec<ToolDefinition>>> {
        match model.capabilities.supports_tool_calls {
            true => self.offers(definitions),
            false => Ok(CachedJson::default()),
        }
    }

    /// The provider found the request too long: from now on this thread sends half as much of its messages as this one had.
    pub(crate) fn halve_window(&self) -> Result<()> {
        self.transition(|state, sql| {
            let sent = state.window.as_ref().map_or(0, Window::tokens);
            state.meta.window_tokens = Some((sent / 2).max(limits::LEAST_HISTORY_TOKENS));
            state.meta.update(sql)
        })
    }
}

/// The rows of the current turn, oldest first, all of them: what the stop rules say must not depend on what is in memory.
/// A turn that is not is read, each row bounded as in any request; the next request needs the same.
pub(crate) fn turn_rows(state: &mut State, sql: &dyn Sql) -> Result<Vec<Shared>> {
    let turn_from = state.run.as_ref().map_or(0, |run| run.turn_from);
    let window = match state.window.take() {
        Some(window) if window.reaches(turn_from) => window,
        _ => Window::load(sql, turn_from, turn_from, 0)?,
    };
    let rows = window.since(turn_from).iter().map(|entry| entry.row.clone()).collect();
    state.window = Some(window);
    Ok(rows)
}
