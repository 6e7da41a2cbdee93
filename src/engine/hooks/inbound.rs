//! Hooks at the beginning of a step: for the messages of a drain (spec §35.24a), and for a new thread before
//! the first.

use futures::channel::oneshot;

use crate::definitions::hook::HookName;
use crate::engine::definitions::Definitions;
use crate::engine::features::Hooks;
use crate::engine::hooks::Site;
use crate::engine::hooks::message::{CreatedMessage, fitting};
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::sdk::scope::Origin;
use crate::store::messages::queue::HookStage;
use crate::store::messages::{Inbound, Row, SharedRow, queue};
use crate::store::runs::{Phase, Run, Step};
use crate::store::side::Side;
use crate::store::{messages as rows, meta};

/// The state of the hooks of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    /// The step may be opened or continued. It takes in rows from this seq on, if any.
    Ready(Option<i64>),
    /// Hooks have sent so many requests that the flow must continue in a fresh event.
    Yields,
}

impl Hooks<'_> {
    /// Before any step: runs `after_thread_created`, unless that is done.
    pub(crate) async fn hook_thread(&self, definitions: &Definitions<'_>) -> Result<()> {
        self.run_thread_created(definitions, Origin::Hook).await
    }

    /// Before a drain: runs `before_create_message` for each message from outside. Nothing is awaited between
    /// the last hook and the drain, so no message can come in between.
    pub(crate) async fn hook_inbound(&self, definitions: &Definitions<'_>) -> Result<Drain> {
        let observes = self.has_hooks(definitions, &[HookName::AfterCreateMessage]);
        let open = self.read(|state, sql| {
            let Some(run) = state.active().filter(|run| run.phase == Phase::Model) else { return Ok(None) };
            // Entered again: the messages of the open step are part of the turn, or were stored before it.
            let before = match observes {
                true => Run::find(sql, run.id - 1)?.map_or(state.meta.copied_upto(), |last| last.block),
                false => run.turn_from,
            };
            Ok(Some(before.min(run.turn_from)))
        })?;
        if open.is_some() {
            return Ok(Drain::Ready(open));
        }
        let mut from = 0;
        while self.has_hooks(definitions, &[HookName::BeforeCreateMessage]) {
            let next = self.read(|state, sql| match state.undrained {
                None => Ok(None),
                Some(first) => {
                    Ok(queue::unhooked(sql, first.max(from), state.next_seq(), HookStage::Before)?
                        .map(|row| (state.meta.stem.clone(), row)))
                }
            })?;
            let Some((thread_id, row)) = next else { break };
            if self.ephemeral.outgoing.get() >= self.outgoing_limit() {
                return Ok(Drain::Yields);
            }
            from = row.seq + 1;
            let mut created = CreatedMessage::new(&thread_id, row.clone(), self.variables().redactor());
            self.transform(&Site::run(definitions, row.seq), HookName::BeforeCreateMessage, &mut created)
                .await?;
            self.store_hooked(&row, fitting(&row, created.row))?;
        }
        self.read(|state, _| Ok(Drain::Ready(state.undrained)))
    }

    /// Stores the hooks' version of a message. A message that was changed or deleted meanwhile stays as it
    /// is.
    fn store_hooked(&self, before: &Row, after: Row) -> Result<()> {
        let changed = self.transition(|state, sql| {
            queue::set_hooked(sql, before.seq, HookStage::Before)?;
            if after == *before || rows::find(sql, before.seq)?.as_ref() != Some(before) {
                return Ok(None);
            }
            after.update_inbound(sql)?;
            // Reconnecting clients have seen the earlier version.
            state.meta.edits += 1;
            state.meta.update(sql)?;
            state.visible = None;
            let row = SharedRow::new(after);
            if let Some(window) = &mut state.window {
                window.replace(&row);
            }
            Ok(Some(row))
        })?;
        let Some(row) = changed else { return Ok(()) };
        for shown in
            self.ephemeral.announced_queue.borrow_mut().iter_mut().filter(|shown| shown.seq == row.seq)
        {
            *shown = row.clone();
        }
        self.broadcast_message(&row)
    }

    /// After a drain: runs `after_create_message` for each message that it took in.
    pub(crate) async fn observe_inbound(
        &self,
        definitions: &Definitions<'_>,
        step: Step,
        from: Option<i64>,
    ) -> Result<Drain> {
        let Some(mut from) = from else { return Ok(Drain::Ready(None)) };
        while self.has_hooks(definitions, &[HookName::AfterCreateMessage]) {
            let next = self.read(|_, sql| queue::unhooked(sql, from, step.block, HookStage::After))?;
            let Some(row) = next else { break };
            if self.ephemeral.outgoing.get() >= self.outgoing_limit() {
                return Ok(Drain::Yields);
            }
            from = row.seq + 1;
            let seq = row.seq;
            self.after_create(definitions, &SharedRow::new(row)).await?;
            self.transition(|_, sql| queue::set_hooked(sql, seq, HookStage::After))?;
        }
        Ok(Drain::Ready(Some(from)))
    }

    /// After a restart with a stored reply: the process may have crashed before `after_create_message` ran
    /// for the newest row of the step. Runs it again.
    pub(crate) async fn observe_again(&self, definitions: &Definitions<'_>, reply: &SharedRow) -> Result<()> {
        if !self.has_hooks(definitions, &[HookName::AfterCreateMessage]) {
            return Ok(());
        }
        let newest = self.read(|state, sql| {
            let queued = state.queued_tools.iter().rfind(|tool| tool.done).map(|tool| tool.seq + 1);
            match queued.or((reply.inbound != Inbound::QueuedTool).then_some(reply.seq + state.filled - 1)) {
                Some(seq) => rows::find(sql, seq),
                None => Ok(None),
            }
        })?;
        match newest {
            Some(row) => self.after_create(definitions, &SharedRow::new(row)).await,
            // A dropped call has no row.
            None => Ok(()),
        }
    }

    /// Starts `after_thread_created` in the background, unless it is done or running.
    pub(crate) fn start_created_hook(&self) -> Result<()> {
        let told = self.read(|state, _| Ok(state.creation_handled || state.meta.terminated_us.is_some()))?;
        if told || self.ephemeral.created_hook.borrow().is_some() {
            return Ok(());
        }
        let thread = self.0.clone();
        self.host.spawn(Box::pin(async move {
            let told = match thread.definitions() {
                Ok(Some(definitions)) => {
                    thread.hooks().run_thread_created(&definitions, Origin::DetachedHook).await
                }
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = told {
                // Any other wake of the thread runs them again, at the latest its first run.
                thread.variables().log(&format!("the hooks of a new thread were interrupted: {error}"));
            }
        }));
        Ok(())
    }

    /// Runs `after_thread_created`, unless it is known to be done. Waits for one that is running.
    async fn run_thread_created(&self, definitions: &Definitions<'_>, origin: Origin) -> Result<()> {
        loop {
            if self.read(|state, _| Ok(state.creation_handled))? {
                return Ok(());
            }
            let (done, wait) = oneshot::channel();
            match self.ephemeral.created_hook.borrow_mut().as_mut() {
                Some(waiting) => waiting.push(done),
                None => break,
            }
            // The sender is dropped at the end, whether the hooks succeeded or not.
            let _ended = wait.await;
        }
        *self.ephemeral.created_hook.borrow_mut() = Some(Vec::new());
        let _guard = CreatedHookGuard(self);
        let at = Site { definitions, place: "0".to_owned(), origin };
        self.observe(&at, HookName::AfterThreadCreated, &[]).await?;
        self.transition(|state, sql| {
            state.creation_handled = true;
            meta::mark_created_handled(sql)
        })
    }

    /// Whether a new thread of this agent has no `after_thread_created` hook.
    pub(crate) fn has_no_created_hook(&self, agent: &str) -> bool {
        !self
            .definitions_of(agent, Side::A)
            .is_some_and(|found| self.has_hooks(&found, &[HookName::AfterThreadCreated]))
    }
}

/// Ends [`Telling`] when it is dropped, also by a panic.
struct CreatedHookGuard<'a>(&'a Thread);

impl Drop for CreatedHookGuard<'_> {
    fn drop(&mut self) {
        self.0.ephemeral.created_hook.borrow_mut().take();
    }
}
