//! What is used apart from runs: by summaries, which go on when the run that has caused them has ended. The run pays while it
//! goes on, then the thread; a subagent tells its parent, which lent for the run and pays for this, too.

use std::rc::Rc;

use crate::engine::budget::Underway;
use crate::engine::budget::afford::{Affordable, affordable_request};
use crate::engine::budget::exceeded::Exceeded;
use crate::engine::budget::lend::sync_apart;
use crate::engine::features::Budgets;
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::error::Result;
use crate::host::Sql;
use crate::models::ChatRequest;
use crate::spec::Model;
use crate::spec::budget::Caps;
use crate::store::children::Child;
use crate::store::log::Worst;
use crate::store::runs::ledger::Amounts;
use crate::store::state::State;

impl Budgets<'_> {
    /// Whether an attempt apart from runs may be made. Between its runs a subagent holds nothing of its parent's; what it
    /// uses then is told afterwards, and only its own limits hold.
    pub(crate) fn afford_apart(
        &self,
        model: &Model,
        request: &Rc<ChatRequest>,
    ) -> Result<Result<Affordable, Exceeded>> {
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
            Ok(affordable_request(&ledger, steps, &beside, wanted, request))
        })
    }

    /// Notes that an attempt apart from runs is under way.
    pub(crate) fn begins_apart(&self, model: &Model, worst: Option<Worst>) -> Option<Underway> {
        self.begins_as(true, model, worst)
    }

    /// Whether anything limits what the thread uses.
    pub(crate) fn keeps_books(&self, state: &State, sql: &dyn Sql) -> Result<bool> {
        Ok(self.books(state, sql)?.is_some())
    }

    /// Books what was used on behalf of a run: on it while it goes on.
    pub(crate) fn book_for_run(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        run: i64,
        used: &Amounts,
    ) -> Result<()> {
        let Some(active) = state.run.as_mut().filter(|active| active.id == run && active.end.is_none())
        else {
            return self.book_apart(state, sql, used);
        };
        if let Some(ledger) = &mut active.ledger {
            ledger.book(used);
            ledger.estimated = true;
        }
        active.update(sql)
    }

    /// Books what no run has used.
    pub(crate) fn book_apart(&self, state: &mut State, sql: &dyn Sql, used: &Amounts) -> Result<()> {
        let lent = state.meta.parent.as_ref().is_some_and(|parent| parent.grant.is_some());
        let active = state.run.as_mut().filter(|run| run.end.is_none());
        if lent
            && let Some(run) = active
            && let Some(ledger) = &mut run.ledger
        {
            // Its report tells the parent.
            ledger.book(used);
            return run.update(sql);
        }
        state.meta.budget.get_or_insert_default().late.add(used);
        state.meta.update(sql)?;
        sync_apart(state);
        if lent {
            return self.subagents().tell_parent(state, sql, EnvelopeBody::Spent(used.shared()));
        }
        Ok(())
    }

    /// A child has used something apart from its runs. Its row must be written afterwards.
    pub(crate) fn hear_spent(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        spent: &Amounts,
    ) -> Result<()> {
        let budget = child.budget.get_or_insert_default();
        let lender = budget.run;
        let active = state.run.as_mut().filter(|run| run.id == lender && run.end.is_none());
        if let Some(ledger) = active.and_then(|run| run.ledger.as_mut()) {
            budget.spent.add(spent);
            ledger.children.add(spent);
            return Ok(());
        }
        if let Some(errand) = state.meta.budget.as_mut().and_then(|kept| kept.errand_mut(lender)) {
            errand.used.add(&spent.shared());
            state.meta.update(sql)?;
        }
        self.book_apart(state, sql, spent)
    }
}
