//! What a request to a model holds (spec §20): the prompt, the history that fits, the tools. History is kept in
//! memory while the object lives and read newest first otherwise; no read loads a whole history.
//!
//! The cut moves in jumps, so that the beginning of the request stays the same for many steps and a provider's
//! cache of it holds. The current turn is always in; when it alone is too long its older tool results are shortened.

use std::ops::ControlFlow;
use std::rc::Rc;

use super::Thread;
use super::host::{Host, Param, Sql};
use super::rows::{self, Inbound, Row, Shared, columns};
use super::state::State;
use super::step::{Definitions, Step};
use crate::error::Result;
use crate::limits;
use crate::models::{ChatMessage, ChatRequest, Part, ToolOffer};
use crate::spec::message::Role;
use crate::spec::{Model, Prompt};

/// The model is told this instead of a result that does not exist.
const NOT_RUN: &str = "Not run: the run was stopped.";
/// An unstored user message, where history would end with an assistant's.
const CONTINUE: &str = "Continue.";
/// The same after an empty reply.
const EMPTY_REPLY: &str = "Your last reply was empty. Answer in text or call a tool.";
/// What is left of a tool result that is shortened.
const SHORT_BYTES: usize = 400;

/// The newest part of the history, in memory.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Every top-level row with this seq or a higher one is in `rows`.
    from: i64,
    rows: Vec<Shared>,
}

/// The functions that a prompt offers, prepared once.
#[derive(Debug)]
pub(crate) struct Offers {
    prompt: String,
    tools: Vec<ToolOffer>,
}

impl Window {
    /// Takes in a row that was just stored.
    pub(crate) fn push(&mut self, row: Shared) {
        if row.depth == 0 && !row.is_status() {
            // Rows of an open block are stored after messages that already took later seqs.
            let at = self.rows.partition_point(|other| other.seq < row.seq);
            self.rows.insert(at, bounded(row, limits::RESULT_IN_CONTEXT_BYTES));
        }
    }

    /// A row of it.
    pub(crate) fn row(&self, seq: i64) -> Option<&Shared> {
        let at = self.rows.partition_point(|row| row.seq < seq);
        self.rows.get(at).filter(|row| row.seq == seq)
    }

    /// Bytes of all of it.
    fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.bytes()).sum()
    }

    /// Whether a reply in it has a call of that id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.rows.iter().any(|row| row.calls.iter().any(|call| call.id == id))
    }

    /// The newest message that a person reads.
    pub(crate) fn newest_said(&self) -> Option<&Shared> {
        self.rows.iter().rev().find(|row| {
            matches!(row.role, Role::User | Role::Assistant)
                && !row.silent
                && row.content.as_deref().is_some_and(|text| !text.is_empty())
        })
    }

    /// Reads it: newest first, back to `from`; rows before `turn_from` only as far as `budget` bytes and the limit
    /// on their number reach.
    fn load<S: Sql>(sql: &S, from: i64, turn_from: i64, budget: usize) -> Result<Window> {
        let mut rows: Vec<Shared> = Vec::new();
        let mut bytes = 0;
        let mut reached = from;
        sql.each(
            concat!("SELECT ", columns!(), " FROM messages WHERE seq >= ? AND depth = 0 ORDER BY seq DESC"),
            &[Param::Int(from)],
            &mut |cells| {
                let row = bounded(Shared::new(Row::read(cells)?), limits::RESULT_IN_CONTEXT_BYTES);
                if row.is_status() {
                    return Ok(ControlFlow::Continue(()));
                }
                bytes += row.bytes();
                if row.seq < turn_from && (bytes > budget || rows.len() >= limits::WINDOW_MESSAGES) {
                    reached = row.seq + 1;
                    return Ok(ControlFlow::Break(()));
                }
                rows.push(row);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        rows.reverse();
        Ok(Window { from: reached, rows })
    }

    /// Forgets everything before `seq`.
    fn cut(&mut self, seq: i64) {
        self.rows.retain(|row| row.seq >= seq);
        self.from = self.from.max(seq);
    }

    /// Where the history must begin so that it fits: the current answer if it does, else a jump that leaves room.
    fn fit(&self, from: i64, turn_from: i64, below: i64, budget: usize) -> i64 {
        let past: Vec<&Shared> =
            self.rows.iter().filter(|row| row.seq >= from && row.seq < turn_from).collect();
        let turn: Vec<&Shared> =
            self.rows.iter().filter(|row| row.seq >= turn_from && row.seq < below).collect();
        let bytes = |rows: &[&Shared]| rows.iter().map(|row| row.bytes()).sum::<usize>();
        let turn_bytes = bytes(&turn);
        let fits = bytes(&past) + turn_bytes <= budget && past.len() + turn.len() <= limits::WINDOW_MESSAGES;
        if fits && self.from <= from.max(1) {
            return from;
        }
        let keep_bytes = share(budget).saturating_sub(turn_bytes);
        let keep_rows = share(limits::WINDOW_MESSAGES).saturating_sub(turn.len());
        let mut kept = 0;
        let mut cut = turn_from;
        for (number, row) in past.iter().rev().enumerate() {
            kept += row.bytes();
            if kept > keep_bytes || number >= keep_rows {
                break;
            }
            // A cut before a message from outside separates no call from its result.
            if row.inbound != Inbound::No {
                cut = row.seq;
            }
        }
        cut
    }

    /// Below which seq the results of a turn that is too long by itself must be shortened.
    fn shorten(&self, run_short_below: i64, turn_from: i64, below: i64, budget: usize) -> i64 {
        let size = |row: &Row, short_below: i64| match row.role {
            Role::Tool if row.seq < short_below => row.bytes().min(SHORT_BYTES),
            _ => row.bytes(),
        };
        let turn: Vec<&Shared> =
            self.rows.iter().filter(|row| row.seq >= turn_from && row.seq < below).collect();
        let mut bytes: usize = turn.iter().map(|row| size(row, run_short_below)).sum();
        if bytes <= budget {
            return run_short_below;
        }
        let newest_reply = turn.iter().rev().find(|row| !row.calls.is_empty()).map_or(below, |row| row.seq);
        let mut short_below = run_short_below;
        for row in turn.iter().filter(|row| row.role == Role::Tool && row.seq >= run_short_below) {
            if bytes <= share(budget) || row.seq > newest_reply {
                break;
            }
            bytes -= row.bytes() - row.bytes().min(SHORT_BYTES);
            short_below = row.seq + 1;
        }
        short_below
    }
}

/// What remains after a jump.
fn share(budget: usize) -> usize {
    (budget as f64 * limits::WINDOW_KEEP) as usize
}

/// Bytes of history that a request to this model may hold.
fn budget(model: &Model, at_most: Option<usize>) -> usize {
    let bytes = model.capabilities.max_context_tokens.map_or(limits::WINDOW_BYTES, |tokens| {
        (tokens as f64 * limits::BYTES_PER_TOKEN * limits::WINDOW_SHARE) as usize
    });
    bytes.min(at_most.unwrap_or(usize::MAX))
}

/// A tool result with at most `max` bytes of text, and a note where it was cut. Other rows as they are.
fn bounded(row: Shared, max: usize) -> Shared {
    match &row.content {
        Some(text) if row.role == Role::Tool && text.len() > max => {
            Shared::new(Row { content: Some(cut_text(text, max)), ..(*row).clone() })
        }
        _ => row,
    }
}

fn cut_text(text: &str, max: usize) -> String {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}\n[cut here: {} of {} bytes are shown]", end, text.len())
}

impl<H: Host> Thread<H> {
    /// The request for an open step. The cut and the shortening are stored when they move, which is seldom.
    pub(super) fn assemble(&self, definitions: &Definitions<'_>, step: Step) -> Result<ChatRequest> {
        let prompt = definitions.prompt;
        let model = self.current_model(definitions)?;
        let (cut, short_below, moved) = self.read_mut(|state, sql| {
            let budget = budget(model, state.meta.window_bytes);
            let run = state.active_mut()?;
            let (turn_from, short_before) = (run.turn_from, run.short_below);
            let from = if prompt.include_chat { state.meta.window_cut.min(turn_from) } else { turn_from };
            let window = match state.window.take() {
                Some(window) if window.from <= from.max(1) => window,
                _ => Window::load(sql, from, turn_from, budget)?,
            };
            let cut = window.fit(from, turn_from, step.block, budget);
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
        let system = prompt.render(&self.catalog, &|name| self.prompt_env(definitions, name));
        let offers = if model.capabilities.supports_tool_calls { Some(self.offers(prompt)) } else { None };
        let messages = self.read(|state, _| {
            let run_turn = state.run.as_ref().map_or(0, |run| run.turn_from);
            let rows = state.window.as_ref().map_or(&[] as &[Shared], |window| &window.rows);
            let history = History { rows, cut, turn_from: run_turn, below: step.block, short_below, prompt };
            Ok(history.messages(system))
        })?;
        let mut options = model.provider_options.clone();
        if let Some(effort) = prompt.reasoning.as_ref().and_then(|reasoning| reasoning.effort) {
            options.insert("reasoning_effort".into(), serde_json::json!(effort));
        }
        options.extend(prompt.provider_options.clone());
        Ok(ChatRequest {
            model: model.model.clone(),
            messages,
            tools: offers.map(|offers| offers.tools.clone()).unwrap_or_default(),
            tool_choice: prompt.tool_choice,
            parallel_tool_calls: prompt.parallel_tool_calls,
            options,
            user: self.read(|state, _| Ok(Some(state.meta.thread_id.clone())))?,
        })
    }

    /// The functions that a prompt offers, made strict once (spec §5.4).
    fn offers(&self, prompt: &Prompt) -> Rc<Offers> {
        if let Some(offers) = self.live.offers.borrow().as_ref().filter(|offers| offers.prompt == prompt.name)
        {
            return offers.clone();
        }
        let tools = prompt.tools.iter().filter_map(|entry| self.catalog.tools.get(&entry.name));
        let offer = |tool: &crate::spec::Tool| {
            let (parameters, strict) = tool.parameters();
            ToolOffer { name: tool.name.clone(), description: tool.description.clone(), parameters, strict }
        };
        let offers = Rc::new(Offers { prompt: prompt.name.clone(), tools: tools.map(offer).collect() });
        *self.live.offers.borrow_mut() = Some(offers.clone());
        offers
    }

    /// The provider found the request too long: from now on this thread sends half as much history as this one had.
    pub(super) fn halve_window(&self) -> Result<()> {
        self.transition(|state, sql| {
            let sent = state.window.as_ref().map_or(limits::WINDOW_BYTES, Window::bytes);
            state.meta.window_bytes = Some((sent / 2).max(SHORT_BYTES));
            state.meta.update(sql)
        })
    }
}

/// The rows of one request.
struct History<'a> {
    rows: &'a [Shared],
    cut: i64,
    turn_from: i64,
    below: i64,
    short_below: i64,
    prompt: &'a Prompt,
}

impl History<'_> {
    /// The messages of the request. Calls and results always pair, whatever was stored, edited or deleted, and the
    /// last message is never an assistant's.
    fn messages(&self, system: String) -> Vec<ChatMessage> {
        let mut out = Vec::with_capacity(self.rows.len() + 2);
        out.push(ChatMessage::System(system));
        let sent = |row: &&Shared| row.seq >= self.cut && row.seq < self.below;
        let mut empty_last = false;
        for row in self.rows.iter().filter(sent) {
            let text = || row.content.clone().unwrap_or_default();
            empty_last = row.is_empty_reply();
            match row.role {
                Role::System => out.push(ChatMessage::System(text())),
                Role::User => out.push(ChatMessage::User(vec![Part::Text(text())])),
                // Results are placed after the calls that they answer; those that answer none are left out.
                Role::Tool => {}
                Role::Assistant => self.assistant(row, &mut out),
            }
        }
        match out.last() {
            _ if empty_last => out.push(ChatMessage::User(vec![Part::Text(EMPTY_REPLY.into())])),
            Some(ChatMessage::Assistant { .. }) | None => {
                out.push(ChatMessage::User(vec![Part::Text(CONTINUE.into())]));
            }
            _ if out.len() == 1 => out.push(ChatMessage::User(vec![Part::Text(CONTINUE.into())])),
            _ => {}
        }
        out
    }

    fn assistant(&self, row: &Row, out: &mut Vec<ChatMessage>) {
        let content = row.content.clone().unwrap_or_default();
        let with_tools = row.seq >= self.turn_from || self.prompt.include_past_tools;
        let tool_calls = if with_tools { row.calls.clone() } else { Vec::new() };
        if tool_calls.is_empty() && content.trim().is_empty() {
            return;
        }
        out.push(ChatMessage::Assistant { content, tool_calls: tool_calls.clone() });
        for call in tool_calls {
            let result = self
                .results_of(row)
                .find(|result| result.tool_call_id.as_deref() == Some(call.id.as_str()))
                .and_then(|result| result.content.as_deref().map(|text| (result.seq, text)));
            let content = match result {
                None => NOT_RUN.to_owned(),
                Some((seq, text)) if seq < self.short_below && text.len() > SHORT_BYTES => {
                    cut_text(text, SHORT_BYTES)
                }
                Some((_, text)) => text.to_owned(),
            };
            out.push(ChatMessage::Tool { call_id: call.id, name: call.name, content });
        }
    }

    /// The stored results of a reply's block.
    fn results_of(&self, reply: &Row) -> impl Iterator<Item = &Row> {
        let (after, below) = (reply.seq, reply.seq + limits::BLOCK);
        let start = self.rows.partition_point(move |row| row.seq <= after);
        let rows = self.rows.get(start..).unwrap_or_default();
        rows.iter()
            .take_while(move |row| row.seq < below)
            .filter(|row| row.role == Role::Tool)
            .map(|row| row.as_ref())
    }
}

/// The newest rows of the current turn, oldest first: enough to see the same error repeat.
pub(super) fn recent_rows<S: Sql>(state: &State, sql: &S) -> Result<Vec<Shared>> {
    let turn_from = state.run.as_ref().map_or(0, |run| run.turn_from);
    if let Some(window) = state.window.as_ref().filter(|window| window.from <= turn_from.max(1)) {
        let start = window.rows.partition_point(|row| row.seq < turn_from);
        return Ok(window.rows.get(start..).unwrap_or_default().to_vec());
    }
    let newest = rows::read(
        sql,
        concat!(
            "SELECT ",
            columns!(),
            " FROM messages WHERE seq >= ? AND depth = 0 ORDER BY seq DESC LIMIT 40"
        ),
        &[Param::Int(turn_from)],
    )?;
    Ok(newest.into_iter().rev().map(Shared::new).collect())
}
