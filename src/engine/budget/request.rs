//! Requests to the parent for more of a budget.

use crate::engine::budget::exceeded::ExceededLimit;
use crate::engine::features::Budgets;
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::error::Result;
use crate::host::Sql;
use crate::store::grants::{BudgetRequest, UsageReport};
use crate::store::runs::ledger::Amounts;
use crate::store::state::State;

impl Budgets<'_> {
    /// Requests more from the parent, unless a request is open.
    pub(super) fn request_budget(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        wanted: &BudgetRequest,
    ) -> Result<()> {
        let used = state.active().and_then(|run| Some(run.ledger.as_ref()?.used(run.steps_done()).shared()));
        let Some(grant) = state.meta.parent.as_mut().and_then(|parent| parent.grant.as_mut()) else {
            return Ok(());
        };
        if grant.asked {
            return Ok(());
        }
        let mut spent = used.unwrap_or_default();
        spent.take(&grant.base);
        grant.give_back(&spent);
        grant.base.add(&spent);
        grant.asked = true;
        let books = UsageReport { spent, back: spent };
        let wanted = wanted.clone();
        self.subagents().send_to_parent(state, sql, EnvelopeBody::TopUp { wanted, books })?;
        sync_grant(state);
        Ok(())
    }

    /// Parks the run until the parent has replied. It never returns.
    pub(super) async fn ask_parent<T>(&self, exceeded: ExceededLimit) -> Result<T> {
        let opened = self.transition(|state, sql| {
            let by = state.meta.thread_id.clone();
            let need = Amounts::of(exceeded.unit, exceeded.needed);
            self.request_budget(state, sql, &BudgetRequest { need, by })?;
            let opened = self.waits().open_own_wait(state, sql, exceeded)?;
            self.waits().park_run(state, sql)?;
            Ok(opened)
        })?;
        self.waits().end_parked_flow(&opened).await
    }
}

/// Copies the thread's grant to the limits of the active run.
pub(super) fn sync_grant(state: &mut State) {
    let caps = state.meta.parent.as_ref().and_then(|parent| parent.grant).map(|grant| grant.caps());
    if let Some(ledger) = state.run.as_mut().and_then(|run| run.ledger.as_mut()) {
        ledger.grant = caps.unwrap_or_default();
    }
}
