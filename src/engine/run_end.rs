//! Runs that a transaction has ended: what clients and others are informed of after its commit.

use crate::engine::budget::LimitStatus;
use crate::engine::handoff::Takeover;
use crate::store::messages::SharedRow;
use crate::store::runs::Run;
use crate::store::waits::Wait;

/// A run that just ended.
pub(super) struct FinishedRun {
    pub(super) run: Run,
    /// Its last reply, if it has one.
    pub(super) answer: Option<SharedRow>,
    /// The row that tells people why it failed.
    pub(super) status: Option<SharedRow>,
    /// The agent that its last step handed off to.
    pub(super) handed: Option<Takeover>,
    /// Waits that were open at its end, and are cancelled.
    pub(super) waits: Vec<Wait>,
    /// Messages with unclaimed outcomes of workers.
    pub(super) outcomes: Vec<SharedRow>,
    /// Limits that were nearly used up at its end.
    pub(super) near: Vec<LimitStatus>,
}

/// A run that was ended from outside.
#[derive(Default)]
pub(crate) struct HaltedRun {
    pub(super) finished: Option<FinishedRun>,
    /// Results of calls that were running.
    pub(super) results: Vec<SharedRow>,
    /// Cancelled waits, if no run was active.
    pub(super) waits: Vec<Wait>,
}
