//! Jobs: pending work outside runs, such as the export of spans. A job is written in the transaction that
//! makes it necessary, and deleted in the transaction of its result. `job_runner` makes the attempts.

use crate::error::Result;
use crate::host::Sql;
use crate::store::state::State;

/// Writes the result of a job, in the transaction that deletes it. Returns the data for the rest, if any is
/// left.
type ResultWriter = Box<dyn FnOnce(&mut State, &dyn Sql) -> Result<Option<String>>>;

/// The result of an attempt.
pub(crate) enum JobEnd {
    /// The job is done, or a part of it.
    Done(ResultWriter),
    /// A prerequisite is missing. The job is tried again after this pause in microseconds. `then` returns the
    /// data to continue with; without data the job is dropped silently.
    Later { then: ResultWriter, error: String, pause_us: i64 },
    /// The job is tried again, no sooner than after this pause in microseconds.
    Failed { error: String, after_us: i64, data: String },
}
