//! Runs that a transaction has ended: what clients and others are informed of after its commit.

use crate::engine::budget::LimitStatus;
use crate::engine::handoff::Takeover;
use crate::store::messages::SharedRow;
use crate::store::runs::Run;
use crate::store::waits::Wait;

/// A run that just ended.
pub(in crate::engine) struct FinishedRun {
    pub(in crate::engine) run: Run,
    /// Its last reply, if it has one.
    pub(in crate::engine) answer: Option<SharedRow>,
    /// The row that tells people why it failed.
    pub(in crate::engine) status: Option<SharedRow>,
    /// The agent that its last step takeover off to.
    pub(in crate::engine) takeover: Option<Takeover>,
    /// Waits that were open at its end, and are cancelled.
    pub(in crate::engine) waits: Vec<Wait>,
    /// Messages with unclaimed outcomes of workers.
    pub(in crate::engine) outcomes: Vec<SharedRow>,
    /// Limits that were nearly used up at its end.
    pub(in crate::engine) near: Vec<LimitStatus>,
}

/// A run that was ended from outside.
#[derive(Default)]
pub(crate) struct HaltedRun {
    pub(in crate::engine) finished: Option<FinishedRun>,
    /// Results of calls that were running.
    pub(in crate::engine) results: Vec<SharedRow>,
    /// Cancelled waits, if no run was active.
    pub(in crate::engine) waits: Vec<Wait>,
}
