//! Cutting a conversation: deletes the messages behind an earlier one. A run may answer that message again.
//!
//! Only a thread at rest is cut, so no call, wait or open reply is among the deleted rows. Other data
//! follows: the subagents that the deleted messages created end and report nothing more, their files are
//! deleted, and summaries and memories drop them. The log keeps its rows, because that work was charged.

use crate::access::no_thread;
use crate::definitions::message::Role;
use crate::engine::cycle::flow::RunOptions;
use crate::engine::ephemeral::MessageOutcome;
use crate::engine::features::History;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::protocols::responses::frames::live::MessagesCutFrame;
use crate::protocols::responses::messages::Regenerated;
use crate::request::fields::Body;
use crate::request::{Reply, ThreadRequest};
use crate::sdk::scope::EntryMode;
use crate::store::changes::MessageChange;
use crate::store::idempotency::Key;
use crate::store::messages as rows;
use crate::store::messages::change;
use crate::store::messages::{Row, message_id, message_seq, not_found};
use crate::store::runs::{Counters, Run};
use crate::store::side::Side;
use crate::store::state::State;
use crate::trace::Trace;

/// Stands for the last message where a message id is expected.
const LAST: &str = "last";

/// The result of a cut.
pub(super) struct CutResult {
    /// The last remaining seq. It need not belong to a message.
    pub(super) after: i64,
    /// The number of deleted messages.
    pub(super) messages: usize,
    /// The run that answers again, if there is one.
    pub(super) run: Option<i64>,
}

impl History<'_> {
    /// `POST …/messages/:id/regenerate`: answers the last person's message before a message again.
    pub(crate) fn regenerate(&self, request: &ThreadRequest, id: &str) -> Result<Reply> {
        Body::parse(&request.body)?.known(&[])?;
        let key = Key::of(request, &format!("messages/{id}/regenerate "))?;
        let known = key.as_ref().map(|key| self.read(|_, sql| key.replayed(sql, self.host.now_us())));
        if let Some(run) = known.transpose()?.flatten() {
            return self.read(|state, sql| {
                let run = Run::find(sql, run)?;
                Ok(Reply::json(
                    202,
                    &cut_response(state, run.as_ref().map_or(0, |run| run.turn_from), run.as_ref(), None),
                ))
            });
        }
        let now = self.host.now_us();
        let cut = self.transition(|state, sql| {
            may_be_cut(state)?;
            let said = message_to_answer(state, sql, id)?;
            let cut = self.cut_after(state, sql, said.seq)?;
            let run = self.start_answer_again(state, sql, &said, request.trace().as_ref(), now)?;
            if let Some(key) = &key {
                key.insert(sql, run, now)?;
            }
            Ok(CutResult { run: Some(run), ..cut })
        })?;
        self.announce_cut(&cut)?;
        self.read(|state, _| {
            let run = state.run.as_ref().filter(|run| Some(run.id) == cut.run);
            Ok(Reply::json(202, &cut_response(state, cut.after, run, Some(cut.messages))))
        })
    }

    /// Deletes a message and all later ones, in the transaction that stores their replacement.
    pub(super) fn cut_from(&self, state: &mut State, sql: &dyn Sql, id: &str) -> Result<CutResult> {
        may_be_cut(state)?;
        let seq = message_seq(&state.meta.stem, id)?;
        let row = rows::find(sql, seq)?.ok_or_else(|| {
            Error::new(Code::Conflict, "The message that is to be replaced was deleted meanwhile.")
                .hint("Read the conversation again, then send what still applies.")
        })?;
        self.cut_after(state, sql, row.seq - 1)
    }

    /// Deletes everything behind a message, and reloads the state.
    pub(super) fn cut_after(&self, state: &mut State, sql: &dyn Sql, seq: i64) -> Result<CutResult> {
        let first = seq + 1;
        let mut from = first;
        loop {
            let shown = change::with_files(sql, from)?;
            let Some(last) = shown.last() else { break };
            from = last.seq + 1;
            for row in &shown {
                crate::engine::attachments::store::remove(state, sql, &row.attachments)?;
            }
        }
        let gone = change::seqs_from(sql, first)?;
        change::delete_from(sql, first)?;
        self.summarizer().cut_summary(state, sql, first)?;
        self.descendants().end_children_of(state, sql, first)?;
        if state.meta.window_cut > seq {
            // The cut of the window made room for messages that are deleted now.
            state.meta.window_cut = 0;
        }
        state.meta.seq_floor = state.meta.seq_floor.max(state.max_seq);
        state.record_edit(sql)?;
        let mut changed = std::mem::take(&mut state.changed);
        changed.messages.extend(gone.iter().map(|seq| (*seq, MessageChange::Deleted)));
        // Recompute all counts.
        let counted = State::load(sql, |_| Ok(()))?.ok_or_else(no_thread)?;
        *state = State { changed, ..counted };
        Ok(CutResult { after: seq, messages: gone.len(), run: None })
    }

    /// Starts a run that answers a message again.
    pub(super) fn start_answer_again(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        said: &Row,
        trace: Option<&Trace>,
        now: i64,
    ) -> Result<i64> {
        if state.meta.stopped {
            state.meta.stopped = false;
            state.meta.update(sql)?;
        }
        let side = if said.role == Role::Assistant { Side::B } else { Side::A };
        let (last, floor, from) = (state.run.as_ref(), state.meta.floor(), (state.next_seq(), now));
        let run = Run::start(last, floor, side, said.seq, Counters::Reset, from);
        self.begin_run(state, sql, run, RunOptions::default(), trace, now)
    }

    /// Runs after the commit of a cut.
    pub(super) fn announce_cut(&self, cut: &CutResult) -> Result<()> {
        self.state.borrow_mut().take();
        self.settle(|waiter| {
            (waiter.run.is_none() && waiter.seq > cut.after).then_some(MessageOutcome::Stopped)
        });
        let after = self.read(|state, _| Ok(message_id(&state.meta.stem, cut.after)))?;
        self.announce("messages_cut", json!(MessagesCutFrame { after, count: cut.messages as u64 }));
        if cut.run.is_some() {
            self.start_flow(EntryMode::First);
        }
        self.subagents().send_envelopes();
        Ok(())
    }
}

/// Refuses to cut a thread that is not at rest.
pub(super) fn may_be_cut(state: &State) -> Result<()> {
    state.ensure_not_terminated()?;
    if state.active().is_some() {
        return Err(Error::new(Code::Conflict, "A run is active, or waits for somebody.")
            .hint("Wait for its end, or end it with POST …/stop; then send this again."));
    }
    if state.meta.parent.is_some() {
        return Err(Error::new(
            Code::Conflict,
            "What a subagent was told and has said is its parent's, too.",
        )
        .hint("Cut the messages of the thread that leads the family."));
    }
    Ok(())
}

/// The message to answer: the named one if it was sent from outside, or else the last such one before it.
fn message_to_answer(state: &State, sql: &dyn Sql, id: &str) -> Result<Row> {
    let seq = match id {
        LAST => i64::MAX >> 11,
        id => {
            let seq = message_seq(&state.meta.stem, id)?;
            rows::find(sql, seq)?.ok_or_else(|| not_found(id))?.seq
        }
    };
    change::trigger_at(sql, seq)?.ok_or_else(|| {
        Error::new(Code::Conflict, "No message was sent before this one, so there is nothing to answer.")
    })
}

fn cut_response(state: &State, after: i64, run: Option<&Run>, messages: Option<usize>) -> Regenerated {
    Regenerated {
        status: "queued",
        message_id: message_id(&state.meta.stem, after),
        run: run.map(Run::public_id),
        deleted: messages.map(|messages| messages as u64),
        state: state.status(),
    }
}
