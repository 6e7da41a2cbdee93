//! The world of one simulation: the executor, the database and the alarm that survive crashes, the object that does
//! not, and the failures that are planned for it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::rc::Rc;

use bobbin::thread::{Filter, Frame};
use futures_util::future::LocalBoxFuture;

use super::alarm::Alarm;
use super::bucket::Bucket;
use super::database::Database;
use super::executor::{Executor, Owner, Polled, Timer};
use super::fault::{At, Crash, Fault, Faults, Injected};
use super::outside::Outside;
use super::rng::Rng;
use super::sim_host::SimHost;

/// 2026-11-21, microseconds.
pub const START_US: i64 = 1_795_300_000_000_000;
/// Polls after which a simulation that does not come to rest is given up.
const POLLS: u64 = 600_000;
/// Outgoing requests that one event may make on the platform's free plan.
const REQUESTS_PER_EVENT: u32 = 50;

/// An object on the platform: what is under test.
pub trait Object {
    /// Its alarm handler.
    fn alarm(self: Rc<Self>) -> LocalBoxFuture<'static, ()>;
    /// To get at the concrete type.
    fn any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// Whether the process that a host belongs to is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vitality {
    Alive,
    /// A crash was raised; the stack of this poll still unwinds.
    Dying,
}

/// The process that was asked died, or failed to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

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
pub struct World {
    /// Tasks and time.
    pub executor: Rc<Executor>,
    /// The disk.
    pub database: Database,
    /// The alarm.
    pub alarm: Cell<Alarm>,
    /// Planned failures.
    pub faults: RefCell<Faults>,
    /// What is beyond the process.
    pub outside: Outside,
    /// Objects beside the database.
    pub bucket: Bucket,
    /// What a test must know about: refused requests, panics of the engine, broken limits.
    pub failures: RefCell<Vec<String>>,
    /// The operator's log.
    pub log: RefCell<Vec<String>>,
    /// Every frame that was broadcast, when it left the process.
    pub frames: RefCell<Vec<(i64, Frame)>>,
    /// Open and closed listeners.
    pub listeners: RefCell<Vec<Rc<Listener>>>,
    /// Variables of the deployment.
    pub vars: RefCell<BTreeMap<String, String>>,
    /// Requests and bodies that are open.
    pub open_requests: Cell<u32>,
    /// Most of them at once.
    pub most_open: Cell<u32>,
    /// How often the alarm's handler was started.
    pub alarms_fired: Cell<u32>,
    random: RefCell<Rng>,
    life: Cell<u64>,
    vitality: Cell<Vitality>,
    event: Cell<u64>,
    requests_of_event: RefCell<BTreeMap<u64, u32>>,
    object: RefCell<Option<Rc<dyn Object>>>,
    open: Box<dyn Fn(SimHost) -> Rc<dyn Object>>,
    /// Leaves the process when the poll ends: replies and frames wait for durability.
    outbound: RefCell<Vec<Box<dyn FnOnce()>>>,
    on_disk: Cell<Alarm>,
    watch: Cell<fn(&World)>,
}

impl World {
    /// A world whose object is opened by `open` whenever it is needed and not there.
    pub fn new(seed: u64, open: impl Fn(SimHost) -> Rc<dyn Object> + 'static) -> Rc<World> {
        Rc::new(World {
            executor: Rc::new(Executor::new(seed, START_US)),
            database: Database::new(seed % 2 == 1),
            alarm: Cell::default(),
            faults: RefCell::new(Faults::none()),
            outside: Outside::default(),
            bucket: Bucket::default(),
            failures: RefCell::default(),
            log: RefCell::default(),
            frames: RefCell::default(),
            listeners: RefCell::default(),
            vars: RefCell::default(),
            open_requests: Cell::default(),
            most_open: Cell::default(),
            alarms_fired: Cell::default(),
            random: RefCell::new(Rng::new(seed ^ 0xabcd)),
            life: Cell::new(1),
            vitality: Cell::new(Vitality::Alive),
            event: Cell::new(0),
            requests_of_event: RefCell::default(),
            object: RefCell::default(),
            open: Box::new(open),
            outbound: RefCell::default(),
            on_disk: Cell::default(),
            watch: Cell::new(|_| {}),
        })
    }

    /// What must hold after every poll of the process.
    pub fn watch(&self, watch: fn(&World)) {
        self.watch.set(watch);
    }

    /// Drops everything, so that the cycles of a finished simulation do not stay in memory.
    pub fn dispose(&self) {
        self.evict();
        self.executor.clear();
        self.outside.clear();
        self.outbound.borrow_mut().clear();
        self.listeners.borrow_mut().clear();
    }

    /// Microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.executor.now_us()
    }

    /// The life's number: 1 before the first crash.
    pub fn life(&self) -> u64 {
        self.life.get()
    }

    pub(super) fn random(&self) -> [u8; 16] {
        self.random.borrow_mut().bytes()
    }

    /// A number below `n`.
    pub fn below(&self, n: usize) -> usize {
        self.random.borrow_mut().below(n)
    }

    /// Something that must not happen.
    pub fn fail(&self, what: impl Into<String>) {
        let mut failures = self.failures.borrow_mut();
        if failures.len() < 200 {
            failures.push(what.into());
        }
    }

    /// A pause of a client, microseconds.
    pub fn pause(&self, us: i64) -> Timer {
        Timer::new(self.executor.clone(), self.now_us() + us)
    }

    /// Starts a client: a task outside the process.
    pub fn client(&self, future: impl Future<Output = ()> + 'static) {
        self.executor.spawn(Owner::Client, "client", Box::pin(future));
    }

    // ---- the process ----------------------------------------------------------------------------------------

    /// Whether a host of this life may still act. Raises the crash again in a process that is dying.
    pub(super) fn alive(&self, life: u64) -> bool {
        if life != self.life.get() {
            return false;
        }
        match self.vitality.get() {
            Vitality::Alive => true,
            Vitality::Dying if std::thread::panicking() => false,
            Vitality::Dying => resume_unwind(Box::new(Crash)),
        }
    }

    /// A point: the process may fail here.
    pub(super) fn point(&self, at: At, what: &str) {
        if std::thread::panicking() || self.vitality.get() != Vitality::Alive {
            return;
        }
        let fault = self.faults.borrow_mut().reach(at, what);
        match fault {
            None => {}
            Some(Fault::Panic) => resume_unwind(Box::new(Injected)),
            Some(Fault::CrashLost | Fault::CrashKept) => {
                self.vitality.set(Vitality::Dying);
                resume_unwind(Box::new(Crash))
            }
        }
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

    /// What happens once earlier writes are durable; never, if the process dies before.
    pub fn when_durable(&self, action: impl FnOnce() + 'static) {
        self.outbound.borrow_mut().push(Box::new(action));
    }

    pub(super) fn send(self: &Rc<Self>, frame: Frame) {
        let world = self.clone();
        self.when_durable(move || {
            world.frames.borrow_mut().push((world.now_us(), frame.clone()));
            for listener in world.listeners.borrow().iter() {
                if listener.open.get() && frame.passes(&listener.filter) {
                    listener.frames.borrow_mut().push(frame.clone());
                }
            }
        });
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.listeners.borrow().iter().any(|listener| listener.open.get())
    }

    pub(super) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let owner = self.executor.current().filter(|owner| *owner != Owner::Client);
        let owner = owner.unwrap_or(Owner::Process { life: self.life.get(), event: self.event.get() });
        self.executor.spawn(owner, "spawned", Box::pin(future));
    }

    /// Counts an outgoing request against the event that it descends from.
    pub(super) fn count_request(&self) {
        let Some(Owner::Process { event, .. }) = self.executor.current() else { return };
        let mut counts = self.requests_of_event.borrow_mut();
        let count = counts.entry(event).or_default();
        *count += 1;
        if *count == REQUESTS_PER_EVENT + 1 {
            self.fail(format!("more than {REQUESTS_PER_EVENT} outgoing requests in one event"));
        }
    }

    /// Most outgoing requests that one event made.
    pub fn most_requests(&self) -> u32 {
        self.requests_of_event.borrow().values().copied().max().unwrap_or(0)
    }

    fn object(self: &Rc<Self>) -> Rc<dyn Object> {
        if let Some(object) = self.object.borrow().as_ref() {
            return object.clone();
        }
        let object = (self.open)(SimHost::new(self.clone(), self.life.get()));
        *self.object.borrow_mut() = Some(object.clone());
        object
    }

    /// Starts an event in the process.
    fn event<F: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        name: &'static str,
        start: impl FnOnce(Rc<dyn Object>) -> F + 'static,
    ) {
        self.event.set(self.event.get() + 1);
        let owner = Owner::Process { life: self.life.get(), event: self.event.get() };
        let world = self.clone();
        let run = async move { start(world.object()).await };
        self.executor.spawn(owner, name, Box::pin(run));
    }

    /// A request from outside. Its answer leaves the process when it is durable; if the process dies or panics
    /// before, the caller learns that it is lost.
    pub fn enter<T, F>(self: &Rc<Self>, call: impl FnOnce(Rc<dyn Object>) -> F + 'static) -> Answered<T>
    where
        T: 'static,
        F: Future<Output = T> + 'static,
    {
        let slot =
            Rc::new(Slot { value: RefCell::new(None), waker: RefCell::new(None), done: Cell::new(false) });
        let guard = LostUnlessAnswered(slot.clone());
        let world = self.clone();
        self.event("request", move |object| async move {
            let value = call(object).await;
            world.when_durable(move || guard.0.settle(Ok(value)));
        });
        Answered(slot)
    }

    /// Drops the object from memory, as the platform does with an idle one.
    pub fn evict(&self) {
        let object = self.object.borrow_mut().take();
        drop(object);
        self.life.set(self.life.get() + 1);
    }

    fn crash(&self, keep: bool) {
        // What had not left the process never leaves it.
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
        self.vitality.set(Vitality::Alive);
        self.executor.drop_process();
        let object = self.object.borrow_mut().take();
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(object))));
        for listener in self.listeners.borrow().iter() {
            listener.open.set(false);
        }
        let mut alarm = self.alarm.get();
        alarm.crashed(self.now_us());
        self.alarm.set(alarm);
    }

    /// Kills the process now, between two polls.
    pub fn kill(&self) {
        self.crash(true);
    }

    // ---- time -----------------------------------------------------------------------------------------------

    /// One poll or one leap of time. False when nothing is left to do before `until_us`.
    fn turn(self: &Rc<Self>, until_us: i64) -> bool {
        let due = self.alarm.get().next_us();
        if due.is_some_and(|due| due <= self.now_us()) {
            self.fire_alarm();
        }
        if let Some((owner, polled)) = self.executor.poll_one() {
            self.after_poll(owner, polled);
            return true;
        }
        let next = [self.executor.next_timer_us(), self.alarm.get().next_us()].into_iter().flatten().min();
        match next {
            Some(next) if next <= until_us => {
                self.executor.advance_to(next);
                true
            }
            _ => false,
        }
    }

    fn fire_alarm(self: &Rc<Self>) {
        let mut alarm = self.alarm.get();
        alarm.start();
        self.alarm.set(alarm);
        self.alarms_fired.set(self.alarms_fired.get() + 1);
        let world = self.clone();
        let life = self.life.get();
        self.event("alarm", move |object| async move {
            let guard = AlarmThrew { world: world.clone(), life, armed: Cell::new(true) };
            object.alarm().await;
            guard.armed.set(false);
            let mut alarm = world.alarm.get();
            alarm.returned();
            world.alarm.set(alarm);
        });
    }

    fn after_poll(&self, owner: Owner, polled: Polled) {
        if self.vitality.get() == Vitality::Dying {
            let keep = self.faults.borrow().fired.last().is_some_and(|(_, fault)| *fault == Fault::CrashKept);
            return self.crash(keep);
        }
        self.database.close_stretch(true);
        let outbound = std::mem::take(&mut *self.outbound.borrow_mut());
        outbound.into_iter().for_each(|action| action());
        if owner != Owner::Client {
            (self.watch.get())(self);
        }
        if let Polled::Panicked(payload) = polled {
            if payload.is::<Injected>() {
                return;
            }
            let text = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without text".into());
            self.fail(match owner {
                Owner::Client => text,
                Owner::Process { .. } => format!("the engine panicked: {text}"),
            });
        }
    }

    /// Lets everything run until nothing is left to do within `within_us`. False when the world did not come to
    /// rest: a client still waits, something is due later, or it never stops.
    pub fn rest(self: &Rc<Self>, within_us: i64) -> bool {
        let until = self.now_us() + within_us;
        let polls = self.executor.polls() + POLLS;
        while self.turn(until) {
            if self.executor.polls() > polls {
                self.fail("it does not come to rest");
                return false;
            }
        }
        let violations = std::mem::take(&mut *self.database.violations.borrow_mut());
        violations.into_iter().for_each(|violation| self.fail(violation));
        self.executor.next_timer_us().is_none()
            && self.alarm.get().next_us().is_none()
            && self.executor.waiting(true).is_empty()
            && self.executor.waiting(false).is_empty()
    }

    /// Lets everything run until `done` holds; false when it never did.
    pub fn run_until(self: &Rc<Self>, within_us: i64, done: impl Fn() -> bool) -> bool {
        let until = self.now_us() + within_us;
        let polls = self.executor.polls() + POLLS;
        while !done() {
            if !self.turn(until) || self.executor.polls() > polls {
                return done();
            }
        }
        true
    }

    /// Runs a client to its end and gives its value; the rest of the world runs along.
    pub fn drive<T: 'static>(self: &Rc<Self>, client: impl Future<Output = T> + 'static) -> T {
        let slot: Rc<RefCell<Option<T>>> = Rc::default();
        let place = slot.clone();
        self.client(async move {
            let value = client.await;
            *place.borrow_mut() = Some(value);
        });
        let done = self.run_until(super::DAY_US, || slot.borrow().is_some());
        if !done {
            panic!("a client never got its answer; failures: {:?}", self.failures.borrow());
        }
        let value = slot.borrow_mut().take();
        value.unwrap()
    }
}

/// An alarm handler that ends without having returned threw: the platform tries it again.
struct AlarmThrew {
    world: Rc<World>,
    life: u64,
    armed: Cell<bool>,
}

impl Drop for AlarmThrew {
    fn drop(&mut self) {
        let crashed = self.world.life.get() != self.life || self.world.vitality.get() == Vitality::Dying;
        if self.armed.get() && !crashed {
            let mut alarm = self.world.alarm.get();
            alarm.threw(self.world.now_us());
            self.world.alarm.set(alarm);
        }
    }
}

struct Slot<T> {
    value: RefCell<Option<Result<T, Lost>>>,
    waker: RefCell<Option<std::task::Waker>>,
    done: Cell<bool>,
}

impl<T> Slot<T> {
    fn settle(&self, value: Result<T, Lost>) {
        if !self.done.replace(true) {
            *self.value.borrow_mut() = Some(value);
            let waker = self.waker.borrow_mut().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

struct LostUnlessAnswered<T>(Rc<Slot<T>>);

impl<T> Drop for LostUnlessAnswered<T> {
    fn drop(&mut self) {
        self.0.settle(Err(Lost));
    }
}

/// The answer to a request, when it comes.
pub struct Answered<T>(Rc<Slot<T>>);

impl<T> Future for Answered<T> {
    type Output = Result<T, Lost>;

    fn poll(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        match self.0.value.borrow_mut().take() {
            Some(value) => std::task::Poll::Ready(value),
            None => {
                *self.0.waker.borrow_mut() = Some(context.waker().clone());
                std::task::Poll::Pending
            }
        }
    }
}
