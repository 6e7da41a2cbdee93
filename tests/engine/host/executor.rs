//! A single-threaded executor with virtual time for futures that are not `Send`. Among the tasks that are ready it
//! picks one by the seed; time moves only when nothing is ready.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::rng::Rng;

/// A task's future.
pub type Local = Pin<Box<dyn Future<Output = ()>>>;

/// Whose task it is: a crash drops those of the process, clients live on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A test's client, outside the object.
    Client,
    /// The object with this life's number; the event (request or alarm) it descends from.
    Process {
        /// The object's place in its world.
        object: usize,
        /// Which life of the object.
        life: u64,
        /// Which event started it, directly or through `spawn`.
        event: u64,
    },
}

struct Task {
    owner: Owner,
    name: &'static str,
    /// Absent while it is being polled.
    future: Option<Local>,
    waker: Waker,
}

/// How one poll ended.
pub enum Polled {
    /// It waits for something.
    Pending,
    /// It is done.
    Done,
    /// It panicked with this payload, and was dropped.
    Panicked(Box<dyn Any + Send>),
}

/// Tasks, timers and the clock.
pub struct Executor {
    tasks: RefCell<BTreeMap<u64, Task>>,
    ready: Arc<Mutex<BTreeSet<u64>>>,
    timers: RefCell<BTreeMap<(i64, u64), Waker>>,
    now_us: Cell<i64>,
    serial: Cell<u64>,
    current: Cell<Option<Owner>>,
    order: RefCell<Rng>,
    polls: Cell<u64>,
}

struct Ready {
    id: u64,
    ready: Arc<Mutex<BTreeSet<u64>>>,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap().insert(self.id);
    }
}

impl Executor {
    /// An executor whose clock starts at `now_us`.
    pub fn new(seed: u64, now_us: i64) -> Executor {
        Executor {
            tasks: RefCell::default(),
            ready: Arc::default(),
            timers: RefCell::default(),
            now_us: Cell::new(now_us),
            serial: Cell::new(0),
            current: Cell::new(None),
            order: RefCell::new(Rng::new(seed)),
            polls: Cell::new(0),
        }
    }

    /// Virtual microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.now_us.get()
    }

    /// Whose task is being polled.
    pub fn current(&self) -> Option<Owner> {
        self.current.get()
    }

    /// How many polls there were.
    pub fn polls(&self) -> u64 {
        self.polls.get()
    }

    fn serial(&self) -> u64 {
        self.serial.set(self.serial.get() + 1);
        self.serial.get()
    }

    /// Adds a task; it is ready at once.
    pub fn spawn(&self, owner: Owner, name: &'static str, future: Local) {
        let id = self.serial();
        let waker = Waker::from(Arc::new(Ready { id, ready: self.ready.clone() }));
        self.tasks.borrow_mut().insert(id, Task { owner, name, future: Some(future), waker });
        self.ready.lock().unwrap().insert(id);
    }

    /// Polls one ready task. `None` when none is.
    pub fn poll_one(&self) -> Option<(Owner, Polled)> {
        let id = {
            let mut ready = self.ready.lock().unwrap();
            let tasks = self.tasks.borrow();
            ready.retain(|id| tasks.contains_key(id));
            let pick = self.order.borrow_mut().below(ready.len());
            let id = *ready.iter().nth(pick)?;
            ready.remove(&id);
            id
        };
        let (owner, mut future, waker) = {
            let mut tasks = self.tasks.borrow_mut();
            let task = tasks.get_mut(&id)?;
            (task.owner, task.future.take()?, task.waker.clone())
        };
        self.polls.set(self.polls.get() + 1);
        // Work takes a little time, so that no test depends on two things happening at the same instant.
        self.now_us.set(self.now_us.get() + 1 + self.order.borrow_mut().below(40) as i64);
        self.current.set(Some(owner));
        let polled =
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        let outcome = match polled {
            Ok(Poll::Pending) => {
                // Put back, unless a crash removed the task meanwhile.
                if let Some(task) = self.tasks.borrow_mut().get_mut(&id) {
                    task.future = Some(future);
                }
                Polled::Pending
            }
            Ok(Poll::Ready(())) => {
                drop(future);
                self.remove(id);
                Polled::Done
            }
            Err(payload) => {
                drop(catch_unwind(AssertUnwindSafe(|| drop(future))));
                self.remove(id);
                Polled::Panicked(payload)
            }
        };
        self.current.set(None);
        Some((owner, outcome))
    }

    fn remove(&self, id: u64) {
        let task = self.tasks.borrow_mut().remove(&id);
        drop(task);
    }

    /// Drops every task of the objects that die. Destructors run; what they panic is swallowed, the process is dead.
    pub fn drop_process(&self, dies: impl Fn(usize) -> bool) {
        let dead: Vec<Task> = {
            let mut tasks = self.tasks.borrow_mut();
            let of_it = |task: &Task| matches!(task.owner, Owner::Process { object, .. } if dies(object));
            let ids: Vec<u64> = tasks.iter().filter(|(_, task)| of_it(task)).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| tasks.remove(id)).collect()
        };
        for task in dead {
            drop(catch_unwind(AssertUnwindSafe(|| drop(task))));
        }
    }

    /// Drops every task.
    pub fn clear(&self) {
        self.drop_process(|_| true);
        let clients = std::mem::take(&mut *self.tasks.borrow_mut());
        drop(clients);
        let timers = std::mem::take(&mut *self.timers.borrow_mut());
        drop(timers);
    }

    /// Names of the tasks that are not done, for diagnosis: those of the process, or the clients'.
    pub fn waiting(&self, clients: bool) -> Vec<&'static str> {
        let tasks = self.tasks.borrow();
        tasks.values().filter(|t| (t.owner == Owner::Client) == clients).map(|t| t.name).collect()
    }

    /// When the next timer is due.
    pub fn next_timer_us(&self) -> Option<i64> {
        self.timers.borrow().keys().next().map(|(due, _)| *due)
    }

    /// Moves the clock forward (never back) and wakes what is due.
    pub fn advance_to(&self, us: i64) {
        self.now_us.set(self.now_us.get().max(us));
        loop {
            let waker = {
                let mut timers = self.timers.borrow_mut();
                match timers.first_entry() {
                    Some(entry) if entry.key().0 <= self.now_us.get() => entry.remove(),
                    _ => return,
                }
            };
            waker.wake();
        }
    }
}

/// Resolves at a time; dropping it removes the timer.
pub struct Timer {
    executor: Rc<Executor>,
    due_us: i64,
    key: Option<(i64, u64)>,
}

impl Timer {
    /// A timer for a point in virtual time.
    pub fn new(executor: Rc<Executor>, due_us: i64) -> Timer {
        Timer { executor, due_us, key: None }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(key) = self.key.take() {
            self.executor.timers.borrow_mut().remove(&key);
        }
        if self.executor.now_us() >= self.due_us {
            return Poll::Ready(());
        }
        let key = (self.due_us, self.executor.serial());
        self.executor.timers.borrow_mut().insert(key, context.waker().clone());
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.executor.timers.borrow_mut().remove(&key);
        }
    }
}

/// Lets everything else run once: the platform's output gate, behind which earlier writes are durable.
pub async fn gate() {
    let mut passed = false;
    std::future::poll_fn(|context| {
        if passed {
            return Poll::Ready(());
        }
        passed = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
