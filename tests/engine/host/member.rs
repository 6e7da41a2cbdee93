//! One object of the world: its disk, its alarm and who listens to it, which survive its process, and the life that
//! does not.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bobbin::host::{Filter, Frame};
use bobbin::request::{RawResponse, Reply, StreamRoute, ThreadRequest};
use futures::future::LocalBoxFuture;

use super::alarm::Alarm;
use super::database::Database;

/// An object on the platform: what is under test.
pub trait Object {
    /// Its alarm handler.
    fn alarm(self: Rc<Self>) -> LocalBoxFuture<'static, ()>;

    /// Answers a call of another object.
    fn call(self: Rc<Self>, text: String) -> LocalBoxFuture<'static, Reply>;

    /// Answers a request of another object whose answer is a stream.
    fn serve(self: Rc<Self>, request: ThreadRequest<StreamRoute>) -> LocalBoxFuture<'static, RawResponse>;

    /// To get at the concrete type.
    fn any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// Somebody who listens to the object.
pub struct Listener {
    /// What they want.
    pub filter: Filter,
    /// What they got, in order; those that the object sent on opening first.
    pub frames: RefCell<Vec<Frame>>,
    /// Until the process dies or the client closes it.
    pub open: Cell<bool>,
}

/// See the module.
pub struct Member {
    /// Its place among the objects of the world, from 0.
    pub place: usize,
    /// Its name, a thread's id.
    pub id: String,
    /// The disk.
    pub database: Database,
    /// The alarm.
    pub alarm: Cell<Alarm>,
    /// How often the alarm's handler was started.
    pub alarms_fired: Cell<u32>,
    /// Every frame that was broadcast, when it left the process.
    pub frames: RefCell<Vec<(i64, Frame)>>,
    /// Open and closed listeners.
    pub listeners: RefCell<Vec<Rc<Listener>>>,
    /// Requests to elsewhere and their bodies that are open.
    pub open_requests: Cell<u32>,
    /// Timers that were set.
    pub sleeps: Cell<usize>,
    /// Most of them at once.
    pub most_open: Cell<u32>,
    pub(super) life: Cell<u64>,
    pub(super) object: RefCell<Option<Rc<dyn Object>>>,
    /// Leaves the process when the poll ends: replies and frames wait for durability.
    pub(super) outbound: RefCell<Vec<Box<dyn FnOnce()>>>,
    on_disk: Cell<Alarm>,
    watched: Cell<Option<(u64, Alarm)>>,
}

impl Member {
    /// An object of which nothing was ever stored.
    pub(super) fn new(place: usize, id: &str, numbers_as_floats: bool) -> Rc<Member> {
        Rc::new(Member {
            place,
            id: id.into(),
            database: Database::new(numbers_as_floats),
            alarm: Cell::default(),
            alarms_fired: Cell::default(),
            frames: RefCell::default(),
            listeners: RefCell::default(),
            open_requests: Cell::default(),
            sleeps: Cell::default(),
            most_open: Cell::default(),
            life: Cell::new(1),
            object: RefCell::default(),
            outbound: RefCell::default(),
            on_disk: Cell::default(),
            watched: Cell::default(),
        })
    }

    /// The life's number: 1 before the first crash.
    pub fn life(&self) -> u64 {
        self.life.get()
    }

    /// Whether a thread was created here and not deleted.
    pub fn exists(&self) -> bool {
        self.has_table("meta") && !self.database.ask::<i64>("SELECT 1 FROM meta LIMIT 1").is_empty()
    }

    /// Whether its database has this table.
    pub fn has_table(&self, name: &str) -> bool {
        self.database.has_table(name)
    }

    /// Whether its database or its alarm has changed since it was asked last.
    pub(super) fn has_changed(&self) -> bool {
        let seen = Some((self.database.version(), self.alarm.get()));
        self.watched.replace(seen) != seen
    }

    /// Opens the stretch that the platform commits as a whole at the next await.
    pub(super) fn touch(&self) {
        if self.database.open_stretch() {
            self.on_disk.set(self.alarm.get());
        }
    }

    pub(super) fn set_alarm(&self, due_us: Option<i64>) {
        self.touch();
        let mut alarm = self.alarm.get();
        alarm.set(due_us);
        self.alarm.set(alarm);
        let mut counters = self.database.counters.get();
        counters.alarms += 1;
        self.database.counters.set(counters);
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.listeners.borrow().iter().any(|listener| listener.open.get())
    }

    pub(super) fn listeners_want_items(&self) -> bool {
        self.listeners.borrow().iter().any(|listener| listener.open.get() && listener.filter.items)
    }

    pub(super) fn listeners_want_progress(&self) -> bool {
        self.listeners.borrow().iter().any(|listener| listener.open.get() && !listener.filter.quiet)
    }

    pub(super) fn listeners_follow_run(&self) -> bool {
        self.listeners.borrow().iter().any(|listener| listener.open.get() && listener.filter.feed.is_some())
    }

    /// Takes a frame to everybody who wants it.
    pub(super) fn tell(&self, now_us: i64, frame: &Frame) {
        self.frames.borrow_mut().push((now_us, frame.clone()));
        for listener in self.listeners.borrow().iter() {
            if listener.open.get() && frame.passes(&listener.filter) {
                listener.frames.borrow_mut().push(frame.clone());
                listener.open.set(!frame.ends(&listener.filter));
            }
        }
    }

    pub(super) fn close_listeners(&self) {
        self.listeners.borrow().iter().for_each(|listener| listener.open.set(false));
    }

    /// Drops the object from memory.
    pub(super) fn forget(&self) {
        let object = self.object.borrow_mut().take();
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(object))));
        self.database.restarted();
    }

    /// The first half of a crash: what had not left the process never leaves it, and what was written since the last
    /// await is lost or kept.
    pub(super) fn dies(&self, keep: bool) {
        let lost = std::mem::take(&mut *self.outbound.borrow_mut());
        drop(lost);
        if self.database.in_stretch() {
            self.database.close_stretch(keep);
            if !keep {
                let mut alarm = self.alarm.get();
                alarm.roll_back(self.on_disk.get());
                self.alarm.set(alarm);
            }
        }
        self.life.set(self.life.get() + 1);
    }

    /// The second half, once its tasks are gone.
    pub(super) fn died(&self, now_us: i64) {
        self.forget();
        self.close_listeners();
        let mut alarm = self.alarm.get();
        alarm.crashed(now_us);
        self.alarm.set(alarm);
    }
}
