//! The points at which a process may fail, and the plan that says where it does.

use std::fmt;

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
    /// The process dies; everything since the last await is gone.
    CrashLost,
    /// The process dies; writes outside an unfinished transaction were already on disk.
    CrashKept,
    /// A panic is raised there; the process lives on.
    Panic,
}

impl Fault {
    /// Every way to fail.
    pub const ALL: [Fault; 3] = [Fault::CrashLost, Fault::CrashKept, Fault::Panic];

    /// The name by which a failure is replayed.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::CrashLost => "crash-lost",
            Fault::CrashKept => "crash-kept",
            Fault::Panic => "panic",
        }
    }

    /// The fault of that name.
    pub fn parse(name: &str) -> Option<Fault> {
        Fault::ALL.into_iter().find(|fault| fault.name() == name)
    }
}

/// A point that was reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its number, from 0, over all lives of the object.
    pub index: u64,
    /// What was about to happen.
    pub at: At,
    /// To what: the statement, the URL, the tool.
    pub what: String,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "point {} ({:?} {})", self.index, self.at, self.what.replace('\n', " "))
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
    /// What happened.
    pub fired: Vec<(Point, Fault)>,
    plan: Plan,
}

impl Faults {
    /// No failure until a plan is set.
    pub fn none() -> Faults {
        Faults { count: 0, trace: None, fired: Vec::new(), plan: Box::new(|_| None) }
    }

    /// Replaces the plan.
    pub fn plan(&mut self, plan: Plan) {
        self.plan = plan;
    }

    /// The next point. Text is only made when somebody wants it.
    pub fn reach(&mut self, at: At, what: &str) -> Option<Fault> {
        let point = Point { index: self.count, at, what: what.chars().take(90).collect() };
        self.count += 1;
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
