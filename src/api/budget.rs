//! `GET` and `PATCH …/budget`: what a thread may use and has used (docs/budgets.md).

use serde_json::{Map, Value};

use crate::api::Api;
use crate::definitions::budget::{Caps, Unit};
use crate::engine::budget::budget_input::given_limits;
use crate::error::Result;
use crate::limits;
use crate::protocols::responses::budgets::{
    BudgetLimits, BudgetScope, BudgetSpent, LentAmounts, LentShare, SharedAmounts, ThreadBudget,
};
use crate::request::{Reply, ThreadRequest};
use crate::store::children as registry;
use crate::store::children::Child;
use crate::store::runs::ledger::{Amounts, Ledger};
use crate::store::waits;
use crate::store::waits::WaitKind;

impl Api<'_> {
    /// `GET …/budget`.
    pub(super) fn get_budget(&self) -> Result<Reply> {
        let shown = self.read(|state, sql| {
            let run = state.run.as_ref();
            let (ledger, steps) =
                match run.and_then(|run| Some((run.ledger.as_deref()?.clone(), run.steps_done()))) {
                    Some(kept) => kept,
                    // The limits of the next run.
                    None => (self.budgets().new_ledger(state, sql, None)?.unwrap_or_default(), 0),
                };
            let mut ledger = ledger;
            let mut errand = None;
            // Limits and use since the last run ended apply to the next run.
            if state.active().is_none() {
                let kept = state.meta.budget.as_deref().cloned().unwrap_or_default();
                (ledger.lent, ledger.late) = (kept.lent, kept.late);
                errand = run.and_then(|run| kept.ended_run(run.id).cloned());
                for (unit, cap) in Unit::ALL.into_iter().zip(errand.iter().flat_map(|errand| errand.caps)) {
                    cap.into_iter().for_each(|cap| ledger.set_cap(BudgetScope::Run, unit, cap));
                }
                for (unit, cap) in Unit::ALL.into_iter().zip(kept.raised) {
                    cap.into_iter().for_each(|cap| ledger.set_cap(BudgetScope::Thread, unit, cap));
                }
            }
            let now = self.ephemeral.spending.beside(self.host.now_us());
            let wait = match state.meta.waits {
                0 => None,
                _ => waits::open(sql)?.into_iter().find(|wait| wait.kind == WaitKind::Budget),
            };
            let of_parent = ledger.caps(BudgetScope::Parent);
            let parent = of_parent.iter().any(Option::is_some);
            let used = |scope| ledger.used_of(scope, steps).and(&now);
            Ok(ThreadBudget {
                run: run.map(|run| run.public_id()),
                limits: BudgetLimits {
                    run: limits_of(ledger.caps(BudgetScope::Run)),
                    thread: limits_of(ledger.caps(BudgetScope::Thread)),
                    parent: parent.then(|| limits_of(of_parent)),
                },
                spent: BudgetSpent {
                    run: amounts(&used(BudgetScope::Run)),
                    thread: amounts(&used(BudgetScope::Thread)),
                    parent: parent.then(|| amounts(&used(BudgetScope::Parent))),
                },
                lent: lent(&ledger, &registry::all(sql)?),
                left: left(&ledger, &|scope| match &errand {
                    // The use of its subagents since then counts toward its limits.
                    Some(errand) if scope == BudgetScope::Run => errand.used.and(&now),
                    _ => used(scope),
                }),
                estimated: ledger.estimated,
                wait: wait.map(|wait| wait.public_id(&state.meta.stem)),
            })
        })?;
        Ok(Reply::json(200, &shown))
    }

    /// `PATCH …/budget`.
    pub(super) fn patch_budget(&self, request: &ThreadRequest) -> Result<Reply> {
        let limits = given_limits(&request.body)?;
        self.budgets().set_limits(&limits, &request.caller)?;
        self.get_budget()
    }
}

/// Limits in the format of definitions.
fn limits_of(caps: &Caps) -> Map<String, Value> {
    let set = Unit::ALL.into_iter().zip(caps).filter_map(|(unit, cap)| Some((unit, (*cap)?)));
    set.map(|(unit, cap)| (unit.field().to_owned(), unit.shown(cap))).collect()
}

fn amounts(of: &Amounts) -> Map<String, Value> {
    Unit::ALL.into_iter().map(|unit| (unit.name().to_owned(), unit.shown(of.get(unit)))).collect()
}

/// Amounts that are reserved for children, with the children.
fn lent(ledger: &Ledger, children: &[Child]) -> LentAmounts {
    let holders = children.iter().rev().filter_map(|child| {
        let budget = child.budget.as_ref().filter(|budget| budget.granted != Amounts::default())?;
        Some(LentShare {
            granted: shared(&budget.granted),
            id: child.reference.clone(),
            spent: shared(&budget.spent),
        })
    });
    LentAmounts { total: shared(&ledger.lent), children: holders.take(limits::PAGE_MAX as usize).collect() }
}

fn shared(of: &Amounts) -> SharedAmounts {
    SharedAmounts {
        cost_usd: Unit::Cost.shown(of.get(Unit::Cost)),
        tokens: of.get(Unit::Tokens),
        model_calls: of.get(Unit::ModelCalls),
    }
}

/// The remainder of each amount that has a limit.
fn left(ledger: &Ledger, used: &dyn Fn(BudgetScope) -> Amounts) -> Map<String, Value> {
    let of = |unit: Unit| {
        let left = BudgetScope::ALL.into_iter().filter_map(|scope| {
            let used = used(scope).and(&ledger.lent).get(unit);
            Some(ledger.cap(scope, unit)?.saturating_sub(used).max(0))
        });
        Some((unit.name().to_owned(), unit.shown(left.min()?)))
    };
    Unit::ALL.into_iter().filter_map(of).collect()
}
