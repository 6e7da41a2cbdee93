//! The long pause before the next attempt at a model or a tool, if a policy parks the run for it
//! (docs/models.md). The thread's alarm ends it; a person may end it earlier.

use crate::definitions::retry::{EffectivePolicy, RetryMode};
use crate::engine::features::Waits;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::store::runs::Parking;
use crate::store::state::State;
use crate::store::waits::{DecisionScope, OnExpiry, Wait, WaitData, WaitKind, WaitState};
use crate::text::shorten;

/// The attempt after the pause.
pub(crate) struct LaterAttempt {
    /// The call that it belongs to, if any.
    pub(crate) receipt: Option<i64>,
    /// Seq of the requested reply, or of the reply with the call.
    pub(crate) reply: i64,
    /// A description of the attempt.
    pub(crate) title: String,
    /// The reason of the last failure.
    pub(crate) reason: String,
    pub(crate) pause_us: i64,
}

/// Whether the run parks for a pause.
pub(crate) fn parks(policy: &EffectivePolicy, parking: Parking, pause_us: i64) -> bool {
    policy.mode == RetryMode::Park && parking == Parking::Possible && pause_us > limits::PARK_ABOVE_US
}

impl Waits<'_> {
    /// Parks the run until the next attempt. An attempt of the run itself is counted in the same transaction; an
    /// attempt of a call is counted when the call is entered again.
    pub(crate) fn park_for_attempt(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        later: LaterAttempt,
    ) -> Result<Wait> {
        let now = self.host.now_us();
        let mut reason = self.variables().redact(later.reason);
        shorten(&mut reason, limits::WAIT_REASON_BYTES);
        let asked = WaitData {
            title: self.variables().redact(later.title),
            reason: Some(reason),
            by: DecisionScope::Thread,
            on_expiry: OnExpiry::Continue,
            ..WaitData::default()
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
