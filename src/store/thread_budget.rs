//! What of budgets outlives runs: a part of the `meta` row. A thread that nothing limits has none.

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::spec::budget::{Budget, Caps, Unit};
use crate::store::amounts::Amounts;
use crate::store::budget_policy::Policy;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ThreadBudget {
    /// What the thread was created with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) given: Option<Budget>,
    /// Limits of the thread that people have set since.
    #[serde(rename = "r")]
    pub(crate) raised: Caps,
    /// What children have used that was lent by runs which had ended.
    #[serde(rename = "a")]
    pub(crate) late: Amounts,
    /// The run after which people denied children more.
    #[serde(rename = "d", skip_serializing_if = "is_zero")]
    pub(crate) denied: i64,
    /// What is lent to children by runs that have ended, or by none.
    #[serde(rename = "c")]
    pub(crate) lent: Amounts,
    /// Runs that have ended, and whose children work on, oldest first.
    #[serde(rename = "e", skip_serializing_if = "Vec::is_empty")]
    pub(crate) errands: Vec<Errand>,
}

/// What a run that has ended lets its children use: its limits hold for them until another run writes to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Errand {
    #[serde(rename = "r")]
    pub(crate) run: i64,
    /// Its limits, as people have raised them.
    #[serde(rename = "l")]
    pub(crate) caps: Caps,
    /// What it has used of what is shared, and its children have since.
    #[serde(rename = "s")]
    pub(crate) used: Amounts,
    /// What they hold.
    #[serde(rename = "c")]
    pub(crate) lent: Amounts,
    #[serde(rename = "p")]
    pub(crate) policy: Policy,
    /// Whether people have denied them more.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) denied: bool,
}

impl Errand {
    /// Its limit of a unit, and what counts as used of it.
    pub(crate) fn of(&self, unit: Unit) -> Option<(i64, i64)> {
        let cap = self.caps.get(unit as usize).copied().flatten()?;
        Some((cap, self.used.and(&self.lent).get(unit)))
    }

    /// Raises a limit that there is.
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
    /// What children hold or have used that no run has booked.
    pub(crate) fn apart(&self) -> Amounts {
        self.late.and(&self.lent)
    }

    /// That of a run which has ended.
    pub(crate) fn errand(&self, run: i64) -> Option<&Errand> {
        self.errands.iter().find(|errand| errand.run == run)
    }

    pub(crate) fn errand_mut(&mut self, run: i64) -> Option<&mut Errand> {
        self.errands.iter_mut().find(|errand| errand.run == run)
    }

    /// A run ends while its children work on. `waiting`: runs whose children wait for more.
    pub(crate) fn leave(&mut self, errand: Errand, waiting: &[i64]) {
        self.errands.retain(|old| old.lent != Amounts::default() || waiting.contains(&old.run));
        self.errands.push(errand);
        let more = self.errands.len().saturating_sub(limits::BUDGET_ERRANDS);
        self.errands.drain(..more);
    }

    /// A person sets a limit of the thread.
    pub(crate) fn raise(&mut self, unit: Unit, cap: i64) {
        if let Some(place) = self.raised.get_mut(unit as usize) {
            *place = Some(cap);
        }
    }
}
