//! What exists only while the object lives. Everything here can be lost at any moment; nothing here is shared with another
//! object.
//!
//! * Here: the flow, clients that wait, the partial text, the alarm that is set. `works`: work apart from any run. `values`:
//!   values of variables that were read. `offers`: what the requests of a prompt have in common.

pub(crate) mod offers;
pub(crate) mod values;
pub(crate) mod works;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use futures::channel::oneshot;
use futures::future::AbortHandle;

use crate::engine::budget::Spending;
use crate::engine::ephemeral::offers::Offers;
use crate::engine::ephemeral::values::Values;
use crate::engine::ephemeral::works::Works;
use crate::engine::mcp::KnownSession;
use crate::engine::progress::Progress;
use crate::engine::summary::Summaries;
use crate::error::Result;
use crate::mcp::oauth::grant::KnownToken;
use crate::models::{CachedJson, ChatMessage};
use crate::request::directory_call::McpReport;
use crate::sdk::run_handle::{Abort, Context};
use crate::sdk::scope::Entered;
use crate::sorted::{SortedMap, SortedSet};
use crate::spec::Snapshot;
use crate::store::mcp::List;
use crate::store::messages::Shared;
use crate::store::runs::Run;

/// What one life of the object knows; each begins with nothing.
#[derive(Default)]
pub(crate) struct Ephemeral {
    pub(crate) flow: RefCell<Option<Flow>>,
    pub(crate) flows: Cell<u64>,
    /// Told when the alarm's handler should look again.
    pub(crate) alarm_waiters: RefCell<Vec<oneshot::Sender<()>>>,
    /// Attempts at effects that are under way.
    pub(crate) effects: RefCell<SortedMap<i64, RunningEffect>>,
    /// How the collector has refused metrics: logged once.
    pub(crate) metrics_refused: RefCell<Option<String>>,
    pub(crate) waiters: RefCell<Vec<Waiter>>,
    pub(crate) partial: RefCell<Option<Partial>>,
    /// Messages that listeners were shown as queued.
    pub(crate) announced_queue: RefCell<Vec<Shared>>,
    pub(crate) alarm: Armed,
    /// Requests sent since this event began.
    pub(crate) outgoing: Cell<u32>,
    /// Whether an envelope was written that nobody has begun to send. What an earlier life has left is the alarm's.
    pub(crate) posted: Cell<bool>,
    /// Targets of the outbox that are being told, and whether there is more for them.
    pub(crate) delivering: RefCell<SortedMap<String, bool>>,
    /// Letters to memories whose answers are waited for, by subject, and what came.
    pub(crate) letters: RefCell<SortedMap<String, Option<Result<String>>>>,
    /// The turn in which a memory that threads share did not say what its places hold: it is not asked again in it.
    pub(crate) silent_memory: Cell<Option<i64>>,
    /// Whether the open step may have receipts of an earlier flow.
    pub(crate) entered: Cell<Entered>,
    /// Block of the last step whose history was halved.
    pub(crate) halved: Cell<Option<i64>>,
    /// Values of variables.
    pub(crate) env: Values,
    /// What prompts offer, each once it was asked with.
    pub(crate) offers: RefCell<Vec<Offers>>,
    /// Ids of contents that are being written; the others of their kind are left over from an earlier life.
    pub(crate) writing: RefCell<SortedSet<i64>>,
    /// Scratch space of the code of the active run.
    pub(crate) context: RefCell<Context>,
    /// Resolves when the active run ends; made when code asks for it.
    pub(crate) aborted: RefCell<Option<Abort>>,
    /// Who moves files between the database and the bucket.
    pub(crate) mover: BucketSync,
    /// Who waits for the hooks of a new thread, while they run.
    pub(crate) created_hook: Telling,
    /// Work apart from any run.
    pub(crate) works: Works,
    /// Failures of this run that the operator was told of.
    pub(crate) told_failures: RefCell<ToldFailures>,
    /// What runs of an agent begin with.
    pub(crate) snapshots: RefCell<SortedMap<String, Rc<Snapshot>>>,
    /// Whether the log has what the thread's first run began with, as far as is known.
    pub(crate) snapshot_logged: Cell<bool>,
    /// What was noted in a run: its id, the code, what it is about.
    pub(crate) noted: RefCell<SortedSet<(i64, &'static str, String)>>,
    /// Whether a job is under way.
    pub(crate) job: Cell<bool>,
    /// What was told last of what the run does.
    pub(crate) progress: Progress,
    /// What is being spent.
    pub(crate) spending: Spending,
    /// What is known of summaries.
    pub(crate) summaries: Summaries,
    /// Sessions with MCP servers, by the servers' names.
    pub(crate) mcp: RefCell<SortedMap<String, KnownSession>>,
    /// What MCP servers have listed for the thread, by the servers' names; `None` until it was read.
    pub(crate) mcp_lists: RefCell<Option<SortedMap<String, List>>>,
    /// What the catalog has grown with.
    pub(crate) grown: RefCell<String>,
    /// How requests to MCP servers went, by the subjects of letters, until the deployment is told.
    pub(crate) mcp_reports: RefCell<SortedMap<String, McpReport>>,
    /// Tokens for MCP servers, by where they are kept.
    pub(crate) tokens: RefCell<SortedMap<String, KnownToken>>,
    /// Those that are being renewed.
    pub(crate) renewing: RefCell<Vec<String>>,
    /// System messages of the last requests.
    pub(crate) system: RefCell<Vec<CachedJson<ChatMessage>>>,
}

impl Ephemeral {
    /// Makes the alarm's handler look again: the flow or an effect has ended, or an effect was scheduled.
    pub(crate) fn notify_alarm(&self) {
        for waiting in self.alarm_waiters.borrow_mut().drain(..) {
            let _nobody_waits = waiting.send(());
        }
    }
}

/// An attempt at an effect that is under way.
pub(crate) struct RunningEffect {
    /// Name of the definition.
    pub(crate) name: String,
    pub(crate) abort: AbortHandle,
}

/// The flow that drives the active run.
pub(crate) struct Flow {
    pub(crate) number: u64,
    pub(crate) abort: AbortHandle,
}

/// A client that waits for the run of its message.
pub(crate) struct Waiter {
    /// Its message.
    pub(crate) seq: i64,
    /// The run that took it in, once one did.
    pub(crate) run: Option<i64>,
    pub(crate) send: oneshot::Sender<Verdict>,
}

/// What a waiting client is told.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// The run is over; with the message that ended it.
    Ended(Run, Option<Shared>),
    /// It waits for something outside.
    Parked(Option<Run>),
    /// The thread is stopped and the message still queued.
    Stopped,
}

/// The text that the running attempt has streamed so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partial {
    /// Seq of the reply.
    pub(crate) seq: i64,
    /// Number of the stream.
    pub(crate) stream: u32,
    /// At most [`crate::limits::PARTIAL_BYTES`].
    pub(crate) text: String,
}

/// What is known of the object's alarm.
#[derive(Default)]
pub(crate) struct Armed(Cell<Alarm>);

/// States of the alarm slot, as far as this object knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// Not known: just started, or a transaction was rolled back.
    #[default]
    Unknown,
    /// None is set.
    None,
    /// Set for that time.
    At(i64),
    /// Its handler is running, and looks at what is due before it returns.
    Held,
}

impl Armed {
    pub(crate) fn get(&self) -> Alarm {
        self.0.get()
    }

    pub(crate) fn set(&self, alarm: Alarm) {
        self.0.set(alarm);
    }

    /// None is set, if nothing is known.
    pub(crate) fn is_none(&self) {
        if self.0.get() == Alarm::Unknown {
            self.0.set(Alarm::None);
        }
    }

    /// What was set may be gone. A running handler is still running.
    pub(crate) fn forget(&self) {
        if self.0.get() != Alarm::Held {
            self.0.set(Alarm::Unknown);
        }
    }

    /// Forgets when the guard is dropped, unless [`Forgetting::keep`] was called.
    pub(crate) fn forget_unless_kept(&self) -> Forgetting<'_> {
        Forgetting { armed: self, kept: false }
    }
}

/// See [`Armed::forget_unless_kept`].
pub(crate) struct Forgetting<'a> {
    armed: &'a Armed,
    kept: bool,
}

impl Forgetting<'_> {
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Forgetting<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.armed.forget();
        }
    }
}

/// Whether files are being moved, and who waits for the end of it.
#[derive(Default)]
pub(crate) struct BucketSync {
    pub(crate) busy: Cell<bool>,
    pub(crate) waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

/// The last failures that were told in this run.
pub(crate) type ToldFailures = VecDeque<String>;

/// Who waits for `after_thread_created` while it runs.
pub(crate) type Telling = std::cell::RefCell<Option<Vec<oneshot::Sender<()>>>>;
