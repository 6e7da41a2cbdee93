//! Hand-off (spec §22): an exposed agent that is called takes the thread over. The call has its result at
//! once. The agent changes when the step is closed, in the same transition, and so exactly once. Until then
//! the hand-off is derived from the open step's receipts without an end; the last one wins.

use crate::definitions::message::Role;
use crate::definitions::{Agent, AgentKind, Callable};
use crate::engine::features::ActiveAgent;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::json;
use crate::store::messages::{Inbound, Row, SharedRow};
use crate::store::opening::Opening;
use crate::store::receipts;
use crate::store::receipts::Receipt;
use crate::store::side::Side;
use crate::store::state::State;

/// The result text for the model.
pub(super) fn result_text(agent: &str) -> String {
    format!("Handed off to \"{agent}\", which goes on from here.")
}

/// A thread that was taken over.
pub(super) struct Takeover {
    agent: String,
    title: Option<String>,
    /// The first message for the agent, or the note that it could not take over.
    row: Option<SharedRow>,
}

impl ActiveAgent<'_> {
    /// Changes the thread's agent, if a call of the closing step requested it. Posts an update to the
    /// directory.
    pub(super) fn hand_off(&self, state: &mut State, sql: &dyn Sql) -> Result<Option<Takeover>> {
        let Some(id) = state.handoff.take() else { return Ok(None) };
        let Some(Receipt { name, data, .. }) = receipts::find(sql, id)? else { return Ok(None) };
        let now = self.host.now_us();
        let block = state.run.as_ref().map_or(0, |run| run.block);
        receipts::end_handoffs(sql, block, id, now)?;
        let Some(Callable::Agent(agent, _)) = self.catalog.callable(&name) else {
            let text =
                format!("The agent “{name}” is not among the definitions any more and could not take over.");
            let metadata = json!({ "status_kind": "handoff_failed", "agent": name }).to_string();
            let row =
                Row { metadata: Some(metadata), ..Row::new(state.next_seq(), Role::Assistant, text, now) };
            let row = Some(state.insert(sql, row)?);
            return Ok(Some(Takeover { agent: state.meta.agent.clone(), title: None, row }));
        };
        self.take_over(state, sql, agent, now)?;
        let row = match &data.opening {
            Some(opening) => Some(self.open_with(state, sql, opening, now)?),
            None => None,
        };
        Ok(Some(Takeover { agent: agent.name.clone(), title: agent.title.clone(), row }))
    }

    /// Makes an agent active from the next step on, its side A first. Subagents that its prompts
    /// activate start with that step.
    fn take_over(&self, state: &mut State, sql: &dyn Sql, agent: &Agent, now: i64) -> Result<()> {
        state.meta.agent.clone_from(&agent.name);
        state.meta.version += 1;
        state.meta.activates = self.subagents().activations(&agent.name);
        state.meta.update(sql)?;
        if let Some(run) = state.run.as_mut() {
            run.side = Side::A;
            // The next agent's budget can only be tighter.
            if let Some(ledger) = &mut run.ledger {
                ledger.tighten(&agent.budget);
            }
        }
        self.outbox().post_row(state, sql, now)
    }

    /// Checks a new agent for `PATCH /threads/:id`, before anything is awaited.
    ///
    /// # Errors
    /// `agent_not_found`; `invalid_field` for an agent that the thread cannot have.
    pub(super) fn check_agent(&self, state: &State, name: &str) -> Result<()> {
        let agent = self.visible_agent(state, name)?;
        if state.meta.parent.is_some() && agent.kind != AgentKind::DualAi {
            return Err(Error::field(
                "agent_id",
                format!(
                    "“{name}” has one AI side. A subagent's agent has two, or nobody would answer its parent."
                ),
            ));
        }
        Ok(())
    }

    /// Changes the agent of a thread without an active run. Listeners are notified afterwards.
    ///
    /// # Errors
    /// Those of [`ActiveAgent::check_agent`]; `terminated`; `conflict` while a run is active.
    pub(super) fn change_agent(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        name: &str,
        now: i64,
    ) -> Result<Option<Takeover>> {
        state.ensure_not_terminated()?;
        self.check_agent(state, name)?;
        let agent = self.visible_agent(state, name)?;
        if state.meta.agent == agent.name {
            return Ok(None);
        }
        if state.active().is_some() {
            return Err(Error::new(Code::Conflict, "The agent cannot be changed while a run is active.")
                .at("agent_id")
                .hint("Wait until it has ended, or stop it."));
        }
        self.take_over(state, sql, agent, now)?;
        // Start a new session for the new agent; `continue` keeps the side of the last run.
        if let Some(run) = state.run.as_mut() {
            run.turns = 0;
            run.update(sql)?;
        }
        Ok(Some(Takeover { agent: agent.name.clone(), title: agent.title.clone(), row: None }))
    }

    /// The agent that a client names: one that clients may see, or the thread's own.
    fn visible_agent(&self, state: &State, name: &str) -> Result<&Agent> {
        let own = || self.catalog.agents.get(name).filter(|agent| agent.name == state.meta.agent);
        self.catalog.shown_agent(name).or_else(own).ok_or_else(|| self.no_agent(name))
    }

    /// The error for an unknown agent.
    pub(crate) fn no_agent(&self, name: &str) -> Error {
        let names: Vec<&str> = self.catalog.shown_agents().map(|agent| agent.name.as_str()).collect();
        Error::new(Code::AgentNotFound, format!("No agent named “{name}”."))
            .at("agent_id")
            .hint(format!("Agents: {}.", names.join(", ")))
    }

    fn open_with(&self, state: &mut State, sql: &dyn Sql, opening: &Opening, now: i64) -> Result<SharedRow> {
        let attachments = opening.files(state, sql, || self.host.random(), now)?;
        let text = opening.message.clone().unwrap_or_default();
        let row = Row {
            inbound: Inbound::Stored,
            attachments,
            metadata: Some(json!({ "handoff": true }).to_string()),
            ..Row::new(state.next_seq(), Role::User, text, now)
        };
        state.insert(sql, row)
    }

    /// Notifies listeners.
    pub(super) fn announce_takeover(&self, takeover: Option<Takeover>) -> Result<()> {
        let Some(Takeover { agent, title, row }) = takeover else { return Ok(()) };
        self.announce_handoff(&agent, title.as_deref());
        row.map_or(Ok(()), |row| self.broadcast_message(&row))
    }
}
