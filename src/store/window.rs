//! The newest part of the history, in memory while the object lives. It is read newest first, so that no read
//! loads a whole history, and it is cut to fit the budget of a request (spec §20).
//!
//! The cut moves in jumps. The beginning of the request then stays the same for many steps, and a provider's
//! cache of it remains valid. The current turn is always included; if it alone is too long, its older tool
//! results are shortened.

use std::cell::{OnceCell, RefCell};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::definitions::message::{Role, ToolCall, ToolStatus};
use crate::definitions::{Model, Prompt, Provider};
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::models::reasoning::FIELD;
use crate::models::{CachedJson, ChatMessage, Part, PositionedBlock};
use crate::store::attachment::AttachmentRef;
use crate::store::messages::{Inbound, Row, SharedRow, page};
use crate::store::side::Side;
use crate::text::first_bytes;
use crate::tokens::tokens;

/// Bytes that a shortened tool result keeps.
pub(crate) const SHORT_BYTES: usize = 400;
/// Text for an error without one: some servers refuse an empty result.
pub(crate) const NO_REASON: &str = "The tool failed and gave no reason.";
/// Greater than every seq; the platform carries 53 bits.
const BEYOND: i64 = i64::MAX >> 11;

/// The newest part of the history, in memory.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// `entries` has every top-level row from this seq on, except status rows.
    from: i64,
    entries: Vec<Entry>,
}

/// A row of the window, and the messages that the last requests made of it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) row: SharedRow,
    /// As the author's side receives it, and as the other side does.
    own: CachedForm,
    other: CachedForm,
    replay: OnceCell<Option<Replay>>,
    /// Estimated tokens in a request.
    tokens: usize,
    /// Part of `tokens` for provider fields that are returned with its calls.
    kept: usize,
}

type CachedForm = RefCell<Option<(Form, CachedJson<ChatMessage>)>>;

/// The side that a request is for, seen from the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// The side that wrote the message: the message is the `assistant`'s.
    Own,
    /// The other side: the message is the `user`'s, and its calls are hidden.
    Other,
}

/// The messages from before the turn that a request may include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryRange {
    /// All from this seq on that fit.
    From(i64),
    /// Only the unanswered ones that were stored directly before the message that opens the turn.
    Unanswered,
}

impl HistoryRange {
    /// The latest seq at which the past begins.
    pub(crate) const fn latest(self, turn_from: i64) -> i64 {
        match self {
            HistoryRange::From(from) => from,
            HistoryRange::Unanswered => turn_from,
        }
    }
}

/// The messages that a request may include, apart from the cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Seq of the first message of the turn.
    pub(crate) turn_from: i64,
    /// Messages from this seq on are excluded.
    pub(crate) below: i64,
    /// A summary replaces the messages up to this seq.
    pub(crate) covered: i64,
    /// The role of the side whose model is called.
    pub(crate) own: Role,
}

impl Span {
    /// The entries that are sent. The messages that opened the turn are, even if a summary covers them.
    pub(crate) fn sent(self, entries: &[Entry]) -> impl Iterator<Item = &Entry> {
        let mut opening = true;
        entries.iter().take_while(move |entry| entry.row.seq < self.below).filter(move |entry| {
            let row = &entry.row;
            let in_turn = row.seq >= self.turn_from;
            opening &= !(in_turn && (row.role == Role::Tool || row.role == self.own));
            row.seq > self.covered || (in_turn && opening)
        })
    }
}

/// The form in which a row is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Unchanged.
    Whole,
    /// A reply with its provider's payload.
    WithPayload,
    /// A reply of an earlier turn, in a request that omits past calls (spec §20).
    WithoutCalls,
    /// A tool result that is shortened, in a turn that is too long.
    Shortened,
}

impl Entry {
    fn new(row: SharedRow) -> Entry {
        Entry::of(bounded(row))
    }

    /// Tokens that shortening a tool result saves; the notes on its files remain.
    fn saved(&self) -> usize {
        let rest =
            self.row.content.as_deref().and_then(|text| text.get(first_bytes(text, SHORT_BYTES).len()..));
        rest.map_or(0, tokens).min(self.tokens)
    }

    pub(crate) const fn tokens(&self) -> usize {
        self.tokens
    }

    /// Tokens in a request that shortens results before `short_below`.
    fn sent_tokens(&self, short_below: i64) -> usize {
        let is_short = self.row.role == Role::Tool && self.row.seq < short_below;
        self.tokens - if is_short { self.saved() } else { 0 }
    }

    /// Whether it has a provider payload that this prompt on this model may receive.
    pub(crate) fn replays_to(&self, author: &Author) -> bool {
        self.replay().is_some_and(|replay| replay.is_by(author))
    }

    /// Whether its provider requires the payload in later turns too.
    pub(crate) const fn replays_in_every_turn(&self) -> bool {
        self.kept > 0
    }

    fn replay(&self) -> Option<&Replay> {
        self.replay.get_or_init(|| Replay::read(&self.row)).as_ref()
    }

    /// An entry for a single request, from a row whose content is bounded already.
    pub(crate) fn of(row: SharedRow) -> Entry {
        let replay = OnceCell::new();
        let kept = if Replay::may_have_fields(&row) {
            replay.get_or_init(|| Replay::read(&row)).as_ref().map_or(0, Replay::tokens)
        } else {
            0
        };
        let tokens = row.tokens() + kept;
        Entry { row, own: RefCell::default(), other: RefCell::default(), replay, tokens, kept }
    }

    /// The message for a request; made again only when the form changes.
    pub(crate) fn message(&self, form: Form, view: View) -> CachedJson<ChatMessage> {
        let sent = match view {
            View::Own => &self.own,
            View::Other => &self.other,
        };
        if let Some((_, message)) = sent.borrow().as_ref().filter(|(made, _)| *made == form) {
            return message.clone();
        }
        let mut made = message(&self.row, form, view);
        if let (Form::WithPayload, ChatMessage::Assistant { tool_calls, payload, .. }) = (form, &mut made) {
            *tool_calls = self.row.calls.iter().filter(|call| !call.is_dropped()).cloned().collect();
            *payload = self.replay().map(|replay| replay.placed(&self.row)).unwrap_or_default();
        }
        // The tokens of the row are those of the message only if the message contains the whole row and
        // nothing else.
        let whole = matches!(form, Form::Whole | Form::WithPayload)
            && self.row.attachments.is_empty()
            && (view == View::Own || self.row.calls.is_empty());
        let tokens = if form == Form::WithPayload { self.tokens } else { self.tokens - self.kept };
        let message = if whole { CachedJson::with_tokens(made, tokens) } else { CachedJson::from(made) };
        *sent.borrow_mut() = Some((form, message.clone()));
        message
    }
}

fn message(row: &Row, form: Form, view: View) -> ChatMessage {
    let content = row.content.clone().unwrap_or_default();
    match (row.role, view) {
        (Role::System, _) => ChatMessage::System(content),
        (Role::User | Role::Assistant, View::Other) => {
            ChatMessage::User(vec![Part::Text(with_notes(content, row))])
        }
        (Role::User | Role::Assistant, View::Own) => {
            let kept = |call: &&ToolCall| form != Form::WithoutCalls && !call.is_dropped();
            let plain = |call: &ToolCall| ToolCall { extra_content: None, ..call.clone() };
            ChatMessage::Assistant {
                content: with_notes(content, row),
                tool_calls: row.calls.iter().filter(kept).map(plain).collect(),
                payload: Vec::new(),
            }
        }
        (Role::Tool, _) => {
            let status = row.status.unwrap_or(ToolStatus::Success);
            let content = match form {
                Form::Shortened => cut_text(&content, SHORT_BYTES),
                _ if status == ToolStatus::Error && content.trim().is_empty() => NO_REASON.to_owned(),
                _ => content,
            };
            ChatMessage::Tool {
                call_id: row.tool_call_id.clone().unwrap_or_default(),
                name: row.name.clone().unwrap_or_default(),
                content: with_notes(content, row),
                status,
                images: Vec::new(),
            }
        }
    }
}

/// The text of a message, with a line for each of its attachments.
pub(crate) fn with_notes(content: String, row: &Row) -> String {
    let notes = row.attachments.iter().map(AttachmentRef::note);
    let lines = Some(content).filter(|text| !text.is_empty()).into_iter().chain(notes);
    lines.collect::<Vec<_>>().join("\n")
}

impl Window {
    /// Adds a row that was just stored.
    pub(super) fn push(&mut self, row: SharedRow) {
        if row.depth == 0 && !row.is_status() {
            // Rows of an open block are stored after messages that already took later seqs.
            let at = self.first_from(row.seq);
            self.entries.insert(at, Entry::new(row));
        }
    }

    /// Replaces a row that has changed, if the window holds it.
    pub(crate) fn replace(&mut self, row: &SharedRow) {
        let at = self.first_from(row.seq);
        if let Some(entry) = self.entries.get_mut(at).filter(|entry| entry.row.seq == row.seq) {
            *entry = Entry::new(row.clone());
        }
    }

    pub(crate) fn row(&self, seq: i64) -> Option<&SharedRow> {
        let entry = self.entries.get(self.first_from(seq))?;
        (entry.row.seq == seq).then_some(&entry.row)
    }

    /// The entries from that seq on, oldest first.
    pub(crate) fn since(&self, seq: i64) -> &[Entry] {
        self.entries.get(self.first_from(seq)..).unwrap_or_default()
    }

    /// Whether the window holds everything from that seq on.
    pub(crate) fn reaches(&self, seq: i64) -> bool {
        self.from <= seq.max(1)
    }

    fn first_from(&self, seq: i64) -> usize {
        self.entries.partition_point(|entry| entry.row.seq < seq)
    }

    fn rows(&self) -> impl DoubleEndedIterator<Item = &SharedRow> {
        self.entries.iter().map(|entry| &entry.row)
    }

    /// The entries from one seq up to another, exclusive.
    fn between(&self, from: i64, below: i64) -> Vec<&Entry> {
        self.since(from).iter().take_while(|entry| entry.row.seq < below).collect()
    }

    /// Estimated tokens of all entries.
    pub(crate) fn tokens(&self) -> usize {
        self.entries.iter().map(|entry| entry.tokens).sum()
    }

    /// Counts the entries before the turn from one seq on and their tokens, and the same for the turn.
    /// Results before `short_below` are shortened.
    pub(crate) fn weigh(&self, from: i64, span: &Span, short_below: i64) -> [(usize, usize); 2] {
        let weight = |entries: Vec<&Entry>| {
            (entries.len(), entries.iter().map(|entry| entry.sent_tokens(short_below)).sum())
        };
        [weight(self.between(from, span.turn_from)), weight(self.turn(span))]
    }

    /// The entries of the turn that are sent.
    fn turn(&self, span: &Span) -> Vec<&Entry> {
        span.sent(self.since(span.turn_from)).collect()
    }

    /// Whether a reply in the window has a call with this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.rows().any(|row| row.calls.iter().any(|call| call.id == id))
    }

    /// The newest message that people read.
    pub(crate) fn newest_visible(&self) -> Option<&SharedRow> {
        self.rows().rev().find(|row| row.is_visible())
    }

    /// Reads the window, newest first, back to `past`. Rows before `turn_from` are limited to `budget` tokens
    /// and to [`limits::WINDOW_MESSAGES`].
    pub(crate) fn load(sql: &dyn Sql, past: HistoryRange, turn_from: i64, budget: usize) -> Result<Window> {
        Window::load_below(sql, BEYOND, past, turn_from, budget)
    }

    /// Like [`Window::load`], for the messages before one.
    pub(crate) fn load_below(
        sql: &dyn Sql,
        below: i64,
        past: HistoryRange,
        turn_from: i64,
        budget: usize,
    ) -> Result<Window> {
        let mut entries: Vec<Entry> = Vec::new();
        let (mut tokens, mut past_tokens) = (0, 0);
        let from = if let HistoryRange::From(from) = past { from } else { 1 };
        let mut reached = from;
        let mut opening = None;
        page::top_level_from(sql, from, below, &mut |row| {
            if row.is_status() {
                return Ok(ControlFlow::Continue(()));
            }
            let entry = Entry::new(SharedRow::new(row));
            tokens += entry.tokens;
            let mut next = ControlFlow::Continue(());
            if entry.row.seq >= turn_from {
                opening = side_of_opening(&entry.row);
            } else if past == HistoryRange::Unanswered {
                past_tokens += entry.tokens;
                if !is_unanswered(&entry.row, opening) || past_tokens > unanswered_tokens(budget) {
                    // Keep this row: it shows that no earlier one belongs to the turn.
                    reached = entry.row.seq;
                    next = ControlFlow::Break(());
                }
            } else if tokens > budget || entries.len() >= limits::WINDOW_MESSAGES {
                reached = entry.row.seq + 1;
                return Ok(ControlFlow::Break(()));
            }
            entries.push(entry);
            Ok(next)
        })?;
        entries.reverse();
        Ok(Window { from: reached, entries })
    }

    /// Removes everything before `seq`.
    pub(crate) fn cut(&mut self, seq: i64) {
        self.entries.drain(..self.first_from(seq));
        self.from = self.from.max(seq);
    }

    /// The seq at which the history must begin to fit the budget: the current one if it fits, else a jump
    /// that leaves room.
    pub(crate) fn fit(&self, past: HistoryRange, span: &Span, budget: usize) -> i64 {
        let HistoryRange::From(from) = past else { return self.unanswered(span.turn_from, budget) };
        let (past, turn) = (self.between(from, span.turn_from), self.turn(span));
        let tokens = |entries: &[&Entry]| entries.iter().map(|entry| entry.tokens).sum::<usize>();
        let turn_tokens = tokens(&turn);
        let fits =
            tokens(&past) + turn_tokens <= budget && past.len() + turn.len() <= limits::WINDOW_MESSAGES;
        if fits && self.reaches(from) {
            return from;
        }
        let keep_tokens = share(budget).saturating_sub(turn_tokens);
        let keep_rows = share(limits::WINDOW_MESSAGES).saturating_sub(turn.len());
        let mut kept = 0;
        let mut cut = span.turn_from;
        for (number, entry) in past.iter().rev().enumerate() {
            kept += entry.tokens;
            if kept > keep_tokens || number >= keep_rows {
                break;
            }
            let row = &entry.row;
            // A cut before a message of the other side separates no call from its result.
            if row.role != Role::Tool && row.role != span.own {
                cut = row.seq;
            }
        }
        cut
    }

    /// Seq of the first unanswered message stored directly before the turn. The number of these messages does
    /// not depend on the length of the turn, so that the beginning of its requests stays the same.
    fn unanswered(&self, turn_from: i64, budget: usize) -> i64 {
        let (past, turn) = self.entries.split_at_checked(self.first_from(turn_from)).unwrap_or_default();
        let opening = turn.first().and_then(|entry| side_of_opening(&entry.row));
        let (mut first, mut tokens) = (turn_from, 0);
        for entry in past.iter().rev().take_while(|entry| is_unanswered(&entry.row, opening)) {
            tokens += entry.tokens;
            if tokens > unanswered_tokens(budget) {
                break;
            }
            first = entry.row.seq;
        }
        first
    }

    /// Whether the window holds everything that a request with this budget may include.
    pub(crate) fn holds(&self, past: HistoryRange, turn_from: i64, budget: usize) -> bool {
        match past {
            HistoryRange::From(from) => self.reaches(from),
            HistoryRange::Unanswered => {
                // An older row proves that there are no more of them.
                let all = self.reaches(1) || self.unanswered(turn_from, budget) > self.from;
                all && self.reaches(turn_from)
            }
        }
    }

    /// The first message of a turn that begins at a seq. In rows of an older build, a turn begins with the
    /// messages stored before the one that opened it.
    pub(crate) fn opening(&self, turn_from: i64) -> i64 {
        let opens = |entry: &&Entry| entry.row.inbound != Inbound::Stored;
        let opening = self.since(turn_from).iter().find(opens);
        opening.filter(|entry| entry.row.inbound != Inbound::Step).map_or(turn_from, |entry| entry.row.seq)
    }

    /// The seq below which tool results are shortened, if the turn does not fit behind a history that begins
    /// at `cut`.
    pub(crate) fn shorten(&self, run_short_below: i64, cut: i64, span: &Span, budget: usize) -> i64 {
        let past = self.between(cut, span.turn_from).iter().map(|entry| entry.tokens).sum();
        let budget = budget.saturating_sub(past);
        let turn = self.turn(span);
        let mut tokens: usize = turn.iter().map(|entry| entry.sent_tokens(run_short_below)).sum();
        if tokens <= budget {
            return run_short_below;
        }
        let newest_reply = turn
            .iter()
            .rev()
            .find(|entry| !entry.row.calls.is_empty())
            .map_or(span.below, |entry| entry.row.seq);
        let mut short_below = run_short_below;
        for entry in
            turn.iter().filter(|entry| entry.row.role == Role::Tool && entry.row.seq >= run_short_below)
        {
            if tokens <= share(budget) || entry.row.seq > newest_reply {
                break;
            }
            tokens -= entry.saved();
            short_below = entry.row.seq + 1;
        }
        short_below
    }
}

/// The side for which a row opens a turn, if the row is from outside.
fn side_of_opening(row: &Row) -> Option<Side> {
    (row.inbound != Inbound::Step).then(|| Side::woken_by(row.role))
}

/// Whether a row before a turn was stored for the side that the turn was opened for.
fn is_unanswered(row: &Row, opening: Option<Side>) -> bool {
    let is_for = |side| row.role == Role::System || Side::woken_by(row.role) == side;
    row.inbound == Inbound::Stored && opening.is_some_and(is_for)
}

/// Most tokens of unanswered rows.
const fn unanswered_tokens(budget: usize) -> usize {
    budget / 2
}

/// The part that remains after a jump.
fn share(budget: usize) -> usize {
    (budget as f64 * limits::WINDOW_KEEP) as usize
}

/// A tool result whose text is bounded, with a note if it was cut. Other rows are unchanged.
fn bounded(row: SharedRow) -> SharedRow {
    match &row.content {
        Some(text) if row.role == Role::Tool && text.len() > limits::RESULT_IN_CONTEXT_BYTES => {
            let content = Some(cut_text(text, limits::RESULT_IN_CONTEXT_BYTES));
            SharedRow::new(Row { content, ..(*row).clone() })
        }
        _ => row,
    }
}

fn cut_text(text: &str, max: usize) -> String {
    let kept = first_bytes(text, max);
    format!("{kept}\n[cut here: {} of {} bytes are shown]", kept.len(), text.len())
}

/// The author of a reply: a prompt on a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Author {
    pub(crate) provider: Provider,
    /// Name of the model's definition.
    pub(crate) definition: String,
    /// The provider's id of the model.
    pub(crate) model: String,
    pub(crate) prompt: String,
}

impl Author {
    pub(crate) fn new(model: &Model, prompt: &Prompt) -> Author {
        Author {
            provider: model.provider.clone(),
            definition: model.name.clone(),
            model: model.model.clone(),
            prompt: prompt.name.clone(),
        }
    }
}

/// The column `reasoning` of a reply's row.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Replay {
    pub(crate) author: Author,
    pub(crate) blocks: Vec<PositionedBlock>,
}

impl Replay {
    /// Parses the column of a row. A damaged one counts as none: the reply is then sent without a payload.
    pub(crate) fn read(row: &Row) -> Option<Replay> {
        crate::json::from_str(row.reasoning.as_deref()?).ok()
    }

    /// Whether a row may hold fields. A cheap check, because most rows hold none.
    fn may_have_fields(row: &Row) -> bool {
        row.reasoning.as_deref().is_some_and(|column| column.contains(FIELD))
    }

    /// Estimated tokens of the fields.
    fn tokens(&self) -> usize {
        self.blocks.iter().map(PositionedBlock::tokens).sum()
    }

    /// The blocks, placed among the remaining calls. A block directly before calls that are all dropped is
    /// removed with them: providers that sign their thinking accept neither two adjacent blocks nor one at
    /// the end.
    pub(crate) fn placed(&self, row: &Row) -> Vec<PositionedBlock> {
        if !row.calls.iter().any(ToolCall::is_dropped) {
            return self.blocks.clone();
        }
        let content = row.content.as_deref().unwrap_or_default();
        let mut kept = Vec::with_capacity(self.blocks.len());
        for (index, block) in self.blocks.iter().enumerate() {
            let later = self.blocks.get(index..).unwrap_or_default().iter();
            let next = later.map(Self::place).find(|place| *place != Self::place(block));
            let (text, calls) = next.unwrap_or((content.len(), row.calls.len()));
            let said = content.get(block.text..text).is_some_and(|text| !text.trim().is_empty());
            let led_to = row.calls.get(block.calls..calls).unwrap_or_default();
            if said || led_to.is_empty() || !led_to.iter().all(ToolCall::is_dropped) {
                let before = row.calls.iter().take(block.calls);
                let calls = before.filter(|call| !call.is_dropped()).count();
                kept.push(PositionedBlock { calls, ..block.clone() });
            }
        }
        kept
    }

    const fn place(block: &PositionedBlock) -> (usize, usize) {
        (block.text, block.calls)
    }

    /// Whether the payload may be sent to this prompt on this model.
    fn is_by(&self, author: &Author) -> bool {
        self.author == *author
    }
}
