//! What a run lends to its subagents: with the letter that makes one or writes to it, and when one asks for more. What they have
//! used comes back with their reports. All of it is on the child's row, which is written anyway.

use crate::engine::budget::Reached;
use crate::engine::budget::exceeded::Exceeded;
use crate::engine::subagents::applied::Applied;
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::spec::budget::{Caps, Limits, OnExceeded, Share, Unit};
use crate::spec::message::ToolResult;
use crate::store::children::Child;
use crate::store::grants::{Books, ChildBudget, Granted, Need, held};
use crate::store::log::Event;
use crate::store::runs::ledger::{Amounts, BudgetScope, Ledger};
use crate::store::state::State;
use crate::store::thread_budget::ThreadBudget;
use crate::store::waits;
use crate::store::waits::{Decision, WaitKind, WaitState};

/// A limit, and what is used of it.
#[derive(Clone, Copy)]
struct Limit {
    scope: BudgetScope,
    cap: i64,
    used: i64,
}

/// What follows for children that wait for more.
#[derive(Clone, Copy)]
pub(crate) enum Serve {
    /// There is more to lend: what is left, or so much that was added where no run is active that it could be left of.
    More(Option<Caps>),
    /// There is not.
    Refused,
}

/// The tightest limit of a shared unit.
fn tightest(ledger: &Ledger, steps: u32, beside: &Amounts, unit: Unit) -> Option<Limit> {
    let of = |scope: BudgetScope| {
        let cap = ledger.cap(scope, unit)?;
        let used = ledger.used_of(scope, steps).and(&ledger.lent).and(beside).get(unit);
        Some(Limit { scope, cap, used })
    };
    BudgetScope::ALL.into_iter().filter_map(of).min_by_key(|limit| limit.cap.saturating_sub(limit.used))
}

impl Thread {
    /// The books of the active run, or of one that would begin now, and its steps.
    pub(crate) fn books(&self, state: &State, sql: &dyn Sql) -> Result<Option<(Ledger, u32)>> {
        if let Some(run) = state.active() {
            return Ok(run.ledger.as_deref().map(|ledger| (ledger.clone(), run.steps_done())));
        }
        let Some(mut ledger) = self.new_ledger(state, sql, None)? else { return Ok(None) };
        ledger.denied = state.meta.budget.as_ref().is_some_and(|kept| kept.denied == last_run(state));
        // What is lent already counts against the limits of a run, too.
        ledger.lent = state.meta.budget.as_ref().map(|budget| budget.lent).unwrap_or_default();
        ledger.late.take(&ledger.lent);
        Ok(Some((ledger, 0)))
    }

    /// What is left of each shared unit that is limited; none where nothing is.
    fn left_to_lend(&self, state: &State, sql: &dyn Sql) -> Result<Option<[Option<Limit>; 3]>> {
        let Some((ledger, steps)) = self.books(state, sql)? else { return Ok(None) };
        let beside = self.ephemeral.spending.all();
        let limits = Unit::SHARED.map(|unit| tightest(&ledger, steps, &beside, unit));
        Ok(limits.iter().any(Option::is_some).then_some(limits))
    }

    /// Lends to a child that is about to be written to; its row must be written afterwards. An error result if nothing is left.
    pub(crate) fn lend(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        entry: Option<&Share>,
        idle: bool,
    ) -> Result<Result<Option<Caps>, ToolResult>> {
        let Some(limits) = self.left_to_lend(state, sql)? else {
            if child.budget.take().is_some() {
                self.tell_child(state, sql, child, EnvelopeBody::Grant(Granted::Free))?;
            }
            return Ok(Ok(None));
        };
        let mut budget = child.budget.take().unwrap_or_else(|| Box::new(ChildBudget::of(entry)));
        self.adopt(state, sql, &mut budget)?;
        let mut caps = Caps::default();
        for (unit, limit) in Unit::SHARED.into_iter().zip(limits) {
            let Some(limit) = limit else { continue };
            let left = limit.cap.saturating_sub(limit.used);
            let more = if idle { 0 } else { budget.usual(unit, left).min(left).max(0) };
            if more == 0 && !idle && budget.granted.get(unit) == 0 {
                let exceeded =
                    Exceeded { scope: limit.scope, unit, limit: limit.cap, spent: limit.used, needed: 1 };
                return Ok(Err(exceeded.result()));
            }
            if let Some(place) = caps.get_mut(unit as usize) {
                *place = Some(more);
            }
        }
        self.hand_out(state, sql, &mut budget, &held(&caps))?;
        child.budget = Some(budget);
        Ok(Ok(Some(caps)))
    }

    /// What a child still holds of an earlier run is lent by the active one from now on.
    fn adopt(&self, state: &mut State, sql: &dyn Sql, budget: &mut ChildBudget) -> Result<()> {
        let run = lender(state);
        if budget.run == run {
            return Ok(());
        }
        if run != 0 && budget.granted != Amounts::default() {
            let apart = state.meta.budget.get_or_insert_default();
            apart.lent.take(&budget.granted);
            state.meta.update(sql)?;
            sync_apart(state);
            if let Some(ledger) = state.active_mut()?.ledger.as_mut() {
                ledger.lent.add(&budget.granted);
            }
        }
        (budget.run, budget.spent) = (run, Amounts::default());
        Ok(())
    }

    /// So much is lent.
    fn hand_out(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        budget: &mut ChildBudget,
        more: &Amounts,
    ) -> Result<()> {
        budget.granted.add(more);
        if let Some(ledger) = active_ledger(state) {
            ledger.lent.add(more);
            return Ok(());
        }
        state.meta.budget.get_or_insert_default().lent.add(more);
        state.meta.update(sql)
    }

    /// Books what a child has used, and takes back what it holds no more. Its row must be written afterwards.
    pub(crate) fn book_child(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        books: &Books,
    ) -> Result<()> {
        let budget = child.budget.get_or_insert_default();
        budget.granted.take(&books.back);
        budget.wanted = None;
        let is_lender = state.active().is_some_and(|run| run.id == budget.run);
        if let Some(ledger) = active_ledger(state).filter(|_| is_lender) {
            budget.spent.add(&books.spent);
            ledger.lent.take(&books.back);
            ledger.children.add(&books.spent);
            return Ok(());
        }
        let apart = state.meta.budget.get_or_insert_default();
        apart.lent.take(&books.back);
        apart.late.add(&books.spent);
        state.meta.update(sql)?;
        sync_apart(state);
        Ok(())
    }

    /// A child needs more than it has. Its row must be written afterwards.
    pub(crate) fn hear_need(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        (wanted, books): (&Need, &Books),
        applied: &mut Applied,
    ) -> Result<()> {
        self.book_child(state, sql, child, books)?;
        if !child.is_open() {
            return Ok(());
        }
        let Some(short) = self.grant_need(state, sql, child, wanted, None)? else { return Ok(()) };
        if self.may_ask(state, sql, short.scope)? {
            child.budget.get_or_insert_default().wanted = Some(wanted.clone());
            return self.want_more(state, sql, short, wanted, applied);
        }
        self.tell_child(state, sql, child, EnvelopeBody::Grant(Granted::Refused))
    }

    /// Lends what a child needs, if it is left; otherwise what it is short of.
    fn grant_need(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        wanted: &Need,
        added: Option<&Caps>,
    ) -> Result<Option<Exceeded>> {
        if let Some(exceeded) = passes_on(state, wanted).filter(|_| added.is_none()) {
            return Ok(Some(exceeded));
        }
        let limits = self.left_to_lend(state, sql)?;
        if limits.is_none() && added.is_none() {
            child.budget = None;
            self.tell_child(state, sql, child, EnvelopeBody::Grant(Granted::Free))?;
            return Ok(None);
        }
        let mut budget = child.budget.take().unwrap_or_default();
        let mut caps = Caps::default();
        let limits = limits.unwrap_or_default();
        for (unit, limit) in Unit::SHARED.into_iter().zip(limits) {
            let need = wanted.need.get(unit);
            let place = caps.get_mut(unit as usize);
            let added = added.and_then(|added| added.get(unit as usize).copied().flatten());
            match (limit, added, place) {
                (_, Some(added), Some(place)) => *place = Some(added),
                (Some(limit), None, Some(place)) => {
                    let left = limit.cap.saturating_sub(limit.used);
                    if need > left {
                        child.budget = Some(budget);
                        let Limit { scope, cap, used } = limit;
                        let exceeded = Exceeded { scope, unit, limit: cap, spent: used, needed: need };
                        return Ok(Some(exceeded));
                    }
                    *place = Some(budget.usual(unit, left).max(need).min(left).max(0));
                }
                _ => {}
            }
        }
        self.adopt(state, sql, &mut budget)?;
        budget.wanted = None;
        self.hand_out(state, sql, &mut budget, &held(&caps))?;
        child.budget = Some(budget);
        self.tell_child(state, sql, child, EnvelopeBody::Grant(Granted::Add(caps)))?;
        Ok(None)
    }

    /// Whether somebody may be asked for more.
    fn may_ask(&self, state: &State, sql: &dyn Sql, scope: BudgetScope) -> Result<bool> {
        if state.meta.stopped || state.meta.terminated_us.is_some() {
            return Ok(false);
        }
        if scope == BudgetScope::Parent {
            return Ok(true);
        }
        let books = self.books(state, sql)?;
        Ok(books.is_some_and(|(ledger, _)| ledger.policy.on_exceeded == OnExceeded::Ask && !ledger.denied))
    }

    /// Asks for what children are short of: the parent, or people; once, until that is answered.
    fn want_more(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        short: Exceeded,
        wanted: &Need,
        applied: &mut Applied,
    ) -> Result<()> {
        if short.scope == BudgetScope::Parent {
            return self.tell_need(state, sql, wanted);
        }
        if state.meta.waits > 0 && waits::open(sql)?.iter().any(|wait| wait.kind == WaitKind::Budget) {
            return Ok(());
        }
        let Some((ledger, _)) = self.books(state, sql)? else { return Ok(()) };
        let now = self.host.now_us();
        Event::budget(state.active(), "asked", short.reached().to_json("asked")).insert(sql, now)?;
        let wait = self.open_budget_wait(state, sql, short, &ledger.policy, Some(&wanted.by))?;
        applied.closed.push(wait);
        applied.budgets.push(("asked", short.reached()));
        Ok(())
    }

    /// Answers the children that wait for more. Whether one of them still does.
    pub(crate) fn serve_children(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        serve: Serve,
        applied: &mut Applied,
    ) -> Result<()> {
        let waiting: Vec<Child> =
            state.open_children(sql)?.iter().filter(|child| child.wants_more().is_some()).cloned().collect();
        let mut first = None;
        let mut rest = match serve {
            Serve::More(added) => added,
            Serve::Refused => None,
        };
        let passed_on = rest.is_some();
        let mut left = waiting.len();
        for mut child in waiting {
            let Some(wanted) = child.wants_more().cloned() else { continue };
            let part = rest.as_mut().and_then(|rest| part_of(rest, &wanted.need, left));
            left -= 1;
            match serve {
                Serve::Refused => {
                    child.budget.get_or_insert_default().wanted = None;
                    self.tell_child(state, sql, &mut child, EnvelopeBody::Grant(Granted::Refused))?;
                }
                Serve::More(_) if passed_on && part.is_none() => {
                    let short = passes_on(state, &wanted);
                    let short = match short {
                        Some(short) => Some(short),
                        None => self.grant_need(state, sql, &mut child, &wanted, None)?,
                    };
                    first = first.or(short.map(|short| (short, wanted)));
                }
                Serve::More(_) => {
                    let short = self.grant_need(state, sql, &mut child, &wanted, part.as_ref())?;
                    first = first.or(short.map(|short| (short, wanted)));
                }
            }
            state.update_child(sql, child)?;
        }
        let Some((short, wanted)) = first else { return self.close_served(state, sql, applied) };
        if self.may_ask(state, sql, short.scope)? {
            return self.want_more(state, sql, short, &wanted, applied);
        }
        self.serve_children(state, sql, Serve::Refused, applied)
    }

    /// Nobody is asked any more for children that have what they need.
    fn close_served(&self, state: &mut State, sql: &dyn Sql, applied: &mut Applied) -> Result<()> {
        if state.meta.waits == 0 {
            return Ok(());
        }
        let for_child =
            waits::open(sql)?.into_iter().filter(|wait| wait.kind == WaitKind::Budget && wait.run.is_none());
        for mut wait in for_child {
            self.close_wait(state, sql, &mut wait, WaitState::Void, None::<Decision>)?;
            applied.closed.push(wait);
        }
        Ok(())
    }

    /// What a run that ends has lent and not got back is the thread's from now on, inside the transition that ends it.
    pub(crate) fn leave_lent(&self, state: &mut State, sql: &dyn Sql, lent: &Amounts) -> Result<()> {
        if *lent == Amounts::default() {
            return Ok(());
        }
        state.meta.budget.get_or_insert_default().lent.add(lent);
        state.meta.update(sql)
    }
}

impl ChildBudget {
    /// That of a child which was never lent anything.
    fn of(entry: Option<&Share>) -> ChildBudget {
        let most = entry.and_then(|entry| entry.max_cost_usd);
        let limits = Limits { max_cost_usd: most, ..Limits::default() };
        ChildBudget {
            most: limits.caps().first().copied().flatten(),
            share: entry.and_then(|entry| entry.share).unwrap_or(limits::BUDGET_SHARE),
            ..ChildBudget::default()
        }
    }

    /// What it is lent of what is left, unless it needs more.
    fn usual(&self, unit: Unit, left: i64) -> i64 {
        let share = if self.share > 0.0 { self.share } else { limits::BUDGET_SHARE };
        let part = (left as f64 * share).ceil() as i64;
        match self.most.filter(|_| unit == Unit::Cost) {
            Some(most) => part.min(most.saturating_sub(self.granted.get(unit))),
            None => part,
        }
    }
}

impl Child {
    /// What it waits for.
    fn wants_more(&self) -> Option<&Need> {
        self.budget.as_ref().and_then(|budget| budget.wanted.as_ref())
    }
}

/// A subagent between its runs has nothing of its own to lend: what its child needs is for its parent to give.
fn passes_on(state: &State, wanted: &Need) -> Option<Exceeded> {
    state.meta.parent.as_ref()?.grant?;
    if state.active().is_some() {
        return None;
    }
    let unit = Unit::SHARED.into_iter().find(|unit| wanted.need.get(*unit) > 0)?;
    let needed = wanted.need.get(unit);
    Some(Exceeded { scope: BudgetScope::Parent, unit, limit: 0, spent: 0, needed })
}

/// What one of so many gets of what is there, if that is what it needs.
fn part_of(rest: &mut Caps, need: &Amounts, count: usize) -> Option<Caps> {
    let count = i64::try_from(count.max(1)).unwrap_or(1);
    let mut part = Caps::default();
    for unit in Unit::SHARED {
        let Some(left) = rest.get(unit as usize).copied().flatten() else { continue };
        let amount = need.get(unit).max(left / count);
        if amount > left {
            return None;
        }
        if let Some(place) = part.get_mut(unit as usize) {
            *place = Some(amount);
        }
    }
    for (rest, part) in rest.iter_mut().zip(&part) {
        if let (Some(rest), Some(part)) = (rest, part) {
            *rest -= part;
        }
    }
    Some(part)
}

/// The run that lends; 0 for none.
fn lender(state: &State) -> i64 {
    state.active().filter(|run| run.ledger.is_some()).map_or(0, |run| run.id)
}

/// The newest run, also if it is over; 0 for none.
pub(crate) fn last_run(state: &State) -> i64 {
    state.run.as_ref().map_or(0, |run| run.id)
}

fn active_ledger(state: &mut State) -> Option<&mut Ledger> {
    state.run.as_mut().filter(|run| run.end.is_none()).and_then(|run| run.ledger.as_deref_mut())
}

/// The active run knows what children hold and have used besides.
pub(crate) fn sync_apart(state: &mut State) {
    let apart = state.meta.budget.as_deref().map(ThreadBudget::apart).unwrap_or_default();
    if let Some(ledger) = active_ledger(state) {
        ledger.late = apart;
    }
}

/// What listeners are told after a transition.
pub(crate) type BudgetNotice = (&'static str, Reached);
