//! What a request to a model holds (spec §20): the prompt, the history that fits (`window`), the tools.

use std::rc::Rc;

use crate::engine::attachments::shown::{Pictured, Room};
use crate::engine::call::not_run;
use crate::engine::definitions::Definitions;
use crate::engine::ephemeral::offers::Offers;
use crate::engine::hooks::Blocked;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::models::{CachedJson, ChatMessage, ChatRequest, JsonMode, Part, Reasoning, ToolDefinition, fit};
use crate::spec::message::{Role, ToolCall};
use crate::spec::{Model, Prompt};
use crate::store::messages::Shared;
use crate::store::runs::Step;
use crate::store::state::State;
use crate::store::window::{Author, Entry, Form, SHORT_BYTES, View, Window};

/// An unstored user message after an empty reply.
const EMPTY_REPLY: &str = "Your last reply was empty. Answer in text or call a tool.";

/// System messages that are kept: those of two sides, before and after a change.
const SYSTEMS: usize = 4;

/// Bytes of history that a request to this model may hold.
fn budget(model: &Model, at_most: Option<usize>) -> usize {
    let bytes = model.capabilities.max_context_tokens.map_or(limits::WINDOW_BYTES, |tokens| {
        (tokens as f64 * limits::BYTES_PER_TOKEN * limits::WINDOW_SHARE) as usize
    });
    bytes.min(at_most.unwrap_or(usize::MAX))
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
        let (cut, short_below, moved) = self.read_mut(|state, sql| {
            let budget = budget(model, state.meta.window_bytes);
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
        let rendered = prompt.render(&self.catalog, &|name| self.prompt_env(definitions, name));
        let rendered = self.with_skills(definitions, model, rendered)?;
        let rendered = self.after_system(definitions, step, self.redact(rendered)).await?;
        let system = self.system(self.redact(rendered));
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
            history.messages(system, &mut Room::default(), sql)
        })?;
        match self.prefiltered(definitions, step, messages).await? {
            Ok(messages) => self.request_of(definitions, model, messages).map(Ok),
            Err(blocked) => Ok(Err(blocked)),
        }
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
        self.read(|state, sql| {
            let budget = budget(model, state.meta.window_bytes);
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
            history.messages(system, room, sql)
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
        let tools = if model.capabilities.supports_tool_calls {
            self.offers(definitions)?
        } else {
            CachedJson::default()
        };
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

    /// The provider found the request too long: from now on this thread sends half as much history as this one had.
    pub(crate) fn halve_window(&self) -> Result<()> {
        self.transition(|state, sql| {
            let sent = state.window.as_ref().map_or(limits::WINDOW_BYTES, Window::bytes);
            state.meta.window_bytes = Some((sent / 2).max(SHORT_BYTES));
            state.meta.update(sql)
        })
    }
}

/// The history of one request.
struct History<'a> {
    /// From the cut on.
    entries: &'a [Entry],
    turn_from: i64,
    below: i64,
    short_below: i64,
    /// Images from this seq on may be shown.
    pictured: i64,
    /// The role of the side that is asked.
    own: Role,
    prompt: &'a Prompt,
    /// Who asks: what a provider wants back goes to its author only.
    author: Author,
}

/// From which message on images may be shown: the `recent` newest messages, with the results of tools among them. A
/// step's calls and results are no messages here, so that a long turn does not lose sight of what it is about.
fn pictured_from(entries: &[Entry], below: i64, recent: u32) -> i64 {
    let newest = entries.iter().rev().skip_while(|entry| entry.row.seq >= below);
    let said = newest.filter(|entry| entry.row.role != Role::Tool && entry.row.calls.is_empty());
    match recent.checked_sub(1) {
        None => i64::MAX,
        Some(last) => said.map(|entry| entry.row.seq).nth(last as usize).unwrap_or(0),
    }
}

impl History<'_> {
    /// The messages of the request. Calls and results always pair, whatever was stored, edited or deleted, no id is
    /// there twice, and the last message is somebody else's.
    fn messages(
        &self,
        system: CachedJson<ChatMessage>,
        room: &mut Room,
        sql: &dyn Sql,
    ) -> Result<Vec<CachedJson<ChatMessage>>> {
        let mut out = Vec::with_capacity(self.entries.len() + 2);
        let mut pictured = Pictured::default();
        out.push(system);
        let mut empty_last = false;
        for entry in self.entries.iter().take_while(|entry| entry.row.seq < self.below) {
            empty_last = entry.row.role == self.own && entry.row.is_empty_reply();
            match entry.row.role {
                Role::System => out.push(entry.message(Form::Whole, View::Other)),
                // Results are placed after the calls that they answer; those that answer none are left out.
                Role::Tool => {}
                role if role == self.own => self.reply(entry, &mut out, &mut pictured),
                // What somebody else said: the person, or the other side, whose calls are its own affair.
                Role::User | Role::Assistant if entry.row.says_nothing() => {}
                Role::User | Role::Assistant => {
                    self.note(&mut pictured, &out, &entry.row);
                    out.push(entry.message(Form::Whole, View::Other));
                }
            }
        }
        pictured.show(&mut out, room, sql)?;
        if empty_last {
            out.push(ChatMessage::User(vec![Part::Text(EMPTY_REPLY.into())]).into());
        }
        fit(&mut out);
        Ok(out)
    }

    /// Notes the message that is next, if it may show images.
    fn note(&self, pictured: &mut Pictured, out: &[CachedJson<ChatMessage>], row: &Shared) {
        if row.seq >= self.pictured {
            pictured.note(out, row);
        }
    }

    /// A reply and the results of its calls.
    fn reply(&self, entry: &Entry, out: &mut Vec<CachedJson<ChatMessage>>, pictured: &mut Pictured) {
        let row = &entry.row;
        let calls = match row.seq >= self.turn_from || self.prompt.include_past_tools {
            true => &row.calls[..],
            false => &[],
        };
        if calls.iter().all(ToolCall::is_dropped) && row.says_nothing() {
            return;
        }
        let whole = calls.len() == row.calls.len();
        let form = match whole {
            true if row.seq >= self.replay_from() && entry.replays_to(&self.author) => Form::WithPayload,
            true => Form::Whole,
            false => Form::WithoutCalls,
        };
        out.push(entry.message(form, View::Own));
        for call in calls.iter().filter(|call| !call.is_dropped()) {
            let Some((row, result)) = self.result(row.seq, &call.id) else {
                out.push(not_run(call).into());
                continue;
            };
            self.note(pictured, out, row);
            out.push(result);
        }
    }

    /// From which seq on replies carry what their provider wants back: in the current turn, and in an exchange of calls
    /// directly before it, which providers take for a part of it; everywhere when the prompt says `include`.
    fn replay_from(&self) -> i64 {
        if self.prompt.reasoning.as_ref().is_some_and(|reasoning| reasoning.include) {
            return 0;
        }
        let past = self.entries.partition_point(|entry| entry.row.seq < self.turn_from);
        let past = self.entries.get(..past).unwrap_or_default().iter().rev();
        let exchange = past.take_while(|entry| entry.row.role == Role::Tool || !entry.row.calls.is_empty());
        exchange.last().map_or(self.turn_from, |entry| entry.row.seq)
    }

    /// The stored result of a call of the reply at `seq`: it is in the reply's block.
    fn result(&self, seq: i64, call_id: &str) -> Option<(&Shared, CachedJson<ChatMessage>)> {
        let start = self.entries.partition_point(|entry| entry.row.seq <= seq);
        let block = self.entries.get(start..).unwrap_or_default();
        let answers = |entry: &&Entry| {
            entry.row.role == Role::Tool && entry.row.tool_call_id.as_deref() == Some(call_id)
        };
        let in_block = |entry: &&Entry| entry.row.seq < seq + limits::BLOCK;
        let entry = block.iter().take_while(in_block).find(answers);
        // A hook may have moved it.
        let moved = || self.entries.iter().filter(|e| e.row.seq >= seq && in_block(e)).find(answers);
        let entry = entry.or_else(moved)?;
        let text = entry.row.content.as_deref()?;
        let long = entry.row.seq < self.short_below && text.len() > SHORT_BYTES;
        Some((&entry.row, entry.message(if long { Form::Shortened } else { Form::Whole }, View::Own)))
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
