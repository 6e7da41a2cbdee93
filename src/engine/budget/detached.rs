//! Usage outside runs, by summaries that continue after the run that caused them. The run pays while it is
//! active, afterwards the thread. A subagent reports the usage to its parent, which pays for it too.

use std::rc::Rc;

use crate::definitions::Model;
use crate::definitions::budget::Caps;
use crate::engine::budget::Reservation;
use crate::engine::budget::allocate::sync_apart;
use crate::engine::budget::exceeded::ExceededLimit;
use crate::engine::budget::reserve::{AdmittedRequest, capped_request};
use crate::engine::features::Budgets;
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::error::Result;
use crate::host::Sql;
use crate::models::ChatRequest;
use crate::store::children::Child;
use crate::store::log_record::MaxTokens;
use crate::store::runs::ledger::Amounts;
use crate::store::state::State;

impl Budgets<'_> {
    /// Checks whether an attempt outside runs fits the budget. Between its runs a subagent has no grant: only
    /// its own limits apply, and its parent is charged afterwards.
    pub(crate) fn check_detached(
        &self,
        model: &Model,
        request: &Rc<ChatRequest>,
    ) -> Result<Result<AdmittedRequest, ExceededLimit>> {
        let wanted = self.size_of(model, request)?;
        let now = self.host.now_us();
        self.read(|state, sql| {
            let Some((mut ledger, steps)) = self.books(state, sql)? else {
                return Ok(Ok((request.clone(), None)));
            };
            if state.active().is_none() {
                ledger.grant = Caps::default();
            }
            let beside = self.ephemeral.spending.beside(now);
            Ok(capped_request(&ledger, steps, &beside, wanted, request))
        })
    }

    /// Reserves the maximum usage of an attempt outside runs.
    pub(crate) fn reserve_detached(&self, model: &Model, worst: Option<MaxTokens>) -> Option<Reservation> {
        self.reserve_as(true, model, worst)
    }

    /// Whether any limit applies to the thread.
    pub(crate) fn has_ledger(&self, state: &State, sql: &dyn Sql) -> Result<bool> {
        Ok(self.books(state, sql)?.is_some())
    }

    /// Charges usage on behalf of a run: to the run while it is active, otherwise to the thread.
    pub(crate) fn charge_run(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        run: i64,
        used: &Amounts,
    ) -> Result<()> {
        let Some(active) = state.run.as_mut().filter(|active| active.id == run && active.end.is_none())
        else {
            return self.charge_thread(state, sql, used);
        };
        if let Some(ledger) = &mut active.ledger {
            ledger.charge(used);
            ledger.estimated = true;
        }
        active.update(sql)
    }

    /// Charges usage that belongs to no run.
    pub(crate) fn charge_thread(&self, state: &mut State, sql: &dyn Sql, used: &Amounts) -> Result<()> {
        let lent = state.meta.parent.as_ref().is_some_and(|parent| parent.grant.is_some());
        let active = state.run.as_mut().filter(|run| run.end.is_none());
        if lent
            && let Some(run) = active
            && let Some(ledger) = &mut run.ledger
        {
            // The report of the active run contains it.
            ledger.charge(used);
            return run.update(sql);
        }
        state.meta.budget.get_or_insert_default().late.add(used);
        state.meta.update(sql)?;
        sync_apart(state);
        if lent {
            return self.subagents().send_to_parent(state, sql, EnvelopeBody::Spent(used.shared()));
        }
        Ok(())
    }

    /// Receives usage of a child outside its runs. The child's row must be written afterwards.
    pub(crate) fn receive_spend(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        spent: &Amounts,
    ) -> Result<()> {
        let budget = child.budget.get_or_insert_default();
        let granting_run_id = budget.run;
        let active = state.run.as_mut().filter(|run| run.id == granting_run_id && run.end.is_none());
        if let Some(ledger) = active.and_then(|run| run.ledger.as_mut()) {
            budget.spent.add(spent);
            ledger.children.add(spent);
            return Ok(());
        }
        if let Some(ended_run) =
            state.meta.budget.as_mut().and_then(|kept| kept.ended_run_mut(granting_run_id))
        {
            ended_run.used.add(&spent.shared());
            state.meta.update(sql)?;
        }
        self.charge_thread(state, sql, spent)
    }
}
