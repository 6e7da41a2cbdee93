//! The outbox: updates for the directory, the parent, children and memories. Delivery is at least once,
//! through rows that are written with the change that they report. A model call never waits for the
//! directory.

use crate::engine::features::Outbox;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::request::directory_call as call;
use crate::request::directory_call::{DirectoryCall, ThreadRow};
use crate::store::messages::Row;
use crate::store::outbox as table;
use crate::store::outbox::{NewEntry, TO_THREAD};
use crate::store::runs::end::Outcome;
use crate::store::state::State;
use crate::store::window::Window;

/// Delay after which an envelope is due that its writer delivers itself.
pub(super) const INLINE_US: i64 = 2 * limits::SECOND_US;

/// Delay of activity updates. A run that ends sooner is not reported as started; of runs in quick succession,
/// only the last end is reported.
pub(super) const DIRECTORY_US: i64 = limits::SECOND_US / 4;

/// The targets of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Targets {
    All,
    /// Parent and children.
    Threads,
}

impl Outbox<'_> {
    /// Posts the current state of the thread to the directory.
    pub(super) fn post_row(&self, state: &State, sql: &dyn Sql, now: i64) -> Result<()> {
        let meta = &state.meta;
        // The caller delivers it at once; the alarm covers a failure. Nobody waits for a child's.
        let due = now + if meta.parent.is_none() { INLINE_US } else { DIRECTORY_US };
        let call = DirectoryCall::Upsert {
            row: ThreadRow {
                id: meta.thread_id.clone(),
                agent_id: meta.agent.clone(),
                owner: meta.owner.clone(),
                tags: meta.tags.clone(),
                created_at_us: meta.created_us,
                terminated_at_us: meta.terminated_us,
                parent: meta.parent.as_ref().map(|parent| parent.thread.clone()),
                version: meta.version,
                key: meta.key.clone(),
                life: meta.life,
            },
        };
        self.post(state, sql, "row", &call, meta.version, due)
    }

    /// Posts the end of a run to the directory.
    pub(super) fn post_activity(&self, state: &State, sql: &dyn Sql, now: i64) -> Result<()> {
        let Some(run) = &state.run else { return Ok(()) };
        let version = 2 * run.id + 1;
        let outcome = run.end.as_ref().map(|end| (end.reason.outcome(), end.reason.as_str()));
        let call = DirectoryCall::Activity {
            id: state.meta.thread_id.clone(),
            life: state.meta.life,
            version,
            executing: false,
            last_activity_us: now,
            last_message: newest_message(state),
            failed: outcome.and_then(|(of, reason)| (of == Outcome::Failed).then(|| reason.to_owned())),
        };
        // A run stopped by a person is not followed by another one at once.
        let stopped = outcome.is_some_and(|(of, _)| of == Outcome::Stopped);
        let due = if stopped { now } else { now + DIRECTORY_US };
        self.post(state, sql, "activity", &call, version, due)
    }

    /// Posts the newest message of a thread that begins with earlier messages. Runs report the later ones.
    pub(crate) fn post_earlier(
        &self,
        state: &State,
        sql: &dyn Sql,
        newest: Option<&Row>,
        now: i64,
    ) -> Result<()> {
        let Some(newest) = newest else { return Ok(()) };
        let call = DirectoryCall::Activity {
            id: state.meta.thread_id.clone(),
            life: state.meta.life,
            // Below the version of the first run's.
            version: 0,
            executing: false,
            last_activity_us: now,
            last_message: Some(listed(newest)),
            failed: None,
        };
        self.post(state, sql, "activity", &call, 0, now + INLINE_US)
    }

    pub(super) fn post(
        &self,
        state: &State,
        sql: &dyn Sql,
        subject: &str,
        call: &DirectoryCall,
        version: i64,
        due: i64,
    ) -> Result<()> {
        let target = call::name_of(state.meta.owner.as_deref());
        self.post_to(&target, state, sql, subject, call, (version, due))
    }

    /// Posts a call to the directory of this name.
    pub(super) fn post_to(
        &self,
        target: &str,
        state: &State,
        sql: &dyn Sql,
        subject: &str,
        call: &DirectoryCall,
        (version, due): (i64, i64),
    ) -> Result<()> {
        let body = call.to_json()?;
        NewEntry { subject, target, body: &body, version, due_us: due }.replace(sql)?;
        self.arm_at(state, sql, due, self.host.now_us())
    }
}

/// The newest message that people see, as a list shows it.
pub(super) fn newest_message(state: &State) -> Option<(String, i64)> {
    state.window.as_ref().and_then(Window::newest_visible).map(|row| listed(row))
}

/// The beginning of a message's text, and its time in microseconds since 1970.
fn listed(row: &Row) -> (String, i64) {
    (row.content.as_deref().unwrap_or_default().chars().take(200).collect(), row.created_us)
}

/// Deletes an envelope to a thread from the outbox.
pub(super) fn forget_envelope(sql: &dyn Sql, thread: &str, n: i64) -> Result<()> {
    table::forget(sql, &format!("{TO_THREAD}{thread}:{n:012}"), n)
}
