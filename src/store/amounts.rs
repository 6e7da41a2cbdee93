//! Amounts in the units of budgets.

use serde::{Deserialize, Serialize};

use crate::definitions::budget::Unit;

/// Sums by unit, in the order of [`Unit::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Amounts([i64; 6]);

impl Amounts {
    /// An amount of one unit.
    pub(crate) fn of(unit: Unit, amount: i64) -> Amounts {
        let mut amounts = Amounts::default();
        amounts.set(unit, amount);
        amounts
    }

    /// Use of one attempt at a model, actual or maximal.
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

    /// Subtracts, stopping at zero.
    pub(crate) fn take(&mut self, other: &Amounts) {
        for (sum, less) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_sub(less).max(0);
        }
    }

    /// The units that a thread shares with its subagents.
    pub(crate) fn shared(&self) -> Amounts {
        let [cost, tokens, calls, ..] = self.0;
        Amounts([cost, tokens, calls, 0, 0, 0])
    }

    /// The sum with another.
    #[must_use]
    pub(crate) fn and(mut self, other: &Amounts) -> Amounts {
        self.add(other);
        self
    }

    /// The multiple.
    #[must_use]
    pub(crate) fn times(mut self, n: u32) -> Amounts {
        for amount in &mut self.0 {
            *amount = amount.saturating_mul(i64::from(n));
        }
        self
    }
}
