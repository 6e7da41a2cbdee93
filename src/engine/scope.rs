//! Where a call is made: in a step of the run, within another call, or apart from any run. Calls within calls form a
//! tree whose keys are derived from each other (docs/durability.md), so that a call has the same key when what it is made
//! in is entered again.

use crate::engine::definitions::Definitions;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::sdk::scope::{Entered, Origin, Scope};
use crate::store::runs::Run;

impl Thread {
    /// Where the calls of the open step are made.
    pub(crate) fn step_scope(&self, definitions: &Definitions<'_>) -> Result<Scope> {
        let entered =
            self.read(|state, _| Ok(state.active().map_or(Entered::First, |run| self.entered(run))))?;
        Ok(Scope {
            path: vec![definitions.prompt.name.clone()],
            origin: Origin::Step,
            entered,
            ..Scope::default()
        })
    }

    /// Whether the run's step may have done something before: its receipts say what.
    pub(crate) fn entered(&self, run: &Run) -> Entered {
        if run.recoveries > 0 { Entered::Again } else { self.ephemeral.entered.get() }
    }
}
