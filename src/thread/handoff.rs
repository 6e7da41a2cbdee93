//! Hand-off (spec §22): an exposed agent that is called takes the thread over. The call has its result at once; the
//! change happens when its step is closed, in the same transition, and so exactly once: until then it is derived from
//! the receipts of the open step that have no end yet, of which the last one wins.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::Thread;
use super::host::{Cell, Host, Param, Sql};
use super::opening::Opening;
use super::rows::{self, Inbound, Row, Shared};
use super::side::Side;
use super::state::State;
use crate::error::Result;
use crate::spec::message::Role;
use crate::spec::{Callable, ToolEntry};

/// The kind of a hand-off's receipt.
pub(super) const KIND: &str = "handoff";

/// What a model is told.
pub(super) fn told(agent: &str) -> String {
    format!("Handed off to \"{agent}\", which goes on from here.")
}

/// What a receipt keeps until the step is closed: the message that the agent begins with.
pub(super) fn kept(entry: &ToolEntry, args: &Value) -> Option<String> {
    let opening = Opening::of(entry, args);
    if opening.is_empty() { None } else { serde_json::to_string(&opening).ok() }
}

/// A thread that was taken over.
pub(super) struct Handed {
    agent: String,
    title: Option<String>,
    /// The message that the agent begins with, or the note that it could not take over.
    row: Option<Shared>,
}

/// The newest hand-off of the open step, which begins at `block`.
pub(super) fn pending<S: Sql>(sql: &S, block: i64) -> Result<Option<i64>> {
    rows::integer(
        sql,
        "SELECT max(id) FROM calls WHERE id > ? AND kind = 'handoff' AND ended_us IS NULL",
        &[Param::Int(block)],
    )
}

impl<H: Host> Thread<H> {
    /// Changes the thread's agent, if a call of the step that is being closed asked for it. The directory is told.
    pub(super) fn hand_off(&self, state: &mut State, sql: &H::Sql) -> Result<Option<Handed>> {
        let Some(id) = state.handoff.take() else { return Ok(None) };
        let mut found = None;
        sql.each("SELECT name, data FROM calls WHERE id = ?", &[Param::Int(id)], &mut |cells| {
            let text = |cell: Option<&Cell>| cell.and_then(Cell::text).map(str::to_owned);
            found = text(cells.first()).map(|name| (name, text(cells.get(1))));
            Ok(ControlFlow::Break(()))
        })?;
        let Some((name, kept)) = found else { return Ok(None) };
        let now = self.host.now_us();
        let block = state.run.as_ref().map_or(0, |run| run.block);
        sql.run(
            "UPDATE calls SET ended_us = ? WHERE id > ? AND id <= ? AND kind = 'handoff'",
            &[Param::Int(now), Param::Int(block), Param::Int(id)],
        )?;
        let Some(Callable::Agent(agent, _)) = self.catalog.callable(&name) else {
            let text =
                format!("The agent “{name}” is not among the definitions any more and could not take over.");
            let metadata = json!({ "status_kind": "handoff_failed", "agent": name }).to_string();
            let row =
                Row { metadata: Some(metadata), ..Row::new(state.next_seq(), Role::Assistant, text, now) };
            let row = Some(state.insert(sql, row)?);
            return Ok(Some(Handed { agent: state.meta.agent.clone(), title: None, row }));
        };
        state.meta.agent.clone_from(&agent.name);
        state.meta.version += 1;
        state.meta.activates = self.activations(&agent.name);
        state.meta.update(sql)?;
        if let Ok(run) = state.active_mut() {
            run.side = Side::A;
        }
        self.post_row(state, sql, now)?;
        let opening: Opening = kept.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        let row = match opening.is_empty() {
            true => None,
            false => Some(self.open_with(state, sql, &opening, now)?),
        };
        Ok(Some(Handed { agent: agent.name.clone(), title: agent.title.clone(), row }))
    }

    fn open_with(&self, state: &mut State, sql: &H::Sql, opening: &Opening, now: i64) -> Result<Shared> {
        let attachments = opening.files(state, sql, || self.host.random(), now)?;
        let text = opening.message.clone().unwrap_or_default();
        let row = Row {
            inbound: Inbound::Quiet,
            attachments,
            metadata: Some(json!({ "handoff": true }).to_string()),
            ..Row::new(state.next_seq(), Role::User, text, now)
        };
        state.insert(sql, row)
    }

    /// Tells whoever listens.
    pub(super) fn announce_handed(&self, handed: Option<Handed>) -> Result<()> {
        let Some(Handed { agent, title, row }) = handed else { return Ok(()) };
        self.announce_handoff(&agent, title.as_deref());
        row.map_or(Ok(()), |row| self.broadcast_message(&row))
    }
}
