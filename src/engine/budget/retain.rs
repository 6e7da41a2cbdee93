//! Grants to subagents that outlive their run: the thread keeps them until the subagents return them.

use crate::definitions::budget::Unit;
use crate::engine::features::Budgets;
use crate::error::Result;
use crate::host::Sql;
use crate::store::children::Child;
use crate::store::runs::ledger::{Amounts, BudgetScope};
use crate::store::state::State;
use crate::store::thread_budget::EndedRunBudget;

impl Budgets<'_> {
    /// Moves the open grants of a run to the thread, inside the transition that ends the run. The run's
    /// limits stay in force for the children that hold them.
    pub(super) fn retain_allocations(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        let run = state.active_mut()?;
        let (id, steps) = (run.id, run.steps_done());
        let Some(ledger) = run.ledger.as_deref().cloned() else { return Ok(()) };
        let waiting: Vec<i64> = state.open_children(sql)?.iter().filter_map(waits_for).collect();
        let lent = ledger.lent;
        if lent == Amounts::default() && !waiting.contains(&id) {
            return Ok(());
        }
        let apart = state.meta.budget.get_or_insert_default();
        apart.lent.add(&lent);
        if ledger.denied {
            apart.denied = id;
        }
        let caps = *ledger.caps(BudgetScope::Run);
        if Unit::SHARED.into_iter().any(|unit| ledger.cap(BudgetScope::Run, unit).is_some()) {
            let (used, policy, denied) = (ledger.used(steps).shared(), ledger.policy, ledger.denied);
            apart.leave(EndedRunBudget { run: id, caps, used, lent, policy, denied }, &waiting);
        }
        state.meta.update(sql)
    }
}

/// The run that granted to a child, if the child waits for more.
fn waits_for(child: &Child) -> Option<i64> {
    let budget = child.budget.as_ref()?;
    budget.wanted.as_ref().map(|_| budget.run)
}
