//! What the operator reads on the server's terminal when something fails: one line each, with the thread, what failed, the
//! code of the error if it has one, why, and where more of it stands. Retries of one call are one failure; the same failure
//! again within a run is not told again, so that what fails all the time fills no log.

use crate::engine::thread::Thread;
use crate::env::Shown;
use crate::error::Result;
use crate::limits;
use crate::text::first_bytes;

/// Something that failed.
pub(crate) struct Failure<'a> {
    /// `the tool "lookup"`.
    pub(crate) what: String,
    pub(crate) code: Option<&'a str>,
    pub(crate) error: Shown,
    /// Its row in the thread's log, when that has a page of its own.
    pub(crate) log: Option<String>,
}

impl Thread {
    /// Tells of a failure, unless the same was told just now.
    pub(crate) fn tell_failure(&self, failure: Failure<'_>) -> Result<()> {
        let Failure { what, code, error, log } = failure;
        let thread = self.read(|state, _| Ok(state.meta.thread_id.clone()))?;
        let code = code.map_or(String::new(), |code| format!(" [{code}]"));
        let why = error.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = first_bytes(&why, limits::OPERATOR_ERROR_BYTES);
        let told = format!("{what} failed{code}: {why}");
        {
            let mut earlier = self.ephemeral.told_failures.borrow_mut();
            if earlier.contains(&told) {
                return Ok(());
            }
            if earlier.len() >= limits::OPERATOR_FAILURES {
                earlier.pop_front();
            }
            earlier.push_back(told.clone());
        }
        let log = log.map_or(String::new(), |id| format!("/{id}"));
        self.variables().log(&format!("thread {thread}: {told} (more: GET /api/threads/{thread}/logs{log})"));
        Ok(())
    }
}
