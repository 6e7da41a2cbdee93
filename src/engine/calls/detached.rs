//! Detached work, outside any run: effects, endpoints, hooks. Its calls end with it. A call that it did not
//! await, or that was running during a crash, has an unknown outcome. Its receipt records that at the next
//! read of the thread, so no receipt stays `started` without work.
//!
//! `meta.detached` marks such calls: no receipt of a detached call with a lower id is `started`; 0 if there
//! is none. It is written with the first such receipt, so that detached work without calls costs no write and
//! no read.

use crate::engine::ephemeral::detached::EndedWork;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::sdk::ThreadState;
use crate::sdk::scope::{EntryMode, Scope};
use crate::store::log_record::UnfinishedReason;
use crate::store::state::State;
use crate::store::{meta, receipts};

/// Detached work in progress. However it ends, its calls end with it.
pub(crate) struct DetachedWork {
    thread: Thread,
    scope: Scope,
    /// The last receipt before it.
    after: i64,
}

impl Drop for DetachedWork {
    fn drop(&mut self) {
        let works = &self.thread.ephemeral.works;
        works.open.set(works.open.get().saturating_sub(1));
        if self.scope.may_have_invoked() {
            works.ended.borrow_mut().push(EndedWork::Ended(self.scope.work.clone(), self.after));
        }
    }
}

impl State {
    /// Marks, together with the receipt, that a detached call has started.
    pub(in crate::engine) fn starts_detached(
        &mut self,
        sql: &dyn Sql,
        scope: &Scope,
        receipt: i64,
    ) -> Result<()> {
        if !scope.is_detached() || (self.meta.detached > 0 && self.meta.detached <= receipt) {
            return Ok(());
        }
        self.mark_detached(sql, receipt)
    }

    fn mark_detached(&mut self, sql: &dyn Sql, receipt: i64) -> Result<()> {
        meta::set_apart(sql, receipt)?;
        self.meta.detached = receipt;
        Ok(())
    }
}

impl Thread {
    /// Begins detached work.
    pub(crate) fn begin_detached(&self, state: &ThreadState) -> Result<DetachedWork> {
        let scope = state.calls_api().scope().clone();
        let after = match scope.entered {
            EntryMode::First => self.read(|state, _| Ok(state.max_seq))?,
            // It may repeat calls of an earlier attempt.
            EntryMode::Again => 0,
        };
        let works = &self.ephemeral.works;
        works.open.set(works.open.get() + 1);
        Ok(DetachedWork { thread: self.clone(), scope, after })
    }

    /// Ends detached work. Calls that it did not await were dropped with it; their outcome is unknown.
    pub(crate) fn end_detached(&self, detached: DetachedWork) -> Result<()> {
        drop(detached);
        self.ensure_loaded()
    }

    /// Settles the calls of detached work that has ended. Runs at the next read of the thread.
    pub(in crate::engine) fn settle_works(&self) -> Result<()> {
        let works = &self.ephemeral.works;
        if works.looked.get() && works.ended.borrow().is_empty() {
            return Ok(());
        }
        // Inside another read, leave it to the next one.
        let Ok(mut place) = self.state.try_borrow_mut() else { return Ok(()) };
        let Some(mut state) = place.take() else { return Ok(()) };
        drop(place);
        if !works.looked.replace(true) && state.meta.detached > 0 {
            works.ended.borrow_mut().push(EndedWork::Lost(state.max_seq));
        }
        let ended = works.ended.borrow().clone();
        if ended.is_empty() || state.meta.detached == 0 {
            works.ended.borrow_mut().clear();
            *self.state.borrow_mut() = Some(state);
            return Ok(());
        }
        let now = self.host.now_us();
        self.transaction(|sql| {
            for work in &ended {
                self.close_calls_of(&mut state, sql, work, now)?;
            }
            let idle = works.open.get() == 0;
            let lost = ended.iter().any(|work| matches!(work, EndedWork::Lost(_)));
            let over_span = state.max_seq - state.meta.detached > limits::DETACHED_SPAN;
            if state.meta.detached > 0 && idle && (lost || over_span) {
                state.mark_detached(sql, 0)?;
            }
            Ok(())
        })?;
        *self.state.borrow_mut() = Some(state);
        works.ended.borrow_mut().drain(..ended.len());
        Ok(())
    }
}

impl Thread {
    /// Closes the receipts that work has left open. A prompt among the calls may have sent a request to its
    /// model.
    fn close_calls_of(&self, state: &mut State, sql: &dyn Sql, ended: &EndedWork, now: i64) -> Result<()> {
        let mark = state.meta.detached;
        let (prompts, why) = match ended {
            EndedWork::Lost(last) => (receipts::abandon_lost(sql, mark, *last, now)?, UnfinishedReason::Lost),
            EndedWork::Ended(work, after) => {
                (receipts::abandon_work(sql, mark.max(after + 1), work, now)?, UnfinishedReason::Cancelled)
            }
        };
        for (receipt, name) in prompts {
            self.log_cut_off(state, sql, receipt, &name, why, now)?;
        }
        self.budgets().charge_cut_off(state, sql)
    }
}
