//! The side of an execution that the sandbox sees: the caller's functions, and the place for reports.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::rc::{Rc, Weak};

use futures_util::future::{FutureExt, LocalBoxFuture};

use super::execution::{Life, ended};
use super::inside::For;
use super::options::Reports;
use super::packed::{Packed, pack, pack_error, unpack, unpack_error};
use super::result::{CodeResult, Log, Status};
use super::sandbox::{Answer, Back, Door, Outcome, RawLog};
use super::value::{Function, Thrown, Value};

/// See the module.
pub(super) struct Inner {
    pub(super) life: Weak<Life>,
    /// What the sandbox may call, by id.
    pub(super) functions: RefCell<Vec<Function>>,
    pub(super) report: Reports,
    /// The run itself and those from inside which it was started.
    pub(super) runs: Vec<String>,
}

/// What the transport holds.
pub(super) struct Inside(pub(super) Rc<Inner>);

impl Door for Inside {
    fn call(&self, function: u64, args: Packed, back: Back) -> LocalBoxFuture<'static, Answer> {
        let inner = self.0.clone();
        let runs = inner.runs.clone();
        let work = async move {
            match inner.called(function, &args, &back).await {
                Ok(value) => Answer::Value(pack(&value, &mut inner.functions.borrow_mut())),
                Err(thrown) => Answer::Error(pack_error(&thrown)),
            }
        };
        For { runs, work: work.boxed_local() }.boxed_local()
    }

    fn report(&self, value: Packed, back: Back) -> LocalBoxFuture<'static, ()> {
        let inner = self.0.clone();
        let runs = inner.runs.clone();
        let work = async move {
            let Some(life) = inner.life.upgrade() else { return };
            let Ok(value) = inner.unpack(&value, &back) else { return };
            life.reported(value.clone());
            if let Reports::Told(told) = &inner.report {
                // A report is no call: nobody waits for what becomes of it.
                let _unheard = called(told, vec![value]).await;
            }
        };
        For { runs, work: work.boxed_local() }.boxed_local()
    }

    fn ended(&self) -> LocalBoxFuture<'static, Option<String>> {
        match self.0.life.upgrade() {
            Some(life) => ended(&life),
            None => async { None }.boxed_local(),
        }
    }
}

impl Inner {
    async fn called(self: &Rc<Self>, function: u64, args: &Packed, back: &Back) -> Result<Value, Thrown> {
        let found = usize::try_from(function).ok().and_then(|at| self.functions.borrow().get(at).cloned());
        let function = found.ok_or_else(|| Thrown::new("There is no such function."))?;
        match self.unpack(args, back)? {
            Value::Array(args) => called(&function, args).await,
            _ => Err(Thrown::new("The arguments of a call are an array.")),
        }
    }

    fn unpack(self: &Rc<Self>, packed: &Packed, back: &Back) -> Result<Value, Thrown> {
        unpack(packed, &|id, name| self.proxy(id, name, back))
    }

    /// What a function of the sandbox's is here. It keeps the sandbox for as long as somebody holds it.
    fn proxy(self: &Rc<Self>, id: u64, name: &str, back: &Back) -> Function {
        // Not the other way round: a function of the caller's may keep what it is given.
        let (inner, life, back) = (Rc::downgrade(self), self.life.upgrade(), back.clone());
        Function::new(name, move |args| {
            let (inner, life, back) = (inner.clone(), life.clone(), back.clone());
            Box::pin(async move {
                let _held = life;
                let gone = || Thrown::new("The function is gone: its sandbox has ended.");
                let args = {
                    let inner = inner.upgrade().ok_or_else(gone)?;
                    pack(&Value::Array(args), &mut inner.functions.borrow_mut())
                };
                let answer = back(id, args).await;
                let inner = inner.upgrade().ok_or_else(gone)?;
                match answer {
                    Answer::Value(value) => inner.unpack(&value, &back),
                    Answer::Error(thrown) => Err(unpack_error(&thrown)),
                }
            })
        })
    }

    /// What the sandbox's answer means.
    pub(super) fn read(self: &Rc<Self>, outcome: Outcome) -> CodeResult {
        let Outcome { mut status, value, mut error, logs, logs_cut, duration_ms, back } = outcome;
        let mut result = Value::Undefined;
        if status == Status::Success {
            match self.unpack(&value.unwrap_or_default(), &back) {
                Ok(value) => result = value,
                Err(thrown) => (status, error) = (Status::Error, Some(thrown.into())),
            }
        }
        let logs = logs.into_iter().map(|log| self.log(log, &back)).collect();
        CodeResult { status, result, error, logs, logs_cut, reports: Vec::new(), duration_ms }
    }

    fn log(self: &Rc<Self>, log: RawLog, back: &Back) -> Log {
        let args = match self.unpack(&log.args, back) {
            Ok(Value::Array(args)) => args,
            Ok(other) => vec![other],
            Err(thrown) => vec![Value::String(format!("[{}]", thrown.message))],
        };
        Log { level: log.level, args, timestamp: log.timestamp }
    }
}

/// Calls a function of the caller's, whose panic is an error of this call alone.
async fn called(function: &Function, args: Vec<Value>) -> Result<Value, Thrown> {
    let call = AssertUnwindSafe(async { function.call(args).await }).catch_unwind();
    call.await.unwrap_or_else(|_| Err(Thrown::new("A function of the host's panicked.")))
}
