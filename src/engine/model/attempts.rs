//! The attempts of a step at its model. They are counted before each request, in the run's row or, for the
//! step of a called prompt, in the receipt of that call.

use crate::engine::thread::Thread;
use crate::error::Result;
use crate::store::log::AttemptState;
use crate::store::runs::Step;

impl Thread {
    /// The attempts that a step has made.
    pub(in crate::engine) fn tries(&self, step: Step) -> Result<AttemptState> {
        self.read(|state, sql| AttemptState::of(state, sql, step))
    }
}
