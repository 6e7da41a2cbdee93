//! Budget allocations of subagents: the child's record, the parent's record, and the messages between them.

use serde::{Deserialize, Serialize};

use crate::definitions::budget::{Caps, Unit};
use crate::store::amounts::Amounts;

/// A child's allocation of its parent's budget, as the child stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// The remaining allocation for limited units since the last settlement.
    #[serde(rename = "g")]
    held: Caps,
    /// Use of the active run at that settlement.
    #[serde(rename = "b", default)]
    pub(crate) base: Amounts,
    /// Whether a request for more is pending.
    #[serde(rename = "a", default)]
    pub(crate) asked: bool,
}

impl Grant {
    /// The allocation as limits of the active run.
    pub(crate) fn caps(&self) -> Caps {
        let mut caps = self.held;
        for unit in Unit::SHARED {
            if let Some(Some(cap)) = caps.get_mut(unit as usize) {
                *cap = cap.saturating_add(self.base.get(unit));
            }
        }
        caps
    }

    /// The remaining allocation.
    pub(crate) fn amounts(&self) -> Amounts {
        held(&self.held)
    }

    /// Increases the allocation.
    pub(crate) fn add(&mut self, more: &Caps) {
        for (held, more) in self.held.iter_mut().zip(more) {
            if let Some(more) = more {
                *held = Some(held.unwrap_or(0).saturating_add(*more));
            }
        }
    }

    /// Reduces the allocation at a settlement by what the child has used and returned.
    pub(crate) fn give_back(&mut self, back: &Amounts) {
        for unit in Unit::SHARED {
            if let Some(Some(held)) = self.held.get_mut(unit as usize) {
                *held = held.saturating_sub(back.get(unit)).max(0);
            }
        }
    }
}

/// Limits as amounts; zero where nothing is limited.
pub(crate) fn held(caps: &Caps) -> Amounts {
    let mut amounts = Amounts::default();
    for unit in Unit::SHARED {
        amounts.set(unit, caps.get(unit as usize).copied().flatten().unwrap_or(0));
    }
    amounts
}

/// A child's report to its parent about its allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UsageReport {
    /// Used since the last settlement.
    pub(crate) spent: Amounts,
    /// No longer held.
    pub(crate) back: Amounts,
}

/// A child's request for more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BudgetRequest {
    /// The least that its next attempt needs.
    pub(crate) need: Amounts,
    /// The thread that needs it, possibly a descendant of the child.
    pub(crate) by: String,
}

/// A parent's response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GrantReply {
    /// An increase.
    Add(Caps),
    /// No limit applies.
    Free,
    Refused,
}

/// A child's allocation, as its parent stores it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ChildBudget {
    /// The run that made the last allocation; 0 for none.
    #[serde(rename = "r")]
    pub(crate) run: i64,
    #[serde(rename = "g")]
    pub(crate) granted: Amounts,
    /// Used of that run's budget.
    #[serde(rename = "s")]
    pub(crate) spent: Amounts,
    /// Most millionths of a dollar that it may hold at a time.
    #[serde(rename = "m", skip_serializing_if = "Option::is_none")]
    pub(crate) most: Option<i64>,
    /// Share of the remainder that it is allocated.
    #[serde(rename = "p")]
    pub(crate) share: f64,
    /// Its pending request.
    #[serde(rename = "w", skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<BudgetRequest>,
}
