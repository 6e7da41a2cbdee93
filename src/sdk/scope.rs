//! The scope of calls: in a step of the run, within another call, or in detached work. Nested calls form a
//! tree of derived keys (docs/durability.md), so that a call has the same key when its scope is entered
//! again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::Value;

use crate::error::{Code, Error, Result};
use crate::store::runs::Parking;
use crate::trace::Trace;

/// A scope in which calls are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Key of the enclosing call: `r12.0`, `r12.0.1`; `e…` in an effect or an endpoint.
    pub(crate) key: String,
    /// Id of that call's receipt, if there is one.
    pub(crate) receipt: Option<i64>,
    /// Nesting depth of calls; also the depth of messages that are stored here (spec §23).
    pub(crate) depth: u32,
    /// The prompts that led here, the active side's first (spec §13).
    pub(crate) path: Vec<String>,
    /// The kind of work.
    pub(crate) origin: Origin,
    /// Whether calls may have been made here before a crash.
    pub(crate) entered: EntryMode,
    /// The id of the detached work; empty in a step.
    pub(crate) work: Rc<str>,
    /// The trace of the detached work, in its span. A call of a step uses its run's trace.
    pub(crate) trace: Option<Rc<Trace>>,
    /// Runs that the work here has started or joined.
    pub(crate) runs: Rc<RefCell<Vec<i64>>>,
    /// The package of the definition that works here. Its names are looked up there first.
    pub(crate) package: Option<Rc<str>>,
    /// Whether the run may be parked for a call here.
    pub(crate) parking: Parking,
    /// Number of calls that code has made here.
    pub(crate) invoked: Rc<Cell<u32>>,
    /// Permissions of the code on its thread.
    pub(crate) access: Access,
}

/// Permissions of code on the thread in which it works.
#[derive(Clone, Debug, Default)]
pub(crate) enum Access {
    /// Reads and writes.
    #[default]
    Writes,
    /// Reads only: a tool of the tier `read_only`. Records the first change that it tried.
    Reads(Rc<Cell<Option<&'static str>>>),
}

/// The error for a change by read-only code. `what`: a phrase such as `set a value`.
pub(crate) fn read_only(what: &str) -> Error {
    Error::new(Code::ReadOnly, format!("A `read_only` tool cannot {what}."))
        .hint("Give the tool the tier `side_effecting`.")
}

impl Scope {
    /// The scope of detached work, by its id: an effect, an endpoint, a hook.
    pub(crate) fn beside(origin: Origin, id: &str, entered: EntryMode) -> Scope {
        Scope { key: id.to_owned(), origin, entered, work: id.into(), ..Scope::default() }
    }

    /// The scope inside a call that is made here.
    pub(crate) fn within(&self, key: String, receipt: i64, entered: EntryMode) -> Scope {
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

    /// This scope in a trace.
    #[must_use]
    pub(crate) fn in_trace(self, trace: Trace) -> Scope {
        Scope { trace: Some(Rc::new(trace)), ..self }
    }

    /// This scope for read-only code.
    #[must_use]
    pub(crate) fn reading(self) -> Scope {
        Scope { access: Access::Reads(Rc::default()), ..self }
    }

    /// Whether the code here is read-only.
    pub(super) fn only_reads(&self) -> bool {
        matches!(self.access, Access::Reads(_))
    }

    /// Permits a change, or refuses and records it. `what`: as in [`read_only`].
    pub(crate) fn writes(&self, what: &'static str) -> Result<()> {
        let Access::Reads(tried) = &self.access else { return Ok(()) };
        tried.set(tried.get().or(Some(what)));
        Err(read_only(what))
    }

    /// The first change that was refused here, if any.
    pub(crate) fn refused(&self) -> Option<&'static str> {
        match &self.access {
            Access::Writes => None,
            Access::Reads(tried) => tried.get(),
        }
    }

    /// This scope for code: it waits for its calls, and would be lost if the run were parked.
    #[must_use]
    pub(crate) fn held_by_code(self) -> Scope {
        Scope { parking: Parking::Impossible, ..self }
    }

    /// This scope for a definition of a package, or of none.
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

    /// Whether code has made calls here, or may have before a crash.
    pub(crate) fn may_have_invoked(&self) -> bool {
        self.invoked.get() > 0 || self.entered == EntryMode::Again
    }

    /// Whether calls here do not belong to the run. A stop of the run leaves them alone; the work that made
    /// them ends them.
    pub(crate) fn is_detached(&self) -> bool {
        self.origin != Origin::Step
    }

    /// The work to record in a call's receipt; `None` for the run's.
    pub(crate) fn detached_work(&self) -> Option<String> {
        self.is_detached().then(|| self.work.to_string())
    }
}

/// Whether a scope is entered for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EntryMode {
    /// The first time.
    #[default]
    First,
    /// Again. Its receipts show what was done before.
    Again,
}

/// Whether hooks run for a change to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookMode {
    /// As detached work.
    Yes,
    /// As hooks of the current step.
    InStep,
    /// Not at all: a hook makes the change, and hooks that trigger themselves would never end.
    ByHook,
}

/// The kind of work in a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Origin {
    /// A step of the active run, or a call within it.
    Step,
    /// A hook of a step.
    Hook,
    /// A detached hook.
    DetachedHook,
    /// This effect, `{id, name}`; its messages refer to it (spec §10.4).
    Effect(Value),
    /// An endpoint, or a call outside a step.
    #[default]
    Detached,
}

impl Origin {
    /// Whether it is part of the run's step.
    pub(crate) fn in_step(&self) -> bool {
        matches!(self, Origin::Step | Origin::Hook)
    }

    /// Whether changes to messages here run hooks.
    pub(crate) fn hooked(&self) -> HookMode {
        match self {
            Origin::Hook | Origin::DetachedHook => HookMode::ByHook,
            Origin::Step => HookMode::InStep,
            Origin::Effect(_) | Origin::Detached => HookMode::Yes,
        }
    }
}
