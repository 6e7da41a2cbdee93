//! The effects of a decision about a run that has reached its budget, or of its expiry (docs/budgets.md).
//! `budget_question` asks.

use crate::definitions::budget::{Caps, Limits, OnExceeded, Unit};
use crate::engine::budget::LimitStatus;
use crate::engine::budget::allocate::{GrantDecision, last_run};
use crate::engine::budget::exceeded::ExceededLimit;
use crate::engine::cycle::run_end::HaltedRun;
use crate::engine::features::Waits;
use crate::engine::subagents::follow_up::FollowUp;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::sdk::scope::EntryMode;
use crate::store::log_record::Event;
use crate::store::runs::Run;
use crate::store::runs::end::Reason;
use crate::store::runs::ledger::{BudgetScope, FinalStep};
use crate::store::state::State;
use crate::store::thread_budget::EndedRunBudget;
use crate::store::waits::{BudgetQuestion, OnExpiry, Wait};

/// The outcome for a run that asked.
pub(super) enum Outcome<'a> {
    /// It continues with these additional amounts.
    Extended(&'a Limits),
    /// It has one last step.
    Finishes,
    /// It fails, with an additional text for people.
    Fails(String),
}

impl Outcome<'_> {
    /// The run's policy at its next limit.
    const fn at_next_limit(&self) -> OnExceeded {
        match self {
            Outcome::Finishes => OnExceeded::Finish,
            Outcome::Extended(_) | Outcome::Fails(_) => OnExceeded::Fail,
        }
    }
}

/// The effects of a settled wait.
#[derive(Default)]
pub(super) struct Settlement {
    /// How the flow enters the run that continues.
    pub(super) entry: Option<EntryMode>,
    /// The run that has ended.
    pub(super) halted: Option<HaltedRun>,
    /// Budget events for clients.
    pub(super) told: Vec<(&'static str, LimitStatus)>,
    /// Other waits that opened or closed.
    pub(super) waits: Vec<Wait>,
}

/// The outcome of a wait that expired.
pub(super) fn expired(wait: &Wait, text: String) -> Outcome<'static> {
    match wait.asked.on_expiry {
        OnExpiry::Finish => Outcome::Finishes,
        _ => Outcome::Fails(text),
    }
}

/// Whether the question is about the limit of an ended run, which is kept for its subagents.
fn has_ended_run(state: &State, asked: &BudgetQuestion) -> bool {
    let ended_run = |run| state.meta.budget.as_ref().and_then(|kept| kept.ended_run(run));
    asked.of_run.and_then(ended_run).is_some()
}

/// Prevents further questions in a run, for itself and for its subagents. `then`: the run's policy at its
/// next limit.
fn deny_more(state: &mut State, asked: &BudgetQuestion, then: OnExceeded) {
    let last = last_run(state);
    let kept = state.meta.budget.as_mut().zip(asked.of_run);
    if let Some(ended_run) = kept.and_then(|(kept, run)| kept.ended_run_mut(run)) {
        ended_run.denied = true;
        return;
    }
    match state.active_mut().ok().and_then(|run| run.ledger.as_mut()) {
        Some(ledger) => {
            ledger.denied = true;
            ledger.policy.on_exceeded = then;
        }
        None => state.meta.budget.get_or_insert_default().denied = last,
    }
}

/// The consequence for subagents that wait for more.
fn what_children_get(state: &State, asked: &BudgetQuestion, outcome: &Outcome<'_>) -> GrantDecision {
    match outcome {
        // If no run with this limit is active, the subagents receive the added amounts themselves.
        Outcome::Extended(add) => {
            let over = state.active().is_none_or(|run| run.ledger.is_none()) && !has_ended_run(state, asked);
            GrantDecision::More((over && asked.scope == BudgetScope::Run).then(|| add.caps()))
        }
        _ => GrantDecision::Refused,
    }
}

impl Waits<'_> {
    /// Applies the outcome to the run, inside the transition that closes the wait.
    pub(super) fn settle_budget(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        wait: &Wait,
        outcome: Outcome<'_>,
    ) -> Result<Settlement> {
        let Some(asked) = &wait.asked.budget else {
            return Err(Error::internal("a wait for a budget does not say which"));
        };
        let now = self.host.now_us();
        let mut settled = Settlement::default();
        let kept = state.meta.budget.clone();
        let mut reached =
            LimitStatus { scope: asked.scope, unit: asked.unit, spent: asked.spent, limit: asked.limit };
        let serve = what_children_get(state, asked, &outcome);
        let then = outcome.at_next_limit();
        let kind = match outcome {
            Outcome::Extended(add) => {
                reached.limit = self.extend_budget(state, asked, add)?;
                "extended"
            }
            // For a subagent: its own definition says how it finishes.
            Outcome::Finishes | Outcome::Fails(_) if wait.run.is_none() => {
                deny_more(state, asked, then);
                "exceeded"
            }
            Outcome::Finishes => {
                deny_more(state, asked, then);
                if let Some(ledger) = &mut state.active_mut()?.ledger {
                    ledger.finishing = FinalStep::Decided;
                }
                "exceeded"
            }
            Outcome::Fails(why) => {
                deny_more(state, asked, then);
                let text = format!("{} {why}", ExceededLimit::of(asked).text());
                Event::budget(state.active(), "exceeded", reached.to_json("exceeded")).insert(sql, now)?;
                settled.halted =
                    Some(self.control().halt_saying(state, sql, Reason::BudgetExceeded, Some(text), now)?);
                settled.told.push(("exceeded", reached));
                self.settle_children(state, sql, serve, &mut settled)?;
                return Ok(settled);
            }
        };
        if state.meta.budget != kept {
            state.meta.update(sql)?;
        }
        Event::budget(state.active(), kind, reached.to_json(kind)).insert(sql, now)?;
        settled.told.push((kind, reached));
        settled.entry = self.resume_after(state, sql, wait)?;
        if settled.entry.is_none()
            && let Ok(run) = state.active_mut()
        {
            run.update(sql)?;
        }
        self.settle_children(state, sql, serve, &mut settled)?;
        Ok(settled)
    }

    fn settle_children(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        serve: GrantDecision,
        settled: &mut Settlement,
    ) -> Result<()> {
        let mut applied = FollowUp::default();
        self.budgets().serve_children(state, sql, serve, &mut applied)?;
        settled.waits.extend(applied.closed);
        settled.told.extend(applied.budgets);
        Ok(())
    }

    /// Raises limits to the current usage plus the added amounts. Returns the new limit of the unit in
    /// question.
    fn extend_budget(&self, state: &mut State, asked: &BudgetQuestion, add: &Limits) -> Result<i64> {
        let BudgetQuestion { scope, unit, needed, .. } = *asked;
        let added = add.caps();
        let own = added.get(unit as usize).copied().flatten().unwrap_or(0);
        if own < needed.max(1) {
            let field = format!("add.{}", unit.field());
            let text = format!("`{field}` is less than the {} that the next step needs.", unit.shown(needed));
            return Err(Error::field(&field, text).hint("With less the run would ask again at once."));
        }
        let ceiling = self.ceiling(scope);
        let kept = state.meta.budget.as_mut().zip(asked.of_run);
        if let Some(ended_run) = kept.and_then(|(kept, run)| kept.ended_run_mut(run)) {
            return extend_ended_run(ended_run, &added, unit, &ceiling);
        }
        let Some(steps) = state.active().filter(|run| run.ledger.is_some()).map(Run::steps_done) else {
            // The granting run has ended. The subagent receives the added amounts itself.
            within_ceiling(
                &ceiling,
                unit,
                asked.spent.saturating_add(own),
                &format!("add.{}", unit.field()),
            )?;
            if scope == BudgetScope::Thread {
                let raised = asked.limit.max(asked.spent.saturating_add(own));
                state.meta.budget.get_or_insert_default().raise(unit, raised);
            }
            return Ok(asked.limit.max(asked.spent.saturating_add(own)));
        };
        let mut limit = own;
        for of in Unit::ALL {
            let Some(more) = added.get(of as usize).copied().flatten().filter(|more| *more > 0) else {
                continue;
            };
            let Some(ledger) = &mut state.active_mut()?.ledger else { continue };
            let Some(cap) = ledger.cap(scope, of) else {
                let field = format!("add.{}", of.field());
                let text = format!("Nothing limits `{}` of the {}.", of.field(), scope.as_str());
                return Err(Error::field(&field, text));
            };
            let used = ledger.used_of(scope, steps).and(&ledger.lent).get(of);
            let raised = cap.max(used.saturating_add(more));
            within_ceiling(&ceiling, of, raised, &format!("add.{}", of.field()))?;
            ledger.set_cap(scope, of, raised);
            if scope == BudgetScope::Thread {
                state.meta.budget.get_or_insert_default().raise(of, raised);
            }
            if of == unit {
                limit = raised;
            }
        }
        Ok(limit)
    }

    /// The limits up to which people may raise a budget.
    pub(crate) fn ceiling(&self, scope: BudgetScope) -> Caps {
        let ceiling = self.catalog.settings.budget.ceiling.as_ref();
        ceiling.map_or(Caps::default(), |ceiling| match scope {
            BudgetScope::Run => ceiling.run.caps(),
            BudgetScope::Thread => ceiling.thread.caps(),
            BudgetScope::Parent => Caps::default(),
        })
    }
}

/// Raises the kept limits of an ended run, for its subagents. Returns the new limit of the unit in question.
fn extend_ended_run(ended_run: &mut EndedRunBudget, added: &Caps, unit: Unit, ceiling: &Caps) -> Result<i64> {
    for of in Unit::ALL {
        let Some(more) = added.get(of as usize).copied().flatten().filter(|more| *more > 0) else { continue };
        let field = format!("add.{}", of.field());
        let limit = ended_run.of(of).filter(|_| Unit::SHARED.contains(&of));
        let Some((cap, used)) = limit else {
            let text = format!("Nothing that subagents share limits `{}` of the run.", of.field());
            return Err(Error::field(&field, text));
        };
        let raised = cap.max(used.saturating_add(more));
        within_ceiling(ceiling, of, raised, &field)?;
        ended_run.raise(of, raised);
    }
    Ok(ended_run.of(unit).map_or(0, |(cap, _)| cap))
}

/// Refuses a limit above the ceiling.
pub(crate) fn within_ceiling(ceiling: &Caps, unit: Unit, cap: i64, field: &str) -> Result<()> {
    match ceiling.get(unit as usize).copied().flatten() {
        Some(most) if cap > most => {
            let text =
                format!("`{field}` is more than the ceiling of bobbin.json allows: {}.", unit.shown(most));
            Err(Error::new(Code::Forbidden, text).at(field))
        }
        _ => Ok(()),
    }
}
