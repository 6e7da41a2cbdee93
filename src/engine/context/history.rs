//! The messages of one request, in the form for its model.

use crate::definitions::Prompt;
use crate::definitions::message::{Role, ToolCall};
use crate::engine::attachments::images::{ImageAllowance, ImageMessages};
use crate::engine::calls::call::not_run;
use crate::engine::context::space::SystemMessages;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::models::{CachedJson, ChatMessage, Part, fit};
use crate::store::messages::SharedRow;
use crate::store::window::{Author, Entry, Form, SHORT_BYTES, Span, View};

/// An unstored user message after an empty reply.
const EMPTY_REPLY: &str = "Your last reply was empty. Answer in text or call a tool.";

/// The history of one request.
pub(crate) struct History<'a> {
    /// From the cut on.
    pub(crate) entries: &'a [Entry],
    pub(crate) span: Span,
    pub(crate) short_below: i64,
    /// Images from this seq on may be shown.
    pub(crate) pictured: i64,
    pub(crate) prompt: &'a Prompt,
    /// The author of the request. A provider's data goes back only to the author of its reply.
    pub(crate) author: Author,
}

/// The seq from which messages may show images: that of the oldest of the `recent` newest messages. Tool
/// results between them may show images too. The calls and results of a step are not counted, so that a long
/// turn keeps the images of its beginning.
pub(super) fn pictured_from(entries: &[Entry], below: i64, recent: u32) -> i64 {
    let newest = entries.iter().rev().skip_while(|entry| entry.row.seq >= below);
    let said = newest.filter(|entry| entry.row.role != Role::Tool && entry.row.calls.is_empty());
    match recent.checked_sub(1) {
        None => i64::MAX,
        Some(last) => said.map(|entry| entry.row.seq).nth(last as usize).unwrap_or(0),
    }
}

impl History<'_> {
    /// Builds the messages of the request. Calls and results always pair, whatever was stored, edited or
    /// deleted. No id occurs twice, and the last message is not the model's own.
    pub(crate) fn messages(
        &self,
        mut parts: SystemMessages,
        room: &mut ImageAllowance,
        sql: &dyn Sql,
    ) -> Result<Vec<CachedJson<ChatMessage>>> {
        let mut out = Vec::with_capacity(self.entries.len() + 4);
        let mut pictured = ImageMessages::default();
        out.push(parts.system);
        out.extend(parts.summary);
        let mut empty_last = false;
        let replay_from = self.replay_from();
        for entry in self.span.sent(self.entries) {
            if entry.row.seq >= self.span.turn_from {
                out.extend(parts.memory.take());
            }
            empty_last = entry.row.role == self.span.own && entry.row.is_empty_reply();
            match entry.row.role {
                Role::System => out.push(entry.message(Form::Whole, View::Other)),
                // Results are placed behind their calls; results without a call are left out.
                Role::Tool => {}
                role if role == self.span.own => self.reply(entry, replay_from, &mut out, &mut pictured),
                // A message of a person or of the other side, whose calls are not shown.
                Role::User | Role::Assistant if entry.row.is_blank() => {}
                Role::User | Role::Assistant => {
                    self.note(&mut pictured, &out, &entry.row);
                    out.push(entry.message(Form::Whole, View::Other));
                }
            }
        }
        out.extend(parts.memory);
        pictured.show(&mut out, room, sql)?;
        if empty_last {
            out.push(ChatMessage::User(vec![Part::Text(EMPTY_REPLY.into())]).into());
        }
        fit(&mut out);
        Ok(out)
    }

    /// Notes the next message, if it may show images.
    fn note(&self, pictured: &mut ImageMessages, out: &[CachedJson<ChatMessage>], row: &SharedRow) {
        if row.seq >= self.pictured {
            pictured.note(out, row);
        }
    }

    /// Adds a reply and the results of its calls. Replies from `replay_from` on carry their provider's data.
    fn reply(
        &self,
        entry: &Entry,
        replay_from: i64,
        out: &mut Vec<CachedJson<ChatMessage>>,
        pictured: &mut ImageMessages,
    ) {
        let row = &entry.row;
        let calls = match row.seq >= self.span.turn_from || self.prompt.include_past_tools {
            true => &row.calls[..],
            false => &[],
        };
        if calls.iter().all(ToolCall::is_dropped) && row.is_blank() {
            return;
        }
        let whole = calls.len() == row.calls.len();
        let form = match whole {
            true if (row.seq >= replay_from || entry.replays_in_every_turn())
                && entry.replays_to(&self.author) =>
            {
                Form::WithPayload
            }
            true => Form::Whole,
            false => Form::WithoutCalls,
        };
        self.note(pictured, out, row);
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

    /// The seq from which replies carry their provider's data: the current turn, and an exchange of calls
    /// directly before it, which providers count as a part of it. All replies if the prompt sets `include`.
    fn replay_from(&self) -> i64 {
        if self.prompt.reasoning.as_ref().is_some_and(|reasoning| reasoning.include) {
            return 0;
        }
        let past = self.entries.partition_point(|entry| entry.row.seq < self.span.turn_from);
        let past = self.entries.get(..past).unwrap_or_default().iter().rev();
        // A system message does not end the exchange.
        let exchange = past.take_while(|entry| {
            matches!(entry.row.role, Role::Tool | Role::System) || !entry.row.calls.is_empty()
        });
        exchange.last().map_or(self.span.turn_from, |entry| entry.row.seq)
    }

    /// The stored result of a call of the reply at `seq`; it lies in the reply's block.
    fn result(&self, seq: i64, call_id: &str) -> Option<(&SharedRow, CachedJson<ChatMessage>)> {
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
