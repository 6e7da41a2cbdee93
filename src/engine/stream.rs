//! Streams (spec §28.1; docs/streams.md): live frames for listeners, and the first frames for a new or resuming
//! one. Stored messages and text survive a broken connection; every other frame is sent once and has no id.
//!
//! An id is `<edits>.<mark>[.<message>.<attempt>.<offset>]`. It states what a client has after reading the
//! frame: every row up to the mark, and this many bytes of the running attempt's text. The mark of a live
//! frame is the settled mark, the highest seq below which no row can still appear.

use serde_json::Value;

use crate::engine::ephemeral::Partial;
use crate::engine::items::{items, with_items};
use crate::engine::progress::progress_frame;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::{Filter, Frame, FramePosition, Sql};
use crate::json;
use crate::limits;
use crate::page::{Page, json_bytes};
use crate::protocols::responses::frames::{
    MessageChunkFrame, MessageDataFrame, MessageResetFrame, PartialReply, ReasoningChunkFrame, SnapshotFrame,
    live,
};
use crate::protocols::responses::threads::ThreadState;
use crate::store::log_record::Attempt;
use crate::store::logs;
use crate::store::messages::page::VisibilityFilter;
use crate::store::messages::{Inbound, Row, SharedRow, message_id, message_seq, page};
use crate::store::runs::{Run, Step};
use crate::store::state::State;
use crate::store::waits;
use crate::store::waits::Wait;

/// The position of a client: rows up to a mark, and a part of a reply's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) edits: i64,
    pub(super) mark: i64,
    pub(super) text: Option<TextPosition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextPosition {
    /// Seq of the reply.
    pub(super) seq: i64,
    /// Number of the stream.
    stream: u32,
    /// Bytes of its text.
    offset: usize,
}

impl Position {
    pub(super) fn parse(thread: &str, id: &str) -> Option<Position> {
        let parts: Vec<&str> = id.split('.').collect();
        let (edits, mark, text) = match parts.as_slice() {
            [edits, mark] => (edits, mark, None),
            [edits, mark, message, stream, offset] => {
                let seq = message_seq(thread, message).ok()?;
                let text = TextPosition { seq, stream: stream.parse().ok()?, offset: offset.parse().ok()? };
                (edits, mark, Some(text))
            }
            _ => return None,
        };
        Some(Position { edits: edits.parse().ok()?, mark: mark.parse().ok()?, text })
    }

    pub(super) fn id(&self, thread: &str) -> String {
        let Position { edits, mark, text } = self;
        match text {
            None => format!("{edits}.{mark}"),
            Some(TextPosition { seq, stream, offset }) => {
                format!("{edits}.{mark}.{}.{stream}.{offset}", message_id(thread, *seq))
            }
        }
    }

    /// The position of a listener that was sent everything.
    fn now(state: &State, partial: Option<&Partial>) -> Position {
        Position { edits: state.meta.edits, mark: state.settled(), text: partial.and_then(Partial::position) }
    }
}

impl Partial {
    pub(super) fn position(&self) -> Option<TextPosition> {
        (!self.text.is_empty()).then_some(TextPosition {
            seq: self.seq,
            stream: self.stream,
            offset: self.text.len(),
        })
    }
}

pub(super) fn message_frame(state: &State, sql: &dyn Sql, row: &Row, at: Position) -> Result<Frame> {
    let thread = &state.meta.stem;
    Ok(Frame {
        kind: "message_data",
        id: Some(at.id(thread)),
        data: json!(MessageDataFrame {
            message_id: row.id(thread),
            depth: row.depth,
            data: crate::engine::subagents::shown::message(state, sql, row)?,
        }),
        silent: row.silent,
        depth: row.depth,
        // A queued message has no run yet; it is sent again when a run takes it in.
        place: if state.is_queued(row) { FramePosition::Outside } else { FramePosition::At(row.seq) },
    })
}

/// The text of an attempt from an offset on. `at` is the client's position afterwards.
pub(super) fn chunk_frame(state: &State, partial: &Partial, from: usize, at: Position) -> Frame {
    let thread = &state.meta.stem;
    let chunk = partial.text.get(from..).unwrap_or_default();
    Frame {
        kind: "message_chunk",
        id: Some(at.id(thread)),
        data: json!(MessageChunkFrame {
            message_id: message_id(thread, partial.seq),
            depth: 0,
            chunk,
            attempt: partial.stream,
            offset: from as u64,
        }),
        silent: false,
        depth: 0,
        place: FramePosition::At(partial.seq),
    }
}

pub(super) fn open_waits(state: &State, sql: &dyn Sql) -> Result<Vec<Wait>> {
    if state.meta.waits > 0 { waits::open(sql) } else { Ok(Vec::new()) }
}

fn reset_frame(state: &State, seq: i64, stream: u32, depth: u32) -> Frame {
    let message_id = message_id(&state.meta.stem, seq);
    Frame {
        kind: "message_reset",
        id: None,
        data: json!(MessageResetFrame { message_id, attempt: stream }),
        silent: false,
        depth,
        place: FramePosition::At(seq),
    }
}

fn outside(progress: Value) -> Frame {
    progress_frame(progress, FramePosition::Outside)
}

impl Thread {
    /// The first frames for a new listener: a snapshot, or the missed frames of a resuming one.
    pub(super) fn first_frames(&self, filter: &Filter, last_event_id: Option<&str>) -> Result<Vec<Frame>> {
        let frames = self.read(|state, sql| {
            let thread = &state.meta.stem;
            let position = last_event_id
                .and_then(|id| Position::parse(thread, id))
                .filter(|at| at.edits == state.meta.edits && at.mark <= state.settled());
            match position {
                Some(position) => match self.missed(state, sql, position)? {
                    Some(mut frames) => {
                        frames.extend(
                            self.activity().last_progress(state, &open_waits(state, sql)?).map(outside),
                        );
                        Ok(frames)
                    }
                    None => Ok(vec![self.snapshot(state, sql, filter)?]),
                },
                None => Ok(vec![self.snapshot(state, sql, filter)?]),
            }
        })?;
        let frames = frames.into_iter().flat_map(|frame| with_items(frame, filter, &self.catalog));
        Ok(frames.filter(|frame| frame.passes(filter)).collect())
    }

    /// The newest rows and the running attempt's text.
    fn snapshot(&self, state: &State, sql: &dyn Sql, filter: &Filter) -> Result<Frame> {
        let partial = self.ephemeral.partial.borrow();
        let partial = partial.as_ref().filter(|partial| !partial.text.is_empty());
        let left =
            limits::SNAPSHOT_BYTES.saturating_sub(partial.map_or(0, |partial| json_bytes(&partial.text)));
        let thread = &state.meta.stem;
        let mut page = Page::of_bytes(limits::SNAPSHOT_ROWS, left);
        let shown = VisibilityFilter { depth: filter.depth, silent: filter.silent };
        page::newest(sql, shown, i64::from(limits::SNAPSHOT_ROWS) + 1, &mut |row| {
            page.add(|| Ok(row.to_json(thread, state.is_queued(&row))))
        })?;
        let has_more = page.has_more();
        let mut messages = page.into_rows();
        messages.reverse();
        messages
            .iter_mut()
            .try_for_each(|message| crate::engine::subagents::shown::project(state, sql, message))?;
        let open = open_waits(state, sql)?;
        let data = json!(SnapshotFrame {
            messages,
            has_more,
            partial: partial.map(|partial| PartialReply {
                message_id: message_id(thread, partial.seq),
                attempt: partial.stream,
                text: &partial.text,
            }),
            state: state.status(),
            waits: (!open.is_empty()).then(|| open.iter().map(|wait| wait.shown(state)).collect()),
            progress: self.activity().last_progress(state, &open).filter(|_| !filter.quiet),
        });
        let id = Position::now(state, partial).id(thread);
        Ok(Frame {
            kind: "snapshot",
            id: Some(id),
            data,
            silent: false,
            depth: 0,
            place: FramePosition::Outside,
        })
    }

    /// The frames that a client at `position` has missed, each with the id of the position behind it; `None`
    /// if there are too many to send row by row.
    fn missed(&self, state: &State, sql: &dyn Sql, position: Position) -> Result<Option<Vec<Frame>>> {
        let mut missed = Page::of_bytes(limits::RESUME_ROWS, limits::PAGE_BYTES);
        page::after(sql, position.mark, i64::from(limits::RESUME_ROWS) + 1, &mut |row| {
            missed.add_sized(|| {
                let bytes = json_bytes(&row.to_json(&state.meta.stem, false));
                Ok((row, bytes))
            })
        })?;
        if missed.has_more() {
            return Ok(None);
        }
        let missed = missed.into_rows();
        let running = self.ephemeral.partial.borrow();
        let running = running.as_ref().filter(|partial| !partial.text.is_empty());
        let mut frames = Vec::with_capacity(missed.len() + 2);
        let mut at = Position { text: None, ..position };
        if let Some(text) = position.text {
            at.text = self.rest_of_text(state, sql, position, text, &missed, running, &mut frames)?;
        }
        for row in &missed {
            at.mark = row.seq.min(state.settled());
            frames.push(message_frame(state, sql, row, at)?);
        }
        if let Some(partial) = running.filter(|partial| at.text.is_none_or(|text| text.seq != partial.seq)) {
            at.text = partial.position();
            frames.push(chunk_frame(state, partial, 0, at));
        }
        Ok(Some(frames))
    }

    /// Adds the rest of the text that a client has partly read, from memory or from the stored row. A lost
    /// attempt is reset. Returns the client's position in a text that is still running.
    #[expect(clippy::too_many_arguments, reason = "the two halves of one loop's state")]
    pub(super) fn rest_of_text(
        &self,
        state: &State,
        sql: &dyn Sql,
        position: Position,
        text: TextPosition,
        missed: &[Row],
        running: Option<&Partial>,
        frames: &mut Vec<Frame>,
    ) -> Result<Option<TextPosition>> {
        let TextPosition { seq, stream, offset } = text;
        if let Some(partial) = running.filter(|partial| partial.seq == seq) {
            let at = Position { text: partial.position(), ..position };
            let known = partial.stream == stream && partial.text.is_char_boundary(offset);
            if !known {
                frames.push(reset_frame(state, seq, partial.stream, 0));
                frames.push(chunk_frame(state, partial, 0, at));
            } else if offset < partial.text.len() {
                frames.push(chunk_frame(state, partial, offset, at));
            }
            return Ok(at.text);
        }
        let stored = missed.iter().find(|row| row.seq == seq).and_then(|row| row.content.clone());
        match stored {
            Some(content)
                if logs::stream_of(sql, seq)? == Some(stream) && content.is_char_boundary(offset) =>
            {
                if offset < content.len() {
                    let whole = Partial { seq, stream, text: content };
                    let at = Position { text: whole.position(), ..position };
                    frames.push(chunk_frame(state, &whole, offset, at));
                }
            }
            // A response that must not be restarted stays as it is.
            None if logs::was_shown(sql, seq, stream)? => {}
            // The attempt was lost. Its replacement comes as a row or as the next attempt's text.
            _ => {
                let next = state.active().filter(|run| run.block == seq).map_or(stream + 1, |run| run.stream);
                frames.push(reset_frame(state, seq, next, 0));
            }
        }
        Ok(None)
    }

    pub(super) fn announce(&self, kind: &'static str, mut data: Value) {
        if !self.has_listeners() {
            return;
        }
        if let Some(fields) = data.as_object_mut() {
            fields.insert("type".into(), kind.into());
            fields.insert("timestamp".into(), (self.host.now_us() / 1000).into());
        }
        self.host.listeners().broadcast(&Frame {
            kind,
            id: None,
            data,
            silent: false,
            depth: 0,
            place: self.place(),
        });
    }

    /// The position of current events: that of the newest run, if it is known.
    pub(super) fn place(&self) -> FramePosition {
        let state = self.state.try_borrow().ok();
        let Some(state) = state.as_ref().and_then(|state| state.as_ref()) else {
            return FramePosition::Outside;
        };
        // A step of queued tools has no block of its own: its events come behind the message that queued the
        // first tool.
        let queued = state.queued_tools.first().map_or(0, |tool| tool.seq);
        state.run.as_ref().map_or(FramePosition::Outside, |run| FramePosition::At(run.block.max(queued)))
    }

    /// Sends an `event` frame of a tool, an endpoint or the runtime to listeners (spec §28.1).
    pub(super) fn emit(&self, event_type: &str, data: Value) {
        if self.has_listeners() {
            let told = self.variables().shown(json!(live::EventFrame { event_type, data }));
            self.announce("event", told.inner());
        }
    }

    /// Sends a stored message.
    pub(crate) fn broadcast_message(&self, row: &SharedRow) -> Result<()> {
        if !self.has_listeners() {
            return Ok(());
        }
        let (frame, queued) = self.read(|state, sql| {
            let mut at = Position::now(state, self.ephemeral.partial.borrow().as_ref());
            at.mark = at.mark.min(row.seq);
            Ok((message_frame(state, sql, row, at)?, state.is_queued(row)))
        })?;
        if queued {
            self.ephemeral.announced_queue.borrow_mut().push(row.clone());
        }
        let listeners = self.host.listeners();
        listeners.broadcast(&frame);
        if listeners.want_items() {
            items(&frame, &self.catalog).iter().for_each(|item| listeners.broadcast(item));
        }
        Ok(())
    }

    /// Sends more of the running attempt's text, and keeps it for resuming clients.
    pub(super) fn stream_text(&self, seq: i64, text: &str) -> Result<()> {
        let mut partial = self.ephemeral.partial.borrow_mut();
        let Some(partial) = partial.as_mut().filter(|partial| partial.seq == seq) else { return Ok(()) };
        let from = partial.text.len();
        if from + text.len() > limits::PARTIAL_BYTES {
            // Streams send no more; the stored row has the whole text.
            return Ok(());
        }
        partial.text.push_str(text);
        if self.has_listeners() {
            let frame = self.read(|state, _| {
                Ok(chunk_frame(state, partial, from, Position::now(state, Some(partial))))
            })?;
            self.host.listeners().broadcast(&frame);
        }
        Ok(())
    }

    /// Sends more of the text of a called prompt, from an offset on. It is sent once: resuming clients read
    /// the stored message.
    pub(super) fn stream_inner_text(&self, step: Step, stream: u32, from: usize, text: &str) -> Result<()> {
        if !self.has_listeners() {
            return Ok(());
        }
        let message_id = self.read(|state, _| Ok(message_id(&state.meta.stem, step.block)))?;
        let depth = step.depth;
        let offset = from as u64;
        let data = json!(MessageChunkFrame { message_id, depth, chunk: text, attempt: stream, offset });
        self.host.listeners().broadcast(&Frame {
            kind: "message_chunk",
            id: None,
            data,
            silent: false,
            depth,
            place: FramePosition::At(step.block),
        });
        Ok(())
    }

    /// Sends more of the running attempt's reasoning.
    pub(super) fn stream_reasoning(&self, step: Step, text: &str) -> Result<()> {
        if !self.has_listeners() {
            return Ok(());
        }
        let message_id = self.read(|state, _| Ok(message_id(&state.meta.stem, step.block)))?;
        let depth = step.depth;
        let data = json!(ReasoningChunkFrame { message_id, depth, chunk: text });
        self.host.listeners().broadcast(&Frame {
            kind: "reasoning_chunk",
            id: None,
            data,
            silent: false,
            depth,
            place: FramePosition::At(step.block),
        });
        Ok(())
    }

    /// Makes clients drop the text of the previous attempt.
    pub(super) fn announce_reset(&self, seq: i64, stream: u32, depth: u32) -> Result<()> {
        if self.has_listeners() {
            let frame = self.read(|state, _| Ok(reset_frame(state, seq, stream, depth)))?;
            self.host.listeners().broadcast(&frame);
        }
        Ok(())
    }

    /// Announces an open step, and again the messages behind the seq `before` that it took in from the queue.
    pub(super) fn announce_step(&self, before: i64) -> Result<()> {
        let mut taken = self.ephemeral.announced_queue.take();
        if self.has_followers() {
            // Messages that an earlier life announced are not in memory.
            taken = self.read(|state, sql| taken_in(state, sql, before))?;
        }
        for row in taken {
            self.broadcast_message(&row)?;
        }
        if self.has_listeners() {
            let (run, step, side, agent, message_id) = self.read(|state, _| {
                let agent = state.meta.agent.clone();
                let reply = |run: &Run| message_id(&state.meta.stem, run.block);
                Ok(state.active().map_or((0, 0, "a", agent.clone(), None), |run| {
                    (run.id, run.step, run.side.as_str(), agent, Some(reply(run)))
                }))
            })?;
            if (run, step) == (1, 1) {
                self.announce_agent(&agent);
            }
            let run = format!("r_{run}");
            self.announce("step_started", json!(live::StepStartedFrame { step, side, run, message_id }));
        }
        Ok(())
    }

    /// Announces the end of the step.
    pub(super) fn announce_step_end(&self, stopped: bool) -> Result<()> {
        if self.has_listeners() {
            let step = self.read(|state, _| Ok(state.active().map_or(0, |run| run.step)))?;
            self.announce("step_completed", json!(live::StepCompletedFrame { step, stopped }));
        }
        Ok(())
    }

    /// Announces a request to a model.
    pub(super) fn announce_request(&self, model: &str, stream: u32) -> Result<()> {
        self.announce("llm_request", json!(live::LlmRequestFrame { model, attempt: stream }));
        Ok(())
    }

    /// Announces a stored reply.
    pub(super) fn announce_reply(&self, row: &SharedRow, attempt: &Attempt) -> Result<()> {
        let (tokens, latency) = (attempt.output_tokens, attempt.latency_ms());
        self.announce("llm_response", json!(live::LlmResponseFrame { tokens, latency }));
        self.broadcast_message(row)
    }

    /// Announces a fallback to another model.
    pub(super) fn announce_fallback(&self, from: &str, to: &str) {
        self.announce("fallback_triggered", json!(live::FallbackTriggeredFrame { from, to }));
    }

    /// Announces that another agent has taken over.
    pub(super) fn announce_handoff(&self, agent: &str, title: Option<&str>) {
        let data = json!(live::AgentHandoffFrame { new_agent_id: agent, new_agent_title: title });
        self.announce("agent_handoff", data);
        self.announce_agent(agent);
    }

    /// Announces the active agent of the thread.
    fn announce_agent(&self, agent: &str) {
        self.announce_subagent("selected", None, None, agent);
    }

    /// Announces the selection of an agent, or an event of a subagent.
    pub(super) fn announce_subagent(
        &self,
        event: &str,
        alias: Option<&str>,
        reference: Option<&str>,
        agent: &str,
    ) {
        let data = json!(live::SubagentFrame { event, agent_id: alias, reference, agent });
        self.announce("subagent", data);
    }

    /// Announces the end of a run.
    pub(super) fn broadcast_stopped(&self, run: &Run) {
        self.activity().forget_progress();
        let reason = run.end.as_ref().map(|end| end.reason.as_str());
        if run.end.as_ref().is_some_and(|end| end.reason == crate::store::runs::end::Reason::StoppedByUser) {
            self.announce("stopped_by_user", json!(live::StoppedByUserFrame {}));
        }
        self.announce("stopped", json!(live::StoppedFrame { reason, side: run.side.as_str() }));
    }
}

/// Messages behind a seq that woke the run and that the open step has taken in.
fn taken_in(state: &State, sql: &dyn Sql, before: i64) -> Result<Vec<SharedRow>> {
    let block = state.run.as_ref().map_or(0, |run| run.block);
    let mut rows = Vec::new();
    page::top_level_between(sql, before, block, &mut |row| {
        if row.inbound == Inbound::Triggers {
            rows.push(SharedRow::new(row));
        }
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

impl State {
    /// The state of the thread, for clients.
    pub(crate) fn status(&self) -> ThreadState {
        match self.active() {
            Some(run) if run.phase.is_parked() => ThreadState::Parked,
            Some(_) => ThreadState::Running,
            None if self.meta.terminated_us.is_some() => ThreadState::Terminated,
            None if self.meta.stopped || self.queued > 0 => ThreadState::Stopped,
            None => ThreadState::Idle,
        }
    }
}
