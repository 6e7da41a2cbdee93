//! The budget of a run, as its row stores it: the limits and the use. It is written only together with the
//! row. When a thread is loaded, the use of attempts logged since then is read from the log, and the calls of
//! the open step from their receipts.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::budget::{Budget, Caps, Unit, tightest};
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::store::log_record::Attempt;
use crate::store::{logs, receipts};

pub(crate) use crate::protocols::responses::budgets::BudgetScope;
pub(crate) use crate::store::amounts::Amounts;
pub(crate) use crate::store::budget_policy::Policy;

/// Whether the run is in its last step, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FinalStep {
    #[default]
    No,
    /// It is the last step, paid for by the reserve.
    Reserved,
    /// It is the last step because a person decided so, whatever remains.
    Decided,
}

/// Limits and use of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// Limits of the run.
    #[serde(rename = "l")]
    run: Caps,
    /// Limits of the thread.
    #[serde(rename = "h")]
    thread: Caps,
    /// Use of the run when the row was written, without the calls of the open step.
    #[serde(rename = "s")]
    spent: Amounts,
    /// Allocations of this run that children still hold; stored in the children's rows.
    #[serde(skip)]
    pub(crate) lent: Amounts,
    /// The part of the allocations that children have used, stored likewise until the run ends.
    #[serde(skip)]
    pub(crate) children: Amounts,
    /// Other amounts that children of the thread hold or have used; stored in the thread's row.
    #[serde(skip)]
    pub(crate) late: Amounts,
    /// The parent's allocation, as limits of this run.
    #[serde(skip)]
    pub(crate) grant: Caps,
    /// Use of the thread's earlier runs; `None` if nothing needs it.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Amounts>,
    #[serde(rename = "p")]
    pub(crate) policy: Policy,
    /// The limits that clients were warned about: one bit each.
    #[serde(rename = "w", default)]
    warned: u32,
    /// Logged attempts that `spent` includes.
    #[serde(rename = "n", default)]
    booked: u32,
    /// Attempts of the open step without a known end that are not charged yet.
    #[serde(rename = "u", default)]
    pub(crate) unseen: u32,
    /// Whether a part of the use is an estimate.
    #[serde(rename = "e", default)]
    pub(crate) estimated: bool,
    #[serde(rename = "f", default)]
    pub(crate) finishing: FinalStep,
    /// Whether people have denied more, so that they are not asked again; `policy` then holds their
    /// alternative.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) denied: bool,
    /// Number of calls of the open step.
    #[serde(skip)]
    pub(crate) calls: i64,
}

impl Ledger {
    /// The ledger of a new run; `None` if nothing limits it. `levels`: nearest first. `raised`: limits of the
    /// thread that people have set. `message`: the budget in the message that starts the run.
    pub(crate) fn of(
        levels: &[&Budget],
        raised: Option<&Caps>,
        message: Option<&Budget>,
        grant: Option<Caps>,
    ) -> Option<Ledger> {
        let (mut run, mut thread) = (Caps::default(), Caps::default());
        for level in levels {
            run = tightest(&run, &level.run.caps());
            thread = tightest(&thread, &level.thread.caps());
        }
        // Limits that a person has set override the definitions.
        for (cap, raised) in thread.iter_mut().zip(raised.into_iter().flatten()) {
            *cap = raised.or(*cap);
        }
        if let Some(message) = message {
            run = tightest(&run, &message.run.caps());
            thread = tightest(&thread, &message.thread.caps());
        }
        let limited = grant.is_some() || run.iter().chain(&thread).any(Option::is_some);
        limited.then(|| Ledger {
            run,
            thread,
            spent: Amounts::default(),
            lent: Amounts::default(),
            children: Amounts::default(),
            late: Amounts::default(),
            grant: grant.unwrap_or_default(),
            before: None,
            policy: Policy::of(message.into_iter().chain(levels.iter().copied())),
            warned: 0,
            booked: 0,
            unseen: 0,
            estimated: false,
            finishing: FinalStep::No,
            denied: false,
            calls: 0,
        })
    }

    /// Parses the column.
    pub(super) fn parse(column: Option<&str>) -> Result<Option<Box<Ledger>>> {
        column
            .map(crate::json::from_str)
            .transpose()
            .map_err(|error| Error::internal(format!("the budget of a run is damaged: {error}")))
    }

    pub(crate) fn caps(&self, scope: BudgetScope) -> &Caps {
        match scope {
            BudgetScope::Run => &self.run,
            BudgetScope::Thread => &self.thread,
            BudgetScope::Parent => &self.grant,
        }
    }

    pub(crate) fn cap(&self, scope: BudgetScope, unit: Unit) -> Option<i64> {
        self.caps(scope).get(unit as usize).copied().flatten()
    }

    /// Sets a limit that a person has decided on.
    pub(crate) fn set_cap(&mut self, scope: BudgetScope, unit: Unit, cap: i64) {
        let caps = match scope {
            BudgetScope::Run => &mut self.run,
            BudgetScope::Thread => &mut self.thread,
            BudgetScope::Parent => &mut self.grant,
        };
        if let Some(place) = caps.get_mut(unit as usize) {
            *place = Some(cap);
        }
        // Warn again at the new limit.
        self.warned &= !bit(scope, unit);
    }

    /// Adds the limits of another level; they can only become tighter.
    pub(crate) fn tighten(&mut self, level: &Budget) {
        self.run = tightest(&self.run, &level.run.caps());
        self.thread = tightest(&self.thread, &level.thread.caps());
    }

    pub(crate) fn limits_thread(&self) -> bool {
        self.thread.iter().any(Option::is_some)
    }

    /// Use of the run so far. `steps`: the complete ones.
    pub(crate) fn used(&self, steps: u32) -> Amounts {
        let mut used = self.spent.and(&self.children);
        used.set(Unit::Steps, i64::from(steps));
        used.set(Unit::ToolCalls, used.get(Unit::ToolCalls).saturating_add(self.calls));
        used
    }

    /// Use that counts against the limits of a scope.
    pub(crate) fn used_of(&self, scope: BudgetScope, steps: u32) -> Amounts {
        let used = self.used(steps);
        match (scope, &self.before) {
            (BudgetScope::Thread, Some(before)) => used.and(before).and(&self.late),
            _ => used,
        }
    }

    /// Charges use that no row of the log holds, or not as an attempt.
    pub(crate) fn charge(&mut self, used: &Amounts) {
        self.spent.add(used);
    }

    /// Charges an attempt whose log row is written in the same transition.
    pub(crate) fn charge_logged(&mut self, attempt: &Attempt) {
        if let Some(booked) = &attempt.booked {
            self.spent.add(booked);
            self.booked += 1;
            self.estimated |= attempt.is_estimated;
        }
    }

    /// Moves the calls of the closed step to the use of the run.
    pub(crate) fn close_step(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        self.spent.add(&Amounts::of(Unit::ToolCalls, calls));
    }

    /// The limits that are close and were not reported yet; marks them as reported.
    pub(crate) fn warnings(&mut self, steps: u32) -> Vec<(BudgetScope, Unit, i64, i64)> {
        let mut near = Vec::new();
        for scope in [BudgetScope::Run, BudgetScope::Thread] {
            let used = self.used_of(scope, steps);
            for unit in Unit::ALL {
                let Some(cap) = self.cap(scope, unit) else { continue };
                let at = (cap as f64 * self.policy.warn_at).ceil() as i64;
                if cap > 0 && used.get(unit) >= at && self.warned & bit(scope, unit) == 0 {
                    self.warned |= bit(scope, unit);
                    near.push((scope, unit, used.get(unit), cap));
                }
            }
        }
        near
    }

    /// Whether children hold or have used a part of the budget.
    pub(crate) fn has_allocations(&self) -> bool {
        [self.lent, self.children, self.late] != [Amounts::default(); 3]
    }

    /// Moves the use of children to the run's own.
    pub(crate) fn close_children(&mut self) {
        let children = std::mem::take(&mut self.children);
        self.spent.add(&children);
    }

    /// Adds the attempts logged since the row was written, and counts the calls of the open step, which
    /// follow `block`.
    pub(crate) fn catch_up(&mut self, sql: &dyn Sql, run: i64, block: i64) -> Result<()> {
        let mut skip = self.booked;
        logs::of_run(sql, run, &mut |row| {
            if row.kind == logs::ATTEMPT
                && let Some((booked, estimated)) = charged_of(&row.data)
            {
                if skip > 0 {
                    skip -= 1;
                } else {
                    self.spent.add(&booked);
                    self.booked += 1;
                    self.estimated |= estimated;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.calls = receipts::begun_since(sql, block)?;
        Ok(())
    }

    /// Charges lost attempts of unknown size at their maximum, but at most what was left: no attempt starts that
    /// exceeds the rest of the budget.
    pub(crate) fn charge_unknown(&mut self, steps: u32, most: &Amounts, times: u32) {
        if times == 0 {
            return;
        }
        let mut used = most.times(times);
        // Children received grants since then, so more was left before.
        let scopes = if self.has_allocations() { &[] } else { &BudgetScope::ALL[..] };
        for scope in scopes.iter().copied() {
            let spent = self.used_of(scope, steps);
            for unit in [Unit::Cost, Unit::Tokens] {
                if let Some(cap) = self.cap(scope, unit) {
                    used.set(unit, used.get(unit).min(cap.saturating_sub(spent.get(unit)).max(0)));
                }
            }
        }
        self.charge(&used);
        self.estimated = true;
    }
}

fn bit(scope: BudgetScope, unit: Unit) -> u32 {
    1 << (unit as u32 + 6 * scope as u32)
}

/// The use of an attempt in its log row, and whether it is an estimate.
fn charged_of(data: &str) -> Option<(Amounts, bool)> {
    let data: Map<String, Value> = crate::json::from_str(data).ok()?;
    let booked = crate::json::from_value(data.get("booked")?.clone()).ok()?;
    Some((booked, data.get("usage_estimated") == Some(&Value::Bool(true))))
}
