//! The part of budgets that outlives runs, stored in the `meta` row. A thread without limits has none.

use serde::{Deserialize, Serialize};

use crate::definitions::budget::{Budget, Caps, Unit};
use crate::limits;
use crate::store::amounts::Amounts;
use crate::store::budget_policy::Policy;

/// Budget data of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ThreadBudget {
    /// The budget in the request that created the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) given: Option<Budget>,
    /// Limits of the thread that people have set later.
    #[serde(rename = "r")]
    pub(crate) raised: Caps,
    /// Use by children of allocations from runs that had ended.
    #[serde(rename = "a")]
    pub(crate) late: Amounts,
    /// The run after which people denied more to children.
    #[serde(rename = "d", skip_serializing_if = "is_zero")]
    pub(crate) denied: i64,
    /// Allocations to children from ended runs, or from none.
    #[serde(rename = "c")]
    pub(crate) lent: Amounts,
    /// Ended runs whose children still work, oldest first.
    #[serde(rename = "e", skip_serializing_if = "Vec::is_empty")]
    pub(crate) errands: Vec<EndedRunBudget>,
}

/// The budget of an ended run whose children still work. Its limits apply to them until another run messages
/// them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndedRunBudget {
    #[serde(rename = "r")]
    pub(crate) run: i64,
    /// Its limits, including people's changes.
    #[serde(rename = "l")]
    pub(crate) caps: Caps,
    /// Its use of the shared units, including its children's use since.
    #[serde(rename = "s")]
    pub(crate) used: Amounts,
    /// Amounts that its children hold.
    #[serde(rename = "c")]
    pub(crate) lent: Amounts,
    #[serde(rename = "p")]
    pub(crate) policy: Policy,
    /// Whether people have denied more to them.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) denied: bool,
}

impl EndedRunBudget {
    /// Its limit of a unit, and the amount that counts against it.
    pub(crate) fn of(&self, unit: Unit) -> Option<(i64, i64)> {
        let cap = self.caps.get(unit as usize).copied().flatten()?;
        Some((cap, self.used.and(&self.lent).get(unit)))
    }

    /// Raises a limit, if there is one.
    pub(crate) fn raise(&mut self, unit: Unit, cap: i64) {
        if let Some(Some(place)) = self.caps.get_mut(unit as usize) {
            *place = cap;
        }
    }
}

const fn is_zero(n: &i64) -> bool {
    *n == 0
}

impl ThreadBudget {
    /// Amounts that children hold or have used and that no run was charged for.
    pub(crate) fn apart(&self) -> Amounts {
        self.late.and(&self.lent)
    }

    /// The record of an ended run.
    pub(crate) fn ended_run(&self, run: i64) -> Option<&EndedRunBudget> {
        self.errands.iter().find(|errand| errand.run == run)
    }

    pub(crate) fn ended_run_mut(&mut self, run: i64) -> Option<&mut EndedRunBudget> {
        self.errands.iter_mut().find(|errand| errand.run == run)
    }

    /// Keeps the record of a run that ends while its children work. `waiting`: runs whose children wait for
    /// more.
    pub(crate) fn leave(&mut self, errand: EndedRunBudget, waiting: &[i64]) {
        self.errands.retain(|old| old.lent != Amounts::default() || waiting.contains(&old.run));
        self.errands.push(errand);
        let more = self.errands.len().saturating_sub(limits::BUDGET_ERRANDS);
        self.errands.drain(..more);
    }

    /// Sets a limit of the thread that a person has decided on.
    pub(crate) fn raise(&mut self, unit: Unit, cap: i64) {
        if let Some(place) = self.raised.get_mut(unit as usize) {
            *place = Some(cap);
        }
    }
}
