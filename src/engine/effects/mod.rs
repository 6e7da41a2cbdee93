//! Effects (spec §10): work that runs later, apart from any turn, at least once. Scheduled here (`schedule`), run by the
//! alarm (`run`), once or again and again (`repeat`), kept in one table with what has become of them (`rows`).

pub(crate) mod run;
pub(crate) mod schedule;

pub use crate::sdk::effects::NewEffect;
pub use crate::store::repeat::Repetition;
