//! Stop and terminate cascade to all descendants (spec §30, §35.23).

use crate::engine::features::Descendants;
use crate::engine::subagents::delegates::outcome::settle;
use crate::engine::subagents::envelope::{Ending, EnvelopeBody};
use crate::error::Result;
use crate::host::Sql;
use crate::store::children as registry;
use crate::store::children::{Child, ChildState};
use crate::store::log_record::Event;
use crate::store::messages::message_seq;
use crate::store::state::State;

impl Descendants<'_> {
    /// Stops the children that work. The caller closes the waits for them.
    pub(crate) fn stop_children(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        self.each_child(
            state,
            sql,
            |child| child.state.exists() && child.status != "idle",
            EnvelopeBody::Stop,
            |child| {
                "idle".clone_into(&mut child.status);
                settle(child, Ending::Stopped, "The subagent was stopped.")
            },
        )
    }

    /// Terminates all children.
    fn terminate_children(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        self.each_child(
            state,
            sql,
            |_| true,
            EnvelopeBody::Terminate,
            |child| {
                child.state = ChildState::Terminated;
                "terminated".clone_into(&mut child.status);
                Ok(())
            },
        )
    }

    /// Ends the children of calls in messages from seq `from` on, because these messages are cut out.
    /// Envelopes that are still on their way from these children are ignored.
    pub(crate) fn end_children_of(&self, state: &mut State, sql: &dyn Sql, from: i64) -> Result<()> {
        let stem = state.meta.stem.clone();
        let made = |child: &Child| {
            let group = child.facts.group.as_deref().and_then(|group| message_seq(&stem, group).ok());
            group.is_some_and(|seq| seq >= from)
        };
        // A child that has ended may still have an envelope on its way.
        for mut child in registry::all(sql)?.into_iter().filter(|child| !child.is_open() && made(child)) {
            child.facts.cut = true;
            state.update_child(sql, child)?;
        }
        self.each_child(state, sql, made, EnvelopeBody::Terminate, |child| {
            child.state = ChildState::Terminated;
            child.facts.cut = true;
            "terminated".clone_into(&mut child.status);
            Ok(())
        })
    }

    fn each_child(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        which: impl Fn(&Child) -> bool,
        what: EnvelopeBody,
        change: impl Fn(&mut Child) -> Result<()>,
    ) -> Result<()> {
        if state.meta.children == 0 {
            return Ok(());
        }
        let children: Vec<Child> =
            state.open_children(sql)?.iter().filter(|child| which(child)).cloned().collect();
        for mut child in children {
            if child.state.exists() {
                self.subagents().send_to_child(state, sql, &mut child, what.clone())?;
            }
            (child.wait, child.due_us, child.checks) = (None, None, 0);
            change(&mut child)?;
            state.update_child(sql, child)?;
        }
        Ok(())
    }

    /// Marks the thread as terminated: the part of a termination that needs no run.
    pub(crate) fn end_for_good(&self, state: &mut State, sql: &dyn Sql, now: i64) -> Result<()> {
        state.meta.terminated_us = Some(now);
        state.meta.version += 1;
        state.meta.update(sql)?;
        Event::termination(state.active()).insert(sql, now)?;
        self.outbox().post_row(state, sql, now)?;
        self.telemetry().works_are_over(state, sql, now)?;
        crate::store::effects::tally::cancel_all(state, sql, now)?;
        crate::store::jobs::end_all(state, sql)?;
        self.terminate_children(state, sql)
    }
}
