//! The budget of a run as its row keeps it: what limits it, and what was used. It is written with the row and by no statement
//! of its own: what an attempt has used that was logged since is read from the log when the thread is loaded, and the calls
//! of the open step from their receipts.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::host::Sql;
use crate::spec::budget::{Budget, Caps, Unit, tightest};
use crate::store::log::Attempt;
use crate::store::{logs, receipts};

pub(crate) use crate::store::amounts::{Amounts, BudgetScope};
pub(crate) use crate::store::budget_policy::Policy;

/// Whether the run is in its last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Finishing {
    /// It is not.
    #[default]
    No,
    /// It is: what was kept back for it pays.
    Reserved,
    /// It is: a person has decided so, whatever is left.
    Decided,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// Limits of the run.
    #[serde(rename = "l")]
    run: Caps,
    /// Limits of the thread.
    #[serde(rename = "h")]
    thread: Caps,
    /// What the run has used when the row was written, but for the calls of the open step.
    #[serde(rename = "s")]
    pub(crate) spent: Amounts,
    /// What children hold that this run has lent to them; their rows have it.
    #[serde(skip)]
    pub(crate) lent: Amounts,
    /// What they have used of it, in the same way until the run ends.
    #[serde(skip)]
    pub(crate) children: Amounts,
    /// What children of the thread hold or have used otherwise; the thread's row has it.
    #[serde(skip)]
    pub(crate) late: Amounts,
    /// What the parent has lent, as limits of this run.
    #[serde(skip)]
    pub(crate) grant: Caps,
    /// What the thread's runs before this one have used; unknown where nothing asks for it.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Amounts>,
    #[serde(rename = "p")]
    pub(crate) policy: Policy,
    /// The limits of which listeners were told: a bit for each.
    #[serde(rename = "w", default)]
    warned: u32,
    /// Attempts in the log that are among what was used.
    #[serde(rename = "n", default)]
    booked: u32,
    /// Attempts of the open step whose end nobody saw, and which are not booked yet.
    #[serde(rename = "u", default)]
    pub(crate) unseen: u32,
    /// Whether a part of it is an estimate.
    #[serde(rename = "e", default)]
    pub(crate) estimated: bool,
    #[serde(rename = "f", default)]
    pub(crate) finishing: Finishing,
    /// Whether people have denied more, so that they are not asked again; `policy` then says what they want instead.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) denied: bool,
    /// Calls of the open step.
    #[serde(skip)]
    pub(crate) calls: i64,
}

impl Ledger {
    /// That of a run which begins; none where nothing limits it. The levels: the nearest first. `raised`: limits of the thread
    /// that people have set. `message`: what starts the run.
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
        // What a person has decided holds.
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
            finishing: Finishing::No,
            denied: false,
            calls: 0,
        })
    }

    /// As the column has it.
    pub(crate) fn parse(column: Option<&str>) -> Result<Option<Box<Ledger>>> {
        column
            .map(crate::json::from_str)
            .transpose()
            .map_err(|error| Error::internal(format!("the budget of a run is damaged: {error}")))
    }

    /// The limits of the run, or of the thread.
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

    /// Sets a limit: a person has decided so.
    pub(crate) fn set_cap(&mut self, scope: BudgetScope, unit: Unit, cap: i64) {
        let caps = match scope {
            BudgetScope::Run => &mut self.run,
            BudgetScope::Thread => &mut self.thread,
            BudgetScope::Parent => &mut self.grant,
        };
        if let Some(place) = caps.get_mut(unit as usize) {
            *place = Some(cap);
        }
        // Of the new limit listeners are told anew.
        self.warned &= !bit(scope, unit);
    }

    /// Takes in the limits of another level, which can only tighten.
    pub(crate) fn tighten(&mut self, level: &Budget) {
        self.run = tightest(&self.run, &level.run.caps());
        self.thread = tightest(&self.thread, &level.thread.caps());
    }

    /// Whether the thread is limited.
    pub(crate) fn limits_thread(&self) -> bool {
        self.thread.iter().any(Option::is_some)
    }

    /// What the run has used by now. `steps`: those that are complete.
    pub(crate) fn used(&self, steps: u32) -> Amounts {
        let mut used = self.spent.and(&self.children);
        used.set(Unit::Steps, i64::from(steps));
        used.set(Unit::ToolCalls, used.get(Unit::ToolCalls).saturating_add(self.calls));
        used
    }

    /// The same of a scope.
    pub(crate) fn used_of(&self, scope: BudgetScope, steps: u32) -> Amounts {
        let used = self.used(steps);
        match (scope, &self.before) {
            (BudgetScope::Thread, Some(before)) => used.and(before).and(&self.late),
            _ => used,
        }
    }

    /// Books what an attempt has used, and which is in no row of the log, or not as such.
    pub(crate) fn book(&mut self, used: &Amounts) {
        self.spent.add(used);
    }

    /// Books an attempt whose row the log has from now on.
    pub(crate) fn book_logged(&mut self, attempt: &Attempt) {
        if let Some(booked) = &attempt.booked {
            self.spent.add(booked);
            self.booked += 1;
            self.estimated |= attempt.is_estimated;
        }
    }

    /// The step's calls are among what the next steps find.
    pub(crate) fn close_step(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        self.spent.add(&Amounts::of(Unit::ToolCalls, calls));
    }

    /// The limits that are near by now and of which nobody was told; they are noted as told.
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

    /// Whether children have, or had, a part of it.
    pub(crate) fn lends(&self) -> bool {
        [self.lent, self.children, self.late] != [Amounts::default(); 3]
    }

    /// What children have used is the run's own from now on.
    pub(crate) fn close_children(&mut self) {
        let children = std::mem::take(&mut self.children);
        self.spent.add(&children);
    }

    /// Takes in what was logged since the row was written, and counts the calls of the open step, which is beyond `block`.
    pub(crate) fn catch_up(&mut self, sql: &dyn Sql, run: i64, block: i64) -> Result<()> {
        let mut skip = self.booked;
        logs::of_run(sql, run, &mut |row| {
            if row.kind == logs::ATTEMPT
                && let Some((booked, estimated)) = booked_of(&row.data)
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
}

fn bit(scope: BudgetScope, unit: Unit) -> u32 {
    1 << (unit as u32 + 6 * scope as u32)
}

/// What a row of the log says that an attempt has used.
fn booked_of(data: &str) -> Option<(Amounts, bool)> {
    let data: Map<String, Value> = crate::json::from_str(data).ok()?;
    let booked = crate::json::from_value(data.get("booked")?.clone()).ok()?;
    Some((booked, data.get("usage_estimated") == Some(&Value::Bool(true))))
}
