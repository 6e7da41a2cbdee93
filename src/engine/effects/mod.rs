//! Effects (spec §10): work that runs later, outside any turn, at least once. `schedule`: schedules, lists,
//! cancels and replays them. `run`: the alarm runs them. Their rows are in `store/effects`.

pub(super) mod run;
pub(crate) mod schedule;

pub use crate::sdk::effects::NewEffect;
pub use crate::store::repeat::Repetition;
