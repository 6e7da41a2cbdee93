//! The object's one alarm (docs/durability.md): set while anything is runnable or due, and only then. An unfinished
//! run counts as due now, so that a killed process restarts it at once; the handler joins the flow instead of
//! running it a second time.

use std::rc::Rc;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use futures_util::pin_mut;

use super::host::{Host, Param, Sql};
use super::live::{Alarm, Armed};
use super::state::State;
use super::{LostFrames, Thread, rows};
use crate::error::{Code, Result};
use crate::limits;

impl<H: Host> Thread<H> {
    /// The platform's alarm event. Never fails: an alarm that throws too often is gone for good.
    pub async fn alarm(self: Rc<Self>) {
        let _lost = LostFrames(&self.host);
        let holding = Holding::begin(&self.live.alarm);
        let deadline = self.host.now_us() + limits::ALARM_HOLD_US;
        if let Err(error) = self.wake() {
            // An object that was deleted may still be woken once.
            if error.code != Code::ThreadNotFound {
                self.host.log(&format!("the alarm could not wake the thread: {error}"));
            }
        }
        self.hold(deadline).await;
        self.deliver_outbox(self.host.now_us()).await;
        if let Err(error) = self.settle_stored()
            && error.code != Code::ThreadNotFound
        {
            self.host.log(&format!("waiting clients could not be answered: {error}"));
        }
        // From here to the return nothing awaits, so no transition can slip in between the look and the alarm.
        holding.end();
        let now = self.host.now_us();
        let due = match self.read(|state, sql| due(state, sql, now)) {
            Ok(due) => due,
            Err(error) if error.code == Code::ThreadNotFound => None,
            Err(error) => {
                self.host.log(&format!("the alarm could not see what is due: {error}"));
                Some(now + limits::BACKOFF_US)
            }
        };
        if due.is_some()
            && let Err(error) = self.arm(due)
        {
            self.host.log(&format!("the alarm could not be set again: {error}"));
        }
    }

    /// Waits until the flow ends, at most until `deadline`.
    async fn hold(&self, deadline: i64) {
        while self.live.flow.borrow().is_some() {
            let (send, ended) = oneshot::channel();
            self.live.flow_ended.borrow_mut().push(send);
            let late = self.host.sleep_until(deadline);
            pin_mut!(late);
            if let Either::Right(_) = select(ended, late).await {
                return;
            }
        }
    }

    /// Makes sure that the object wakes at `due` or earlier. Inside a transition it commits with it. A running
    /// handler looks again before it returns.
    pub(super) fn arm(&self, due: Option<i64>) -> Result<()> {
        match (self.live.alarm.get(), due) {
            (Alarm::Held, _) | (Alarm::None, None) => return Ok(()),
            (Alarm::At(set), Some(due)) if set <= due => return Ok(()),
            _ => {}
        }
        self.host.set_alarm(due)?;
        self.live.alarm.set(due.map_or(Alarm::None, Alarm::At));
        Ok(())
    }
}

/// The time in which the alarm's handler runs; a handler that panics leaves the slot unknown, not held.
struct Holding<'a>(&'a Armed);

impl<'a> Holding<'a> {
    fn begin(alarm: &'a Armed) -> Holding<'a> {
        alarm.set(Alarm::Held);
        Holding(alarm)
    }

    fn end(self) {
        self.0.set(Alarm::None);
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        if self.0.get() == Alarm::Held {
            self.0.set(Alarm::Unknown);
        }
    }
}

/// The next time at which the thread must be awake; `None` when it has nothing to do.
pub(super) fn due<S: Sql>(state: &State, sql: &S, now: i64) -> Result<Option<i64>> {
    if let Some(run) = state.active().filter(|run| run.runnable()) {
        return Ok(Some(run.resume_us.unwrap_or(now)));
    }
    rows::integer(sql, "SELECT min(due_us) FROM outbox", &[] as &[Param<'_>])
}
