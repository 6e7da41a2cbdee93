//! Waits that nobody ended in time.

use crate::definitions::message::ToolResult;
use crate::engine::ephemeral::Alarm;
use crate::engine::features::Waits;
use crate::engine::waits::budget;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::sdk::scope::EntryMode;
use crate::store::runs::end::Reason;
use crate::store::state::State;
use crate::store::waits::{OnExpiry, Wait, WaitKind, WaitState};
use crate::store::{receipts, waits};

impl Waits<'_> {
    /// Expires overdue waits before a decision, in case the alarm has not run yet.
    pub(super) fn end_overdue(&self) -> Result<()> {
        let now = self.host.now_us();
        // No wait is due before the alarm.
        if matches!(self.ephemeral.alarm.get(), Alarm::At(at) if at > now) {
            return Ok(());
        }
        self.expire_waits()
    }

    /// Expires overdue waits. The alarm's work.
    pub(crate) fn expire_waits(&self) -> Result<()> {
        let now = self.host.now_us();
        if self.read(|state, sql| Ok(waits::next_due(state, sql)?.is_none_or(|at| at > now)))? {
            return Ok(());
        }
        let (closed, entry, failed, told) = self.transition(|state, sql| {
            let mut closed = Vec::new();
            let mut halted = None;
            let (mut entry, mut failed, mut told) = (None, None, Vec::new());
            for mut wait in self.overdue(state, sql, now, &mut entry)? {
                self.close_wait(state, sql, &mut wait, WaitState::Expired, None)?;
                let text =
                    format!("Nobody answered within {}.", lasted(wait.deadline_us() - wait.created_us));
                let on_expiry = wait.asked.on_expiry;
                if wait.kind == WaitKind::Budget {
                    let outcome = budget::expired(&wait, text);
                    let settled = self.settle_budget(state, sql, &wait, outcome)?;
                    (entry, told) = (settled.entry.or(entry), settled.told);
                    halted = settled.halted.or(halted);
                    closed.push(wait);
                    closed.extend(settled.waits);
                    continue;
                }
                if let Some(receipt) = wait.receipt.filter(|_| on_expiry != OnExpiry::Continue) {
                    let given = self.delegates().answer_in_time(state, sql, &wait)?;
                    receipts::answer(sql, receipt, &given.unwrap_or_else(|| ended_by(&wait, &text)))?;
                }
                match on_expiry {
                    OnExpiry::Fail => failed = Some(text),
                    OnExpiry::Deny | OnExpiry::Continue | OnExpiry::Finish => {
                        entry = self.resume_after(state, sql, &wait)?.or(entry);
                    }
                }
                closed.push(wait);
            }
            // In the same transaction, because a parked run must have an open wait.
            let failed = failed
                .filter(|_| halted.is_none())
                .map(|text| self.control().halt_saying(state, sql, Reason::WaitExpired, Some(text), now))
                .transpose()?;
            Ok((closed, entry, halted.or(failed), told))
        })?;
        self.announce_waits(&closed)?;
        if !told.is_empty() {
            self.subagents().send_envelopes();
        }
        for (kind, reached) in told {
            self.budgets().announce_budget(kind, &[reached]);
        }
        match (failed, entry) {
            // An earlier call of the reply may be running.
            (Some(failed), _) => self.control().cut_off(failed)?,
            (None, Some(entry)) => self.start_flow(entry),
            (None, None) => {}
        }
        if self.read(|state, _| Ok(state.meta.parent.is_some()))? {
            self.subagents().send_envelopes();
        }
        Ok(())
    }

    /// The overdue waits. A wait for an MCP task stays open: the run resumes to poll the server, and clients
    /// get no event.
    fn overdue(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        now: i64,
        entry: &mut Option<EntryMode>,
    ) -> Result<Vec<Wait>> {
        let mut overdue = waits::open(sql)?;
        overdue.retain(|wait| wait.expires_us <= now && wait.deadline_us() <= now);
        for wait in overdue.extract_if(.., |wait| wait.kind == WaitKind::Task) {
            let until = now + limits::MCP_POLL_MAX_US;
            waits::defer(sql, wait.id, until)?;
            state.wait_due.take();
            self.arm_at(state, sql, until, now)?;
            *entry = self.resume_after(state, sql, &wait)?.or(*entry);
        }
        Ok(overdue)
    }
}

/// The result of a call whose wait expired.
fn ended_by(wait: &Wait, why: &str) -> ToolResult {
    let text = match (wait.kind, &wait.asked.input) {
        (WaitKind::Approval, _) => format!("Denied: {why}"),
        (WaitKind::SignIn, Some(input)) => {
            format!("Nobody is signed in to the MCP server \"{}\": {why}", input.server)
        }
        _ => why.to_owned(),
    };
    ToolResult { error_code: Some("expired".into()), ..ToolResult::error(text) }
}

/// A duration as text for people.
fn lasted(us: i64) -> String {
    let seconds = us / crate::limits::SECOND_US;
    let (n, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{n} {unit}{}", if n == 1 { "" } else { "s" })
}
