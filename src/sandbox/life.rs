//! The life of an execution, and who owns what of it.
//!
//! Ownership is a tree. Whoever holds the handle, or a function of the result, owns the run; the run owns the calls of the
//! host that it has under way, and the caller's functions that it was given, which may hold the handles of further runs. Nothing that a
//! run owns holds the run, or one around it: a function of such a run is there without its life. So a run ends by
//! itself when nobody needs it, in this order: its calls, its functions, its sandbox.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use futures::channel::oneshot;
use futures::future::{FutureExt, LocalBoxFuture};

use crate::limits;
use crate::sandbox::backlog::Backlog;
use crate::sandbox::calls::Calls;
use crate::sandbox::options::Reports;
use crate::sandbox::value::{Function, Value};

/// What both sides of an execution know of it. It is only memory: what keeps the run alive is its [`Keep`].
pub(crate) struct Life {
    /// Ids of the runs around it, outermost first, and its own at the end.
    pub(crate) runs: Vec<String>,
    running: Cell<bool>,
    /// What the sandbox may call, by id.
    functions: RefCell<Vec<Function>>,
    report: RefCell<Reports>,
    reports: RefCell<Vec<Value>>,
    /// Bytes that more reports may have.
    room: Cell<usize>,
    /// What the sandbox has asked and not been answered.
    pub(crate) calls: Calls,
    /// Answers that the sandbox has not taken yet.
    pub(crate) backlog: Rc<Backlog>,
    /// Why it has ended; inside, nothing: nobody needs it.
    ended: RefCell<Option<Option<String>>>,
    told: RefCell<Vec<oneshot::Sender<Option<String>>>>,
    keep: RefCell<Weak<Keep>>,
}

/// Keeps a run and its sandbox. Its owners have it: the handle, the functions of the result, and until there is a result
/// whatever drives it.
pub(crate) struct Keep(pub(crate) Rc<Life>);

impl Drop for Keep {
    fn drop(&mut self) {
        self.0.running.set(false);
        self.0.close(None);
    }
}

impl Life {
    /// One that begins.
    pub(crate) fn begin(runs: Vec<String>, report: Reports) -> Rc<Keep> {
        let life = Rc::new(Life {
            runs,
            running: Cell::new(true),
            functions: RefCell::default(),
            report: RefCell::new(report),
            reports: RefCell::default(),
            room: Cell::new(limits::CODE_VALUE_BYTES),
            calls: Calls::default(),
            backlog: Rc::default(),
            ended: RefCell::default(),
            told: RefCell::default(),
            keep: RefCell::default(),
        });
        let keep = Rc::new(Keep(life.clone()));
        *life.keep.borrow_mut() = Rc::downgrade(&keep);
        keep
    }

    pub(crate) fn running(&self) -> bool {
        self.running.get()
    }

    /// What keeps it, while something does.
    pub(crate) fn keep(&self) -> Option<Rc<Keep>> {
        self.keep.borrow().upgrade()
    }

    /// The end that somebody wants; a second one, or one after the result, changes nothing.
    pub(crate) fn end(&self, reason: &str) {
        if self.running.get() {
            self.close(Some(reason.to_owned()));
        }
    }

    /// There is a result. Of a sandbox that did not succeed nothing is left that could be used.
    pub(crate) fn settled(&self, succeeded: bool) -> Vec<Value> {
        self.running.set(false);
        if !succeeded {
            self.close(None);
        }
        self.reports.take()
    }

    /// Ends all that it owns, the innermost first; once.
    fn close(&self, reason: Option<String>) {
        if self.ended.borrow().is_some() {
            return;
        }
        *self.ended.borrow_mut() = Some(reason.clone());
        self.calls.close();
        // What they hold may end further runs, which look at their own lives alone; the latest first, as with calls.
        let mut functions = self.functions.take();
        while let Some(function) = functions.pop() {
            drop(function);
        }
        drop(self.report.take());
        for told in self.told.take() {
            // Whoever asked may be gone.
            let _gone = told.send(reason.clone());
        }
    }

    fn closed(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Resolves when the run is to end, with the reason, or when nobody needs it.
    pub(crate) fn ended(&self) -> LocalBoxFuture<'static, Option<String>> {
        if let Some(reason) = self.ended.borrow().clone() {
            return async move { reason }.boxed_local();
        }
        let (tell, told) = oneshot::channel();
        let mut waiting = self.told.borrow_mut();
        waiting.retain(|one| !one.is_canceled());
        waiting.push(tell);
        async move { told.await.unwrap_or_default() }.boxed_local()
    }

    /// A function of the caller's that the sandbox may call.
    pub(crate) fn function(&self, id: u64) -> Option<Function> {
        usize::try_from(id).ok().and_then(|at| self.functions.borrow().get(at).cloned())
    }

    /// Gives the sandbox a function; its id.
    pub(crate) fn give(&self, function: &Function) -> usize {
        let mut functions = self.functions.borrow_mut();
        let given = match function.home() {
            // The tree: what is inside is held, and nothing else.
            Some(home) if !self.surrounds(&home) => function.unheld(),
            _ => function.clone(),
        };
        if !self.closed() {
            functions.push(given);
        }
        functions.len().saturating_sub(1)
    }

    /// Whether the other one was started from inside of this one.
    fn surrounds(&self, other: &Life) -> bool {
        let around = other.runs.split_last().map(|(_, around)| around).unwrap_or_default();
        self.runs.last().is_some_and(|own| around.contains(own))
    }

    /// Whether this is the other one, or was started from inside of it.
    pub(crate) fn is_within(&self, other: &Life) -> bool {
        other.runs.last().is_some_and(|own| self.runs.contains(own))
    }

    /// A value was reported. Keeps it, and gives the function that is to be told; the end of the run where the
    /// reports are too many to keep.
    pub(crate) fn reported(&self, value: &Value, bytes: usize) -> Option<Function> {
        if !self.running.get() || self.closed() {
            return None;
        }
        let Some(room) = self.room.get().checked_sub(bytes) else {
            let limit = limits::CODE_VALUE_BYTES;
            self.end(&format!("The code has reported more than {limit} bytes, the limit of what is kept."));
            return None;
        };
        self.room.set(room);
        self.reports.borrow_mut().push(value.clone());
        match &*self.report.borrow() {
            Reports::Told(told) => Some(told.clone()),
            _ => None,
        }
    }

    /// What was reported so far.
    pub(crate) fn reports(&self) -> Vec<Value> {
        self.reports.borrow().clone()
    }

    /// How much of it is left: calls under way, and functions of the caller's.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.calls.count(), self.functions.borrow().len())
    }
}
