//! Grants of a run to its subagents. They are sent with the envelope that creates or messages a child, or
//! when a child requests more. Reports return what is unused. All amounts are in the child's row, which is
//! written anyway.

use crate::definitions::budget::{Caps, Limits, OnExceeded, Share, Unit};
use crate::definitions::message::ToolResult;
use crate::engine::budget::LimitStatus;
use crate::engine::budget::exceeded::ExceededLimit;
use crate::engine::features::Budgets;
use crate::engine::subagents::envelope::EnvelopeBody;
use crate::engine::subagents::follow_up::FollowUp;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::store::children::Child;
use crate::store::grants::{BudgetRequest, ChildBudget, GrantReply, UsageReport, held};
use crate::store::log_record::Event;
use crate::store::runs::ledger::{Amounts, BudgetScope, Ledger};
use crate::store::state::State;
use crate::store::thread_budget::{EndedRunBudget, ThreadBudget};
use crate::store::waits;
use crate::store::waits::{BudgetQuestion, Decision, WaitKind, WaitState};

/// A limit and its usage.
#[derive(Clone, Copy)]
struct Limit {
    scope: BudgetScope,
    cap: i64,
    used: i64,
}

/// The consequence for children that wait for more.
#[derive(Clone, Copy)]
pub(crate) enum GrantDecision {
    /// There is more to grant: from the remaining budget, or these added amounts when no run is active.
    More(Option<Caps>),
    /// There is no more.
    Refused,
}

/// The result of serving a child's need.
enum GrantOutcome {
    /// The need is granted, or as much of it as the child may hold.
    Lent,
    /// The budget does not suffice.
    Short(Shortfall),
    /// The child holds its maximum.
    Full,
}

/// The limit that does not suffice, and the run that it belongs to, which may have ended.
#[derive(Clone, Copy)]
struct Shortfall {
    exceeded: ExceededLimit,
    run: Option<i64>,
}

/// The tightest limit of a shared unit. `ended_run`: the limits of the granting run, if that has ended.
fn tightest(
    (ledger, steps): (&Ledger, u32),
    beside: &Amounts,
    unit: Unit,
    ended_run: Option<&EndedRunBudget>,
) -> Option<Limit> {
    let of = |scope: BudgetScope| {
        if let Some(ended_run) = ended_run.filter(|_| scope == BudgetScope::Run) {
            return ended_run.of(unit).map(|(cap, used)| Limit { scope, cap, used });
        }
        let cap = ledger.cap(scope, unit)?;
        let used = ledger.used_of(scope, steps).and(&ledger.lent).and(beside).get(unit);
        Some(Limit { scope, cap, used })
    };
    BudgetScope::ALL.into_iter().filter_map(of).min_by_key(|limit| limit.cap.saturating_sub(limit.used))
}

impl Budgets<'_> {
    /// The ledger and steps of the active run, or of a run that would begin now.
    pub(super) fn books(&self, state: &State, sql: &dyn Sql) -> Result<Option<(Ledger, u32)>> {
        if let Some(run) = state.active() {
            return Ok(run.ledger.as_deref().map(|ledger| (ledger.clone(), run.steps_done())));
        }
        let Some(mut ledger) = self.new_ledger(state, sql, None)? else { return Ok(None) };
        ledger.denied = state.meta.budget.as_ref().is_some_and(|kept| kept.denied == last_run(state));
        // Open grants count against the limits of a run, too: move them from `late` to `lent`.
        ledger.lent = state.meta.budget.as_ref().map(|budget| budget.lent).unwrap_or_default();
        ledger.late.take(&ledger.lent);
        Ok(Some((ledger, 0)))
    }

    /// The tightest limit of each shared unit; `None` when nothing is limited.
    fn allocatable(
        &self,
        state: &State,
        sql: &dyn Sql,
        ended_run: Option<&EndedRunBudget>,
    ) -> Result<Option<[Option<Limit>; 3]>> {
        let Some((ledger, steps)) = self.books(state, sql)? else { return Ok(None) };
        let beside = self.ephemeral.spending.all();
        let limits = Unit::SHARED.map(|unit| tightest((&ledger, steps), &beside, unit, ended_run));
        Ok(limits.iter().any(Option::is_some).then_some(limits))
    }

    /// Grants budget to a child before it is messaged. The child's row must be written afterwards. Returns an
    /// error result if nothing is left.
    pub(crate) fn lend(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        entry: Option<&Share>,
        idle: bool,
    ) -> Result<Result<Option<Caps>, ToolResult>> {
        let Some(limits) = self.allocatable(state, sql, None)? else {
            if child.budget.take().is_some() {
                self.subagents().send_to_child(state, sql, child, EnvelopeBody::Grant(GrantReply::Free))?;
            }
            return Ok(Ok(None));
        };
        let mut budget = child.budget.clone().unwrap_or_else(|| Box::new(ChildBudget::of(entry)));
        let mut caps = Caps::default();
        for (unit, limit) in Unit::SHARED.into_iter().zip(limits) {
            let Some(limit) = limit else { continue };
            let left = limit.cap.saturating_sub(limit.used);
            let more = if idle { 0 } else { budget.usual(unit, left).min(left).max(0) };
            if more == 0 && !idle && budget.granted.get(unit) == 0 {
                let exceeded = ExceededLimit {
                    scope: limit.scope,
                    unit,
                    limit: limit.cap,
                    spent: limit.used,
                    needed: 1,
                };
                return Ok(Err(exceeded.result()));
            }
            if let Some(place) = caps.get_mut(unit as usize) {
                *place = Some(more);
            }
        }
        self.move_grant(state, sql, &mut budget)?;
        self.record_grant(state, sql, &mut budget, &held(&caps))?;
        child.budget = Some(budget);
        Ok(Ok(Some(caps)))
    }

    /// Moves amounts that a child still holds from an earlier run to the active run.
    fn move_grant(&self, state: &mut State, sql: &dyn Sql, budget: &mut ChildBudget) -> Result<()> {
        let run = granting_run(state);
        if budget.run == run {
            return Ok(());
        }
        if let Some(ended_run) = state.meta.budget.as_mut().and_then(|kept| kept.ended_run_mut(budget.run)) {
            ended_run.lent.take(&budget.granted);
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

    /// Records a grant.
    fn record_grant(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        budget: &mut ChildBudget,
        more: &Amounts,
    ) -> Result<()> {
        budget.granted.add(more);
        let is_lender = granting_run(state) == budget.run;
        if let Some(ledger) = active_ledger(state).filter(|_| is_lender) {
            ledger.lent.add(more);
            return Ok(());
        }
        let apart = state.meta.budget.get_or_insert_default();
        apart.lent.add(more);
        if let Some(ended_run) = apart.ended_run_mut(budget.run) {
            ended_run.lent.add(more);
        }
        state.meta.update(sql)?;
        sync_apart(state);
        Ok(())
    }

    /// Charges a child's usage, and takes back what it returns. The child's row must be written afterwards.
    pub(crate) fn charge_child(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        books: &UsageReport,
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
        if let Some(ended_run) = apart.ended_run_mut(budget.run) {
            ended_run.lent.take(&books.back);
            ended_run.used.add(&books.spent.shared());
        }
        state.meta.update(sql)?;
        sync_apart(state);
        Ok(())
    }

    /// Receives a child's request for more. The child's row must be written afterwards.
    pub(crate) fn receive_budget_request(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        (wanted, books): (&BudgetRequest, &UsageReport),
        applied: &mut FollowUp,
    ) -> Result<()> {
        self.charge_child(state, sql, child, books)?;
        if !child.is_open() {
            return Ok(());
        }
        let short = match self.grant_need(state, sql, child, wanted, None)? {
            GrantOutcome::Lent => return Ok(()),
            GrantOutcome::Short(short) if self.may_request_more(state, sql, short)? => short,
            GrantOutcome::Short(_) | GrantOutcome::Full => {
                return self.subagents().send_to_child(
                    state,
                    sql,
                    child,
                    EnvelopeBody::Grant(GrantReply::Refused),
                );
            }
        };
        child.budget.get_or_insert_default().wanted = Some(wanted.clone());
        self.request_more(state, sql, short, wanted, applied)
    }

    /// Grants what a child needs, or returns the limit that does not suffice.
    fn grant_need(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        wanted: &BudgetRequest,
        added: Option<&Caps>,
    ) -> Result<GrantOutcome> {
        let ended_run = budget_of_ended_run(state, child).cloned();
        let granting_run_id = ended_run.as_ref().map_or(granting_run(state), |ended_run| ended_run.run);
        let short = |exceeded: ExceededLimit| {
            let run = Some(granting_run_id).filter(|run| *run != 0 && exceeded.scope == BudgetScope::Run);
            Ok(GrantOutcome::Short(Shortfall { exceeded, run }))
        };
        if let Some(exceeded) = ended_run.as_ref().and_then(|ended_run| shortfall(ended_run, wanted)) {
            return short(exceeded);
        }
        if let Some(exceeded) = parent_limit(state, wanted).filter(|_| added.is_none()) {
            return short(exceeded);
        }
        let limits = self.allocatable(state, sql, ended_run.as_ref())?;
        if limits.is_none() && added.is_none() {
            child.budget = None;
            self.subagents().send_to_child(state, sql, child, EnvelopeBody::Grant(GrantReply::Free))?;
            return Ok(GrantOutcome::Lent);
        }
        let mut budget = child.budget.clone().unwrap_or_default();
        let mut caps = Caps::default();
        for (unit, limit) in Unit::SHARED.into_iter().zip(limits.unwrap_or_default()) {
            let need = wanted.need.get(unit);
            let added = added.and_then(|added| added.get(unit as usize).copied().flatten());
            let more = match (limit, added) {
                (_, Some(added)) => added,
                (Some(limit), None) => {
                    let left = limit.cap.saturating_sub(limit.used);
                    if need > left {
                        let Limit { scope, cap, used } = limit;
                        return short(ExceededLimit { scope, unit, limit: cap, spent: used, needed: need });
                    }
                    budget.usual(unit, left).max(need).min(left).max(0)
                }
                (None, None) => continue,
            };
            let room = budget.room(unit);
            if need > 0 && room.is_some_and(|room| room <= 0) {
                return Ok(GrantOutcome::Full);
            }
            if let Some(place) = caps.get_mut(unit as usize) {
                *place = Some(room.map_or(more, |room| more.min(room.max(0))));
            }
        }
        if ended_run.is_none() {
            self.move_grant(state, sql, &mut budget)?;
        }
        budget.wanted = None;
        self.record_grant(state, sql, &mut budget, &held(&caps))?;
        child.budget = Some(budget);
        self.subagents().send_to_child(state, sql, child, EnvelopeBody::Grant(GrantReply::Add(caps)))?;
        Ok(GrantOutcome::Lent)
    }

    /// Whether the parent or a person may be asked for more.
    fn may_request_more(&self, state: &State, sql: &dyn Sql, short: Shortfall) -> Result<bool> {
        if state.meta.stopped || state.meta.terminated_us.is_some() {
            return Ok(false);
        }
        if short.exceeded.scope == BudgetScope::Parent {
            return Ok(true);
        }
        if let Some(ended_run) = ended_run_budget(state, short.run) {
            return Ok(ended_run.policy.on_exceeded == OnExceeded::Ask && !ended_run.denied);
        }
        let books = self.books(state, sql)?;
        Ok(books.is_some_and(|(ledger, _)| ledger.policy.on_exceeded == OnExceeded::Ask && !ledger.denied))
    }

    /// Asks for what a child lacks: the parent, or people. Does nothing while such a question is open.
    fn request_more(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        Shortfall { exceeded, run }: Shortfall,
        wanted: &BudgetRequest,
        applied: &mut FollowUp,
    ) -> Result<()> {
        if exceeded.scope == BudgetScope::Parent {
            return self.request_budget(state, sql, wanted);
        }
        if state.meta.waits > 0 && waits::open(sql)?.iter().any(|wait| wait.kind == WaitKind::Budget) {
            return Ok(());
        }
        let Some((ledger, _)) = self.books(state, sql)? else { return Ok(()) };
        let policy = ended_run_budget(state, run).map_or(ledger.policy, |ended_run| ended_run.policy);
        let now = self.host.now_us();
        Event::budget(state.active(), "asked", exceeded.reached().to_json("asked")).insert(sql, now)?;
        let asked = BudgetQuestion { for_child: Some(wanted.by.clone()), of_run: run, ..exceeded.question() };
        let wait = self.waits().open_budget_wait(state, sql, &asked, &policy)?;
        applied.closed.push(wait);
        applied.budgets.push(("asked", exceeded.reached()));
        Ok(())
    }

    /// Answers the children that wait for more. If one of them still lacks budget, asks for it or refuses
    /// all.
    pub(crate) fn serve_children(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        serve: GrantDecision,
        applied: &mut FollowUp,
    ) -> Result<()> {
        let waiting: Vec<Child> = state
            .open_children(sql)?
            .iter()
            .filter(|child| child.pending_request().is_some())
            .cloned()
            .collect();
        let mut first = None;
        let mut rest = match serve {
            GrantDecision::More(added) => added,
            GrantDecision::Refused => None,
        };
        let mut left = waiting.len();
        for mut child in waiting {
            let Some(wanted) = child.pending_request().cloned() else { continue };
            let part = rest.as_mut().and_then(|rest| part_of(rest, &wanted.need, left));
            left -= 1;
            match serve {
                GrantDecision::Refused => {
                    child.budget.get_or_insert_default().wanted = None;
                    self.subagents().send_to_child(
                        state,
                        sql,
                        &mut child,
                        EnvelopeBody::Grant(GrantReply::Refused),
                    )?;
                }
                GrantDecision::More(_) => {
                    match self.grant_need(state, sql, &mut child, &wanted, part.as_ref())? {
                        GrantOutcome::Lent => {}
                        GrantOutcome::Short(short) => first = first.or(Some((short, wanted))),
                        GrantOutcome::Full => {
                            child.budget.get_or_insert_default().wanted = None;
                            self.subagents().send_to_child(
                                state,
                                sql,
                                &mut child,
                                EnvelopeBody::Grant(GrantReply::Refused),
                            )?;
                        }
                    }
                }
            }
            state.update_child(sql, child)?;
        }
        let Some((short, wanted)) = first else { return self.close_served(state, sql, applied) };
        if self.may_request_more(state, sql, short)? {
            return self.request_more(state, sql, short, &wanted, applied);
        }
        self.serve_children(state, sql, GrantDecision::Refused, applied)
    }

    /// Closes the waits for children that have what they need.
    fn close_served(&self, state: &mut State, sql: &dyn Sql, applied: &mut FollowUp) -> Result<()> {
        if state.meta.waits == 0 {
            return Ok(());
        }
        let for_child =
            waits::open(sql)?.into_iter().filter(|wait| wait.kind == WaitKind::Budget && wait.run.is_none());
        for mut wait in for_child {
            self.waits().close_wait(state, sql, &mut wait, WaitState::Void, None::<Decision>)?;
            applied.closed.push(wait);
        }
        Ok(())
    }
}

/// The kept limits of the ended run that granted to a child. A subagent with an active run grants from its
/// current budget, also to children of its earlier runs.
fn budget_of_ended_run<'a>(state: &'a State, child: &Child) -> Option<&'a EndedRunBudget> {
    let lent = state.meta.parent.as_ref().is_some_and(|parent| parent.grant.is_some());
    if lent && state.active().is_some() {
        return None;
    }
    ended_run_budget(state, child.budget.as_ref().map(|budget| budget.run))
}

fn ended_run_budget(state: &State, run: Option<i64>) -> Option<&EndedRunBudget> {
    state.meta.budget.as_ref()?.ended_run(run?)
}

/// The unit of the need that an ended run's limits do not cover.
fn shortfall(ended_run: &EndedRunBudget, wanted: &BudgetRequest) -> Option<ExceededLimit> {
    Unit::SHARED.into_iter().find_map(|unit| {
        let ((limit, spent), needed) = (ended_run.of(unit)?, wanted.need.get(unit));
        let scope = BudgetScope::Run;
        (needed > limit.saturating_sub(spent)).then_some(ExceededLimit { scope, unit, limit, spent, needed })
    })
}

impl ChildBudget {
    /// The budget of a child without earlier grants.
    fn of(entry: Option<&Share>) -> ChildBudget {
        let most = entry.and_then(|entry| entry.max_cost_usd);
        let limits = Limits { max_cost_usd: most, ..Limits::default() };
        ChildBudget {
            most: limits.caps().first().copied().flatten(),
            share: entry.and_then(|entry| entry.share).unwrap_or(limits::BUDGET_SHARE),
            ..ChildBudget::default()
        }
    }

    /// The usual grant: a share of what is left.
    fn usual(&self, unit: Unit, left: i64) -> i64 {
        let share = if self.share > 0.0 { self.share } else { limits::BUDGET_SHARE };
        let part = (left as f64 * share).ceil() as i64;
        self.room(unit).map_or(part, |room| part.min(room))
    }

    /// How much more the child may hold, if that is limited.
    fn room(&self, unit: Unit) -> Option<i64> {
        let most = self.most.filter(|_| unit == Unit::Cost)?;
        Some(most.saturating_sub(self.granted.get(unit)))
    }
}

impl Child {
    /// The open request of the child.
    fn pending_request(&self) -> Option<&BudgetRequest> {
        self.budget.as_ref().and_then(|budget| budget.wanted.as_ref())
    }
}

/// The parent's limit, for a subagent between its runs. It has nothing to grant and passes the request on.
fn parent_limit(state: &State, wanted: &BudgetRequest) -> Option<ExceededLimit> {
    state.meta.parent.as_ref()?.grant?;
    if state.active().is_some() {
        return None;
    }
    let unit = Unit::SHARED.into_iter().find(|unit| wanted.need.get(*unit) > 0)?;
    let needed = wanted.need.get(unit);
    Some(ExceededLimit { scope: BudgetScope::Parent, unit, limit: 0, spent: 0, needed })
}

/// A fair part of the rest for one of `count` children, if it covers the need. Takes it from the rest.
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

/// The active run with a ledger; 0 for none.
fn granting_run(state: &State) -> i64 {
    state.active().filter(|run| run.ledger.is_some()).map_or(0, |run| run.id)
}

/// The newest run, which may have ended; 0 for none.
pub(crate) fn last_run(state: &State) -> i64 {
    state.run.as_ref().map_or(0, |run| run.id)
}

fn active_ledger(state: &mut State) -> Option<&mut Ledger> {
    state.run.as_mut().filter(|run| run.end.is_none()).and_then(|run| run.ledger.as_deref_mut())
}

/// Updates the active run's copy of what children hold and have used outside it.
pub(super) fn sync_apart(state: &mut State) {
    let apart = state.meta.budget.as_deref().map(ThreadBudget::apart).unwrap_or_default();
    if let Some(ledger) = active_ledger(state) {
        ledger.late = apart;
    }
}

/// A budget event for clients, sent after a transition.
pub(crate) type BudgetNotice = (&'static str, LimitStatus);
