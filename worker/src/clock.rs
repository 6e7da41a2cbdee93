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

/// The waits of one object, and its timer.
pub(crate) struct Clock {
    sleepers: RefCell<Vec<Sleeper>>,
    timer: RefCell<Option<Armed>>,
    next_id: Cell<u64>,
    /// How much of the object's work is under way.
    works: Cell<usize>,
    rings: Closure<dyn FnMut()>,
}

struct Sleeper {
    id: u64,
    due_us: i64,
    waker: Waker,
}

struct Armed {
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
            let (sleepers, timer, next_id, works) = Default::default();
            Clock { sleepers, timer, next_id, works, rings }
        })
    }

    /// Work has begun; it is over when what is returned is dropped.
    pub(crate) fn work(self: &Rc<Clock>) -> Work {
        self.works.set(self.works.get() + 1);
        Work(self.clone())
    }

    /// Completes when the time has come, in microseconds since 1970.
    pub(crate) fn sleep_until(self: &Rc<Clock>, due_us: i64) -> Sleep {
        self.next_id.set(self.next_id.get() + 1);
        Sleep { clock: self.clone(), id: self.next_id.get(), due_us }
    }

    /// Wakes those whose time has come.
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

    /// Sees to it that the timer fires when the first wait is over, or earlier: who rings looks at the time. One that should have fired
    /// by now is not relied on.
    fn arm(&self) {
        let Some(due_us) = self.sleepers.borrow().iter().map(|sleeper| sleeper.due_us).min() else { return };
        let now = now_us();
        if self.timer.borrow().as_ref().is_some_and(|armed| (now..=due_us).contains(&armed.due_us)) {
            return;
        }
        // Rounded up: one that fires early would only be set again.
        let ms = ((due_us - now) as f64 / MS_US as f64).ceil();
        match Timer::after(&self.rings, ms) {
            Ok(timer) => drop(self.timer.replace(Some(Armed { due_us, _timer: timer }))),
            // Waking would turn a wait into none; the platform refuses timers only to dying objects.
            Err(error) => bindings::log(&format!("timer: {}", thrown(&error))),
        }
    }

    /// Takes the timer away where nobody will need it soon.
    fn rest(&self) {
        if self.works.get() == 0 && self.sleepers.borrow().is_empty() {
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
        // Whose time has come is none of them any more.
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

/// Work of an object that is under way.
pub(crate) struct Work(Rc<Clock>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.works.set(self.0.works.get().saturating_sub(1));
        self.0.rest();
    }
}
