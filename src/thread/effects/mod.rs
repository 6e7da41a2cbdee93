//! Effects (spec §10): work that runs later, apart from any turn, at least once. Scheduled here (`schedule`), run by the
//! alarm (`run`), once or again and again (`repeat`), kept in one table with what has become of them (`rows`).

mod repeat;
mod rows;
mod run;
mod schedule;

pub(crate) use rows::{Tally, cancel_all, next_due};
pub(super) use run::{Ahead, Begun};
pub(in crate::thread) use schedule::at_time;
pub(crate) use schedule::{By, remove};
pub use schedule::{NewEffect, Repetition};
