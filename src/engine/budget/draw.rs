//! A subagent's grant from its parent. It arrives with envelopes and is returned with reports. When it is
//! used up, the subagent parks and requests more.

use crate::definitions::budget::{Caps, OnExceeded};
use crate::engine::budget::allocate::GrantDecision;
use crate::engine::budget::request::sync_grant;
use crate::engine::features::Budgets;
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::engine::subagents::follow_up::FollowUp;
use crate::error::Result;
use crate::host::Sql;
use crate::store::grants::{GrantReply, UsageReport};
use crate::store::runs::Run;
use crate::store::runs::end::Reason;
use crate::store::runs::ledger::{Amounts, BudgetScope, FinalStep};
use crate::store::state::State;
use crate::store::waits;
use crate::store::waits::{Decision, WaitKind, WaitState};

impl Budgets<'_> {
    /// Adds a grant that came with an envelope. `meta` must be written afterwards.
    pub(crate) fn take_grant(&self, state: &mut State, grant: &Caps) {
        if let Some(parent) = &mut state.meta.parent {
            parent.grant.get_or_insert_default().add(grant);
        }
        sync_grant(state);
    }

    /// The usage of the grant by a run that has ended, and the rest that is returned. `meta` must be written
    /// afterwards.
    pub(crate) fn settle_grant(&self, state: &mut State, run: Option<&Run>) -> Option<UsageReport> {
        let used = run.map_or(Amounts::default(), |run| {
            let steps = run.steps_done();
            let used = run.ledger.as_ref().map(|ledger| ledger.used(steps).and(&ledger.lent));
            used.unwrap_or_default().shared()
        });
        let grant = state.meta.parent.as_mut()?.grant.as_mut()?;
        let mut spent = used;
        spent.take(&grant.base);
        let back = grant.amounts();
        grant.give_back(&back);
        (grant.base, grant.asked) = (Amounts::default(), false);
        (spent != Amounts::default() || back != Amounts::default()).then_some(UsageReport { spent, back })
    }

    /// Reports the usage of the grant to the parent when no report of a run does.
    pub(crate) fn return_grant(&self, state: &mut State, sql: &dyn Sql, run: Option<&Run>) -> Result<()> {
        match self.settle_grant(state, run) {
            Some(books) => self.subagents().send_to_parent(state, sql, EnvelopeBody::Books(books)),
            None => Ok(()),
        }
    }

    /// Receives the parent's reply. `meta` must be written afterwards.
    pub(crate) fn receive_grant(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        granted: &GrantReply,
        applied: &mut FollowUp,
    ) -> Result<()> {
        let Some(parent) = &mut state.meta.parent else { return Ok(()) };
        match (granted, &mut parent.grant) {
            (GrantReply::Free, grant) => *grant = None,
            (GrantReply::Add(caps), grant) => {
                let grant = grant.get_or_insert_default();
                grant.asked = false;
                grant.add(caps);
            }
            (GrantReply::Refused, Some(grant)) => grant.asked = false,
            (GrantReply::Refused, None) => {}
        }
        sync_grant(state);
        let refused = matches!(granted, GrantReply::Refused);
        self.end_asking(state, sql, refused, applied)?;
        let idle = state.active().is_none();
        let serve = match granted {
            GrantReply::Refused => GrantDecision::Refused,
            // The addition is for a subagent of this thread.
            GrantReply::Add(caps) if idle => GrantDecision::More(Some(*caps)),
            GrantReply::Add(_) | GrantReply::Free => GrantDecision::More(None),
        };
        let before = lent_apart(state);
        self.serve_children(state, sql, serve, applied)?;
        if !idle || state.active().is_some() {
            return Ok(());
        }
        // No run here could use the rest. Amounts that were passed on count as used.
        let mut passed = lent_apart(state);
        passed.take(&before);
        let books = self.settle_grant(state, None);
        match books {
            Some(UsageReport { spent, back }) => {
                let books = UsageReport { spent: spent.and(&passed), back };
                self.subagents().send_to_parent(state, sql, EnvelopeBody::Books(books))
            }
            None => Ok(()),
        }
    }

    /// Continues, finishes or fails the run that requested more.
    fn end_asking(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        refused: bool,
        applied: &mut FollowUp,
    ) -> Result<()> {
        if state.meta.waits == 0 {
            return Ok(());
        }
        let asks = |wait: &waits::Wait| {
            let of_parent =
                wait.asked.budget.as_ref().is_some_and(|asked| asked.scope == BudgetScope::Parent);
            wait.kind == WaitKind::Budget && of_parent
        };
        let Some(mut wait) = waits::open(sql)?.into_iter().find(asks) else { return Ok(()) };
        let now = self.host.now_us();
        let word = if refused { "deny" } else { "extend" };
        let decision = Decision { decision: word.into(), scope: "parent".into(), ..Decision::default() };
        self.waits().close_wait(state, sql, &mut wait, WaitState::Decided, Some(decision))?;
        let finishes = state.active_mut()?.ledger.as_mut().filter(|_| refused).is_some_and(|ledger| {
            let finishes =
                ledger.policy.on_exceeded == OnExceeded::Finish && ledger.finishing == FinalStep::No;
            if finishes {
                ledger.finishing = FinalStep::Reserved;
            }
            finishes
        });
        if refused && !finishes {
            let text = wait.asked.reason.clone().unwrap_or_default();
            let failed = self.control().halt_saying(state, sql, Reason::BudgetExceeded, Some(text), now)?;
            applied.failed = Some(failed);
        } else {
            applied.entry = self.waits().resume_after(state, sql, &wait)?.or(applied.entry);
        }
        applied.closed.push(wait);
        Ok(())
    }
}

fn lent_apart(state: &State) -> Amounts {
    state.meta.budget.as_ref().map(|budget| budget.lent).unwrap_or_default()
}
