//! The long pause before the next attempt at a model or a tool, where a policy says that the run is parked for it
//! (docs/models.md). It ends by itself, by the thread's alarm; a person who watches may end it earlier.

use crate::engine::features::Waits;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::spec::retry::{Resolved, RetryMode};
use crate::store::runs::Parking;
use crate::store::state::State;
use crate::store::waits::{Asked, DecidedBy, OnExpiry, Wait, WaitKind, WaitState};
use crate::text::shorten;

/// What is tried again after a pause.
pub(crate) struct LaterAttempt {
    /// The call that it is in, if any.
    pub(crate) receipt: Option<i64>,
    /// Seq of the reply that is asked for, or that the call is in.
    pub(crate) reply: i64,
    /// What will be done.
    pub(crate) title: String,
    /// Why it has failed.
    pub(crate) reason: String,
    pub(crate) pause_us: i64,
}

/// Whether a pause is spent with the run parked.
pub(crate) fn parks(policy: &Resolved, parking: Parking, pause_us: i64) -> bool {
    policy.mode == RetryMode::Park && parking == Parking::Possible && pause_us > limits::PARK_ABOVE_US
}

impl Waits<'_> {
    /// Parks the run until the next attempt, inside the transaction that counts it.
    pub(crate) fn park_for_attempt(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        later: LaterAttempt,
    ) -> Result<Wait> {
        let now = self.host.now_us();
        let mut reason = self.variables().redact(later.reason);
        shorten(&mut reason, limits::WAIT_REASON_BYTES);
        let asked = Asked {
            title: self.variables().redact(later.title),
            reason: Some(reason),
            by: DecidedBy::Thread,
            on_expiry: OnExpiry::Continue,
            ..Asked::default()
        };
        let wait = Wait {
            id: 0,
            kind: WaitKind::Retry,
            state: WaitState::Open,
            run: state.active().map(|run| run.id),
            receipt: later.receipt,
            batch: Some(later.reply),
            digest: None,
            asked,
            decision: None,
            created_us: now,
            expires_us: now + later.pause_us,
            closed_us: None,
        };
        let wait = self.write_wait(state, sql, wait)?;
        self.park_run(state, sql)?;
        Ok(wait)
    }
}
