//! The range of a summary. It ends at a boundary between turns that leaves a share of the space to messages,
//! or between two steps of a turn that is too long by itself. Neither separates a call from its result.

use crate::definitions::context::SummarySettings;
use crate::definitions::message::Role;
use crate::store::window::{Entry, Span, Window};

/// The reason for the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The messages may have grown.
    Grown,
    /// Older messages have just been cut off.
    Cut,
    /// A client requests it.
    Asked,
}

/// Inputs of the decision.
pub(super) struct Criteria<'a> {
    pub(super) cause: Cause,
    pub(super) settings: &'a SummarySettings,
    /// Share of the space that may be used before a summary is made.
    pub(super) trigger: f64,
    /// Tokens for summary and messages together.
    pub(super) room: usize,
    /// Tokens of the current summary.
    pub(super) summary: usize,
    /// Turns since it was made, as far as runs record.
    pub(super) turns: u64,
}

impl Criteria<'_> {
    fn full(&self) -> usize {
        (self.room as f64 * self.trigger) as usize
    }

    fn keep(&self) -> usize {
        (self.room.saturating_sub(self.settings.most()) as f64 * self.settings.target()) as usize
    }

    fn has_come(&self, of: u64) -> bool {
        self.cause == Cause::Asked || of >= u64::from(self.settings.turns())
    }
}

/// Seq of the first message that stays, if the messages before it are to be summarised.
pub(super) fn first_kept(window: &Window, from: i64, span: &Span, wish: &Criteria<'_>) -> Option<i64> {
    let past: Vec<&Entry> =
        window.since(from).iter().take_while(|entry| entry.row.seq < span.turn_from).collect();
    let turn: Vec<&Entry> = span.sent(window.since(span.turn_from)).collect();
    let turn_tokens = tokens(&turn);
    if wish.cause == Cause::Grown && tokens(&past) + turn_tokens + wish.summary <= wish.full() {
        return None;
    }
    if turn_tokens + wish.summary > wish.full() {
        return within_turn(&turn, span.own, wish);
    }
    between_turns(&past, turn_tokens, span, wish)
}

fn tokens(entries: &[&Entry]) -> usize {
    entries.iter().map(|entry| entry.tokens()).sum()
}

/// Finds a boundary before a message of the other side.
fn between_turns(past: &[&Entry], turn_tokens: usize, span: &Span, wish: &Criteria<'_>) -> Option<i64> {
    let opens = |entry: &&&Entry| entry.row.role != Role::Tool && entry.row.role != span.own;
    let turns = past.iter().filter(opens).count() as u64;
    if !wish.has_come(wish.turns.max(turns)) {
        return None;
    }
    let newest = past.iter().rev().find(opens).map(|entry| entry.row.seq);
    // An idle thread keeps its last turn.
    let last = if span.turn_from < i64::MAX { Some(span.turn_from) } else { newest };
    let (mut kept, mut first) = (turn_tokens, last?);
    for entry in past.iter().rev() {
        kept += entry.tokens();
        if kept > wish.keep() {
            break;
        }
        if opens(&entry) {
            first = entry.row.seq;
        }
    }
    let oldest = past.first().map(|entry| entry.row.seq);
    if wish.cause == Cause::Asked && Some(first) == oldest {
        // All messages would stay, but a client's request is to shorten them further.
        first = last?;
    }
    // Messages that were cut off are older than all messages here.
    (wish.cause == Cause::Cut || oldest.is_some_and(|oldest| oldest < first)).then_some(first)
}

/// Finds a boundary before a reply. The newest reply and the messages that opened the turn always stay.
fn within_turn(turn: &[&Entry], own: Role, wish: &Criteria<'_>) -> Option<i64> {
    let answers = |entry: &&&Entry| entry.row.role == own;
    if !wish.has_come(turn.iter().filter(answers).count() as u64) {
        return None;
    }
    let opening =
        turn.iter().take_while(|entry| entry.row.role != own && entry.row.role != Role::Tool).count();
    let (opening, rest) = turn.split_at_checked(opening)?;
    let (mut kept, mut first) = (tokens(opening), None);
    for entry in rest.iter().rev() {
        kept += entry.tokens();
        if kept > wish.keep() && first.is_some() {
            break;
        }
        if answers(&entry) {
            first = Some(entry.row.seq);
        }
    }
    first.filter(|first| rest.first().is_some_and(|entry| entry.row.seq < *first))
}
