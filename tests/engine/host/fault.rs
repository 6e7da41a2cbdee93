//! The points at which a process may fail, and the plan that says where it does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::member::Member;

/// What the process is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum At {
    /// A statement that writes.
    Write,
    /// Opening a transaction.
    Begin,
    /// Everything in the transaction is done.
    BeforeCommit,
    /// The transaction has returned; on the platform it is durable only after the next await.
    AfterCommit,
    /// A request is about to be sent.
    Fetch,
    /// It was sent.
    Sent,
    /// Its headers are here.
    Headers,
    /// The next chunk of a body, or its end, is here.
    Chunk,
    /// A native tool is about to start.
    Native,
    /// It has done its work; the result is not handed over yet.
    NativeDone,
    /// The bucket is about to be asked.
    Object,
    /// It has done what it was asked; that is not known here yet.
    ObjectDone,
    /// Code is about to be handed to the sandbox.
    Sandbox,
    /// It has ended; that is not known here yet.
    SandboxDone,
    /// A timer has fired.
    Sleep,
    /// Another object is about to be called.
    Sibling,
    /// It has answered.
    SiblingDone,
    /// The alarm is about to be set.
    SetAlarm,
    /// A frame is about to be sent.
    Broadcast,
    /// A future is about to be started beside the caller.
    Spawn,
}

/// How it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The object dies, alone; everything since the last await is gone.
    CrashLost,
    /// The object dies, alone; writes outside an unfinished transaction were already on disk.
    CrashKept,
    /// As [`Fault::CrashLost`], and every other object dies with it.
    AllLost,
    /// As [`Fault::CrashKept`], and every other object dies with it.
    AllKept,
    /// A panic is raised there; the process lives on.
    Panic,
}

impl Fault {
    /// Every way to fail while there is one object.
    pub const ALL: [Fault; 3] = [Fault::CrashLost, Fault::CrashKept, Fault::Panic];

    /// Every way to fail while there are several.
    pub const OF_FAMILY: [Fault; 5] =
        [Fault::CrashLost, Fault::CrashKept, Fault::AllLost, Fault::AllKept, Fault::Panic];

    /// The name by which a failure is replayed.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::CrashLost => "crash-lost",
            Fault::CrashKept => "crash-kept",
            Fault::AllLost => "all-lost",
            Fault::AllKept => "all-kept",
            Fault::Panic => "panic",
        }
    }

    /// Whether every object dies.
    pub const fn is_of_all(self) -> bool {
        matches!(self, Fault::AllLost | Fault::AllKept)
    }

    /// The fault of that name.
    pub fn parse(name: &str) -> Option<Fault> {
        Fault::OF_FAMILY.into_iter().find(|fault| fault.name() == name)
    }
}

/// A point that was reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its number, from 0, over all objects and their lives.
    pub index: u64,
    /// The place of the object in which it is.
    pub object: usize,
    /// What was about to happen.
    pub at: At,
    /// To what: the statement, the URL, the tool.
    pub what: String,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.what.replace('\n', " ");
        write!(f, "point {} (object {}, {:?} {what})", self.index, self.object, self.at)
    }
}

/// Decides at each point.
pub type Plan = Box<dyn FnMut(&Point) -> Option<Fault>>;

/// The payload of a simulated crash; nothing may catch it for good.
pub struct Crash;

/// The payload of a simulated panic.
pub struct Injected;

/// The points of a simulation and what befell it at them.
pub struct Faults {
    /// How many points were reached.
    pub count: u64,
    /// Every point, when the trace is wanted.
    pub trace: Option<Vec<Point>>,
    /// The ways to fail at each point that differ from each other there.
    pub ways: Vec<&'static [Fault]>,
    /// The kind of each point: the same for the same thing about to happen to the same. What a transaction writes is the
    /// kind of its end, and of what comes after it and has no text of its own.
    pub kinds: Vec<u64>,
    /// What was about to happen at each point.
    pub ats: Vec<At>,
    /// What each object has written since its last transaction began.
    written: BTreeMap<usize, BTreeSet<u64>>,
    /// What happened.
    pub fired: Vec<(Point, Fault)>,
    plan: Plan,
}

impl Faults {
    /// No failure until a plan is set.
    pub fn none() -> Faults {
        Faults {
            count: 0,
            trace: None,
            ways: Vec::new(),
            kinds: Vec::new(),
            ats: Vec::new(),
            written: BTreeMap::new(),
            fired: Vec::new(),
            plan: Box::new(|_| None),
        }
    }

    /// Replaces the plan.
    pub fn plan(&mut self, plan: Plan) {
        self.plan = plan;
    }

    fn kind(&mut self, at: At, what: &str, object: usize) -> u64 {
        let hash = |what: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            what(&mut hasher);
            hasher.finish()
        };
        let written = self.written.entry(object).or_default();
        match at {
            At::Begin => written.clear(),
            At::Write => {
                written.insert(hash(&|hasher| what.hash(hasher)));
            }
            _ => {}
        }
        // A time, and the numbers in an address or a call, make no other kind.
        let text: String = match at {
            At::SetAlarm => String::new(),
            At::Write => what.to_owned(),
            _ => what.chars().filter(|c| !c.is_ascii_digit()).collect(),
        };
        match text.as_str() {
            "" => hash(&|hasher| (at, &*written).hash(hasher)),
            text => hash(&|hasher| (at, text).hash(hasher)),
        }
    }

    /// The next point, in this object, which may be alone in its world.
    pub(super) fn reach(&mut self, at: At, what: &str, member: &Member, alone: bool) -> Option<Fault> {
        let what: String = what.chars().take(90).collect();
        let kind = self.kind(at, &what, member.place);
        self.kinds.push(kind);
        self.ats.push(at);
        let point = Point { index: self.count, object: member.place, at, what };
        self.count += 1;
        // While nothing waits for the next await, there is nothing that a crash could lose or keep.
        self.ways.push(match (member.database.in_stretch(), alone) {
            (true, true) => &Fault::ALL,
            (false, true) => &[Fault::CrashKept, Fault::Panic],
            (true, false) => &Fault::OF_FAMILY,
            (false, false) => &[Fault::CrashKept, Fault::AllKept, Fault::Panic],
        });
        if let Some(trace) = &mut self.trace {
            trace.push(point.clone());
        }
        let fault = (self.plan)(&point);
        if let Some(fault) = fault {
            self.fired.push((point, fault));
        }
        fault
    }
}

/// Fails once, at that point.
pub fn once(index: u64, fault: Fault) -> Plan {
    Box::new(move |point| (point.index == index).then_some(fault))
}

/// Fails the first `times` times that `matches` holds.
pub fn whenever(times: usize, fault: Fault, matches: impl Fn(&Point) -> bool + 'static) -> Plan {
    let mut left = times;
    Box::new(move |point| {
        let hit = left > 0 && matches(point);
        left -= usize::from(hit);
        hit.then_some(fault)
    })
}
