//! The feed of one run (docs/streams.md): its messages from the first one, the text in progress, live events,
//! and a last frame with the outcome. Every protocol that streams a reply is built on it.
//!
//! A feed begins behind a seq. The rows behind it belong to the run, because seqs are the only order. It is
//! sent in pieces of bounded size: a piece that is full ends with the id after which the next one begins.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::message::Role;
use crate::engine::cycle::outcome;
use crate::engine::items::with_items;
use crate::engine::progress::progress_frame;
use crate::engine::stream::{Position, chunk_frame, message_frame, open_waits};
use crate::engine::thread::Thread;
use crate::error::{Code, Error, Result};
use crate::host::{Feed, Filter, Frame, FramePosition, Sql};
use crate::json;
use crate::limits;
use crate::page::{Page, json_bytes};
use crate::protocols::responses::frames::{
    FeedState, RunEndedFrame, RunFrame, RunParkedFrame, SubagentUnderWay,
};
use crate::protocols::responses::runs::OutcomeKind;
use crate::store::children::open::waited_for;
use crate::store::messages as rows;
use crate::store::messages::{Inbound, Row, message_id, message_seq, not_found, page};
use crate::store::receipts;
use crate::store::runs::Run;
use crate::store::runs::usage::Usage;
use crate::store::state::State;
use crate::store::waits::{InitialWait, Wait, initial};

/// The run to follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedTarget {
    /// The run `r_<number>`.
    Run(String),
    /// The run that takes in, or has written, this message: the rows behind the message.
    Message(String),
    /// This run, from the last message of a person that it has taken in.
    Tail(String),
    /// The run that has written this message, including the message itself.
    From(String),
}

/// The first piece of a feed.
#[derive(Debug)]
pub struct FeedStart {
    /// In order.
    pub frames: Vec<Frame>,
    /// The filter for the listener's later frames.
    pub filter: Filter,
    /// The continuation.
    pub then: Continuation,
    /// The run, if it has begun.
    pub run: Option<String>,
}

/// The continuation of a feed behind its first frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// Live events follow.
    Live,
    /// The run is over; the last frame reports it.
    Over,
    /// Another piece follows, opened with this id.
    More(String),
}

/// The data of a run that a feed needs.
pub(super) struct RunRange {
    /// `None` while the message is queued.
    run: Option<Run>,
    /// The run's rows lie behind this seq.
    pub(super) after: i64,
    /// The first seq of the next run's steps.
    upto: i64,
}

impl RunRange {
    fn feed(&self) -> Feed {
        Feed { run: self.number(), after: self.after }
    }

    /// The number of the run.
    pub(super) fn number(&self) -> Option<i64> {
        self.run.as_ref().map(|run| run.id)
    }

    pub(super) fn is_over(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.end.is_some())
    }

    /// Whether a row behind `after` belongs to it.
    pub(super) fn has(&self, row: &Row) -> bool {
        let Some(run) = &self.run else { return false };
        match row.inbound {
            Inbound::Step => row.seq >= run.first && row.seq < self.upto,
            Inbound::Stored | Inbound::Triggers => row.seq < run.block,
            Inbound::QueuedTool => row.seq < self.upto,
        }
    }
}

impl Thread {
    /// The first frames for a client that follows a run.
    pub(super) fn feed_start(
        &self,
        filter: &Filter,
        of: &FeedTarget,
        last_event_id: Option<&str>,
    ) -> Result<FeedStart> {
        let now = self.host.now_us();
        self.read(|state, sql| {
            let followed = followed(state, sql, of)?;
            let filter = Filter { feed: Some(followed.feed()), ..*filter };
            let known = last_event_id
                .and_then(|id| Position::parse(&state.meta.stem, id))
                .filter(|at| at.edits == state.meta.edits && at.mark <= state.settled());
            let start = self.pieces(state, sql, &followed, &filter, known, now)?;
            let frames = start.frames.into_iter().flat_map(|frame| with_items(frame, &filter, &self.catalog));
            Ok(FeedStart { frames: frames.filter(|frame| frame.passes(&filter)).collect(), ..start })
        })
    }

    fn pieces(
        &self,
        state: &State,
        sql: &dyn Sql,
        followed: &RunRange,
        filter: &Filter,
        known: Option<Position>,
        now: i64,
    ) -> Result<FeedStart> {
        let run = followed.run.as_ref().map(Run::public_id);
        let mut frames = Vec::new();
        let begin = Position { edits: state.meta.edits, mark: followed.after, text: None };
        let known = known.filter(|at| at.mark >= followed.after);
        if known.is_none() {
            frames.push(opening(state, followed, begin));
        }
        let position = known.unwrap_or(begin);
        let page = rows_of(sql, followed, filter, position.mark)?;
        let more = page.has_more();
        let missed = page.into_rows();
        let running = self.ephemeral.partial.borrow();
        let running =
            running.as_ref().filter(|partial| !partial.text.is_empty() && partial.seq > followed.after);
        let running = running.filter(|_| !followed.is_over());
        let mut at = Position { text: None, ..position };
        if let Some(text) = position.text.filter(|text| text.seq > followed.after) {
            at.text = self.rest_of_text(state, sql, position, text, &missed, running, &mut frames)?;
        }
        let pauses = pauses_of(state, sql, followed, filter, &missed)?;
        for row in &missed {
            at.mark = row.seq.min(state.settled());
            let mut frame = message_frame(state, sql, row, at)?;
            if let (Some(waits), Some(fields)) = (pauses.get(&row.seq), frame.data.as_object_mut()) {
                let waits = waits.iter().map(|wait| wait.to_json(&state.meta.stem));
                fields.insert("waits".into(), waits.collect());
            }
            frames.push(frame);
        }
        let filter = *filter;
        if more {
            return Ok(FeedStart { frames, filter, then: Continuation::More(at.id(&state.meta.stem)), run });
        }
        if let Some(partial) = running.filter(|partial| at.text.is_none_or(|text| text.seq != partial.seq)) {
            at.text = partial.position();
            frames.push(chunk_frame(state, partial, 0, at));
        }
        if followed.is_over() {
            frames.extend(followed.run.as_ref().map(|run| ended(state, sql, run, now)).transpose()?);
            return Ok(FeedStart { frames, filter, then: Continuation::Over, run });
        }
        if followed.run.is_none() && is_halted(state) {
            frames.push(held(state, Some(followed.after)));
            return Ok(FeedStart { frames, filter, then: Continuation::Over, run });
        }
        self.waiting(state, sql, followed, &mut frames)?;
        Ok(FeedStart { frames, filter, then: Continuation::Live, run })
    }

    /// Adds the waits of the run, and its current activity.
    fn waiting(
        &self,
        state: &State,
        sql: &dyn Sql,
        followed: &RunRange,
        frames: &mut Vec<Frame>,
    ) -> Result<()> {
        let open = open_waits(state, sql)?;
        let everywhere = FramePosition::At(i64::MAX);
        if followed.run.is_some() {
            frames.extend(
                self.activity().last_progress(state, &open).map(|line| progress_frame(line, everywhere)),
            );
        }
        let parked = state.active().filter(|run| run.phase.is_parked());
        if let Some(run) = parked {
            frames.push(parked_frame(state, sql, run, &open)?);
        }
        Ok(())
    }

    /// Sends followers the frame of a run that is parked.
    pub(super) fn send_parked(&self) -> Result<()> {
        if !self.has_followers() {
            return Ok(());
        }
        let frame = self.read(|state, sql| {
            let Some(run) = state.active().filter(|run| run.phase.is_parked()) else { return Ok(None) };
            parked_frame(state, sql, run, &open_waits(state, sql)?).map(Some)
        })?;
        if let Some(frame) = frame {
            self.host.listeners().broadcast(&frame);
        }
        Ok(())
    }

    /// Sends the last frame to all feeds of a run that has just ended.
    pub(super) fn send_ended(&self, run: &Run) -> Result<()> {
        if self.has_followers() {
            let now = self.host.now_us();
            let frame = self.read(|state, sql| ended(state, sql, run, now))?;
            self.host.listeners().broadcast(&frame);
        }
        Ok(())
    }

    /// Sends the last frame to feeds whose message no run takes in: all queued ones, or one.
    pub(super) fn send_held(&self, seq: Option<i64>) -> Result<()> {
        if self.has_followers() {
            let frame = self.read(|state, _| Ok(held(state, seq)))?;
            self.host.listeners().broadcast(&Frame { place: FramePosition::Held(seq), ..frame });
        }
        Ok(())
    }
}

/// Finds the run to follow.
pub(super) fn followed(state: &State, sql: &dyn Sql, of: &FeedTarget) -> Result<RunRange> {
    let newest = |found: Run| match &state.run {
        // The run in memory is newer than its row.
        Some(run) if run.id == found.id => run.clone(),
        _ => found,
    };
    let (run, after) = match of {
        FeedTarget::Run(id) | FeedTarget::Tail(id) => {
            let missing = || {
                Error::new(Code::NotFound, format!("This thread has no run “{id}”."))
                    .at("run")
                    .hint("GET …/runs lists them.")
            };
            let number =
                id.strip_prefix("r_").and_then(|number| number.parse::<i64>().ok()).ok_or_else(missing)?;
            let run = newest(Run::find(sql, number)?.ok_or_else(missing)?);
            let after = match of {
                FeedTarget::Tail(_) => last_user_message(state, sql, &run)?,
                _ => before(state, sql, &run)?,
            };
            (Some(run), after)
        }
        FeedTarget::Message(id) | FeedTarget::From(id) => {
            let seq = message_seq(&state.meta.stem, id).map_err(|error| error.at("after"))?;
            let row = rows::find(sql, seq)?.ok_or_else(|| not_found(id).at("after"))?;
            let run = match row.inbound {
                Inbound::Step => Run::of_written(sql, seq)?,
                _ => answered_by(state, sql, seq)?.or_else(|| about_to_take(state, &row)),
            };
            (run.map(newest), if matches!(of, FeedTarget::From(_)) { seq - 1 } else { seq })
        }
    };
    let next = match &run {
        Some(run) if run.end.is_some() => Run::find(sql, run.id + 1)?,
        _ => None,
    };
    Ok(RunRange { run, after, upto: next.map_or(i64::MAX, |next| next.first) })
}

/// The run that has taken a message in. If its reply was cut out, the newest run that has answered the
/// message again.
fn answered_by(state: &State, sql: &dyn Sql, seq: i64) -> Result<Option<Run>> {
    let Some(run) = Run::of_message(sql, seq)? else { return Ok(None) };
    let is_cut = state.meta.edits > 0 && run.end.is_some() && rows::find(sql, run.block)?.is_none();
    let newest_answer = if is_cut { Run::answering(sql, seq, run.id)? } else { None };
    Ok(Some(newest_answer.unwrap_or(run)))
}

/// The active run, if it is about to open the step that takes this message in.
fn about_to_take(state: &State, row: &Row) -> Option<Run> {
    state.active().filter(|_| row.inbound == Inbound::Triggers && !state.is_queued(row)).cloned()
}

fn is_halted(state: &State) -> bool {
    state.active().is_none() && (state.meta.stopped || state.meta.terminated_us.is_some())
}

/// The seq behind which all rows belong to this run or a later one.
fn before(state: &State, sql: &dyn Sql, run: &Run) -> Result<i64> {
    Ok(Run::find(sql, run.id - 1)?.map_or_else(|| state.meta.copied_upto(), |before| before.block))
}

/// The seq of the last message of a person that a run has taken in; if there is none, the seq before the run.
fn last_user_message(state: &State, sql: &dyn Sql, run: &Run) -> Result<i64> {
    let before = before(state, sql, run)?;
    let mut last = before;
    // Messages behind the run's last block are not taken in yet.
    let is_from_user = |row: &Row| row.inbound == Inbound::Triggers && row.role == Role::User && !row.silent;
    page::top_level_between(sql, before, run.block, &mut |row| {
        if is_from_user(&row) {
            last = row.seq;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(last)
}

/// An upper bound for seqs.
const ALL: i64 = i64::MAX >> 11;

/// The rows of the run behind a seq, as many as one piece holds.
fn rows_of(sql: &dyn Sql, followed: &RunRange, filter: &Filter, from: i64) -> Result<Page<Row>> {
    let mut page = Page::of_bytes(limits::RESUME_ROWS, limits::PAGE_BYTES);
    if followed.run.is_none() {
        return Ok(page);
    }
    page::after(sql, from.max(followed.after), ALL, &mut |row| {
        if row.inbound == Inbound::Step && row.seq >= followed.upto {
            return Ok(ControlFlow::Break(()));
        }
        let shown = row.depth <= filter.depth && (filter.silent || !row.silent);
        if !shown || !followed.has(&row) {
            return Ok(ControlFlow::Continue(()));
        }
        page.add_sized(|| {
            let bytes = json_bytes(&row.content) + json_bytes(&row.calls) + json_bytes(&row.metadata);
            Ok((row, bytes))
        })
    })?;
    Ok(page)
}

/// The initial waits of the replies among these rows, by the seq of the reply.
fn pauses_of(
    state: &State,
    sql: &dyn Sql,
    followed: &RunRange,
    filter: &Filter,
    rows: &[Row],
) -> Result<BTreeMap<i64, Vec<InitialWait>>> {
    match followed.number().filter(|_| filter.waits && rows.iter().any(|row| !row.calls.is_empty())) {
        Some(run) => initial(state, sql, run),
        None => Ok(BTreeMap::new()),
    }
}

/// The first frame. A client that has read a part of this run before starts over.
fn opening(state: &State, followed: &RunRange, at: Position) -> Frame {
    let run = followed.run.as_ref();
    let data = json!(RunFrame {
        run: run.map(Run::public_id),
        agent: &state.meta.agent,
        state: run.map_or(FeedState::Queued, |run| outcome::status(run).into()),
        started_at: run.map(|run| run.started_us),
    });
    frame("run", Some(at.id(&state.meta.stem)), data, FramePosition::At(i64::MAX))
}

/// The frame of a parked run. Clients that wait for the run to take a message in receive it as well.
fn parked_frame(state: &State, sql: &dyn Sql, run: &Run, open: &[Wait]) -> Result<Frame> {
    let mut subagents = Vec::new();
    for child in waited_for(state, sql)? {
        let receipt = child.wait.map(|wait| receipts::find(sql, wait.receipt)).transpose()?.flatten();
        subagents.extend(receipt.map(|receipt| SubagentUnderWay {
            call_id: receipt.call_id,
            thread: child.reference,
            agent: child.agent,
            status: child.status,
        }));
    }
    let data = json!(RunParkedFrame {
        run: run.public_id(),
        pause_kind: outcome::pause_kind(open.iter().map(|wait| wait.kind.as_str())),
        waits: open.iter().map(|wait| wait.shown(state)).collect(),
        subagents,
    });
    Ok(frame("run_parked", None, data, FramePosition::At(i64::MAX)))
}

/// The last frame of a run.
fn ended(state: &State, sql: &dyn Sql, run: &Run, now: i64) -> Result<Frame> {
    let reply = outcome::reply_of(sql, run)?;
    let end = run.end.as_ref();
    let data = json!(RunEndedFrame {
        run: Some(run.public_id()),
        outcome: outcome::outcome(run),
        reason: end.map(|end| end.reason.as_str()),
        error: end.and_then(outcome::error),
        message_id: reply.map(|row| message_id(&state.meta.stem, row.seq)),
        usage: Some(Usage::of(state, sql, run, now)?),
    });
    let place = FramePosition::End { run: run.id, block: run.block };
    Ok(frame("run_ended", Some(format!("{ENDED}{}", run.public_id())), data, place))
}

fn held(state: &State, seq: Option<i64>) -> Frame {
    let error = outcome::held_error(state);
    let data = json!(RunEndedFrame {
        run: None,
        outcome: Some(OutcomeKind::Stopped),
        reason: Some(error.code),
        error: Some(error),
        message_id: None,
        usage: None,
    });
    frame("run_ended", Some(format!("{ENDED}none")), data, FramePosition::Held(seq))
}

/// The prefix of the ids of last frames: nothing follows them.
pub const ENDED: &str = "ended.";

fn frame(kind: &'static str, id: Option<String>, data: Value, place: FramePosition) -> Frame {
    Frame { kind, id, data, silent: false, depth: 0, place }
}
