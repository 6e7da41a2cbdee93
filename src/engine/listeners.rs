//! Clients that begin to listen: what they may see, and their first frames.

use crate::access::{Action, Caller};
use crate::engine::feed::{FeedStart, FeedTarget};
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::{Filter, Frame};

impl Thread {
    /// Returns the first frames for a new listener: a snapshot, or the missed frames of a resuming one.
    ///
    /// # Errors
    /// `thread_not_found` if the thread does not exist or is not the caller's; `forbidden` if its scope does
    /// not allow streams.
    pub fn listen(
        &self,
        caller: &Caller,
        filter: &Filter,
        last_event_id: Option<&str>,
    ) -> Result<Vec<Frame>> {
        self.admit_listener(caller)?;
        self.first_frames(filter, last_event_id)
    }

    /// Returns the first frames for a client that follows a run.
    ///
    /// # Errors
    /// `thread_not_found` if the thread does not exist or is not the caller's; `not_found` for an unknown
    /// run, `message_not_found` for an unknown message; `forbidden`.
    pub fn follow(
        &self,
        caller: &Caller,
        filter: &Filter,
        of: &FeedTarget,
        last_event_id: Option<&str>,
    ) -> Result<FeedStart> {
        self.admit_listener(caller)?;
        self.feed_start(filter, of, last_event_id)
    }

    /// Checks that the caller may listen. Completes a copied history, and resumes an interrupted run.
    fn admit_listener(&self, caller: &Caller) -> Result<()> {
        self.read(|state, _| caller.may(&Action::Stream, Some(state.meta.thread())))?;
        self.history().ensure_copied()?;
        self.wake()
    }
}
