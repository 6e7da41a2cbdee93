//! The lifetime of an execution, and the ownership of its parts.
//!
//! Ownership is a tree. A holder of the handle, or of a function of the result, owns the run. The run owns
//! its active calls to the host and the caller's functions, which may hold the handles of further runs.
//! Nothing that a run owns holds that run or an enclosing one: functions of such runs are passed in without
//! their [`RunGuard`]. So an unused run ends by itself, in this order: its calls, its functions, its sandbox.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use futures::channel::oneshot;
use futures::future::{FutureExt, LocalBoxFuture};

use crate::limits;
use crate::sandbox::backlog::Backlog;
use crate::sandbox::calls::CallRegistry;
use crate::sandbox::options::Reports;
use crate::sandbox::value::{Function, Value};

/// State that both sides of an execution share. It is only data; the [`RunGuard`] keeps the run alive.
pub(super) struct RunState {
    /// Ids of the enclosing runs, outermost first, and its own at the end.
    pub(super) runs: Vec<String>,
    running: Cell<bool>,
    /// Functions that the sandbox may call, by id.
    functions: RefCell<Vec<Function>>,
    report: RefCell<Reports>,
    reports: RefCell<Vec<Value>>,
    /// Bytes left for reports.
    room: Cell<usize>,
    /// Active calls of the sandbox.
    pub(super) calls: CallRegistry,
    /// Answers that the sandbox has not taken yet.
    pub(super) backlog: Rc<Backlog>,
    /// Set at the end, with the reason. An inner `None`: nothing needs the run any more, or it has failed.
    ended: RefCell<Option<Option<String>>>,
    told: RefCell<Vec<oneshot::Sender<Option<String>>>>,
    keep: RefCell<Weak<RunGuard>>,
}

/// Keeps a run and its sandbox alive. Its owners hold it: the handle, the functions of the result, and until
/// there is a result, the future that drives the run.
pub(super) struct RunGuard(pub(crate) Rc<RunState>);

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.running.set(false);
        self.0.close(None);
    }
}

impl RunState {
    /// A new execution.
    pub(super) fn begin(runs: Vec<String>, report: Reports) -> Rc<RunGuard> {
        let life = Rc::new(RunState {
            runs,
            running: Cell::new(true),
            functions: RefCell::default(),
            report: RefCell::new(report),
            reports: RefCell::default(),
            room: Cell::new(limits::CODE_VALUE_BYTES),
            calls: CallRegistry::default(),
            backlog: Rc::default(),
            ended: RefCell::default(),
            told: RefCell::default(),
            keep: RefCell::default(),
        });
        let keep = Rc::new(RunGuard(life.clone()));
        *life.keep.borrow_mut() = Rc::downgrade(&keep);
        keep
    }

    pub(super) fn running(&self) -> bool {
        self.running.get()
    }

    /// The run's [`RunGuard`], while it exists.
    pub(super) fn keep(&self) -> Option<Rc<RunGuard>> {
        self.keep.borrow().upgrade()
    }

    /// Ends the run. Does nothing a second time, or after the result.
    pub(super) fn end(&self, reason: &str) {
        if self.running.get() {
            self.close(Some(reason.to_owned()));
        }
    }

    /// Records the result. After a failure nothing in the sandbox is usable, so everything is closed.
    pub(super) fn settled(&self, succeeded: bool) -> Vec<Value> {
        self.running.set(false);
        if !succeeded {
            self.close(None);
        }
        self.reports.take()
    }

    /// Ends everything that the run owns, innermost first. Does nothing a second time.
    fn close(&self, reason: Option<String>) {
        if self.ended.borrow().is_some() {
            return;
        }
        *self.ended.borrow_mut() = Some(reason.clone());
        self.calls.close();
        // Dropping functions may end further runs, which only touch their own state. The latest is first, as
        // for calls.
        let mut functions = self.functions.take();
        while let Some(function) = functions.pop() {
            drop(function);
        }
        drop(self.report.take());
        for told in self.told.take() {
            // The waiter may have been dropped.
            let _gone = told.send(reason.clone());
        }
    }

    fn closed(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Resolves when the run must end, with the reason, or with `None` when nothing needs it.
    pub(super) fn ended(&self) -> LocalBoxFuture<'static, Option<String>> {
        if let Some(reason) = self.ended.borrow().clone() {
            return async move { reason }.boxed_local();
        }
        let (tell, told) = oneshot::channel();
        let mut waiting = self.told.borrow_mut();
        waiting.retain(|one| !one.is_canceled());
        waiting.push(tell);
        async move { told.await.unwrap_or_default() }.boxed_local()
    }

    /// A function of the caller that the sandbox may call.
    pub(super) fn function(&self, id: u64) -> Option<Function> {
        usize::try_from(id).ok().and_then(|at| self.functions.borrow().get(at).cloned())
    }

    /// Passes a function to the sandbox; returns its id.
    pub(super) fn give(&self, function: &Function) -> usize {
        let mut functions = self.functions.borrow_mut();
        let given = match function.home() {
            // The ownership tree: only functions of inner runs are held.
            Some(home) if !self.surrounds(&home) => function.unheld(),
            _ => function.clone(),
        };
        if !self.closed() {
            functions.push(given);
        }
        functions.len().saturating_sub(1)
    }

    /// Whether the other run was started inside this one.
    fn surrounds(&self, other: &RunState) -> bool {
        let enclosing = other.runs.split_last().map(|(_, enclosing)| enclosing).unwrap_or_default();
        self.runs.last().is_some_and(|own| enclosing.contains(own))
    }

    /// Whether this run is the other one, or was started inside it.
    pub(super) fn is_within(&self, other: &RunState) -> bool {
        other.runs.last().is_some_and(|own| self.runs.contains(own))
    }

    /// Stores a reported value, and returns the function to call with it. Ends the run when there are too
    /// many reports to store.
    pub(super) fn reported(&self, value: &Value, bytes: usize) -> Option<Function> {
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

    /// The values reported so far.
    pub(super) fn reports(&self) -> Vec<Value> {
        self.reports.borrow().clone()
    }

    /// Numbers of active calls and of the caller's functions.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.calls.count(), self.functions.borrow().len())
    }
}
