//! Answers to a sandbox's calls that the sandbox has not taken yet, and room for those to come.
//!
//! Code may make 256 calls at once, and each answer may be large. So a call starts only while there is room for answers, one
//! after another: work that is done at once, such as reading a file, is done for one call at a time. Work that collects much
//! while it waits, such as the body of a response, reserves room before it does. An answer that finds the backlog empty is
//! always sent, however large it is; so nothing waits for ever.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use futures::channel::oneshot;

use crate::limits;
use crate::sandbox::ancestry;

/// Bytes below which an answer does not count: no more than 256 calls are under way.
pub(crate) const SMALL_BYTES: usize = limits::CODE_CALLS_BYTES / 256;

/// The answers of one run.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Bytes of answers that were sent and not taken yet.
    sent: Cell<usize>,
    /// Bytes that calls under way have reserved.
    reserved: Cell<usize>,
    /// Whether a call is starting.
    starting: Cell<bool>,
    /// Calls that start and answers that are to be sent, in order.
    senders: Queue,
    /// Calls that reserve room, in order.
    reservers: Queue,
}

#[derive(Default)]
struct Queue(RefCell<VecDeque<(Wanted, oneshot::Sender<Share>)>>);

#[derive(Clone, Copy)]
enum Wanted {
    Start,
    Send(usize),
    Reserve(usize),
}

/// What was granted; it is given back when this is dropped.
pub(crate) struct Share {
    backlog: Rc<Backlog>,
    wanted: Wanted,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.backlog.give_back(self.wanted);
        self.backlog.grant();
    }
}

impl Backlog {
    /// The start of a call, up to the end of its first stretch of work.
    pub(crate) async fn start(self: &Rc<Backlog>) -> Option<Share> {
        self.granted(&self.senders, Wanted::Start).await
    }

    /// Waits until an answer can be sent, and counts it; the number is for [`Backlog::taken`].
    pub(crate) async fn send(self: &Rc<Backlog>, bytes: usize) -> usize {
        if bytes < SMALL_BYTES {
            return 0;
        }
        if let Some(share) = self.granted(&self.senders, Wanted::Send(bytes)).await {
            std::mem::forget(share);
        }
        bytes
    }

    /// Counts an answer that does not wait; the number is for [`Backlog::taken`].
    pub(crate) fn send_now(&self, bytes: usize) -> usize {
        if bytes < SMALL_BYTES {
            return 0;
        }
        self.sent.set(self.sent.get() + bytes);
        bytes
    }

    /// The sandbox has taken an answer.
    pub(crate) fn taken(self: &Rc<Backlog>, bytes: usize) {
        self.give_back(Wanted::Send(bytes));
        self.grant();
    }

    /// `None` when the backlog was dropped first.
    async fn granted(self: &Rc<Backlog>, queue: &Queue, wanted: Wanted) -> Option<Share> {
        if queue.0.borrow().is_empty() && self.fits(wanted) {
            return Some(self.take(wanted));
        }
        let (grant, granted) = oneshot::channel();
        queue.0.borrow_mut().push_back((wanted, grant));
        granted.await.ok()
    }

    fn fits(&self, wanted: Wanted) -> bool {
        let (sent, all) = (self.sent.get(), self.sent.get() + self.reserved.get());
        let limit = limits::CODE_CALLS_BYTES;
        match wanted {
            Wanted::Start => !self.starting.get() && sent < limit,
            Wanted::Send(bytes) => sent == 0 || sent + bytes <= limit,
            Wanted::Reserve(bytes) => all == 0 || all + bytes <= limit,
        }
    }

    fn take(self: &Rc<Backlog>, wanted: Wanted) -> Share {
        match wanted {
            Wanted::Start => self.starting.set(true),
            Wanted::Send(bytes) => self.sent.set(self.sent.get() + bytes),
            Wanted::Reserve(bytes) => self.reserved.set(self.reserved.get() + bytes),
        }
        Share { backlog: self.clone(), wanted }
    }

    fn give_back(&self, wanted: Wanted) {
        match wanted {
            Wanted::Start => self.starting.set(false),
            Wanted::Send(bytes) => self.sent.set(self.sent.get().saturating_sub(bytes)),
            Wanted::Reserve(bytes) => self.reserved.set(self.reserved.get().saturating_sub(bytes)),
        }
    }

    /// Grants what fits now, in order.
    fn grant(self: &Rc<Backlog>) {
        for queue in [&self.senders, &self.reservers] {
            while let Some((wanted, waiting)) = self.next(queue) {
                if let Err(share) = waiting.send(self.take(wanted)) {
                    // Its call has gone.
                    self.give_back(share.wanted);
                    std::mem::forget(share);
                }
            }
        }
    }

    fn next(&self, queue: &Queue) -> Option<(Wanted, oneshot::Sender<Share>)> {
        let mut queue = queue.0.borrow_mut();
        let fits = queue.front().is_some_and(|(wanted, _)| self.fits(*wanted));
        if fits { queue.pop_front() } else { None }
    }
}

/// What one call has reserved.
pub(crate) struct CallRoom {
    backlog: Rc<Backlog>,
    reserved: RefCell<Vec<Share>>,
}

impl CallRoom {
    /// One of a call that begins.
    pub(crate) fn of(backlog: &Rc<Backlog>) -> Rc<CallRoom> {
        Rc::new(CallRoom { backlog: backlog.clone(), reserved: RefCell::default() })
    }

    /// What it has reserved, as its answer counts instead.
    pub(crate) fn take(&self) -> Vec<Share> {
        self.reserved.take()
    }
}

/// Waits for room in the answer of the call that is being made, where sandboxed code makes it. A call reserves once: one that
/// waits with room of its own could keep others waiting for ever.
pub(crate) async fn reserve(bytes: usize) {
    let Some(room) = ancestry::room() else { return };
    let share = room.backlog.granted(&room.backlog.reservers, Wanted::Reserve(bytes)).await;
    room.reserved.borrow_mut().extend(share);
}
