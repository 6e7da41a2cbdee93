//! A decision that repeats the model request. The reply is dropped with its calls, none of which has begun.

use crate::engine::features::Waits;
use crate::error::{Code, Error, Result};
use crate::host::Sql;
use crate::limits;
use crate::store::messages as rows;
use crate::store::receipts::Kind;
use crate::store::runs::Phase;
use crate::store::state::State;
use crate::store::waits::{Wait, WaitState};
use crate::store::{receipts, waits};

impl Waits<'_> {
    /// Drops the open step's reply, inside the transaction of the decision. The next step gets a new block of
    /// seqs, so that no call reuses the receipt of a dropped one. Returns the waits that end with the reply.
    pub(super) fn restart_step(&self, state: &mut State, sql: &dyn Sql, reply: i64) -> Result<Vec<Wait>> {
        let last = reply + limits::BLOCK - 1;
        let began = |call: &receipts::Receipt| call.runs > 0 && call.kind != Kind::Refused;
        if receipts::between(sql, reply, last)?.iter().any(began) {
            return Err(has_begun());
        }
        let mut cancelled = Vec::new();
        for mut wait in waits::open(sql)?.into_iter().filter(|wait| wait.batch == Some(reply)) {
            self.close_wait(state, sql, &mut wait, WaitState::Cancelled, None)?;
            cancelled.push(wait);
        }
        let row = rows::find(sql, reply)?.ok_or_else(has_begun)?;
        row.delete(sql)?;
        receipts::forget_waiting(sql, reply, last)?;
        let calls = i64::try_from(row.calls.len()).unwrap_or(limits::BLOCK);
        state.meta.seq_floor = state.meta.seq_floor.max(state.max_seq).max(reply + calls);
        state.record_edit(sql)?;
        let now = self.host.now_us();
        let run = state.active_mut()?;
        run.phase = Phase::Start;
        run.resume_us = Some(now);
        run.update(sql)?;
        self.ephemeral.context.borrow_mut().clear();
        self.arm(Some(now))?;
        Ok(cancelled)
    }
}

/// The error when a call of the reply has begun.
pub(super) fn has_begun() -> Error {
    Error::new(Code::Conflict, "A call of this reply has begun already: the model cannot be asked again.")
        .hint("Decide with `interrupt` continue.")
}
