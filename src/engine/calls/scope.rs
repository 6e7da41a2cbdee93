//! The [`Scope`] of a step's calls.

use crate::engine::definitions::Definitions;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::sdk::scope::{EntryMode, Origin, Scope};
use crate::store::runs::{Parking, Run};

impl Thread {
    /// The scope of the open step's calls.
    pub(in crate::engine) fn step_scope(&self, definitions: &Definitions<'_>) -> Result<Scope> {
        let entered =
            self.read(|state, _| Ok(state.active().map_or(EntryMode::First, |run| self.entered(run))))?;
        Ok(Scope {
            path: vec![definitions.prompt.name.clone()],
            origin: Origin::Step,
            entered,
            parking: Parking::Possible,
            ..Scope::default()
        })
    }

    /// Whether the run's step may have had effects before; its receipts record them.
    fn entered(&self, run: &Run) -> EntryMode {
        if run.recoveries > 0 { EntryMode::Again } else { self.ephemeral.entered.get() }
    }
}
