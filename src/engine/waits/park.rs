//! Parking a run: it waits for something outside, and nothing of it stays in memory.

use crate::engine::ephemeral::MessageOutcome;
use crate::engine::features::Waits;
use crate::engine::progress::waiting_for;
use crate::error::Result;
use crate::host::Sql;
use crate::store::state::State;
use crate::store::waits::Wait;

impl Waits<'_> {
    /// Parks the active run, inside the transaction that opens its wait.
    pub(crate) fn park_run(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        let now = self.host.now_us();
        let run = state.active_mut()?;
        self.budgets().charge_time(run, now);
        run.phase = run.phase.parked();
        run.update(sql)?;
        let run = run.clone();
        self.telemetry().schedule_spans(state, sql, &run, self.host.now_us())
    }

    /// Ends the flow after the commit that parked the run. It never returns: another flow continues the run.
    pub(crate) async fn end_parked_flow<T>(&self, opened: &[Wait]) -> Result<T> {
        self.announce_waits(opened)?;
        if self.activity().wants_progress() {
            self.activity()
                .send_waiting(waiting_for(opened).unwrap_or_else(|| "Waiting for a decision".to_owned()))?;
        }
        let run = self.read(|state, _| Ok(state.active().cloned()))?;
        self.send_parked()?;
        self.settle(|_| Some(MessageOutcome::Parked(run.clone())));
        if self.read(|state, _| Ok(state.meta.parent.is_some()))? {
            self.subagents().send_envelopes();
        }
        self.ephemeral.abort_flow();
        std::future::pending().await
    }
}
