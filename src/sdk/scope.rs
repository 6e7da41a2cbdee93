//! Where a call is made: in a step of the run, within another call, or apart from any run. Calls within calls form a
//! tree whose keys are derived from each other (docs/durability.md), so that a call has the same key when what it is made
//! in is entered again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::Value;

use crate::error::{Code, Error, Result};
use crate::store::runs::Parking;
use crate::trace::Trace;

/// A place where calls are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Key of the call that this is the inside of: `r12.0`, `r12.0.1`; `e…` for an effect or an endpoint.
    pub(crate) key: String,
    /// Id of its receipt; none where calls are not made within one.
    pub(crate) receipt: Option<i64>,
    /// Calls around this place; also the depth of messages that are stored in it (spec §23).
    pub(crate) depth: u32,
    /// The prompts that led here, the active side's first (spec §13).
    pub(crate) path: Vec<String>,
    /// What works here.
    pub(crate) origin: Origin,
    /// Whether calls may have been made here before the process was lost.
    pub(crate) entered: Entered,
    /// The work apart from any run that this is in; empty in a step.
    pub(crate) work: Rc<str>,
    /// The trace of that work, in its span; a call of a step has that of its run.
    pub(crate) trace: Option<Rc<Trace>>,
    /// Runs that what works here has begun, or added to.
    pub(crate) runs: Rc<RefCell<Vec<i64>>>,
    /// The package of the definition that works here: names that it gives are looked up there first.
    pub(crate) package: Option<Rc<str>>,
    /// Whether the run may be parked for what is done here.
    pub(crate) parking: Parking,
    /// Calls that code has made here.
    pub(crate) invoked: Rc<Cell<u32>>,
    /// What the code here may do to its thread.
    pub(crate) access: Access,
}

/// What code may do to the thread that it works in.
#[derive(Clone, Debug, Default)]
pub(crate) enum Access {
    /// Whatever there is to do.
    #[default]
    Writes,
    /// Nothing but look: it is a tool of the tier `read_only`. Holds what it tried to do first all the same.
    Reads(Rc<Cell<Option<&'static str>>>),
}

/// What whoever only reads is told of a change. `what`: in words, such as `set a value`.
pub(crate) fn read_only(what: &str) -> Error {
    Error::new(Code::ReadOnly, format!("A `read_only` tool cannot {what}."))
        .hint("Give the tool the tier `side_effecting`.")
}

impl Scope {
    /// The inside of what works beside the steps of a run: an effect, an endpoint, a hook; by its id.
    pub(crate) fn beside(origin: Origin, id: &str, entered: Entered) -> Scope {
        Scope { key: id.to_owned(), origin, entered, work: id.into(), ..Scope::default() }
    }

    /// The inside of a call that is made here.
    pub(crate) fn within(&self, key: String, receipt: i64, entered: Entered) -> Scope {
        Scope {
            key,
            receipt: Some(receipt),
            depth: self.depth + 1,
            path: self.path.clone(),
            origin: if self.origin == Origin::Step { Origin::Step } else { Origin::Detached },
            entered,
            work: self.work.clone(),
            trace: self.trace.clone(),
            runs: self.runs.clone(),
            package: self.package.clone(),
            parking: self.parking,
            invoked: Rc::default(),
            access: self.access.clone(),
        }
    }

    /// The same in this trace.
    #[must_use]
    pub(crate) fn in_trace(self, trace: Trace) -> Scope {
        Scope { trace: Some(Rc::new(trace)), ..self }
    }

    /// The same for code that only reads.
    #[must_use]
    pub(crate) fn reading(self) -> Scope {
        Scope { access: Access::Reads(Rc::default()), ..self }
    }

    /// Whether the code here only reads.
    pub(crate) fn only_reads(&self) -> bool {
        matches!(self.access, Access::Reads(_))
    }

    /// Lets a change pass, or refuses it and keeps in mind that it was tried. `what`: as [`read_only`] has it.
    pub(crate) fn writes(&self, what: &'static str) -> Result<()> {
        let Access::Reads(tried) = &self.access else { return Ok(()) };
        tried.set(tried.get().or(Some(what)));
        Err(read_only(what))
    }

    /// The change that was refused here first, if one was.
    pub(crate) fn refused(&self) -> Option<&'static str> {
        match &self.access {
            Access::Writes => None,
            Access::Reads(tried) => tried.get(),
        }
    }

    /// The same for code that works here: it waits for what it calls, and would be lost if the run were parked.
    #[must_use]
    pub(crate) fn held_by_code(self) -> Scope {
        Scope { parking: Parking::Impossible, ..self }
    }

    /// The same for a definition of a package, or of none.
    #[must_use]
    pub(crate) fn in_package(self, id: Option<&str>) -> Scope {
        Scope { package: id.map(Rc::from), ..self }
    }

    /// The key of the next call that code makes here.
    pub(crate) fn next_key(&self) -> String {
        let n = self.invoked.get();
        self.invoked.set(n + 1);
        format!("{}.{n}", self.key)
    }

    /// Whether code has made calls here, or may have before the process was lost.
    pub(crate) fn may_have_invoked(&self) -> bool {
        self.invoked.get() > 0 || self.entered == Entered::Again
    }

    /// Whether calls that are made here are not the run's: a stop of the run leaves them alone, and whatever made them
    /// ends them.
    pub(crate) fn is_detached(&self) -> bool {
        self.origin != Origin::Step
    }

    /// The work that the receipt of a call keeps which is made here; none where it is the run's.
    pub(crate) fn detached_work(&self) -> Option<String> {
        self.is_detached().then(|| self.work.to_string())
    }
}

/// Whether a place is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Entered {
    /// It is.
    #[default]
    First,
    /// Its receipts say what was done here before.
    Again,
}

/// Whether hooks run for what is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hooked {
    /// They do, beside the run.
    Yes,
    /// They do, as hooks of the step that is under way.
    InStep,
    /// A hook does it itself: hooks that called themselves would never end.
    ByHook,
}

/// What works in a thread's name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Origin {
    /// A step of the active run, or a call within it.
    Step,
    /// A hook of such a step.
    Hook,
    /// A hook beside the run.
    DetachedHook,
    /// This effect, `{id, name}`: its messages name it (spec §10.4).
    Effect(Value),
    /// An endpoint, or a call of anything that is not a step.
    #[default]
    Detached,
}

impl Origin {
    /// Whether the run's step is under way here.
    pub(crate) fn in_step(&self) -> bool {
        matches!(self, Origin::Step | Origin::Hook)
    }

    /// Whether what is done to messages here runs hooks.
    pub(crate) fn hooked(&self) -> Hooked {
        match self {
            Origin::Hook | Origin::DetachedHook => Hooked::ByHook,
            Origin::Step => Hooked::InStep,
            Origin::Effect(_) | Origin::Detached => Hooked::Yes,
        }
    }
}
