//! Where a call is made: in a step of the run, within another call, or apart from any run. Calls within calls form a
//! tree whose keys are derived from each other (docs/durability.md), so that a call has the same key when what it is made
//! in is entered again.

use crate::engine::definitions::Definitions;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::sdk::scope::{Entered, Place, Scope};

impl Thread {
    /// Where the calls of the open step are made.
    pub(crate) fn step_scope(&self, definitions: &Definitions<'_>) -> Result<Scope> {
        let recovered = self.live.again.get()
            || self.read(|state, _| Ok(state.active().is_some_and(|run| run.recoveries > 0)))?;
        Ok(Scope {
            path: vec![definitions.prompt.name.clone()],
            place: Place::Run,
            entered: if recovered { Entered::Again } else { Entered::First },
            ..Scope::default()
        })
    }
}
