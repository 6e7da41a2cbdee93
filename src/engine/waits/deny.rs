//! Approvals that a message denies: a person writes instead of deciding.

use crate::engine::features::Waits;
use crate::engine::waits::answer::denied;
use crate::error::Result;
use crate::host::Sql;
use crate::sdk::scope::EntryMode;
use crate::store::state::State;
use crate::store::waits::{Decision, Wait, WaitKind, WaitState};
use crate::store::{receipts, waits};

impl Waits<'_> {
    /// Denies the open approvals because a person wrote a message instead. Returns the closed waits, and the
    /// entry if the run continues.
    pub(crate) fn deny_for_message(
        &self,
        state: &mut State,
        sql: &dyn Sql,
    ) -> Result<(Vec<Wait>, Option<EntryMode>)> {
        let (mut closed, mut entry) = (Vec::new(), None);
        for mut wait in waits::open(sql)?.into_iter().filter(|wait| wait.kind == WaitKind::Approval) {
            let reason = "The user wrote instead.";
            let decision = Decision {
                decision: "deny".into(),
                reason: Some(reason.into()),
                scope: "message".into(),
                ..Decision::default()
            };
            if let Some(receipt) = wait.receipt {
                receipts::answer(sql, receipt, &denied(&wait, Some(reason)))?;
            }
            self.close_wait(state, sql, &mut wait, WaitState::Decided, Some(decision))?;
            entry = self.resume_after(state, sql, &wait)?.or(entry);
            closed.push(wait);
        }
        Ok((closed, entry))
    }
}
