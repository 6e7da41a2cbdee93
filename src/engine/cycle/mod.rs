//! The cycle of a run, from the message that starts it to its end.
//!
//! Read `step` first: the seven stages of a step (spec §19), in their order.
//!
//! * `accept`: incoming messages. `flow`: drives a run from step to step, resumes it after a crash, and yields.
//!   `resume`: what a run begins with, and whether it still matches the definitions.
//! * `stop`: when a turn, a session or a run ends. `session`: tools of a session. `close`: applies the next action and
//!   closes the step; `finish` ends the run. `run_end`: what its commit leaves to announce. `outcome`: the result of
//!   a run. `answer_end`: where the answer to a message ends.
//! * `control`: stop, continue, terminate, delete.

pub(in crate::engine) mod accept;
pub(in crate::engine) mod answer_end;
pub(in crate::engine) mod close;
pub(in crate::engine) mod control;
mod finish;
pub(in crate::engine) mod flow;
pub(crate) mod outcome;
pub(in crate::engine) mod resume;
pub(in crate::engine) mod run_end;
pub(in crate::engine) mod session;
pub(in crate::engine) mod step;
pub(in crate::engine) mod stop;
