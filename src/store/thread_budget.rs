//! What of budgets outlives runs: a part of the `meta` row. A thread that nothing limits has none.

use serde::{Deserialize, Serialize};

use crate::spec::budget::{Budget, Caps, Unit};
use crate::store::amounts::Amounts;

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
}

const fn is_zero(n: &i64) -> bool {
    *n == 0
}

impl ThreadBudget {
    /// What children hold or have used that no run has booked.
    pub(crate) fn apart(&self) -> Amounts {
        self.late.and(&self.lent)
    }

    /// A person sets a limit of the thread.
    pub(crate) fn raise(&mut self, unit: Unit, cap: i64) {
        if let Some(place) = self.raised.get_mut(unit as usize) {
            *place = Some(cap);
        }
    }
}
