//! Effects (spec §10): work that runs later, apart from any turn, at least once. Scheduled here (`schedule`), run by the
//! alarm (`run`), once or again and again (`repeat`), kept in one table with what has become of them (`rows`).

pub(crate) mod run;
pub(crate) mod schedule;

pub(crate) use crate::engine::effects::run::Ahead;
pub(crate) use crate::engine::effects::run::Begun;
pub(crate) use crate::engine::effects::schedule::By;
pub use crate::engine::effects::schedule::NewEffect;
pub use crate::engine::effects::schedule::Repetition;
pub(crate) use crate::engine::effects::schedule::at_time;
pub(crate) use crate::engine::effects::schedule::remove;
pub(crate) use crate::store::effects::Tally;
pub(crate) use crate::store::effects::cancel_all;
pub(crate) use crate::store::effects::next_due;
