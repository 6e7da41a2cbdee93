//! Answers to a sandbox's calls that it has not taken yet, and room for more.
//!
//! Code may make 256 calls at once, and each answer may be large. So a call starts only while there is room,
//! and one at a time: synchronous work, such as reading a file, runs for one call after another. Work that
//! collects much data while it waits, such as the body of a response, reserves room first. With an empty
//! backlog an answer of any size is sent, so nothing waits forever.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use futures::channel::oneshot;

use crate::limits;
use crate::sandbox::ancestry;

/// Smaller answers are not counted: at most 256 calls are active.
pub(crate) const SMALL_BYTES: usize = limits::CODE_CALLS_BYTES / 256;

/// The backlog of one run.
#[derive(Default)]
pub(super) struct Backlog {
    /// Bytes of answers that were sent and not taken yet.
    sent: Cell<usize>,
    /// Bytes that active calls have reserved.
    reserved: Cell<usize>,
    /// Whether a call is starting.
    starting: Cell<bool>,
    /// Starting calls and waiting answers, in order.
    senders: Queue,
    /// Waiting reservations, in order.
    reservers: Queue,
}

#[derive(Default)]
struct Queue(RefCell<VecDeque<(ShareKind, oneshot::Sender<Share>)>>);

#[derive(Clone, Copy)]
enum ShareKind {
    Start,
    Send(usize),
    Reserve(usize),
}

/// A granted share, returned when dropped.
pub(super) struct Share {
    backlog: Rc<Backlog>,
    wanted: ShareKind,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.backlog.give_back(self.wanted);
        self.backlog.grant();
    }
}

impl Backlog {
    /// Waits for the start of a call. The share covers it up to its first pause.
    pub(super) async fn start(self: &Rc<Backlog>) -> Option<Share> {
        self.granted(&self.senders, ShareKind::Start).await
    }

    /// Waits until an answer can be sent, and counts it. Returns the number for [`Backlog::taken`].
    pub(super) async fn send(self: &Rc<Backlog>, bytes: usize) -> usize {
        if bytes < SMALL_BYTES {
            return 0;
        }
        if let Some(share) = self.granted(&self.senders, ShareKind::Send(bytes)).await {
            std::mem::forget(share);
        }
        bytes
    }

    /// Counts an answer that does not wait. Returns the number for [`Backlog::taken`].
    pub(super) fn send_now(&self, bytes: usize) -> usize {
        if bytes < SMALL_BYTES {
            return 0;
        }
        self.sent.set(self.sent.get() + bytes);
        bytes
    }

    /// Records that the sandbox has taken an answer.
    pub(super) fn taken(self: &Rc<Backlog>, bytes: usize) {
        self.give_back(ShareKind::Send(bytes));
        self.grant();
    }

    /// Returns `None` when the backlog was dropped first.
    async fn granted(self: &Rc<Backlog>, queue: &Queue, wanted: ShareKind) -> Option<Share> {
        if queue.0.borrow().is_empty() && self.fits(wanted) {
            return Some(self.take(wanted));
        }
        let (grant, granted) = oneshot::channel();
        queue.0.borrow_mut().push_back((wanted, grant));
        granted.await.ok()
    }

    fn fits(&self, wanted: ShareKind) -> bool {
        let (sent, all) = (self.sent.get(), self.sent.get() + self.reserved.get());
        let limit = limits::CODE_CALLS_BYTES;
        match wanted {
            ShareKind::Start => !self.starting.get() && sent < limit,
            ShareKind::Send(bytes) => sent == 0 || sent + bytes <= limit,
            ShareKind::Reserve(bytes) => all == 0 || all + bytes <= limit,
        }
    }

    fn take(self: &Rc<Backlog>, wanted: ShareKind) -> Share {
        match wanted {
            ShareKind::Start => self.starting.set(true),
            ShareKind::Send(bytes) => self.sent.set(self.sent.get() + bytes),
            ShareKind::Reserve(bytes) => self.reserved.set(self.reserved.get() + bytes),
        }
        Share { backlog: self.clone(), wanted }
    }

    fn give_back(&self, wanted: ShareKind) {
        match wanted {
            ShareKind::Start => self.starting.set(false),
            ShareKind::Send(bytes) => self.sent.set(self.sent.get().saturating_sub(bytes)),
            ShareKind::Reserve(bytes) => self.reserved.set(self.reserved.get().saturating_sub(bytes)),
        }
    }

    /// Grants waiting requests that fit, in order.
    fn grant(self: &Rc<Backlog>) {
        for queue in [&self.senders, &self.reservers] {
            while let Some((wanted, waiting)) = self.next(queue) {
                if let Err(share) = waiting.send(self.take(wanted)) {
                    // Its call was dropped.
                    self.give_back(share.wanted);
                    std::mem::forget(share);
                }
            }
        }
    }

    fn next(&self, queue: &Queue) -> Option<(ShareKind, oneshot::Sender<Share>)> {
        let mut queue = queue.0.borrow_mut();
        let fits = queue.front().is_some_and(|(wanted, _)| self.fits(*wanted));
        if fits { queue.pop_front() } else { None }
    }
}

/// The reservation of one call.
pub(super) struct CallRoom {
    backlog: Rc<Backlog>,
    reserved: RefCell<Vec<Share>>,
}

impl CallRoom {
    /// The room of a new call.
    pub(super) fn of(backlog: &Rc<Backlog>) -> Rc<CallRoom> {
        Rc::new(CallRoom { backlog: backlog.clone(), reserved: RefCell::default() })
    }

    /// Takes the reservation, because the answer itself counts now.
    pub(super) fn take(&self) -> Vec<Share> {
        self.reserved.take()
    }
}

/// Waits for room for the answer of the current call, if sandboxed code makes it. A call reserves once: one
/// that waits while holding room could block others forever.
pub(crate) async fn reserve(bytes: usize) {
    let Some(room) = ancestry::room() else { return };
    let share = room.backlog.granted(&room.backlog.reservers, ShareKind::Reserve(bytes)).await;
    room.reserved.borrow_mut().extend(share);
}
