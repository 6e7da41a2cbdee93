//! State that exists only while the object lives. All of it can be lost at any moment. Nothing here is shared
//! with another object.
//!
//! * Here: the flow, waiting clients, the partial text, the alarm. `deliveries`: the outbox. `detached`: detached
//!   work. `reported`: what was reported once. `request_parts`: what requests share. `snapshots`: definitions.
//!   `values`: values of variables. Other features keep theirs in their own folders.

mod deliveries;
pub(super) mod detached;
mod reported;
pub(super) mod request_parts;
mod snapshots;
mod values;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use futures::channel::oneshot;
use futures::future::AbortHandle;

use crate::engine::budget::ReservedAmounts;
use crate::engine::ephemeral::deliveries::Deliveries;
use crate::engine::ephemeral::detached::RunningWork;
use crate::engine::ephemeral::reported::Reported;
use crate::engine::ephemeral::request_parts::RequestParts;
use crate::engine::ephemeral::snapshots::Snapshots;
use crate::engine::ephemeral::values::Values;
use crate::engine::files::transfers::Transfers;
use crate::engine::mcp::cache::ServerCache;
use crate::engine::progress::Progress;
use crate::engine::summary::Summaries;
use crate::sdk::run_handle::{Abort, Context};
use crate::sdk::scope::EntryMode;
use crate::store::messages::SharedRow;
use crate::store::runs::Run;

/// The memory of one life of the object; each life begins with an empty one.
#[derive(Default)]
pub(crate) struct Ephemeral {
    pub(crate) flow: RefCell<Option<Flow>>,
    pub(super) flows: Cell<u64>,
    /// Notified when the alarm's handler should check again.
    pub(super) alarm_waiters: RefCell<Vec<oneshot::Sender<()>>>,
    /// Running attempts at effects.
    pub(crate) effects: RefCell<BTreeMap<i64, RunningEffect>>,
    pub(super) waiters: RefCell<Vec<Waiter>>,
    pub(super) partial: RefCell<Option<Partial>>,
    /// Messages that listeners were shown as queued.
    pub(super) announced_queue: RefCell<Vec<SharedRow>>,
    pub(crate) alarm: AlarmState,
    /// Requests sent since this event began.
    pub(crate) outgoing: Cell<u32>,
    /// The turn in which a shared memory did not list its contents. It is not queried again in that turn.
    pub(super) silent_memory: Cell<Option<i64>>,
    /// Whether the open step may have receipts of an earlier flow.
    pub(super) entered: Cell<EntryMode>,
    /// Values of variables.
    pub(super) env: Values,
    /// Scratch space of the code of the active run.
    pub(super) context: RefCell<Context>,
    /// Resolves when the active run ends; created on the first request of code.
    pub(super) aborted: RefCell<Option<Abort>>,
    /// Waiters for the hooks of a new thread, while they run.
    pub(super) created_hook: CreationWaiters,
    /// Detached work.
    pub(super) works: RunningWork,
    /// Whether a job is running.
    pub(super) job: Cell<bool>,
    /// The last progress of the run.
    pub(super) progress: Progress,
    /// The spending in progress.
    pub(crate) spending: ReservedAmounts,
    /// The state of summaries.
    pub(super) summaries: Summaries,
    /// Parts of requests to models.
    pub(super) requests: RequestParts,
    /// Snapshots of definitions.
    pub(super) snapshots: Snapshots,
    /// Deliveries of the outbox.
    pub(super) deliveries: Deliveries,
    /// Contents of files that are being written or moved.
    pub(super) files: Transfers,
    /// What was reported to the operator and the log.
    pub(super) reported: Reported,
    /// Sessions with MCP servers, and what they have listed.
    pub(super) mcp: ServerCache,
}

impl Ephemeral {
    /// Drops the running flow at its next await. The caller has already committed the end or change of the
    /// run.
    pub(super) fn abort_flow(&self) {
        if let Some(flow) = self.flow.borrow_mut().take() {
            flow.abort.abort();
        }
        self.flow_over();
    }

    /// Clears what only a running flow uses.
    pub(super) fn flow_over(&self) {
        self.spending.active(None);
        self.partial.borrow_mut().take();
        self.notify_alarm();
    }

    /// Makes the alarm's handler check again: the flow or an effect has ended, or an effect was scheduled.
    pub(super) fn notify_alarm(&self) {
        for waiting in self.alarm_waiters.borrow_mut().drain(..) {
            let _nobody_waits = waiting.send(());
        }
    }
}

/// A running attempt at an effect.
pub(crate) struct RunningEffect {
    /// Name of the definition.
    pub(super) name: String,
    pub(super) abort: AbortHandle,
}

/// The flow that drives the active run.
pub(crate) struct Flow {
    pub(super) number: u64,
    pub(super) abort: AbortHandle,
}

/// A client that waits for the run of its message.
pub(super) struct Waiter {
    /// Its message.
    pub(super) seq: i64,
    /// The run that took it in, once one did.
    pub(super) run: Option<i64>,
    pub(super) send: oneshot::Sender<MessageOutcome>,
}

/// The result for a waiting client.
#[derive(Clone, Debug)]
pub(super) enum MessageOutcome {
    /// The run is over; with the message that ended it.
    Ended(Run, Option<SharedRow>),
    /// It waits for something outside.
    Parked(Option<Run>),
    /// The thread is stopped and the message is still queued.
    Stopped,
}

/// The text that the running attempt has streamed so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    /// Seq of the reply.
    pub(super) seq: i64,
    /// Number of the stream.
    pub(super) stream: u32,
    /// At most [`crate::limits::PARTIAL_BYTES`].
    pub(super) text: String,
}

/// The known state of the object's alarm.
#[derive(Default)]
pub(crate) struct AlarmState(Cell<Alarm>);

/// The states of the alarm slot, as far as this object knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// Not known: just started, or a transaction was rolled back.
    #[default]
    Unknown,
    /// None is set.
    None,
    /// Set for that time.
    At(i64),
    /// The handler is running. It checks what is due before it returns.
    Held,
}

impl AlarmState {
    pub(crate) fn get(&self) -> Alarm {
        self.0.get()
    }

    pub(super) fn set(&self, alarm: Alarm) {
        self.0.set(alarm);
    }

    /// Records that no alarm is set, if the state was unknown.
    pub(crate) fn is_none(&self) {
        if self.0.get() == Alarm::Unknown {
            self.0.set(Alarm::None);
        }
    }

    /// Marks the state as unknown. A running handler is still running.
    pub(super) fn forget(&self) {
        if self.0.get() != Alarm::Held {
            self.0.set(Alarm::Unknown);
        }
    }

    /// Forgets when the guard is dropped, unless [`AlarmGuard::keep`] was called.
    pub(super) fn forget_unless_kept(&self) -> AlarmGuard<'_> {
        AlarmGuard { armed: self, kept: false }
    }
}

/// See [`AlarmState::forget_unless_kept`].
pub(super) struct AlarmGuard<'a> {
    armed: &'a AlarmState,
    kept: bool,
}

impl AlarmGuard<'_> {
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for AlarmGuard<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.armed.forget();
        }
    }
}

/// Waiters for `after_thread_created` while it runs.
type CreationWaiters = std::cell::RefCell<Option<Vec<oneshot::Sender<()>>>>;
