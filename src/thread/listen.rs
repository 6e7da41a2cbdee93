//! Streams (spec §28.1; docs/http.md): what listeners are sent as it happens, and what a new or resuming one is sent
//! first. Stored messages and text survive a broken connection; every other frame is sent once and has no id.
//!
//! An id is `<edits>.<settled mark>[.<message seq>.<attempt>.<offset>]`: offsets are bytes of the attempt's text, and
//! the settled mark is the highest seq below which no row can still appear.

use std::rc::Rc;

use serde_json::{Value, json};

use super::Thread;
use super::frame::{Filter, Frame};
use super::host::{Host, Param};
use super::live::Partial;
use super::log::Attempt;
use super::rows::{self, Row, Shared, columns, message_id};
use super::run::{Phase, Run};
use super::state::State;
use crate::access::{Action, Caller, ThreadRef};
use crate::error::Result;
use crate::limits;
use crate::spec::message::{Role, ToolStatus};

/// Where a client left off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    edits: i64,
    settled: i64,
    /// Message seq, attempt, and bytes of its text that arrived.
    partial: Option<(i64, u32, usize)>,
}

impl Position {
    fn parse(id: &str) -> Option<Position> {
        let parts: Vec<&str> = id.split('.').collect();
        let (edits, settled, partial) = match parts.as_slice() {
            [edits, settled] => (edits, settled, None),
            [edits, settled, seq, attempt, offset] => {
                let partial = (seq.parse().ok()?, attempt.parse().ok()?, offset.parse().ok()?);
                (edits, settled, Some(partial))
            }
            _ => return None,
        };
        Some(Position { edits: edits.parse().ok()?, settled: settled.parse().ok()?, partial })
    }
}

fn durable_id(state: &State) -> String {
    format!("{}.{}", state.meta.edits, state.settled())
}

fn text_id(state: &State, partial: &Partial) -> String {
    format!("{}.{}.{}.{}", durable_id(state), partial.seq, partial.stream, partial.text.len())
}

fn message_frame(state: &State, row: &Row) -> Frame {
    let thread = &state.meta.thread_id;
    Frame {
        kind: "message_data",
        id: Some(durable_id(state)),
        data: json!({
            "type": "message_data", "message_id": row.id(thread), "depth": row.depth,
            "data": row.to_json(thread, state.is_queued(row)),
        }),
        silent: row.silent,
        depth: row.depth,
    }
}

fn chunk_frame(state: &State, partial: &Partial, from: usize) -> Frame {
    let chunk = partial.text.get(from..).unwrap_or_default();
    Frame {
        kind: "message_chunk",
        id: Some(text_id(state, partial)),
        data: json!({
            "type": "message_chunk", "message_id": message_id(&state.meta.thread_id, partial.seq), "depth": 0,
            "chunk": chunk, "attempt": partial.stream, "offset": from,
        }),
        silent: false,
        depth: 0,
    }
}

fn reset_frame(state: &State, seq: i64, stream: u32) -> Frame {
    let message = message_id(&state.meta.thread_id, seq);
    Frame {
        kind: "message_reset",
        id: None,
        data: json!({ "type": "message_reset", "message_id": message, "attempt": stream }),
        silent: false,
        depth: 0,
    }
}

impl<H: Host> Thread<H> {
    /// The first frames for a new listener: a snapshot, or what a resuming one missed.
    ///
    /// # Errors
    /// `thread_not_found` when there is no such thread or it is not the caller's; `forbidden` when its scope does not
    /// allow streams.
    pub fn listen(
        self: &Rc<Self>,
        caller: &Caller,
        filter: &Filter,
        last_event_id: Option<&str>,
    ) -> Result<Vec<Frame>> {
        self.read(|state, _| {
            let thread = ThreadRef { id: &state.meta.thread_id, owner: state.meta.owner.as_deref() };
            caller.may(&Action::Stream, Some(thread))
        })?;
        self.wake()?;
        let frames = self.read(|state, sql| {
            let position = last_event_id.and_then(Position::parse).filter(|at| at.edits == state.meta.edits);
            match position {
                Some(position) => match self.missed(state, sql, position)? {
                    Some(frames) => Ok(frames),
                    None => Ok(vec![self.snapshot(state, sql, filter)?]),
                },
                None => Ok(vec![self.snapshot(state, sql, filter)?]),
            }
        })?;
        Ok(frames.into_iter().filter(|frame| frame.passes(filter)).collect())
    }

    /// The newest rows and the running attempt's text.
    fn snapshot(&self, state: &State, sql: &H::Sql, filter: &Filter) -> Result<Frame> {
        let rows = rows::read(
            sql,
            concat!(
                "SELECT ",
                columns!(),
                " FROM messages WHERE depth <= ? AND (silent = 0 OR ?) ORDER BY seq DESC LIMIT ?"
            ),
            &[
                Param::Int(i64::from(filter.depth)),
                Param::Int(i64::from(filter.silent)),
                Param::Int(i64::from(limits::SNAPSHOT_ROWS) + 1),
            ],
        )?;
        let has_more = rows.len() > limits::SNAPSHOT_ROWS as usize;
        let thread = &state.meta.thread_id;
        let messages: Vec<Value> = rows
            .iter()
            .take(limits::SNAPSHOT_ROWS as usize)
            .rev()
            .map(|row| row.to_json(thread, state.is_queued(row)))
            .collect();
        let partial = self.live.partial.borrow();
        let partial = partial.as_ref().filter(|partial| !partial.text.is_empty());
        let data = json!({
            "type": "snapshot",
            "messages": messages,
            "hasMore": has_more,
            "partial": partial.map(|partial| json!({
                "message_id": message_id(thread, partial.seq), "attempt": partial.stream, "text": partial.text,
            })),
            "state": state.word(),
        });
        let id = partial.map_or_else(|| durable_id(state), |partial| text_id(state, partial));
        Ok(Frame { kind: "snapshot", id: Some(id), data, silent: false, depth: 0 })
    }

    /// What a client that stopped at `position` has not seen; `None` when that is too much.
    fn missed(&self, state: &State, sql: &H::Sql, position: Position) -> Result<Option<Vec<Frame>>> {
        if position.settled > state.settled() {
            return Ok(None);
        }
        let missed = rows::read(
            sql,
            concat!("SELECT ", columns!(), " FROM messages WHERE seq > ? ORDER BY seq LIMIT ?"),
            &[Param::Int(position.settled), Param::Int(i64::from(limits::RESUME_ROWS) + 1)],
        )?;
        if missed.len() > limits::RESUME_ROWS as usize {
            return Ok(None);
        }
        let mut frames = Vec::with_capacity(missed.len() + 1);
        let partial = self.live.partial.borrow();
        if let Some((seq, stream, offset)) = position.partial {
            let finished = missed.iter().find(|row| row.seq == seq);
            match (finished, partial.as_ref().filter(|partial| partial.seq == seq)) {
                // Still running, the same attempt: the rest of its text.
                (None, Some(partial)) if partial.stream == stream && offset <= partial.text.len() => {
                    if offset < partial.text.len() {
                        frames.push(chunk_frame(state, partial, offset));
                    }
                }
                // Finished: the rest from the stored row, when this attempt is the one that was stored.
                (Some(row), _) if self.stored_stream(sql, seq)? == Some(stream) => {
                    let text = row.content.clone().unwrap_or_default();
                    if offset < text.len() && text.is_char_boundary(offset) {
                        frames.push(chunk_frame(state, &Partial { seq, stream, text }, offset));
                    }
                }
                // The attempt was lost. What runs now, or what was stored, replaces its text.
                (_, running) => {
                    let now = running.map_or(stream + 1, |partial| partial.stream);
                    frames.push(reset_frame(state, seq, now));
                    frames.extend(
                        running
                            .filter(|partial| !partial.text.is_empty())
                            .map(|partial| chunk_frame(state, partial, 0)),
                    );
                }
            }
        } else if let Some(partial) = partial.as_ref().filter(|partial| !partial.text.is_empty()) {
            frames.push(chunk_frame(state, partial, 0));
        }
        frames.extend(missed.iter().map(|row| message_frame(state, row)));
        Ok(Some(frames))
    }

    /// The number of the stream that gave a stored reply.
    fn stored_stream(&self, sql: &H::Sql, seq: i64) -> Result<Option<u32>> {
        let stream = rows::integer(
            sql,
            "SELECT json_extract(data, '$.attempt') FROM logs
             WHERE reply = ? AND kind = 'llm_request' ORDER BY id DESC LIMIT 1",
            &[Param::Int(seq)],
        )?;
        Ok(stream.and_then(|stream| u32::try_from(stream).ok()))
    }

    fn announce(&self, kind: &'static str, mut data: Value) {
        if !self.host.has_listeners() {
            return;
        }
        if let Some(fields) = data.as_object_mut() {
            fields.insert("type".into(), kind.into());
            fields.insert("timestamp".into(), (self.host.now_us() / 1000).into());
        }
        self.host.broadcast(&Frame { kind, id: None, data, silent: false, depth: 0 });
    }

    /// Sends a stored message.
    pub(super) fn broadcast_message(&self, row: &Shared) -> Result<()> {
        if !self.host.has_listeners() {
            return Ok(());
        }
        let (frame, queued) = self.read(|state, _| Ok((message_frame(state, row), state.is_queued(row))))?;
        if queued {
            self.live.shown_queued.borrow_mut().push(row.clone());
        }
        self.host.broadcast(&frame);
        Ok(())
    }

    /// Sends more of the running attempt's text, and keeps it for those who resume.
    pub(super) fn stream_text(&self, seq: i64, text: &str) -> Result<()> {
        let mut partial = self.live.partial.borrow_mut();
        let Some(partial) = partial.as_mut().filter(|partial| partial.seq == seq) else { return Ok(()) };
        let from = partial.text.len();
        if from + text.len() > limits::PARTIAL_BYTES {
            // Streams go quiet; the stored row has the whole text.
            return Ok(());
        }
        partial.text.push_str(text);
        if self.host.has_listeners() {
            let frame = self.read(|state, _| Ok(chunk_frame(state, partial, from)))?;
            self.host.broadcast(&frame);
        }
        Ok(())
    }

    /// Sends more of the running attempt's reasoning.
    pub(super) fn stream_reasoning(&self, seq: i64, text: &str) -> Result<()> {
        if !self.host.has_listeners() {
            return Ok(());
        }
        let message = self.read(|state, _| Ok(message_id(&state.meta.thread_id, seq)))?;
        let data = json!({ "type": "reasoning_chunk", "message_id": message, "depth": 0, "chunk": text });
        self.host.broadcast(&Frame { kind: "reasoning_chunk", id: None, data, silent: false, depth: 0 });
        Ok(())
    }

    /// Clients drop the text of the attempt before.
    pub(super) fn announce_reset(&self, seq: i64, stream: u32) -> Result<()> {
        if self.host.has_listeners() {
            let frame = self.read(|state, _| Ok(reset_frame(state, seq, stream)))?;
            self.host.broadcast(&frame);
        }
        Ok(())
    }

    /// A step was opened; messages that it took in are no longer queued.
    pub(super) fn announce_step(&self) -> Result<()> {
        for row in self.live.shown_queued.take() {
            self.broadcast_message(&row)?;
        }
        if self.host.has_listeners() {
            let (step, side) = self
                .read(|state, _| Ok(state.active().map_or((0, "a"), |run| (run.step, run.side.as_str()))))?;
            self.announce("step_started", json!({ "step": step, "side": side }));
        }
        Ok(())
    }

    /// The step is over.
    pub(super) fn announce_step_end(&self, stopped: bool) -> Result<()> {
        if self.host.has_listeners() {
            let step = self.read(|state, _| Ok(state.active().map_or(0, |run| run.step)))?;
            self.announce("step_completed", json!({ "step": step, "stopped": stopped }));
        }
        Ok(())
    }

    /// A request leaves for a model.
    pub(super) fn announce_request(&self, model: &str, stream: u32) -> Result<()> {
        self.announce("llm_request", json!({ "model": model, "attempt": stream }));
        Ok(())
    }

    /// A reply is stored.
    pub(super) fn announce_reply(&self, row: &Shared, attempt: &Attempt) -> Result<()> {
        self.announce(
            "llm_response",
            json!({ "tokens": attempt.output_tokens, "latency": attempt.latency_ms() }),
        );
        self.broadcast_message(row)
    }

    /// Another model takes over.
    pub(super) fn announce_fallback(&self, from: &str, to: &str) {
        self.announce("fallback_triggered", json!({ "from": from, "to": to }));
    }

    /// A tool starts.
    pub(super) fn announce_tool_start(&self, name: &str) {
        self.announce("tool_started", json!({ "tool": name }));
    }

    /// A tool is done.
    pub(super) fn announce_tool_end(&self, name: &str, status: ToolStatus) {
        self.announce("tool_completed", json!({ "tool": name, "status": status }));
    }

    /// A run ended.
    pub(super) fn broadcast_stopped(&self, run: &Run) {
        let reason = run.end.as_ref().map(|end| end.reason.as_str());
        if run.end.as_ref().is_some_and(|end| end.reason == super::run::Reason::StoppedByUser) {
            self.announce("stopped_by_user", json!({}));
        }
        self.announce("stopped", json!({ "reason": reason, "side": run.side.as_str() }));
    }
}

impl State {
    /// `running`, `parked`, `stopped`, `terminated` or `idle`, for clients.
    pub(super) fn word(&self) -> &'static str {
        match self.active() {
            Some(run) if run.phase == Phase::Parked => "parked",
            Some(_) => "running",
            None if self.meta.terminated_us.is_some() => "terminated",
            None if self.meta.stopped => "stopped",
            None => "idle",
        }
    }
}

/// Cut for a list of threads.
pub(super) fn preview(row: &Row) -> Option<String> {
    (matches!(row.role, Role::User | Role::Assistant) && !row.silent)
        .then(|| row.content.as_deref().unwrap_or_default().chars().take(200).collect())
        .filter(|text: &String| !text.is_empty())
}
