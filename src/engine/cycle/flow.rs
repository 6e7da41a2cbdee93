//! The flow, which drives the active run from step to step. A thread has at most one. It may end anywhere
//! (crash, panic, stop); the next flow enters at the stored phase.

use futures::channel::oneshot;
use futures::future::abortable;

use crate::definitions::Model;
use crate::definitions::budget::Budget;
use crate::engine::cycle::accept::message_outcome;
use crate::engine::ephemeral::{Flow, MessageOutcome};
use crate::engine::model::model_call::broke_off;
use crate::engine::thread::{LostFrames, Thread};
use crate::error::Result;
use crate::host::Sql;
use crate::limits;
use crate::sdk::scope::EntryMode;
use crate::store::log_record::{Event, UnfinishedReason};
use crate::store::logs;
use crate::store::runs::end::Reason;
use crate::store::runs::usage::Usage;
use crate::store::runs::{Phase, Run, Step};
use crate::store::state::State;
use crate::trace::Trace;

/// The reason why a flow starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowStart {
    /// The run begins.
    New,
    /// The reason for which it was parked is gone: a transition has just stored that it continues.
    Resumed,
    /// It is stored as running, and no flow drives it.
    Recovered,
}

/// The state in which an unfinished run was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reentry {
    /// It was scheduled to continue now.
    Scheduled,
    /// Its process crashed.
    Recovered,
    /// Its process crashed again. The alarm continues it after a pause.
    Later,
    /// Its process crashed too often.
    Exhausted,
    /// Its process crashed in a response that was partly shown, and that must not be restarted.
    BrokeOff,
}

/// Counts a recovery in the run's row, unless the run was scheduled. The first recovery of a step continues
/// at once; later ones wait 1 s, 2 s, 4 s, … so that a step that kills the process does not do so in a loop.
fn reenter(run: &mut Run, now: i64) -> Reentry {
    if run.resume_us.take().is_some() {
        return Reentry::Scheduled;
    }
    if run.recoveries >= limits::RECOVERIES {
        return Reentry::Exhausted;
    }
    run.recoveries += 1;
    if run.phase == Phase::Model {
        run.stream += 1;
    }
    if run.recoveries == 1 {
        return Reentry::Recovered;
    }
    run.resume_us = Some(now + (limits::BACKOFF_US << (run.recoveries - 2)));
    Reentry::Later
}

impl Thread {
    /// Continues an unfinished run that no flow drives.
    pub(crate) fn wake(&self) -> Result<()> {
        self.hooks().start_created_hook()?;
        if self.ephemeral.flow.borrow().is_some() {
            if self.read(|state, _| Ok(state.active().is_none()))? {
                // Left over by a panic right after the commit that ended its run.
                self.ephemeral.abort_flow();
            }
            return Ok(());
        }
        let now = self.host.now_us();
        let runnable = self.read(|state, _| {
            Ok(state.active().is_some_and(|run| run.runnable() && run.resume_us.is_none_or(|at| at <= now)))
        })?;
        if runnable {
            self.begin_flow(FlowStart::Recovered);
        }
        Ok(())
    }

    /// Starts the flow of a run that begins or, if it was parked, continues; unless a flow is running.
    pub(crate) fn start_flow(&self, entered: EntryMode) {
        self.begin_flow(match entered {
            EntryMode::First => FlowStart::New,
            EntryMode::Again => FlowStart::Resumed,
        });
    }

    fn begin_flow(&self, start: FlowStart) {
        if self.ephemeral.flow.borrow().is_some() {
            return;
        }
        let number = self.ephemeral.flows.get() + 1;
        self.ephemeral.flows.set(number);
        self.ephemeral.outgoing.set(0);
        let guard = FlowGuard { thread: self.clone(), number };
        let thread = self.clone();
        let (flow, abort) = abortable(async move {
            let _guard = guard;
            let _lost = LostFrames(&*thread.host);
            if let Err(error) = thread.drive(start).await {
                // The stored phase is intact. The alarm, or any other wake, enters it again as a recovery.
                thread.variables().log(&format!("the flow broke off: {error}"));
                thread.state.borrow_mut().take();
                thread.host.listeners().close("the thread had to start over");
            }
        });
        *self.ephemeral.flow.borrow_mut() = Some(Flow { number, abort });
        self.host.spawn(Box::pin(async move {
            // The code that aborted the flow has also ended it.
            let _aborted = flow.await;
        }));
    }

    async fn drive(&self, start: FlowStart) -> Result<()> {
        self.ephemeral.spending.active(Some(self.host.now_us()));
        let mut active = self.enter(start)? && self.definitions_permit()?;
        while active {
            let next = self.step().await?;
            self.ephemeral.entered.set(EntryMode::First);
            active = match next {
                StepResult::Step if self.may_send_more() => true,
                StepResult::Step | StepResult::Yield => {
                    self.yield_now()?;
                    false
                }
                // Continue with the next run, if messages were queued.
                StepResult::Ended => {
                    let next = self.read(|state, _| Ok(state.active().is_some()))?;
                    if next {
                        self.outbox().report_start()?;
                    }
                    next
                }
            };
        }
        Ok(())
    }

    /// Ends a run that must not continue with the current definitions. Returns whether a run is active then.
    fn definitions_permit(&self) -> Result<bool> {
        let Some(text) = self.check_definitions()? else { return Ok(true) };
        self.end_run(Reason::DefinitionChanged, Some(text.to_owned()))?;
        self.read(|state, _| Ok(state.active().is_some()))
    }

    /// Counts a recovery before any work, unless the run has just begun or was scheduled.
    fn enter(&self, start: FlowStart) -> Result<bool> {
        self.ephemeral.entered.set(if start == FlowStart::New { EntryMode::First } else { EntryMode::Again });
        match start {
            FlowStart::New => {
                self.outbox().report_start()?;
                Ok(true)
            }
            FlowStart::Resumed
                if self.read(|state, _| Ok(state.active().is_some_and(Run::is_resumed)))? =>
            {
                Ok(true)
            }
            FlowStart::Resumed | FlowStart::Recovered => self.enter_again(),
        }
    }

    fn enter_again(&self) -> Result<bool> {
        let now = self.host.now_us();
        let fragile = self.fragile_model()?;
        let reentry = self.transition(|state, sql| {
            let run = state.active_mut()?;
            let lost = (run.phase == Phase::Model).then_some(run.stream);
            if let Some(stream) = lost.filter(|_| fragile.is_some() && run.resume_us.is_none())
                && logs::was_shown(sql, run.block, stream)?
            {
                self.log_unfinished(state, sql, stream, UnfinishedReason::Lost, now)?;
                state.usage = None;
                return Ok(Reentry::BrokeOff);
            }
            let reentry = reenter(run, now);
            if let Some(stream) = lost.filter(|_| reentry != Reentry::Scheduled) {
                self.log_unfinished(state, sql, stream, UnfinishedReason::Lost, now)?;
                state.usage = None;
                if let Some(ledger) = &mut state.active_mut()?.ledger {
                    ledger.unseen += 1;
                }
            }
            if reentry == Reentry::Exhausted {
                return Ok(reentry);
            }
            let run = state.active_mut()?;
            run.update(sql)?;
            let resume = run.resume_us.unwrap_or(now);
            if reentry != Reentry::Scheduled {
                Event::recovery(run).insert(sql, now)?;
            }
            self.arm_at(state, sql, resume, now)?;
            Ok(reentry)
        })?;
        let (reason, message) = match (reentry, fragile) {
            (Reentry::Later, _) => return Ok(false),
            (Reentry::Scheduled | Reentry::Recovered, Some(_)) => return Ok(true),
            (Reentry::Scheduled | Reentry::Recovered, None) => {
                self.drop_lost_text()?;
                return Ok(true);
            }
            (Reentry::BrokeOff, model) => {
                (Reason::ModelError, model.map(|model| broke_off(model, "the process was lost.")))
            }
            (Reentry::Exhausted, _) => {
                let times = limits::RECOVERIES + 1;
                let text =
                    format!("This run was interrupted {times} times at the same step and was given up.");
                (Reason::RecoveryExhausted, Some(text))
            }
        };
        self.end_run(reason, message)?;
        self.read(|state, _| Ok(state.active().is_some()))
    }

    /// Makes clients drop the text of the lost attempt.
    fn drop_lost_text(&self) -> Result<()> {
        let open = self.read(|state, _| {
            let run = state.active().filter(|run| run.phase == Phase::Model);
            Ok(run.map(|run| (run.block, run.stream)))
        })?;
        match open {
            Some((block, stream)) => self.announce_reset(block, stream, 0),
            None => Ok(()),
        }
    }

    /// The model of the open request, if its responses must not be restarted.
    fn fragile_model(&self) -> Result<Option<&Model>> {
        let asked = self.read(|state, _| {
            let run = state.active().filter(|run| run.phase == Phase::Model);
            Ok(run.map(|run| Step::own(run.block)))
        })?;
        let (Some(step), Some(definitions)) = (asked, self.definitions()?) else { return Ok(None) };
        let model = self.current_model(&definitions, step)?;
        Ok(Some(model).filter(|model| !model.capabilities.restartable))
    }

    /// Whether the event that the flow runs in may make further requests.
    fn may_send_more(&self) -> bool {
        self.ephemeral.outgoing.get() < self.outgoing_limit()
    }

    /// Continues in a fresh event, which has its own limit on requests.
    fn yield_now(&self) -> Result<()> {
        let now = self.host.now_us();
        self.transition(|state, sql| {
            let run = state.active_mut()?;
            run.resume_us = Some(now);
            run.update(sql)?;
            self.arm(Some(now))
        })
    }

    pub(in crate::engine) fn outgoing_limit(&self) -> u32 {
        let configured = self.host.var("BOBBIN_OUTGOING_PER_EVENT").and_then(|text| text.parse().ok());
        configured.unwrap_or(limits::OUTGOING_PER_EVENT)
    }

    /// Starts a run for the queued messages, in the trace of their cause. Returns the run's id.
    pub(crate) fn start_for_queue(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        trace: Option<&Trace>,
        now: i64,
    ) -> Result<i64> {
        self.start_with(state, sql, RunOptions::default(), trace, now)
    }

    /// Starts a run for a message with run options.
    pub(in crate::engine) fn start_with(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        options: RunOptions,
        trace: Option<&Trace>,
        now: i64,
    ) -> Result<i64> {
        let run = state.next_run(None, now);
        self.begin_run(state, sql, run, options, trace, now)
    }

    /// Starts a run that the caller has built.
    pub(in crate::engine) fn begin_run(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        run: Run,
        options: RunOptions,
        trace: Option<&Trace>,
        now: i64,
    ) -> Result<i64> {
        let trace = trace.map(Trace::to_string);
        let mut run = Run { retry: options.retry, trace, ..run };
        if let Some(seq) = state.tightens.take() {
            run.diagnostics.tighten(seq);
        }
        let run = self.with_snapshot(state, sql, run, now)?;
        let run = self.diagnosis().with_given_up(state, sql, run)?;
        let run = self.budgets().with_budget(state, sql, run, options.budget.as_ref())?;
        let id = run.id;
        run.insert(sql)?;
        state.usage = Some(Usage::none(id));
        state.run = Some(run);
        self.arm(Some(now))?;
        Ok(id)
    }

    /// Responds to each waiting client for which `outcome` returns a result.
    pub(in crate::engine) fn settle(
        &self,
        outcome: impl Fn(&crate::engine::ephemeral::Waiter) -> Option<MessageOutcome>,
    ) {
        let waiting = std::mem::take(&mut *self.ephemeral.waiters.borrow_mut());
        for waiter in waiting {
            match outcome(&waiter) {
                Some(answer) => {
                    let _client_left = waiter.send.send(answer);
                }
                None => self.ephemeral.waiters.borrow_mut().push(waiter),
            }
        }
    }

    /// Answers waiting clients from the stored rows: a lost flow may have ended its run without an answer.
    pub(in crate::engine) fn settle_stored(&self) -> Result<()> {
        let seqs: Vec<i64> = self.ephemeral.waiters.borrow().iter().map(|waiter| waiter.seq).collect();
        for seq in seqs {
            let (outcome, run) = self.read(|state, sql| message_outcome(state, sql, seq))?;
            for waiter in self.ephemeral.waiters.borrow_mut().iter_mut().filter(|waiter| waiter.seq == seq) {
                waiter.run = waiter.run.or(run);
            }
            self.settle(|waiter| outcome.clone().filter(|_| waiter.seq == seq));
        }
        Ok(())
    }

    /// Resolves when the run that takes in message `seq` has an outcome.
    pub(in crate::engine) fn wait_for(
        &self,
        seq: i64,
        run: Option<i64>,
    ) -> oneshot::Receiver<MessageOutcome> {
        let (send, receive) = oneshot::channel();
        self.ephemeral.waiters.borrow_mut().push(crate::engine::ephemeral::Waiter { seq, run, send });
        receive
    }
}

/// The options of a message for the run that it starts.
#[derive(Default)]
pub(in crate::engine) struct RunOptions {
    /// The retry policy, as JSON.
    pub(in crate::engine) retry: Option<String>,
    /// The budget.
    pub(in crate::engine) budget: Option<Budget>,
}

/// Clears the flow when it is dropped, also by a panic, so that the stored phase can be entered again.
struct FlowGuard {
    thread: Thread,
    number: u64,
}

impl Drop for FlowGuard {
    fn drop(&mut self) {
        let own = self.thread.ephemeral.flow.borrow().as_ref().is_some_and(|flow| flow.number == self.number);
        if own {
            self.thread.ephemeral.flow.borrow_mut().take();
            self.thread.ephemeral.flow_over();
        }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum StepResult {
    /// Another step follows.
    Step,
    /// The step continues in a fresh event, because this one has reached its limit on requests.
    Yield,
    /// The run is over.
    Ended,
}
