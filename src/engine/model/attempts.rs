//! Reads how many attempts a step has made at its model: from the run's row or, for the step of a called
//! prompt, from the receipt of that call. `cycle::step` counts the first attempt, `model_call` the others.

use crate::engine::thread::Thread;
use crate::error::Result;
use crate::store::log_record::AttemptState;
use crate::store::runs::Step;

impl Thread {
    /// The attempts that a step has made.
    pub(in crate::engine) fn tries(&self, step: Step) -> Result<AttemptState> {
        self.read(|state, sql| AttemptState::of(state, sql, step))
    }
}
