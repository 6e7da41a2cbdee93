//! Budgets (docs/budgets.md). The rest of a run's budget is checked before each model attempt and each tool call.
//! Usage is charged in the transition that stores its cause. The sums are in the run's row (`store/runs/ledger`).
//! A run without limits has no ledger and no cost here.
//!
//! * Here: the ledger of a new run, reservations, and the end of a run. `reserve`: checks the next model attempt
//!   and caps its answer. `charge`: charges attempts. `exceeded`: the consequence of a reached limit. `estimate`:
//!   tokens and prices; `attempt_size`: the size of an attempt. `budget_input`: budgets in requests.
//! * `vectors`: checks requests for vectors. `allocate`: grants to subagents. `draw`: a subagent's own grant;
//!   `request`: requests for more of it. `retain`: grants that outlive their run. `detached`: usage outside runs.

pub(super) mod allocate;
mod attempt_size;
pub(crate) mod budget_input;
mod charge;
mod detached;
mod draw;
pub(super) mod estimate;
pub(super) mod exceeded;
mod request;
mod reserve;
mod retain;
pub(super) mod vectors;

use std::cell::{Cell, RefCell};

use serde_json::Value;

use crate::definitions::budget::{Budget, Unit};
use crate::engine::features::Budgets;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::protocols::responses::frames::live::BudgetFrame;
use crate::store::runs::Run;
use crate::store::runs::diagnostics::{Diagnostic, Kind};
use crate::store::runs::ledger::{Amounts, BudgetScope, Ledger};
use crate::store::state::State;
use crate::store::thread_budget::ThreadBudget;

/// Budget state that exists only in memory.
#[derive(Default)]
pub(crate) struct ReservedAmounts {
    /// Reservations: the id, whether it is outside the run, and the maximum usage.
    underway: RefCell<Vec<(u64, bool, Amounts)>>,
    next: Cell<u64>,
    /// The start of the run's active time that is not charged yet.
    since_us: Cell<Option<i64>>,
    /// Lost attempts of the run, not charged yet.
    cut: Cell<usize>,
}

/// An attempt in progress. Its maximum usage is reserved until this is dropped.
pub(crate) struct Reservation {
    thread: Thread,
    id: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.thread.ephemeral.spending.underway.borrow_mut().retain(|(id, _, _)| *id != self.id);
    }
}

/// A limit that is close or reached, for clients and the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitStatus {
    pub(super) scope: BudgetScope,
    pub(super) unit: Unit,
    pub(super) spent: i64,
    pub(super) limit: i64,
}

impl ReservedAmounts {
    /// Reserves the maximum usage of an attempt.
    fn begins(thread: &Thread, apart: bool, used: Amounts) -> Reservation {
        let spending = &thread.ephemeral.spending;
        let id = spending.next.get() + 1;
        spending.next.set(id);
        spending.underway.borrow_mut().push((id, apart, used));
        Reservation { thread: thread.clone(), id }
    }

    /// All reservations, of the run and outside it.
    fn all(&self) -> Amounts {
        self.underway.borrow().iter().fold(Amounts::default(), |sum, (_, _, used)| sum.and(used))
    }

    /// The run's reservations: their number and sum.
    fn of_run(&self) -> (usize, Amounts) {
        let underway = self.underway.borrow();
        let of_run = underway.iter().filter(|(_, apart, _)| !apart);
        of_run.fold((0, Amounts::default()), |(n, sum), (_, _, used)| (n + 1, sum.and(used)))
    }

    /// All reservations, plus the active time that is not charged yet.
    pub(crate) fn beside(&self, now: i64) -> Amounts {
        self.all().and(&Amounts::of(Unit::Time, self.uncharged_us(now)))
    }

    /// Starts or stops the run's active time.
    pub(super) fn active(&self, since_us: Option<i64>) {
        self.since_us.set(since_us);
    }

    /// Counts an attempt of the run that is in the log but whose end is lost.
    pub(super) fn cut_off(&self) {
        self.cut.set(self.cut.get() + 1);
    }

    /// The active time that is not charged yet.
    fn uncharged_us(&self, now: i64) -> i64 {
        self.since_us.get().map_or(0, |since| (now - since).max(0))
    }
}

impl Budgets<'_> {
    /// A new run, with its ledger.
    pub(super) fn with_budget(
        &self,
        state: &State,
        sql: &dyn Sql,
        run: Run,
        message: Option<&Budget>,
    ) -> Result<Run> {
        Ok(Run { ledger: self.new_ledger(state, sql, message)?.map(Box::new), ..run })
    }

    /// The ledger of the next run.
    pub(crate) fn new_ledger(
        &self,
        state: &State,
        sql: &dyn Sql,
        message: Option<&Budget>,
    ) -> Result<Option<Ledger>> {
        let agent = self.catalog.agents.get(&state.meta.agent).map(|agent| &agent.budget);
        let folder = &self.catalog.settings.budget;
        let kept = state.meta.budget.as_deref();
        let given = kept.and_then(|kept| kept.given.as_ref());
        let levels: Vec<&Budget> = given.into_iter().chain(agent).chain([folder]).collect();
        let raised = kept.map(|kept| &kept.raised);
        let grant = state.meta.parent.as_ref().and_then(|parent| parent.grant);
        let Some(mut ledger) = Ledger::of(&levels, raised, message, grant.map(|grant| grant.caps())) else {
            return Ok(None);
        };
        ledger.late = kept.map(ThreadBudget::apart).unwrap_or_default();
        ledger.before = self.spent_before(state, sql, &ledger)?;
        Ok(Some(ledger))
    }

    /// The usage of the thread's earlier runs. If the last run's ledger lacks it, it is read once from the
    /// log, provided that anything limits the thread.
    fn spent_before(&self, state: &State, sql: &dyn Sql, ledger: &Ledger) -> Result<Option<Amounts>> {
        let Some(last) = &state.run else { return Ok(Some(Amounts::default())) };
        if let Some(last_ledger) = &last.ledger
            && let Some(before) = &last_ledger.before
        {
            return Ok(Some(last_ledger.used(last.step).and(before)));
        }
        if !ledger.limits_thread() {
            return Ok(None);
        }
        crate::store::runs::totals::of_thread(sql).map(Some)
    }

    /// Charges the active time since the last charge, inside a transition that writes the run's row.
    pub(super) fn charge_time(&self, run: &mut Run, now: i64) {
        if let Some(ledger) = &mut run.ledger {
            let us = self.ephemeral.spending.uncharged_us(now);
            ledger.charge(&Amounts::of(Unit::Time, us));
            if self.ephemeral.spending.since_us.get().is_some() {
                self.ephemeral.spending.since_us.set(Some(now));
            }
        }
    }

    /// The limits that are close now, noted as diagnostics in a transition that writes the run's row. The
    /// caller announces them afterwards.
    pub(super) fn limits_close_to(&self, run: &mut Run, now: i64) -> Vec<LimitStatus> {
        let steps = run.steps_done();
        let Some(ledger) = &mut run.ledger else { return Vec::new() };
        let mut near = Vec::new();
        for (scope, unit, spent, limit) in ledger.warnings(steps) {
            let subject = format!("{}.{}", scope.as_str(), unit.field());
            let text = format!(
                "The budget of the {} is nearly used up: {} of {} {}.",
                scope.as_str(),
                unit.shown(spent),
                unit.shown(limit),
                unit.name()
            );
            let entry = Diagnostic::warning(Kind::Workflow, "budget.warning", ("limit", &subject), text, now);
            run.diagnostics.add(entry);
            near.push(LimitStatus { scope, unit, spent, limit });
        }
        near
    }

    /// Sends budget events to clients.
    pub(super) fn announce_budget(&self, kind: &str, reached: &[LimitStatus]) {
        for reached in reached {
            self.announce("budget", reached.to_json(kind));
        }
    }

    /// Charges the attempts that [`ReservedAmounts::cut_off`] has counted, inside the transition that logs them.
    pub(super) fn charge_cut_off(&self, state: &mut State, sql: &dyn Sql) -> Result<()> {
        let cut = u32::try_from(self.ephemeral.spending.cut.take()).unwrap_or(u32::MAX);
        if cut == 0 || state.active().is_none_or(|run| run.ledger.is_none()) {
            return Ok(());
        }
        let bound = self.unknown_attempt(&state.meta.agent, state.run.as_ref());
        let run = state.active_mut()?;
        let steps = run.steps_done();
        if let Some(ledger) = &mut run.ledger {
            ledger.charge_unknown(steps, &bound, cut);
        }
        run.update(sql)
    }

    /// Closes the run's ledger inside the transition that ends the run. Attempts in progress are charged at
    /// their maximum.
    pub(super) fn close_ledger(&self, state: &mut State, sql: &dyn Sql, now: i64) -> Result<()> {
        let spending = &self.ephemeral.spending;
        let cut = spending.cut.take();
        let run = state.active_mut()?;
        if run.ledger.is_none() {
            return Ok(());
        }
        self.charge_time(run, now);
        let (n, underway) = spending.of_run();
        let bound = self.unknown_attempt(&state.meta.agent, state.run.as_ref());
        let run = state.active_mut()?;
        let steps = run.steps_done();
        let Some(ledger) = &mut run.ledger else { return Ok(()) };
        ledger.close_step();
        ledger.charge(&underway);
        let unknown = ledger.unseen.saturating_add(u32::try_from(cut.saturating_sub(n)).unwrap_or(u32::MAX));
        ledger.unseen = 0;
        ledger.charge_unknown(steps, &bound, unknown);
        ledger.close_children();
        self.retain_allocations(state, sql)
    }
}

impl LimitStatus {
    pub(super) fn to_json(self, kind: &str) -> Value {
        json!(BudgetFrame {
            kind,
            scope: self.scope,
            unit: self.unit.name(),
            spent: self.unit.shown(self.spent),
            limit: self.unit.shown(self.limit),
        })
    }
}
