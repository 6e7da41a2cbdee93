//! Waits: questions to the outside for which a run parks (docs/approvals.md). The transaction that parks the run
//! writes the wait's row, and nothing of the run stays in memory. A single transaction stores the decision, the
//! call's result if the decision is its result, and the run's resumption. The rows are in `store/waits`.
//!
//! * Here: opening and closing of waits. `park`: parks a run. `expiry`: waits that nobody ended in time; `deny`:
//!   approvals that a message denies. `lookup`: finds a wait by its id. `gate`: holds calls that have to wait;
//!   `question`: the question about a call; `digest`: the digest of a call; `decide`: decisions and their effects;
//!   `answer`: the results of answers; `input`: input that tools request; `restart`: a decision that repeats the
//!   model request. `retry`: a long pause before the next attempt. `budget_question`: asks about spending; `budget`:
//!   what the decision changes.

mod answer;
pub(super) mod budget;
mod budget_question;
pub(crate) mod decide;
mod deny;
mod digest;
mod expiry;
pub(super) mod gate;
pub(in crate::engine) mod input;
pub(crate) mod lookup;
mod park;
pub(super) mod question;
mod restart;
pub(super) mod retry;

use crate::engine::features::Waits;
use crate::engine::outbox::DIRECTORY_US;
use crate::engine::subagents::envelope::{EnvelopeBody, WaitFrame, WaitNews};
use crate::engine::subagents::follow_up::FollowUp;
use crate::error::Result;
use crate::host::Sql;
use crate::json;
use crate::protocols::responses::frames::live::{WaitClosedFrame, WaitOpenedFrame};
use crate::request::directory_call::{DirectoryCall, WaitRow};
use crate::sdk::scope::EntryMode;
use crate::store::children::Child;
use crate::store::log_record::Event;
use crate::store::messages::message_id;
use crate::store::meta::Meta;
use crate::store::state::State;
use crate::store::waits::{Decision, Wait, WaitData, WaitKind, WaitState};
use crate::store::{meta, waits};

/// A wait to open.
pub(super) struct NewWait {
    pub(super) kind: WaitKind,
    /// The call that waits.
    pub(super) receipt: i64,
    /// Seq of the reply that contains it.
    pub(super) batch: i64,
    pub(super) digest: String,
    pub(super) asked: WaitData,
    pub(super) lasts_us: i64,
}

/// The characters of a title that the directory stores.
const TITLE_CHARS: usize = 200;

impl Waits<'_> {
    /// Opens a wait for a call, inside the transaction that parks the run.
    pub(super) fn open_wait(&self, state: &mut State, sql: &dyn Sql, new: NewWait) -> Result<Wait> {
        let now = self.host.now_us();
        let wait = Wait {
            id: 0,
            kind: new.kind,
            state: WaitState::Open,
            run: state.active().map(|run| run.id),
            receipt: Some(new.receipt),
            batch: Some(new.batch),
            digest: Some(new.digest).filter(|digest| !digest.is_empty()),
            asked: new.asked,
            decision: None,
            created_us: now,
            expires_us: now + new.lasts_us,
            closed_us: None,
        };
        self.write_wait(state, sql, wait)
    }

    /// Opens a wait whose row has no number yet.
    pub(super) fn write_wait(&self, state: &mut State, sql: &dyn Sql, wait: Wait) -> Result<Wait> {
        let now = self.host.now_us();
        let wait = Wait { id: state.meta.wait_next, ..wait };
        if wait.id == 1 {
            waits::create(sql)?;
            meta::set_waits(sql)?;
        }
        wait.insert(sql)?;
        state.meta.wait_next += 1;
        state.meta.waits += 1;
        let known = state.wait_due.get().flatten().filter(|_| state.meta.waits > 1);
        state.wait_due.set(
            (known.is_some() || state.meta.waits == 1)
                .then(|| Some(known.map_or(wait.expires_us, |at| at.min(wait.expires_us)))),
        );
        self.post_wait(state, sql, &wait)?;
        self.report_wait(state, sql, &wait)?;
        self.arm_at(state, sql, wait.expires_us, now)?;
        Ok(wait)
    }

    /// Closes a wait. The caller handles the consequence for its call.
    pub(super) fn close_wait(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        wait: &mut Wait,
        to: WaitState,
        decision: Option<Decision>,
    ) -> Result<()> {
        let now = self.host.now_us();
        wait.state = to;
        wait.decision = decision;
        wait.closed_us = Some(now);
        wait.close(sql)?;
        state.wait_due.take();
        Event::wait(wait, &state.meta.stem).insert(sql, now)?;
        state.meta.waits -= 1;
        self.report_wait(state, sql, wait)?;
        self.post_wait(state, sql, wait)
    }

    /// Reports the wait to the parent. Its registry shows whether the child waits, and its clients receive
    /// the frames of all descendants.
    fn report_wait(&self, state: &mut State, sql: &dyn Sql, wait: &Wait) -> Result<()> {
        if state.meta.parent.is_none() {
            return Ok(());
        }
        let news = WaitNews { open: Some(state.meta.waits), told: wait.frame(&state.meta) };
        self.subagents().send_to_parent(state, sql, EnvelopeBody::Asks(news))
    }

    /// Receives the report of a child's wait, and forwards it to the parent.
    pub(super) fn receive_question(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        child: &mut Child,
        news: &WaitNews,
        applied: &mut FollowUp,
    ) -> Result<()> {
        let status = news.open.map(|open| if open > 0 { "waiting" } else { "running" });
        if let Some(status) = status.filter(|status| child.is_open() && child.status != *status) {
            status.clone_into(&mut child.status);
            let now = self.host.now_us();
            Event::subagent("status", child, state.active(), Some(status)).insert(sql, now)?;
        }
        applied.asked.push((child.reference.clone(), news.told.clone()));
        self.subagents().send_to_parent(
            state,
            sql,
            EnvelopeBody::Asks(WaitNews { open: None, told: news.told.clone() }),
        )
    }

    /// Reports the wait to the directory, which lists the open waits of all threads of an owner.
    fn post_wait(&self, state: &State, sql: &dyn Sql, wait: &Wait) -> Result<()> {
        let id = wait.public_id(&state.meta.stem);
        let row = WaitRow {
            id: id.clone(),
            thread: state.meta.thread_id.clone(),
            life: state.meta.life,
            kind: wait.kind.as_str().to_owned(),
            title: wait.asked.title.chars().take(TITLE_CHARS).collect(),
            created_at_us: wait.created_us,
            expires_at_us: wait.deadline_us(),
            open: wait.state == WaitState::Open,
        };
        let version = if row.open { 1 } else { 2 };
        let due = self.host.now_us() + DIRECTORY_US;
        self.outbox().post(state, sql, &format!("w:{id}"), &DirectoryCall::Wait { row }, version, due)
    }

    /// Resumes the run, unless a wait of an earlier call is still open.
    pub(super) fn resume_after(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        wait: &Wait,
    ) -> Result<Option<EntryMode>> {
        let parked = state.active().is_some_and(|run| run.phase.is_parked() && Some(run.id) == wait.run);
        let before = |other: &Wait| other.run == wait.run && other.receipt < wait.receipt;
        if !parked || state.meta.waits > 0 && waits::open(sql)?.iter().any(before) {
            return Ok(None);
        }
        let now = self.host.now_us();
        let run = state.active_mut()?;
        run.resume(now);
        run.update(sql)?;
        self.arm(Some(now))?;
        Ok(Some(EntryMode::Again))
    }

    /// Cancels all open waits when the thread is stopped.
    pub(super) fn cancel_waits(&self, state: &mut State, sql: &dyn Sql) -> Result<Vec<Wait>> {
        self.cancel_waits_where(state, sql, |_| true)
    }

    /// Cancels the waits of a run that ends. Waits for subagents' budgets stay open.
    pub(super) fn cancel_waits_of_run(&self, state: &mut State, sql: &dyn Sql) -> Result<Vec<Wait>> {
        self.cancel_waits_where(state, sql, |wait| wait.run.is_some())
    }

    fn cancel_waits_where(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        which: fn(&Wait) -> bool,
    ) -> Result<Vec<Wait>> {
        if state.meta.waits == 0 {
            return Ok(Vec::new());
        }
        let mut open = waits::open(sql)?;
        open.retain(which);
        for wait in &mut open {
            self.close_wait(state, sql, wait, WaitState::Cancelled, None)?;
        }
        Ok(open)
    }

    /// Sends the opened and closed waits to clients.
    pub(super) fn announce_waits(&self, changed: &[Wait]) -> Result<()> {
        if changed.is_empty() || !self.has_listeners() {
            return Ok(());
        }
        let frames: Vec<WaitFrame> =
            self.read(|state, _| Ok(changed.iter().map(|wait| wait.frame(&state.meta)).collect()))?;
        for frame in frames {
            self.announce_wait(frame, None);
        }
        Ok(())
    }

    /// Sends one wait to clients. `reference`: the child at or below which it is.
    pub(super) fn announce_wait(&self, frame: WaitFrame, reference: Option<&str>) {
        let (kind, mut data) = match frame {
            WaitFrame::Opened(data) => ("wait_opened", data),
            WaitFrame::Closed(data) => ("wait_closed", data),
        };
        if let (Some(fields), Some(reference)) = (data.as_object_mut(), reference) {
            fields.insert("reference".into(), reference.into());
        }
        self.announce(kind, data);
    }
}

impl Wait {
    /// The frame for clients of the current state.
    fn frame(&self, meta: &Meta) -> WaitFrame {
        match self.state {
            WaitState::Open => {
                let shown = self.response(meta, &|seq| message_id(&meta.stem, seq));
                WaitFrame::Opened(json!(WaitOpenedFrame { wait: shown, reference: None }))
            }
            state => WaitFrame::Closed(json!(WaitClosedFrame {
                id: self.public_id(&meta.stem),
                kind: self.kind,
                state,
                decision: self.decision.as_ref().map(|decision| decision.decision.as_str()),
                reference: None,
            })),
        }
    }
}
