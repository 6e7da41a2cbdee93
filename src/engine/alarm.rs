//! The object's one alarm (docs/durability.md). It is set only while something is runnable or due. An
//! unfinished run counts as due now, so that a killed process restarts it at once. `alarm_handler` handles its
//! event.

use crate::engine::ephemeral::Alarm;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::store::state::State;
use crate::store::{outbox, waits};

impl Thread {
    /// Ensures that the object wakes at `at` or earlier. If the alarm is unknown, something may be due
    /// earlier.
    pub(crate) fn arm_at(&self, state: &State, sql: &dyn Sql, at: i64, now: i64) -> Result<()> {
        match self.ephemeral.alarm.get() {
            Alarm::Unknown if at > now => self.rearm(state, sql, now),
            _ => self.arm(Some(at)),
        }
    }

    /// Sets the alarm for the next due time, or removes it. Inside a transition it commits with the
    /// transition.
    pub(super) fn rearm(&self, state: &State, sql: &dyn Sql, now: i64) -> Result<()> {
        let alarm = self.ephemeral.alarm.get();
        if alarm == Alarm::Held {
            return Ok(());
        }
        let due = due(state, sql, now)?;
        let known = match alarm {
            Alarm::Held => true,
            Alarm::At(at) => Some(at) == due,
            Alarm::None => due.is_none(),
            Alarm::Unknown => false,
        };
        if known {
            return Ok(());
        }
        self.host.set_alarm(due)?;
        self.ephemeral.alarm.set(due.map_or(Alarm::None, Alarm::At));
        Ok(())
    }

    /// Ensures that the object wakes at `due` or earlier. Inside a transition it commits with the transition.
    /// A running handler checks again before it returns.
    pub(super) fn arm(&self, due: Option<i64>) -> Result<()> {
        match (self.ephemeral.alarm.get(), due) {
            (Alarm::Held, _) | (Alarm::None, None) => return Ok(()),
            (Alarm::At(set), Some(due)) if set <= due => return Ok(()),
            _ => {}
        }
        self.host.set_alarm(due)?;
        self.ephemeral.alarm.set(due.map_or(Alarm::None, Alarm::At));
        Ok(())
    }
}

/// The next time at which the thread must be awake; `None` if it has nothing to do.
pub(crate) fn due(state: &State, sql: &dyn Sql, now: i64) -> Result<Option<i64>> {
    let run = state.active().filter(|run| run.runnable()).map(|run| run.resume_us.unwrap_or(now));
    if run.is_some_and(|at| at <= now) {
        return Ok(run);
    }
    let outbox = outbox::next_due(sql)?;
    let effect = crate::store::effects::tally::next_due(state, sql)?;
    let child = crate::store::children::open::next_due(state, sql)?;
    let wait = waits::next_due(state, sql)?;
    let job = crate::store::jobs::next_due(state, sql)?;
    let end = state.meta.expires_us;
    Ok([run, outbox, effect, child, wait, job, end].into_iter().flatten().min())
}
