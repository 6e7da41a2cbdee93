//! The changes that an envelope made. They are announced after its transaction commits.

use crate::definitions::message::ToolStatus;
use crate::engine::budget::allocate::BudgetNotice;
use crate::engine::cycle::run_end::HaltedRun;
use crate::engine::subagents::envelope::WaitFrame;
use crate::sdk::scope::EntryMode;
use crate::store::children::Child;
use crate::store::messages::SharedRow;
use crate::store::waits::Wait;

/// The work that is left after the transition of an envelope has committed.
#[derive(Default)]
pub(crate) struct FollowUp {
    /// Messages that the envelope added.
    pub(super) rows: Vec<SharedRow>,
    /// How the flow enters the run that starts or continues.
    pub(crate) entry: Option<EntryMode>,
    /// The status of a waiting call that received its result.
    pub(super) ended: Option<ToolStatus>,
    /// Waits that opened or closed.
    pub(crate) closed: Vec<Wait>,
    /// Frames for clients about children.
    pub(super) events: Vec<ChildEvent>,
    /// Frames for clients about the waits of descendants, each with the reference of the child.
    pub(crate) asked: Vec<(String, WaitFrame)>,
    /// A run that the envelope ended.
    pub(super) halted: Option<HaltedRun>,
    /// A run that the envelope made fail.
    pub(crate) failed: Option<HaltedRun>,
    /// Frames for clients about budgets.
    pub(crate) budgets: Vec<BudgetNotice>,
    /// Whether the thread was terminated.
    pub(super) terminated: bool,
}

/// A `subagent` frame about a child.
pub(super) struct ChildEvent {
    /// `started`, `completed`, `failed` or `closed`.
    pub(super) event: &'static str,
    pub(super) alias: Option<String>,
    pub(super) reference: String,
    pub(super) agent: String,
}

impl FollowUp {
    /// Adds a frame about a child.
    pub(super) fn add_event(&mut self, event: &'static str, child: &Child) {
        let (alias, reference, agent) =
            (child.facts.alias.clone(), child.reference.clone(), child.agent.clone());
        self.events.push(ChildEvent { event, alias, reference, agent });
    }
}
