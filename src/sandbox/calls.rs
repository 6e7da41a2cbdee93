//! Active calls from a sandbox to the host. They belong to the run: dropping the run drops them and their
//! work, regardless of which task polls them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use futures::channel::oneshot;
use futures::future::LocalBoxFuture;

use crate::limits;

/// The calls of one run.
#[derive(Default)]
pub(super) struct CallRegistry(Rc<OpenCalls>);

#[derive(Default)]
struct OpenCalls {
    calls: RefCell<BTreeMap<u64, Rc<dyn Abortable>>>,
    last: Cell<u64>,
    closed: Cell<bool>,
    /// Bytes of the calls' arguments.
    bytes: Cell<usize>,
    /// Waiters for the moment when none is active.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

/// See [`CallRegistry::hold`].
pub(super) struct ArgumentHold {
    open: Rc<OpenCalls>,
    bytes: usize,
}

impl Drop for ArgumentHold {
    fn drop(&mut self) {
        self.open.bytes.set(self.open.bytes.get().saturating_sub(self.bytes));
    }
}

trait Abortable {
    fn end(&self);
}

impl CallRegistry {
    /// Adopts some work, and returns a future for it, which gives `None` when the work was dropped first.
    pub(super) fn add<T: 'static>(&self, work: LocalBoxFuture<'static, T>) -> Call<T> {
        let id = self.0.last.get() + 1;
        self.0.last.set(id);
        let slot = Rc::new(Slot {
            work: RefCell::new(Some(work)),
            ended: Cell::new(false),
            waker: RefCell::default(),
        });
        if self.0.closed.get() {
            slot.end();
        } else {
            self.0.calls.borrow_mut().insert(id, slot.clone());
        }
        Call { slot, id, open: Rc::downgrade(&self.0) }
    }

    /// Drops all calls, the latest first, and refuses new ones.
    pub(super) fn close(&self) {
        self.0.closed.set(true);
        let calls = self.0.calls.take();
        for call in calls.into_values().rev() {
            call.end();
        }
    }

    /// Resolves when none is active.
    pub(super) fn none(&self) -> impl Future<Output = ()> + 'static {
        let (tell, told) = oneshot::channel();
        if !self.0.calls.borrow().is_empty() {
            self.0.waiting.borrow_mut().push(tell);
        }
        async move {
            // The result does not matter: a dropped sender signals the end, too.
            let _none = told.await;
        }
    }

    /// Counts the arguments of a call while it is active; `None` when the total is too large.
    pub(super) fn hold(&self, bytes: usize) -> Option<ArgumentHold> {
        let all = self.0.bytes.get() + bytes;
        if all > limits::CODE_CALLS_BYTES {
            return None;
        }
        self.0.bytes.set(all);
        Some(ArgumentHold { open: self.0.clone(), bytes })
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.calls.borrow().len()
    }
}

struct Slot<T> {
    /// `None` while it is polled, and after its end.
    work: RefCell<Option<LocalBoxFuture<'static, T>>>,
    ended: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl<T> Abortable for Slot<T> {
    fn end(&self) {
        self.ended.set(true);
        // A call that ends its own run is being polled, and is dropped after that.
        drop(self.work.take());
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The future of a call.
pub(super) struct Call<T> {
    slot: Rc<Slot<T>>,
    id: u64,
    open: Weak<OpenCalls>,
}

impl<T> Future for Call<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let slot = &self.slot;
        let Some(mut work) = slot.work.take() else { return Poll::Ready(None) };
        slot.waker.replace(Some(context.waker().clone()));
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if slot.ended.get() => Poll::Ready(None),
            Poll::Pending => {
                slot.work.replace(Some(work));
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        if let Some(open) = self.open.upgrade() {
            open.calls.borrow_mut().remove(&self.id);
            if open.calls.borrow().is_empty() {
                // Dropping the senders wakes the waiters.
                open.waiting.take();
            }
        }
    }
}
