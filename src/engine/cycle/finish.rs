//! The end of a run: stores it with what follows from it, and then notifies streams and waiting clients.

use crate::engine::cycle::run_end::FinishedRun;
use crate::engine::ephemeral::MessageOutcome;
use crate::engine::subagents::create_child::take_parent_trace;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::store::log_record::Event;
use crate::store::messages as rows;
use crate::store::messages::SharedRow;
use crate::store::runs::Phase;
use crate::store::runs::end::{End, Outcome, Reason};
use crate::store::state::State;

impl Thread {
    /// Ends the active run, notifies waiting clients, and starts the next run if messages are queued.
    pub(in crate::engine) fn end_run(&self, reason: Reason, message: Option<String>) -> Result<()> {
        let now = self.host.now_us();
        let (results, last) = self.transition(|state, sql| {
            let results = match reason {
                // Only these reasons end a run in the middle of a step's calls.
                Reason::RecoveryExhausted
                | Reason::DefinitionMissing
                | Reason::DefinitionChanged
                | Reason::StrictDiagnostics => {
                    let run = state.active_mut()?.clone();
                    self.control().close_calls(state, sql, &run, reason, now)?
                }
                _ => Vec::new(),
            };
            Ok((results, self.finish(state, sql, reason, message)?))
        })?;
        for row in &results {
            self.broadcast_message(row)?;
        }
        self.announce_end(last)
    }

    /// The part of [`Thread::end_run`] inside a transition. Returns the run and the message for waiting
    /// clients.
    pub(in crate::engine) fn finish(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        reason: Reason,
        message: Option<String>,
    ) -> Result<FinishedRun> {
        let now = self.host.now_us();
        let message = message.map(|text| self.variables().shown_within(state, sql, text)).transpose()?;
        let takeover = self.active_agent().hand_off(state, sql)?;
        state.settle_tools(sql)?;
        self.budgets().close_ledger(state, sql, now)?;
        let mut run = state.active_mut()?.clone();
        let near = self.budgets().limits_close_to(&mut run, now);
        let answer = match &state.window {
            Some(window) => window.row(run.block).cloned(),
            None => rows::find(sql, run.block)?.map(SharedRow::new),
        };
        self.ephemeral.context.borrow_mut().clear();
        self.ephemeral.reported.failures.borrow_mut().clear();
        self.ephemeral.aborted.borrow_mut().take();
        if matches!(reason, Reason::DefinitionMissing | Reason::StrictDiagnostics) && !run.block_open() {
            // No run can take in the queued messages: they fail with this run and start no other.
            run.block = state.next_seq();
            state.drain();
            state.queued_tools.clear();
        }
        run.phase = Phase::Ended;
        run.resume_us = None;
        run.end = Some(End { reason, message: message.clone().map(String::from), at_us: now });
        run.update(sql)?;
        state.run = Some(run.clone());
        let status = match message.as_ref().filter(|_| reason.outcome() == Outcome::Failed) {
            None => None,
            Some(text) => {
                Event::failure(&run, text).insert(sql, now)?;
                Some(self.insert_status(state, sql, "run_failed", text, reason)?)
            }
        };
        let waits = match reason.outcome() {
            Outcome::Stopped => self.waits().cancel_waits(state, sql)?,
            _ => self.waits().cancel_waits_of_run(state, sql)?,
        };
        let outcomes = self.delegates().deliver_unclaimed(state, sql)?;
        self.subagents().report(state, sql, &run, answer.as_ref(), now)?;
        self.outbox().post_activity(state, sql, now)?;
        self.telemetry().schedule_spans(state, sql, &run, now)?;
        self.summarizer().schedule_summary(state, sql, now)?;
        state.changed.run_ended = true;
        if reason.outcome() != Outcome::Stopped {
            self.start_queued(state, sql, now)?;
        }
        Ok(FinishedRun { run, answer, status, takeover, waits, outcomes, near })
    }

    /// Starts a run for the queue, if it holds anything.
    fn start_queued(&self, state: &mut State, sql: &dyn Sql, now: i64) -> Result<()> {
        if state.waiting() == 0 || state.meta.stopped || state.meta.terminated_us.is_some() {
            return Ok(());
        }
        let trace = take_parent_trace(state);
        if trace.is_some() {
            state.meta.update(sql)?;
        }
        self.start_for_queue(state, sql, trace.as_ref(), now).map(|_| ())
    }

    /// Notifies streams and waiting clients of the end of a run.
    pub(in crate::engine) fn announce_end(&self, finished: FinishedRun) -> Result<()> {
        let FinishedRun { run, answer, status, takeover, waits, outcomes, near } = finished;
        self.budgets().announce_budget("warning", &near);
        self.waits().announce_waits(&waits)?;
        if self.read(|state, _| Ok(state.meta.parent.is_some()))? {
            self.subagents().send_envelopes();
        }
        self.active_agent().announce_takeover(takeover)?;
        if let Some(row) = &status {
            self.broadcast_message(row)?;
        }
        for row in &outcomes {
            self.broadcast_message(row)?;
        }
        self.broadcast_stopped(&run);
        self.send_ended(&run)?;
        // A run that opened no step has still taken in the messages with which it failed.
        for waiter in self.ephemeral.waiters.borrow_mut().iter_mut().filter(|waiter| waiter.seq < run.block) {
            waiter.run = waiter.run.or(Some(run.id));
        }
        // Messages behind a run that code has stopped stay queued.
        let held = self.read(|state, _| Ok(state.active().is_none()))?;
        if held {
            self.send_held(None)?;
        }
        self.settle(|waiter| match waiter.run {
            Some(id) if id == run.id => {
                Some(MessageOutcome::Ended(run.clone(), status.clone().or(answer.clone())))
            }
            None if held => Some(MessageOutcome::Stopped),
            _ => None,
        });
        Ok(())
    }
}
