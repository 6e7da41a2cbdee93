//! The end of a step: applies the next action of the stop rules (`stop`) to the run.

use crate::engine::context::turn_rows;
use crate::engine::cycle::stop;
use crate::engine::cycle::stop::{NextAction, StepFacts};
use crate::engine::definitions::Definitions;
use crate::engine::thread::Thread;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::store::messages as rows;
use crate::store::messages::{Row, SharedRow};
use crate::store::runs::end::Reason;
use crate::store::runs::ledger::FinalStep;
use crate::store::runs::session_result::SessionResult;
use crate::store::runs::{Phase, Run};

impl Thread {
    /// The reason why the run is over, if it is. Otherwise closes the step, and perhaps the turn.
    pub(in crate::engine) fn evaluate(
        &self,
        definitions: &Definitions<'_>,
        reply: &SharedRow,
    ) -> Result<Option<(Reason, Option<String>)>> {
        let (ended, turn_over) = self.read_mut(|state, sql| {
            let history = turn_rows(state, sql)?;
            let run = state.active_mut()?;
            let next_action = stop::evaluate(&StepFacts {
                kind: definitions.agent.kind,
                active: definitions.active,
                side: definitions.side,
                asked: run.asked.take(),
                reply,
                history: &history,
            });
            let turn_over = next_action != NextAction::Step;
            let ended = match next_action {
                NextAction::Step => None,
                NextAction::SwitchSide => {
                    run.turns += 1;
                    run.side = run.side.other();
                    // The reply that ended this turn opens the next one.
                    run.turn_from = reply.seq;
                    None
                }
                NextAction::EndTurn(reason) => {
                    run.turns += 1;
                    Some((reason, None))
                }
                NextAction::EndSession(reason, index) => {
                    run.turns += 1;
                    let result = session_result(definitions, reply, &history, reason, index, sql)?;
                    let text = (reason == Reason::SessionFail).then(|| result.text.clone());
                    run.result = Some(result);
                    Some((reason, text))
                }
                NextAction::EndRun(reason, text) => Some((reason, text)),
            };
            let ended = finished(state.active_mut()?, ended);
            Ok((self.diagnosis().held_strictly(definitions, state, ended)?, turn_over))
        })?;
        if ended.is_none() {
            self.close_step()?;
        }
        self.announce_step_end(turn_over)?;
        Ok(ended)
    }

    /// Closes the step, so that another may follow. A plain step is closed in memory only: after a crash it
    /// is evaluated again from the stored rows.
    fn close_step(&self) -> Result<()> {
        let plain = self.read_mut(|state, _| {
            let plain = state.handoff.is_none() && state.queued_tools.is_empty();
            if plain {
                state.active_mut()?.phase = Phase::Start;
            }
            Ok(plain)
        })?;
        if plain {
            return Ok(());
        }
        let takeover = self.transition(|state, sql| {
            let takeover = self.active_agent().hand_off(state, sql)?;
            state.settle_tools(sql)?;
            let run = state.active_mut()?;
            run.phase = Phase::Start;
            run.recoveries = 0;
            run.update(sql)?;
            Ok(takeover)
        })?;
        self.active_agent().announce_takeover(takeover)
    }
}

/// The end of a run after its last step: a run that is finishing its budget ends whatever the next action is.
fn finished(run: &Run, ended: Option<(Reason, Option<String>)>) -> Option<(Reason, Option<String>)> {
    match &run.ledger {
        Some(ledger) if ledger.finishing != FinalStep::No => Some((Reason::BudgetFinished, None)),
        _ => ended,
    }
}

/// The result that the call of a session tool reports. Read from the table, because the window may hold only
/// a part.
fn session_result(
    definitions: &Definitions<'_>,
    reply: &Row,
    history: &[SharedRow],
    reason: Reason,
    index: usize,
    sql: &dyn Sql,
) -> Result<SessionResult> {
    let side = definitions.side;
    let tool = if reason == Reason::SessionFail { &side.session_fail } else { &side.session_stop };
    let call = reply.calls.get(index);
    // The result of a tool queued by code lies beyond the reply's block.
    let text = |row: &&SharedRow| {
        row.seq > reply.seq
            && row.tool_call_id.is_some()
            && row.tool_call_id == call.map(|call| call.id.clone())
    };
    match (tool, call, history.iter().find(text)) {
        (Some(tool), Some(call), Some(row)) => {
            let row = rows::find(sql, row.seq)?;
            let text = row.and_then(|row| row.content).unwrap_or_default();
            Ok(SessionResult::of(tool, call, &text))
        }
        _ => Err(Error::internal("a session ended by a call that its reply does not have")),
    }
}
