//! Failures on the server's terminal, for the operator. Each is one line with the thread, the subject, the
//! error code if any, the reason, and the row of the log. Retries of one call are one failure. The same
//! failure is reported once in a run, so that a permanent failure does not fill the log.

use crate::engine::thread::Thread;
use crate::env::Redacted;
use crate::error::Result;
use crate::limits;
use crate::text::first_bytes;

/// Something that failed.
pub(crate) struct Failure<'a> {
    /// For example `the tool "lookup"`.
    pub(crate) what: String,
    pub(crate) code: Option<&'a str>,
    pub(crate) error: Redacted,
    /// Its row in the thread's log, if that row has its own page.
    pub(crate) log: Option<String>,
}

impl Thread {
    /// Reports a failure, unless the same one was just reported.
    pub(crate) fn report_failure(&self, failure: Failure<'_>) -> Result<()> {
        let Failure { what, code, error, log } = failure;
        let thread = self.read(|state, _| Ok(state.meta.thread_id.clone()))?;
        let code = code.map_or(String::new(), |code| format!(" [{code}]"));
        let why = error.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = first_bytes(&why, limits::OPERATOR_ERROR_BYTES);
        let told = format!("{what} failed{code}: {why}");
        {
            let mut earlier = self.ephemeral.reported.failures.borrow_mut();
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
