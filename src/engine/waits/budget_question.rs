//! Questions about spending: a run, or a subagent, has used up its budget.

use crate::definitions::budget::BudgetExpiry;
use crate::engine::budget::exceeded::ExceededLimit;
use crate::engine::features::Waits;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::store::log_record::Event;
use crate::store::runs::ledger::{BudgetScope, Policy};
use crate::store::state::State;
use crate::store::waits;
use crate::store::waits::{BudgetQuestion, OnExpiry, Wait, WaitData, WaitKind, WaitState};

impl Waits<'_> {
    /// Parks the run until there is a decision. It never returns.
    pub(crate) async fn ask_for_budget<T>(&self, exceeded: ExceededLimit) -> Result<T> {
        let now = self.host.now_us();
        let opened = self.transition(|state, sql| {
            Event::budget(state.active(), "asked", exceeded.reached().to_json("asked")).insert(sql, now)?;
            let opened = self.open_own_wait(state, sql, exceeded)?;
            self.park_run(state, sql)?;
            Ok(opened)
        })?;
        self.budgets().announce_budget("asked", &[exceeded.reached()]);
        self.end_parked_flow(&opened).await
    }

    /// Opens the wait of the active run. It replaces the open waits for subagents.
    pub(crate) fn open_own_wait(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        exceeded: ExceededLimit,
    ) -> Result<Vec<Wait>> {
        let policy = state.active_mut()?.ledger.as_ref().map(|ledger| ledger.policy);
        let policy = policy.ok_or_else(|| Error::internal("a run without a budget asks about it"))?;
        let mut changed = Vec::new();
        if state.meta.waits > 0 && exceeded.scope != BudgetScope::Parent {
            let for_child = |wait: &Wait| wait.kind == WaitKind::Budget && wait.run.is_none();
            for mut wait in waits::open(sql)?.into_iter().filter(for_child) {
                self.close_wait(state, sql, &mut wait, WaitState::Void, None)?;
                changed.push(wait);
            }
        }
        changed.push(self.open_budget_wait(state, sql, &exceeded.question(), &policy)?);
        Ok(changed)
    }

    /// Opens a wait for the active run, or for a subagent; the latter belongs to no run.
    pub(crate) fn open_budget_wait(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        budget: &BudgetQuestion,
        policy: &Policy,
    ) -> Result<Wait> {
        let now = self.host.now_us();
        let (exceeded, for_child) = (ExceededLimit::of(budget), budget.for_child.as_deref());
        let run = state.active().map(|run| run.id).filter(|_| for_child.is_none());
        let asked = WaitData {
            title: match for_child {
                Some(child) => format!("The budget is used up; the subagent {child} needs more"),
                None => format!("The budget of the {} is used up", exceeded.scope.as_str()),
            },
            reason: Some(exceeded.text()),
            on_expiry: match policy.on_expiry {
                BudgetExpiry::Finish => OnExpiry::Finish,
                BudgetExpiry::Fail => OnExpiry::Fail,
            },
            budget: Some(budget.clone()),
            ..WaitData::default()
        };
        // No expiry of its own: the parent replies as soon as there is a decision in its thread.
        let lasts = if exceeded.scope == BudgetScope::Parent { u64::MAX } else { policy.ask_expires_s };
        let lasts = i64::try_from(lasts).unwrap_or(i64::MAX).saturating_mul(limits::SECOND_US);
        let wait = Wait {
            id: 0,
            kind: WaitKind::Budget,
            state: WaitState::Open,
            run,
            receipt: None,
            batch: None,
            digest: None,
            asked,
            decision: None,
            created_us: now,
            expires_us: now + lasts.min(limits::WAIT_MAX_US),
            closed_us: None,
        };
        self.write_wait(state, sql, wait)
    }
}
