//! What is lent to subagents: as the child keeps it, as its parent keeps it, and what the two tell each other of it.

use serde::{Deserialize, Serialize};

use crate::spec::budget::{Caps, Unit};
use crate::store::amounts::Amounts;

/// What a child has of its parent's budget: a part of what it knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// What it may use, of what is limited, since the two have settled.
    #[serde(rename = "g")]
    pub(crate) held: Caps,
    /// What the active run had used by then.
    #[serde(rename = "b", default)]
    pub(crate) base: Amounts,
    /// Whether it has asked for more, and has no answer yet.
    #[serde(rename = "a", default)]
    pub(crate) asked: bool,
}

impl Grant {
    /// As limits of the active run.
    pub(crate) fn caps(&self) -> Caps {
        let mut caps = self.held;
        for unit in Unit::SHARED {
            if let Some(Some(cap)) = caps.get_mut(unit as usize) {
                *cap = cap.saturating_add(self.base.get(unit));
            }
        }
        caps
    }

    /// What it holds.
    pub(crate) fn amounts(&self) -> Amounts {
        held(&self.held)
    }

    /// It is given more.
    pub(crate) fn add(&mut self, more: &Caps) {
        for (held, more) in self.held.iter_mut().zip(more) {
            if let Some(more) = more {
                *held = Some(held.unwrap_or(0).saturating_add(*more));
            }
        }
    }

    /// The two settle: it has used so much since, and gives this much back.
    pub(crate) fn give_back(&mut self, back: &Amounts) {
        for unit in Unit::SHARED {
            if let Some(Some(held)) = self.held.get_mut(unit as usize) {
                *held = held.saturating_sub(back.get(unit)).max(0);
            }
        }
    }
}

/// What is limited of these, as amounts.
pub(crate) fn held(caps: &Caps) -> Amounts {
    let mut amounts = Amounts::default();
    for unit in Unit::SHARED {
        amounts.set(unit, caps.get(unit as usize).copied().flatten().unwrap_or(0));
    }
    amounts
}

/// What a child tells its parent of what it was lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Books {
    /// What it has used since the two have settled last.
    pub(crate) spent: Amounts,
    /// What it holds no more.
    pub(crate) back: Amounts,
}

/// What a child asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Need {
    /// What its next attempt needs at least.
    pub(crate) need: Amounts,
    /// The thread that needs it, which may be further below.
    pub(crate) by: String,
}

/// What a parent answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Granted {
    /// So much more.
    Add(Caps),
    /// Nothing limits it.
    Free,
    Refused,
}

/// What a child holds, as its parent keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ChildBudget {
    /// The run that has lent it last; 0 for none.
    #[serde(rename = "r")]
    pub(crate) run: i64,
    #[serde(rename = "g")]
    pub(crate) granted: Amounts,
    /// What it has used of that run's.
    #[serde(rename = "s")]
    pub(crate) spent: Amounts,
    /// Millionths of a dollar that it may hold at a time.
    #[serde(rename = "m", skip_serializing_if = "Option::is_none")]
    pub(crate) most: Option<i64>,
    /// The share of what is left that it is lent.
    #[serde(rename = "p")]
    pub(crate) share: f64,
    /// What it waits for.
    #[serde(rename = "w", skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<Need>,
}
