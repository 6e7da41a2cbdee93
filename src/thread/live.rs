//! What exists only while the object lives. Everything here can be lost at any moment; nothing here is shared with
//! another object.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use futures_channel::oneshot;
use futures_util::future::AbortHandle;

use super::apart::Works;
use super::context::Offers;
use super::env::Values;
use super::execution::{Abort, Context};
use super::files::Mover;
use super::hooks::Telling;
use super::operator::ToldFailures;
use super::rows::Shared;
use super::run::Run;
use crate::models::{ChatMessage, Kept};

/// See the module.
#[derive(Default)]
pub(super) struct Live {
    pub(super) flow: RefCell<Option<Flow>>,
    pub(super) flows: Cell<u64>,
    /// Told when the alarm's handler should look again.
    pub(super) stirred: RefCell<Vec<oneshot::Sender<()>>>,
    /// Attempts at effects that are under way.
    pub(super) effects: RefCell<BTreeMap<i64, RunningEffect>>,
    pub(super) waiters: RefCell<Vec<Waiter>>,
    pub(super) partial: RefCell<Option<Partial>>,
    /// Messages that listeners were shown as queued.
    pub(super) shown_queued: RefCell<Vec<Shared>>,
    pub(super) alarm: Armed,
    /// Requests sent since this event began.
    pub(super) outgoing: Cell<u32>,
    /// Targets of the outbox that are being told, and whether there is more for them.
    pub(super) delivering: RefCell<BTreeMap<String, bool>>,
    /// Whether the open step may have receipts of an earlier flow.
    pub(super) again: Cell<bool>,
    /// Block of the last step whose history was halved.
    pub(super) halved: Cell<Option<i64>>,
    /// Values of variables.
    pub(super) env: Values,
    /// What prompts offer, each once it was asked with.
    pub(super) offers: RefCell<Vec<Offers>>,
    /// Ids of contents that are being written; the others of their kind are left over from an earlier life.
    pub(super) writing: RefCell<BTreeSet<i64>>,
    /// Scratch space of the code of the active run.
    pub(super) context: RefCell<Context>,
    /// Resolves when the active run ends; made when code asks for it.
    pub(super) aborted: RefCell<Option<Abort>>,
    /// Who moves files between the database and the bucket.
    pub(super) mover: Mover,
    /// Who waits for the hooks of a new thread, while they run.
    pub(super) telling: Telling,
    /// Work apart from any run.
    pub(super) works: Works,
    /// Failures of this run that the operator was told of.
    pub(super) told_failures: RefCell<ToldFailures>,
    /// System messages of the last requests.
    pub(super) system: RefCell<Vec<Kept<ChatMessage>>>,
}

impl Live {
    /// Makes the alarm's handler look again: the flow or an effect has ended, or an effect was scheduled.
    pub(super) fn stir(&self) {
        for waiting in self.stirred.borrow_mut().drain(..) {
            let _nobody_waits = waiting.send(());
        }
    }
}

/// An attempt at an effect that is under way.
pub(super) struct RunningEffect {
    /// Name of the definition.
    pub(super) name: String,
    pub(super) abort: AbortHandle,
}

/// The flow that drives the active run.
pub(super) struct Flow {
    pub(super) number: u64,
    pub(super) abort: AbortHandle,
}

/// A client that waits for the run of its message.
pub(super) struct Waiter {
    /// Its message.
    pub(super) seq: i64,
    /// The run that took it in, once one did.
    pub(super) run: Option<i64>,
    pub(super) send: oneshot::Sender<Verdict>,
}

/// What a waiting client is told.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// The run is over; with the message that ended it.
    Ended(Run, Option<Shared>),
    /// It waits for something outside.
    Parked(Option<Run>),
    /// The thread is stopped and the message still queued.
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

/// What is known of the object's alarm.
#[derive(Default)]
pub(super) struct Armed(Cell<Alarm>);

/// States of the alarm slot, as far as this object knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Alarm {
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
    pub(super) fn get(&self) -> Alarm {
        self.0.get()
    }

    pub(super) fn set(&self, alarm: Alarm) {
        self.0.set(alarm);
    }

    /// None is set, if nothing is known.
    pub(super) fn is_none(&self) {
        if self.0.get() == Alarm::Unknown {
            self.0.set(Alarm::None);
        }
    }

    /// What was set may be gone. A running handler is still running.
    pub(super) fn forget(&self) {
        if self.0.get() != Alarm::Held {
            self.0.set(Alarm::Unknown);
        }
    }

    /// Forgets when the guard is dropped, unless [`Forgetting::keep`] was called.
    pub(super) fn forget_unless_kept(&self) -> Forgetting<'_> {
        Forgetting { armed: self, kept: false }
    }
}

/// See [`Armed::forget_unless_kept`].
pub(super) struct Forgetting<'a> {
    armed: &'a Armed,
    kept: bool,
}

impl Forgetting<'_> {
    pub(super) fn keep(mut self) {
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
