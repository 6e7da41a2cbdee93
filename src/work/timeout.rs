//! A time limit.

use futures::future::{Either, select};
use futures::pin_mut;

use crate::host::{Host, Pending};

/// A deadline for many awaits with one timer. The timer is set again only if it fires before a deadline that
/// has moved.
pub(crate) struct Deadline<'a> {
    host: &'a dyn Host,
    /// Microseconds since 1970.
    deadline: i64,
    /// Time at which the timer fires.
    armed: i64,
    timer: Pending<()>,
}

impl<'a> Deadline<'a> {
    pub(crate) fn new(host: &'a dyn Host, deadline: i64) -> Deadline<'a> {
        Deadline { host, deadline, armed: deadline, timer: host.sleep_until(deadline) }
    }

    /// A deadline after `limit_ms` milliseconds.
    pub(crate) fn for_ms(host: &'a dyn Host, limit_ms: u64) -> Deadline<'a> {
        let us = i64::try_from(limit_ms).unwrap_or(i64::MAX / 2000) * 1000;
        Deadline::new(host, host.now_us() + us)
    }

    /// Moves the deadline.
    pub(crate) fn until(&mut self, deadline: i64) {
        self.deadline = deadline;
        if deadline < self.armed {
            self.arm();
        }
    }

    fn arm(&mut self) {
        self.armed = self.deadline;
        self.timer = self.host.sleep_until(self.deadline);
    }

    /// The future's value, or `None` when the deadline comes first. The future is dropped then.
    pub(crate) async fn within<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        pin_mut!(future);
        loop {
            match select(future.as_mut(), self.timer.as_mut()).await {
                Either::Left((value, _)) => return Some(value),
                Either::Right(_) if self.host.now_us() >= self.deadline => return None,
                Either::Right(_) => self.arm(),
            }
        }
    }
}
