//! Amounts of what budgets limit, and what the limits are of.

use serde::{Deserialize, Serialize};

use crate::spec::budget::Unit;

/// Sums by unit, in the order of [`Unit::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Amounts([i64; 6]);

impl Amounts {
    /// So much of one unit.
    pub(crate) fn of(unit: Unit, amount: i64) -> Amounts {
        let mut amounts = Amounts::default();
        amounts.set(unit, amount);
        amounts
    }

    /// What one attempt at a model has used, or may use.
    pub(crate) fn attempt(cost: i64, tokens: i64) -> Amounts {
        Amounts([cost, tokens, 1, 0, 0, 0])
    }

    pub(crate) fn get(&self, unit: Unit) -> i64 {
        self.0.get(unit as usize).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, unit: Unit, amount: i64) {
        if let Some(place) = self.0.get_mut(unit as usize) {
            *place = amount;
        }
    }

    pub(crate) fn add(&mut self, other: &Amounts) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
    }

    /// So much less, and never less than nothing.
    pub(crate) fn take(&mut self, other: &Amounts) {
        for (sum, less) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_sub(less).max(0);
        }
    }

    /// What is shared with subagents of them.
    pub(crate) fn shared(&self) -> Amounts {
        let [cost, tokens, calls, ..] = self.0;
        Amounts([cost, tokens, calls, 0, 0, 0])
    }

    /// The same with another.
    #[must_use]
    pub(crate) fn and(mut self, other: &Amounts) -> Amounts {
        self.add(other);
        self
    }

    /// So many times.
    #[must_use]
    pub(crate) fn times(mut self, n: u32) -> Amounts {
        for amount in &mut self.0 {
            *amount = amount.saturating_mul(i64::from(n));
        }
        self
    }
}

/// Of what a limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BudgetScope {
    /// The run.
    Run,
    /// All runs of the thread.
    Thread,
    /// What its parent has lent to a subagent.
    Parent,
}

impl BudgetScope {
    pub(crate) const ALL: [BudgetScope; 3] = [BudgetScope::Run, BudgetScope::Thread, BudgetScope::Parent];

    /// As clients have it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            BudgetScope::Run => "run",
            BudgetScope::Thread => "thread",
            BudgetScope::Parent => "parent",
        }
    }
}
