//! How far a step is with its model: counted before each request, in the run's row or, for the step of a prompt that was
//! called, in the receipt of that call.

use crate::engine::thread::Thread;
use crate::error::Result;
use crate::store::log::AttemptState;
use crate::store::runs::Step;

impl Thread {
    /// How far a step is.
    pub(crate) fn tries(&self, step: Step) -> Result<AttemptState> {
        self.read(|state, sql| AttemptState::of(state, sql, step))
    }
}
