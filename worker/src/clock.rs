//! The timers of one object. All of them share one timer of the platform. Setting and clearing one for each
//! took 110 of the 1,410 µs that the engine needs for a step, and these timers (for the first chunk, for
//! silence, for the rest of a response) rarely expire.
//!
//! While the object is at work, the platform's timer stays set even if nothing waits for it: the next wait is
//! probably longer and then needs no timer of its own. When the object is idle and nothing waits, the timer
//! is cleared, because a timer keeps its object in memory.

use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use wasm_bindgen::prelude::*;

use crate::bindings::{self, Timer, thrown};

/// Microseconds in a millisecond.
pub(crate) const MS_US: i64 = 1_000;

/// The timers of one object, on one timer of the platform.
pub(crate) struct Clock {
    sleepers: RefCell<Vec<Sleeper>>,
    timer: RefCell<Option<ArmedTimer>>,
    next_id: Cell<u64>,
    /// Number of units of work in progress.
    running: Cell<usize>,
    rings: Closure<dyn FnMut()>,
}

struct Sleeper {
    id: u64,
    due_us: i64,
    waker: Waker,
}

struct ArmedTimer {
    due_us: i64,
    /// Cleared when it is dropped.
    _timer: Timer,
}

impl Clock {
    pub(crate) fn new() -> Rc<Clock> {
        Rc::new_cyclic(|this: &Weak<Clock>| {
            let this = AssertUnwindSafe(this.clone());
            let rings = Closure::new(move || {
                if let Some(clock) = this.upgrade() {
                    clock.ring();
                }
            });
            let (sleepers, timer, next_id, running) = Default::default();
            Clock { sleepers, timer, next_id, running, rings }
        })
    }

    /// Marks work as in progress until the returned value is dropped.
    pub(crate) fn begin_work(self: &Rc<Clock>) -> WorkGuard {
        self.running.set(self.running.get() + 1);
        WorkGuard(self.clone())
    }

    /// Completes at this time, in microseconds since 1970.
    pub(crate) fn sleep_until(self: &Rc<Clock>, due_us: i64) -> Sleep {
        self.next_id.set(self.next_id.get() + 1);
        Sleep { clock: self.clone(), id: self.next_id.get(), due_us }
    }

    /// Wakes all waits that are due.
    fn ring(&self) {
        self.timer.take();
        let now = now_us();
        let (due, waiting): (Vec<_>, Vec<_>) =
            self.sleepers.take().into_iter().partition(|sleeper| sleeper.due_us <= now);
        self.sleepers.replace(waiting);
        for sleeper in due {
            sleeper.waker.wake();
        }
        self.arm();
    }

    /// Ensures that the timer fires at the end of the first wait or earlier; `ring` checks the time. A timer
    /// that should have fired by now is set again.
    fn arm(&self) {
        let Some(due_us) = self.sleepers.borrow().iter().map(|sleeper| sleeper.due_us).min() else { return };
        let now = now_us();
        if self.timer.borrow().as_ref().is_some_and(|armed| (now..=due_us).contains(&armed.due_us)) {
            return;
        }
        // Rounded up, because a timer that fires early would have to be set again.
        let ms = ((due_us - now) as f64 / MS_US as f64).ceil();
        match Timer::after(&self.rings, ms) {
            Ok(timer) => drop(self.timer.replace(Some(ArmedTimer { due_us, _timer: timer }))),
            // Waking the sleeper would end its wait early. The platform refuses timers only to objects that
            // are shutting down.
            Err(error) => bindings::log(&format!("timer: {}", thrown(&error))),
        }
    }

    /// Clears the timer if it will not be needed soon.
    fn rest(&self) {
        if self.running.get() == 0 && self.sleepers.borrow().is_empty() {
            self.timer.take();
        }
    }
}

/// Microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    bindings::date_now() as i64 * MS_US
}

/// A wait for a time.
pub(crate) struct Sleep {
    clock: Rc<Clock>,
    id: u64,
    due_us: i64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut sleepers = self.clock.sleepers.borrow_mut();
        // A sleeper that is due is no longer in the list.
        if let Some(sleeper) = sleepers.iter_mut().find(|sleeper| sleeper.id == self.id) {
            sleeper.waker.clone_from(context.waker());
            return Poll::Pending;
        }
        if self.due_us <= now_us() {
            return Poll::Ready(());
        }
        sleepers.push(Sleeper { id: self.id, due_us: self.due_us, waker: context.waker().clone() });
        drop(sleepers);
        self.clock.arm();
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut sleepers = self.clock.sleepers.borrow_mut();
        let place = sleepers.iter().position(|sleeper| sleeper.id == self.id);
        let gone = place.map(|at| sleepers.swap_remove(at));
        drop(sleepers);
        drop(gone);
        self.clock.rest();
    }
}

/// A unit of work in progress.
pub(crate) struct WorkGuard(Rc<Clock>);

impl Drop for WorkGuard {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get().saturating_sub(1));
        self.0.rest();
    }
}
