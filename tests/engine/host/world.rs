//! The world of one simulation: the objects and their one process, the clock, the outside, and the failures that are
//! planned for it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::rc::Rc;

use bobbin::host::{Frame, Process};

use super::bucket::Bucket;
use super::executor::{Executor, Owner, Polled, Timer};
use super::fault::{At, Crash, Fault, Faults, Injected};
use super::member::{Member, Object};
use super::outside::Outside;
use super::rng::Rng;
use super::sim_host::SimHost;

/// The name of the object that every world has from the start.
pub const ROOT: &str = "6f0c0000-0000-4000-8000-000000000001";
/// 2026-11-21, microseconds.
pub const START_US: i64 = 1_795_300_000_000_000;
/// Polls after which a simulation that does not come to rest is given up.
const POLLS: u64 = 600_000;
/// Outgoing requests that one event may make on the platform's free plan.
const REQUESTS_PER_EVENT: u32 = 50;

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

/// Which calls do not come through: by whom, to whom.
type Cuts = Box<dyn Fn(&str, &str) -> bool>;

/// See the module. It stands for its first object wherever one is meant: most simulations have no other.
pub struct World {
    /// Tasks and time.
    pub executor: Rc<Executor>,
    /// Planned failures.
    pub faults: RefCell<Faults>,
    /// What is beyond the process.
    pub outside: Outside,
    /// Objects beside the databases.
    pub bucket: Bucket,
    /// What a test must know about: refused requests, panics of the engine, broken limits.
    pub failures: RefCell<Vec<String>>,
    /// The operator's log.
    pub log: RefCell<Vec<String>>,
    /// Variables of the deployment.
    pub vars: RefCell<BTreeMap<String, String>>,
    /// What the objects of the process share.
    pub process: RefCell<Rc<Process>>,
    /// Calls between objects that are under way.
    pub open_calls: Cell<u32>,
    cuts: RefCell<Cuts>,
    /// How long the next call takes to arrive, microseconds.
    late_us: Cell<i64>,
    random: RefCell<Rng>,
    vitality: Cell<Vitality>,
    event: Cell<u64>,
    requests_of_event: RefCell<BTreeMap<u64, u32>>,
    open: Box<dyn Fn(SimHost) -> Rc<dyn Object>>,
    root: Rc<Member>,
    members: RefCell<Vec<Rc<Member>>>,
    numbers_as_floats: bool,
    watch: Cell<fn(&World, &Member)>,
}

impl Deref for World {
    type Target = Member;

    fn deref(&self) -> &Member {
        &self.root
    }
}

impl World {
    /// A world whose objects are opened by `open` whenever one is needed and not there.
    pub fn new(seed: u64, open: impl Fn(SimHost) -> Rc<dyn Object> + 'static) -> Rc<World> {
        let numbers_as_floats = seed % 2 == 1;
        let root = Member::new(0, ROOT, numbers_as_floats);
        Rc::new(World {
            executor: Rc::new(Executor::new(seed, START_US)),
            faults: RefCell::new(Faults::none()),
            outside: Outside::default(),
            bucket: Bucket::default(),
            failures: RefCell::default(),
            log: RefCell::default(),
            vars: RefCell::default(),
            process: RefCell::default(),
            open_calls: Cell::default(),
            cuts: RefCell::new(Box::new(|_, _| false)),
            late_us: Cell::default(),
            random: RefCell::new(Rng::new(seed ^ 0xabcd)),
            vitality: Cell::new(Vitality::Alive),
            event: Cell::new(0),
            requests_of_event: RefCell::default(),
            open: Box::new(open),
            members: RefCell::new(vec![root.clone()]),
            root,
            numbers_as_floats,
            watch: Cell::new(|_, _| {}),
        })
    }

    // ---- the objects ----------------------------------------------------------------------------------------

    /// The first object.
    pub fn root(&self) -> Rc<Member> {
        self.root.clone()
    }

    /// Every object that was ever addressed, in the order of that.
    pub fn members(&self) -> Vec<Rc<Member>> {
        self.members.borrow().clone()
    }

    /// The object of this name, which is there as soon as it is addressed.
    pub fn member(&self, id: &str) -> Rc<Member> {
        let mut members = self.members.borrow_mut();
        if let Some(member) = members.iter().find(|member| member.id == id) {
            return member.clone();
        }
        let member = Member::new(members.len(), id, self.numbers_as_floats);
        // What a family spends is counted from the birth of its children on.
        if self.root.database.log.borrow().is_some() {
            *member.database.log.borrow_mut() = Some(Vec::new());
        }
        members.push(member.clone());
        member
    }

    /// The object whose code runs; a client's is the first one's.
    fn current(&self) -> Rc<Member> {
        match self.executor.current() {
            Some(Owner::Process { object, .. }) => self.members.borrow()[object].clone(),
            _ => self.root.clone(),
        }
    }

    /// What must hold after every poll of the process. It is looked at once for what is stored and the alarm, so it must
    /// be nothing that breaks by time alone.
    pub fn watch(&self, watch: fn(&World, &Member)) {
        self.watch.set(watch);
    }

    /// From now on these calls do not come through: by whom and to whom, the names of two objects.
    pub fn cut(&self, cuts: impl Fn(&str, &str) -> bool + 'static) {
        *self.cuts.borrow_mut() = Box::new(cuts);
    }

    /// The next call is under way for so long before it arrives. It arrives also when its caller does not wait any more.
    pub fn delay_next_call(&self, us: i64) {
        self.late_us.set(us);
    }

    /// How long the call takes that is made now.
    pub(super) fn lateness_us(&self) -> i64 {
        self.late_us.take()
    }

    /// Whether a call comes through.
    pub(super) fn reaches(&self, from: &Member, to: &str) -> bool {
        !(self.cuts.borrow())(&from.id, to)
    }

    /// Drops everything, so that the cycles of a finished simulation do not stay in memory.
    pub fn dispose(&self) {
        self.evict();
        self.executor.clear();
        self.outside.clear();
        for member in self.members() {
            member.outbound.borrow_mut().clear();
            member.listeners.borrow_mut().clear();
        }
    }

    /// Microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.executor.now_us()
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
    pub(super) fn alive(&self, member: &Member, life: u64) -> bool {
        if life != member.life.get() {
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
        let member = self.current();
        let alone = self.members.borrow().len() == 1;
        let fault = self.faults.borrow_mut().reach(at, what, &member, alone);
        match fault {
            None => {}
            Some(Fault::Panic) => resume_unwind(Box::new(Injected)),
            Some(_) => {
                self.vitality.set(Vitality::Dying);
                resume_unwind(Box::new(Crash))
            }
        }
    }

    /// What happens once earlier writes are durable; never, if the process dies before.
    pub fn when_durable(&self, action: impl FnOnce() + 'static) {
        self.current().outbound.borrow_mut().push(Box::new(action));
    }

    pub(super) fn send(self: &Rc<Self>, frame: Frame) {
        let (world, member) = (self.clone(), self.current());
        self.when_durable(move || member.tell(world.now_us(), &frame));
    }

    pub(super) fn spawn(&self, member: &Member, future: impl Future<Output = ()> + 'static) {
        let owner = self.executor.current().filter(|owner| *owner != Owner::Client);
        let owner = owner.unwrap_or(Owner::Process {
            object: member.place,
            life: member.life.get(),
            event: self.event.get(),
        });
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

    fn object(self: &Rc<Self>, member: &Rc<Member>) -> Rc<dyn Object> {
        if let Some(object) = member.object.borrow().as_ref() {
            return object.clone();
        }
        let object = (self.open)(SimHost::new(self.clone(), member.clone()));
        *member.object.borrow_mut() = Some(object.clone());
        object
    }

    /// Starts an event in an object.
    fn event<F: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        member: &Rc<Member>,
        name: &'static str,
        start: impl FnOnce(Rc<dyn Object>) -> F + 'static,
    ) {
        self.event.set(self.event.get() + 1);
        let owner = Owner::Process { object: member.place, life: member.life.get(), event: self.event.get() };
        let (world, member) = (self.clone(), member.clone());
        let run = async move { start(world.object(&member)).await };
        self.executor.spawn(owner, name, Box::pin(run));
    }

    /// A request from outside to the first object.
    pub fn enter<T, F>(self: &Rc<Self>, call: impl FnOnce(Rc<dyn Object>) -> F + 'static) -> Answered<T>
    where
        T: 'static,
        F: Future<Output = T> + 'static,
    {
        self.enter_at(&self.root, "request", call)
    }

    /// A request to an object, from outside or from another one. Its answer leaves the process when it is durable; if
    /// the process dies or panics before, the caller learns that it is lost.
    pub fn enter_at<T, F>(
        self: &Rc<Self>,
        member: &Rc<Member>,
        name: &'static str,
        call: impl FnOnce(Rc<dyn Object>) -> F + 'static,
    ) -> Answered<T>
    where
        T: 'static,
        F: Future<Output = T> + 'static,
    {
        let slot =
            Rc::new(Slot { value: RefCell::new(None), waker: RefCell::new(None), done: Cell::new(false) });
        let guard = LostUnlessAnswered(slot.clone());
        let world = self.clone();
        self.event(member, name, move |object| async move {
            let value = call(object).await;
            world.when_durable(move || guard.0.settle(Ok(value)));
        });
        Answered(slot)
    }

    /// Drops every object from memory, as the platform does with idle ones.
    pub fn evict(&self) {
        for member in self.members() {
            let object = member.object.borrow_mut().take();
            drop(object);
            member.life.set(member.life.get() + 1);
        }
        self.process.take();
    }

    fn crash(&self, keep: bool, dying: &[Rc<Member>]) {
        dying.iter().for_each(|member| member.dies(keep));
        self.vitality.set(Vitality::Alive);
        self.executor.drop_process(|object| dying.iter().any(|member| member.place == object));
        dying.iter().for_each(|member| member.died(self.now_us()));
        if dying.len() == self.members().len() {
            self.process.take();
        }
    }

    /// Kills the process now, between two polls: every object.
    pub fn kill(&self) {
        self.crash(true, &self.members());
    }

    /// Kills one object now, between two polls.
    pub fn kill_alone(&self, member: &Rc<Member>) {
        self.crash(true, std::slice::from_ref(member));
    }

    // ---- time -----------------------------------------------------------------------------------------------

    /// One poll or one leap of time. False when nothing is left to do before `until_us`.
    fn turn(self: &Rc<Self>, until_us: i64) -> bool {
        for member in self.members() {
            if member.alarm.get().next_us().is_some_and(|due| due <= self.now_us()) {
                self.fire_alarm(&member);
            }
        }
        if let Some((owner, polled)) = self.executor.poll_one() {
            self.after_poll(owner, polled);
            return true;
        }
        let next = self.executor.next_timer_us().into_iter().chain(self.next_alarm_us()).min();
        match next {
            Some(next) if next <= until_us => {
                self.executor.advance_to(next);
                true
            }
            _ => false,
        }
    }

    /// When the next alarm of any object is due.
    pub fn next_alarm_us(&self) -> Option<i64> {
        self.members.borrow().iter().filter_map(|member| member.alarm.get().next_us()).min()
    }

    fn fire_alarm(self: &Rc<Self>, member: &Rc<Member>) {
        let mut alarm = member.alarm.get();
        alarm.start();
        member.alarm.set(alarm);
        member.alarms_fired.set(member.alarms_fired.get() + 1);
        let guard = (self.clone(), member.clone(), member.life.get());
        self.event(member, "alarm", move |object| async move {
            let (world, member, life) = guard;
            let guard = AlarmThrew { world, member: member.clone(), life, armed: Cell::new(true) };
            object.alarm().await;
            guard.armed.set(false);
            let mut alarm = member.alarm.get();
            alarm.returned();
            member.alarm.set(alarm);
        });
    }

    fn after_poll(&self, owner: Owner, polled: Polled) {
        let polled_in = match owner {
            Owner::Process { object, .. } => self.members.borrow()[object].clone(),
            Owner::Client => self.root.clone(),
        };
        if self.vitality.get() == Vitality::Dying {
            let fault = self.faults.borrow().fired.last().map(|(_, fault)| *fault);
            let keep = matches!(fault, Some(Fault::CrashKept | Fault::AllKept));
            let dying = if fault.is_some_and(Fault::is_of_all) { self.members() } else { vec![polled_in] };
            return self.crash(keep, &dying);
        }
        polled_in.database.close_stretch(true);
        let outbound = std::mem::take(&mut *polled_in.outbound.borrow_mut());
        outbound.into_iter().for_each(|action| action());
        if owner != Owner::Client && polled_in.has_changed() {
            (self.watch.get())(self, &polled_in);
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
        for member in self.members() {
            let violations = std::mem::take(&mut *member.database.violations.borrow_mut());
            violations.into_iter().for_each(|violation| self.fail(violation));
        }
        self.executor.next_timer_us().is_none()
            && self.next_alarm_us().is_none()
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
    member: Rc<Member>,
    life: u64,
    armed: Cell<bool>,
}

impl Drop for AlarmThrew {
    fn drop(&mut self) {
        let crashed = self.member.life.get() != self.life || self.world.vitality.get() == Vitality::Dying;
        if self.armed.get() && !crashed {
            let mut alarm = self.member.alarm.get();
            alarm.threw(self.world.now_us());
            self.member.alarm.set(alarm);
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
