//! The effect of reaching a limit, combined from all levels. A run keeps it, and leaves it to its children.

use serde::{Deserialize, Serialize};

use crate::definitions::budget::{Budget, BudgetExpiry, OnExceeded};
use crate::limits;

/// The effect of reaching a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Policy {
    #[serde(rename = "w")]
    pub(super) warn_at: f64,
    #[serde(rename = "o")]
    pub(crate) on_exceeded: OnExceeded,
    #[serde(rename = "e")]
    pub(crate) ask_expires_s: u64,
    #[serde(rename = "x")]
    pub(crate) on_expiry: BudgetExpiry,
    #[serde(rename = "r")]
    pub(crate) reserve: u64,
}

impl Policy {
    /// Takes each field from the first level that sets it, or its default.
    pub(super) fn of<'a>(levels: impl Iterator<Item = &'a Budget>) -> Policy {
        let levels: &[&Budget] = &levels.collect::<Vec<_>>();
        fn first<T>(levels: &[&Budget], field: impl Fn(&Budget) -> Option<T>) -> Option<T> {
            levels.iter().find_map(|level| field(level))
        }
        let usual = u64::try_from(limits::WAIT_DEFAULT_US / limits::SECOND_US).unwrap_or(0);
        Policy {
            warn_at: first(levels, |level| level.warn_at).unwrap_or(limits::WARN_AT),
            on_exceeded: first(levels, |level| level.on_exceeded).unwrap_or_default(),
            ask_expires_s: first(levels, |level| level.ask_expires_after_seconds).unwrap_or(usual),
            on_expiry: first(levels, |level| level.on_expiry).unwrap_or_default(),
            reserve: first(levels, |level| level.finish_reserve_tokens).unwrap_or(limits::BUDGET_FINISH),
        }
    }
}
