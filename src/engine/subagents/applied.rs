//! What an envelope has changed, to be announced once its transaction is over.

use crate::engine::control::Halted;
use crate::sdk::scope::Entered;
use crate::spec::message::ToolStatus;
use crate::store::messages::Shared;

/// What is left to do once an envelope's transition is committed.
#[derive(Default)]
pub(crate) struct Applied {
    /// Messages that it brought.
    pub(crate) rows: Vec<Shared>,
    /// How the flow comes to the run that starts or goes on.
    pub(crate) entry: Option<Entered>,
    /// A call that waited has its result.
    pub(crate) ended: Option<ToolStatus>,
    /// A run that it ended.
    pub(crate) halted: Option<Halted>,
    /// Whether the thread was terminated.
    pub(crate) terminated: bool,
}
