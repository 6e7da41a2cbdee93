//! Waits for several workers (docs/approvals.md): a wait of the kind `children`. The transition that receives
//! the last required outcome closes it, or else the alarm when it expires.

use serde_json::Value;

use crate::definitions::message::ToolResult;
use crate::definitions::subagent::WAIT;
use crate::engine::features::Delegates;
use crate::engine::subagents::call::{Dispatch, WorkersWait};
use crate::engine::subagents::checks::may_wait;
use crate::engine::subagents::delegates::manage::find;
use crate::engine::subagents::delegates::outcome::{WorkerOutcome, works};
use crate::engine::subagents::follow_up::FollowUp;
use crate::engine::waits::NewWait;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::store::children::Child;
use crate::store::runs::Parking;
use crate::store::state::State;
use crate::store::waits::{AwaitedWorkers, DecisionScope, Wait, WaitData, WaitKind, WaitState};
use crate::store::{receipts, waits};

/// Whether to wait until all required workers have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitMode {
    Has,
    Ended,
}

impl Delegates<'_> {
    /// Handles a call that waits for workers. Returns the outcomes if they are ready or the timeout is 0;
    /// otherwise opens a wait and parks the run.
    pub(crate) fn wait_for_workers(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        asked: &WorkersWait,
        receipt: Option<i64>,
        parking: Parking,
    ) -> Result<Result<Dispatch, ToolResult>> {
        let mut named = Vec::with_capacity(asked.ids.len());
        for id in &asked.ids {
            match find(state, sql, id)? {
                Ok(child) => named.push((child.reference, id.clone())),
                Err(result) => return Ok(Err(result)),
            }
        }
        let awaited = AwaitedWorkers { named, any: asked.any };
        let patience = if asked.lasts_us == 0 { WaitMode::Ended } else { WaitMode::Has };
        if let Some(result) = self.gathered(state, sql, &awaited, patience)? {
            return Ok(Ok(Dispatch::now(result)));
        }
        if let Err(result) = may_wait(true, receipt, parking, WAIT) {
            return Ok(Err(result));
        }
        let Some(receipt) = receipt else { return Ok(Ok(Dispatch::default())) };
        self.schedule_polls(state, sql, &awaited)?;
        let title = format!("Wait for {}", asked.ids.join(", "));
        let new = NewWait {
            kind: WaitKind::Children,
            receipt,
            batch: asked.batch,
            digest: String::new(),
            asked: WaitData {
                title,
                by: DecisionScope::Thread,
                workers: Some(awaited),
                ..WaitData::default()
            },
            lasts_us: asked.lasts_us,
        };
        let opened = self.waits().open_wait(state, sql, new)?;
        self.waits().park_run(state, sql)?;
        Ok(Ok(Dispatch { opened: Some(opened), ..Dispatch::default() }))
    }

    /// Schedules polls of the busy workers, to learn whether their outcome will still come.
    fn schedule_polls(&self, state: &mut State, sql: &dyn Sql, awaited: &AwaitedWorkers) -> Result<()> {
        let now = self.host.now_us();
        for (reference, _) in &awaited.named {
            if let Some(mut child) = state.child(sql, reference)?.filter(Child::exists)
                && works(&child)?
            {
                child.due_us = Some(now + limits::CHECK_US);
                child.checks = 0;
                state.update_child(sql, child)?;
            }
        }
        self.arm_at(state, sql, now + limits::CHECK_US, now)
    }

    /// Whether an open wait names this child.
    pub(crate) fn is_awaited(&self, state: &State, sql: &dyn Sql, child: &Child) -> Result<bool> {
        if state.meta.waits == 0 || !child.is_worker() {
            return Ok(false);
        }
        let names = |wait: &Wait| {
            let named = wait.asked.workers.iter().flat_map(|workers| &workers.named);
            named.into_iter().any(|(reference, _)| *reference == child.reference)
        };
        Ok(waits::open(sql)?.iter().any(names))
    }

    /// Closes the waits that have all they need. Called after an outcome was written or a worker was closed.
    pub(super) fn answer_waits(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        applied: &mut FollowUp,
    ) -> Result<()> {
        if state.meta.waits == 0 {
            return Ok(());
        }
        for mut wait in waits::open(sql)? {
            let Some(awaited) = wait.asked.workers.clone() else { continue };
            let Some(result) = self.gathered(state, sql, &awaited, WaitMode::Has)? else { continue };
            if let Some(receipt) = wait.receipt {
                receipts::answer(sql, receipt, &result)?;
            }
            self.waits().close_wait(state, sql, &mut wait, WaitState::Decided, None)?;
            applied.entry = self.waits().resume_after(state, sql, &wait)?.or(applied.entry);
            applied.ended = Some(result.status);
            applied.closed.push(wait);
        }
        Ok(())
    }

    /// The result of an expired wait for workers; `None` for other kinds.
    pub(crate) fn answer_in_time(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        wait: &Wait,
    ) -> Result<Option<ToolResult>> {
        match &wait.asked.workers {
            Some(awaited) => self.gathered(state, sql, awaited, WaitMode::Ended),
            None => Ok(None),
        }
    }

    /// The outcomes of these workers, marked as delivered; `None` while too few of them have ended.
    fn gathered(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        awaited: &AwaitedWorkers,
        patience: WaitMode,
    ) -> Result<Option<ToolResult>> {
        let (mut ended, mut pending, mut new) = (Vec::new(), Vec::new(), false);
        for (reference, id) in &awaited.named {
            let child = state.child(sql, reference)?;
            let outcome = child.as_ref().map(WorkerOutcome::of).transpose()?.flatten();
            if child.as_ref().map(works).transpose()? == Some(true) {
                pending.push(id.as_str());
            } else {
                // A closed worker counts as new.
                let open = child.as_ref().is_some_and(Child::is_open);
                new |= outcome.as_ref().map_or(!open, |outcome| !outcome.seen);
                ended.push((id.as_str(), child, outcome));
            }
        }
        let enough = pending.is_empty() || (awaited.any && new);
        if !enough && patience == WaitMode::Has {
            return Ok(None);
        }
        let bytes = (limits::OUTCOMES_BYTES / ended.len().max(1)).min(limits::OUTCOME_BYTES);
        let (mut outcomes, mut stored) = (Vec::with_capacity(ended.len()), Vec::new());
        for (id, child, outcome) in ended {
            let Some((mut child, outcome)) = child.clone().zip(outcome) else {
                outcomes.push(without_outcome(id, child.as_ref()));
                continue;
            };
            outcomes.push(outcome.to_json(&child, bytes)?);
            if !outcome.seen {
                stored.extend(outcome.files().iter().cloned());
                outcome.keep_seen(&mut child)?;
                state.update_child(sql, child)?;
            }
        }
        let result = json!({ "outcomes": outcomes, "pending": pending });
        Ok(Some(ToolResult { result: Some(result), stored, ..ToolResult::success("") }))
    }
}

/// The entry of a worker without an outcome: idle, or closed.
fn without_outcome(id: &str, child: Option<&Child>) -> Value {
    let status = if child.is_some_and(Child::is_open) { "idle" } else { "closed" };
    json!({ "agentId": id, "status": status, "text": "", "attachments": [], "run": null })
}

impl Child {
    /// Whether the child's thread exists, or is being created.
    fn exists(&self) -> bool {
        self.state.exists()
    }
}
