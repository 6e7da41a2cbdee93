//! The handler of the object's alarm: does everything that is due, and sets the next alarm. It joins the
//! running flow and does not start a second one.

use futures::channel::oneshot;
use futures::future::{LocalBoxFuture, select};
use futures::pin_mut;

use crate::engine::alarm::due;
use crate::engine::effects::run::{RemainingWork, RequestCount};
use crate::engine::ephemeral::{Alarm, AlarmState};
use crate::engine::outbox::{DIRECTORY_US, Targets};
use crate::engine::thread::{LostFrames, Thread};
use crate::error::{Code, Result};
use crate::limits;
use crate::store::outbox;

impl Thread {
    /// Handles the platform's alarm event. Never fails: the platform drops an alarm that throws too often.
    pub fn alarm(self) -> LocalBoxFuture<'static, ()> {
        Box::pin(self.rung())
    }

    async fn rung(self) {
        let _lost = LostFrames(&*self.host);
        let holding = HandlerGuard::begin(&self.ephemeral.alarm);
        let deadline = self.host.now_us() + limits::ALARM_HOLD_US;
        if let Err(error) = self.wake() {
            // A deleted object may still receive one alarm.
            if error.code != Code::ThreadNotFound {
                self.variables().log(&format!("the alarm could not wake the thread: {error}"));
            }
        }
        self.expire().await;
        let mut begun = RequestCount::default();
        let held = loop {
            let held = self.hold(&mut begun, deadline).await;
            if let Err(error) = &held
                && error.code != Code::ThreadNotFound
            {
                self.variables().log(&format!("effects could not be run: {error}"));
            }
            if let Err(error) = self.mcp().poll_sign_ins().await
                && error.code != Code::ThreadNotFound
            {
                self.variables().log(&format!("waits could not be ended: {error}"));
            }
            if let Err(error) = self.subagents().poll_children().await
                && error.code != Code::ThreadNotFound
            {
                self.variables().log(&format!("subagents could not be polled: {error}"));
            }
            self.outbox().deliver_outbox(Targets::All, self.host.now_us()).await;
            if let Err(error) = self.settle_stored()
                && error.code != Code::ThreadNotFound
            {
                self.variables().log(&format!("waiting clients could not be answered: {error}"));
            }
            // Deliveries do not wait for a running job; the next round waits for it.
            if !matches!(held, Ok(WakeReason::EntriesDue)) {
                break held;
            }
        };
        // Nothing awaits from here to the return, so no transition can run between this read and the alarm.
        holding.end();
        let now = self.host.now_us();
        let due = match self.read(|state, sql| due(state, sql, now)) {
            Ok(due) => due,
            Err(error) if error.code == Code::ThreadNotFound => None,
            Err(error) => {
                self.variables().log(&format!("the alarm could not see what is due: {error}"));
                Some(now + limits::BACKOFF_US)
            }
        };
        // Back off after a failure.
        let due = due.map(|at| if held.is_err() { at.max(now + limits::BACKOFF_US) } else { at });
        if due.is_some()
            && let Err(error) = self.arm(due)
        {
            self.variables().log(&format!("the alarm could not be set again: {error}"));
        }
    }

    /// Runs what is due, and waits until that and the flow have ended, at most until `deadline`. An effect, a
    /// job or a directory update that falls due soon is waited for in memory, without setting the alarm.
    async fn hold(&self, begun: &mut RequestCount, deadline: i64) -> Result<WakeReason> {
        let mut entry_due = None;
        loop {
            let (send, alarm_waiters) = oneshot::channel();
            self.ephemeral.alarm_waiters.borrow_mut().push(send);
            let RemainingWork { next, spent } = match self.effects().start_effects(begun) {
                Err(error) if self.ephemeral.flow.borrow().is_none() => return Err(error),
                Err(error) => {
                    // Join the flow anyway.
                    self.variables().log(&format!("effects could not be started: {error}"));
                    RemainingWork::default()
                }
                Ok(ahead) => ahead,
            };
            let job = match self.start_job(begun) {
                Err(error) if self.ephemeral.flow.borrow().is_none() => return Err(error),
                Err(error) => {
                    self.variables().log(&format!("a job could not be started: {error}"));
                    RemainingWork::default()
                }
                Ok(ahead) => ahead,
            };
            let now = self.host.now_us();
            let running = !self.ephemeral.effects.borrow().is_empty();
            // A delivery in progress also sends outbox entries that fall due meanwhile.
            let delivers = !self.ephemeral.deliveries.running.borrow().is_empty();
            let busy = running || delivers || self.ephemeral.flow.borrow().is_some();
            let next = match busy {
                true => next,
                // A run that begins in this time sets no alarm, and updates the directory itself.
                false => {
                    // An outbox entry whose time has come is due; no read is needed.
                    if entry_due.is_none_or(|at| at > now) {
                        entry_due = self.read(|_, sql| outbox::next_soon(sql, now))?;
                    }
                    if entry_due.is_some_and(|at| at <= now) {
                        let job = self.ephemeral.job.get();
                        return Ok(if job { WakeReason::EntriesDue } else { WakeReason::All });
                    }
                    let entry_due = entry_due.filter(|at| *at <= now + DIRECTORY_US);
                    let effect = next.filter(|at| *at <= now + limits::EFFECT_SOON_US);
                    let job = job.next.filter(|at| *at <= now + DIRECTORY_US);
                    entry_due.into_iter().chain(effect).chain(job).min()
                }
            };
            let (busy, spent) = (busy || self.ephemeral.job.get(), spent || job.spent);
            // Work that needs a fresh event does not wait for running work, which continues beside it.
            if now >= deadline || spent || !(busy || next.is_some()) {
                return Ok(WakeReason::All);
            }
            let until = self.host.sleep_until(next.map_or(deadline, |at| at.min(deadline)));
            pin_mut!(until);
            let _either = select(alarm_waiters, until).await;
        }
    }
}

/// The reason why the alarm's handler stops waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WakeReason {
    /// Nothing is left to wait for, or the time is up.
    All,
    /// Outbox entries are due while a job is running.
    EntriesDue,
}

/// Guards the time in which the alarm's handler runs. If the handler panics, the slot becomes unknown.
struct HandlerGuard<'a>(&'a AlarmState);

impl<'a> HandlerGuard<'a> {
    fn begin(alarm: &'a AlarmState) -> HandlerGuard<'a> {
        alarm.set(Alarm::Held);
        HandlerGuard(alarm)
    }

    fn end(self) {
        self.0.set(Alarm::None);
    }
}

impl Drop for HandlerGuard<'_> {
    fn drop(&mut self) {
        if self.0.get() == Alarm::Held {
            self.0.set(Alarm::Unknown);
        }
    }
}
