//! What an envelope has changed, to be announced once its transaction is over.

use crate::engine::budget::lend::BudgetNotice;
use crate::engine::control::Halted;
use crate::engine::subagents::envelope::WaitFrame;
use crate::sdk::scope::Entered;
use crate::spec::message::ToolStatus;
use crate::store::children::Child;
use crate::store::messages::Shared;
use crate::store::waits::Wait;

/// What is left to do once an envelope's transition is committed.
#[derive(Default)]
pub(crate) struct Applied {
    /// Messages that it brought.
    pub(crate) rows: Vec<Shared>,
    /// How the flow comes to the run that starts or goes on.
    pub(crate) entry: Option<Entered>,
    /// A call that waited has its result.
    pub(crate) ended: Option<ToolStatus>,
    /// Waits that have opened, or have what they waited for.
    pub(crate) closed: Vec<Wait>,
    /// What clients are told of children.
    pub(crate) told: Vec<ChildEvent>,
    /// What they are told of the waits of children, or of threads below those; each with the child's reference.
    pub(crate) asked: Vec<(String, WaitFrame)>,
    /// A run that it ended.
    pub(crate) halted: Option<Halted>,
    /// A run that has failed by it.
    pub(crate) failed: Option<Halted>,
    /// What clients are told of budgets.
    pub(crate) budgets: Vec<BudgetNotice>,
    /// Whether the thread was terminated.
    pub(crate) terminated: bool,
}

/// A `subagent` frame about a child.
pub(crate) struct ChildEvent {
    /// `started`, `completed`, `failed` or `closed`.
    pub(crate) event: &'static str,
    pub(crate) alias: Option<String>,
    pub(crate) reference: String,
    pub(crate) agent: String,
}

impl Applied {
    /// Something has happened to a child.
    pub(crate) fn tells(&mut self, event: &'static str, child: &Child) {
        let (alias, reference, agent) =
            (child.facts.alias.clone(), child.reference.clone(), child.agent.clone());
        self.told.push(ChildEvent { event, alias, reference, agent });
    }
}
