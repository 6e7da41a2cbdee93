//! `GET` and `PATCH …/budget`: what a thread may use and has used (docs/budgets.md).

use serde_json::{Map, Value};

use crate::api::Api;
use crate::definitions::budget::{Caps, Unit};
use crate::engine::budget::budget_input::given_limits;
use crate::error::Result;
use crate::json;
use crate::limits;
use crate::request::{Reply, ThreadRequest};
use crate::store::children as registry;
use crate::store::children::Child;
use crate::store::runs::ledger::{Amounts, BudgetScope, Ledger};
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
            let shown = |scope: &BudgetScope| {
                *scope != BudgetScope::Parent || ledger.caps(*scope).iter().any(Option::is_some)
            };
            let scopes = |of: &dyn Fn(BudgetScope) -> Map<String, Value>| -> Map<String, Value> {
                let scopes = BudgetScope::ALL.into_iter().filter(shown);
                scopes.map(|scope| (scope.as_str().to_owned(), of(scope).into())).collect()
            };
            let used = |scope| ledger.used_of(scope, steps).and(&now);
            Ok(json!({
                "run": run.map(|run| run.public_id()),
                "limits": scopes(&|scope| limits_of(ledger.caps(scope))),
                "spent": scopes(&|scope| amounts(&used(scope))),
                "lent": lent(&ledger, &registry::all(sql)?),
                "left": left(&ledger, &|scope| match &errand {
                    // The use of its subagents since then counts toward its limits.
                    Some(errand) if scope == BudgetScope::Run => errand.used.and(&now),
                    _ => used(scope),
                }),
                "estimated": ledger.estimated,
                "wait": wait.map(|wait| wait.public_id(&state.meta.stem)),
            }))
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
fn lent(ledger: &Ledger, children: &[Child]) -> Map<String, Value> {
    let mut lent = shared(&ledger.lent);
    let holders = children.iter().rev().filter_map(|child| {
        let budget = child.budget.as_ref().filter(|budget| budget.granted != Amounts::default())?;
        let mut holder = shared(&budget.granted);
        holder.insert("id".into(), child.reference.as_str().into());
        holder.insert("spent".into(), shared(&budget.spent).into());
        Some(Value::Object(holder))
    });
    lent.insert("children".into(), holders.take(limits::PAGE_MAX as usize).collect());
    lent
}

fn shared(of: &Amounts) -> Map<String, Value> {
    Unit::SHARED.into_iter().map(|unit| (unit.name().to_owned(), unit.shown(of.get(unit)))).collect()
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
