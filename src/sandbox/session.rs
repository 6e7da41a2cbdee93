//! The side of an execution that the sandbox sees: the caller's functions, and the receiver of reports.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::task::Poll;

use futures::future::{Either, FutureExt, LocalBoxFuture, select};

use crate::limits;
use crate::sandbox::ancestry::{CalledBy, Caller};
use crate::sandbox::backlog::CallRoom;
use crate::sandbox::boundary::{Callback, FunctionReply, FunctionResult, HostCalls, Outcome, RawLog};
use crate::sandbox::packed::{EncodedValue, pack, pack_error, unpack, unpack_error};
use crate::sandbox::result::{CodeResult, Log, Status};
use crate::sandbox::room::SizeAllowance;
use crate::sandbox::run_state::{RunGuard, RunState};
use crate::sandbox::value::{Exception, Function, Value};

/// The object that the transport holds.
pub(super) struct Session(pub(crate) Rc<RunState>);

impl HostCalls for Session {
    fn call(
        &self,
        function: u64,
        args: EncodedValue,
        back: Callback,
    ) -> LocalBoxFuture<'static, FunctionReply> {
        let life = self.0.clone();
        let room = CallRoom::of(&life.backlog);
        let caller = Caller { runs: life.runs.clone(), room: Some(room.clone()) };
        let work = answered(life, room, function, args, back);
        let call = self.0.calls.add(CalledBy { caller, work: work.boxed_local() }.boxed_local());
        let over = EncodedValue::error("The run has ended, and its calls with it.");
        async move { call.await.unwrap_or(FunctionReply { answer: FunctionResult::Error(over), held: 0 }) }
            .boxed_local()
    }

    fn taken(&self, bytes: usize) {
        self.0.backlog.taken(bytes);
    }

    fn report(&self, value: EncodedValue, back: Callback) -> LocalBoxFuture<'static, ()> {
        let life = self.0.clone();
        let caller = Caller { runs: life.runs.clone(), room: None };
        let work = async move {
            let room = SizeAllowance::default();
            let Ok(value) = taken(&life, value, &back, &room, life.keep()) else { return };
            if let Some(told) = life.reported(&value, room.taken()) {
                // A report has no caller, so its result is ignored.
                let _unheard = guarded(&told, vec![value]).await;
            }
        };
        let call = self.0.calls.add(CalledBy { caller, work: work.boxed_local() }.boxed_local());
        async move {
            call.await;
        }
        .boxed_local()
    }

    fn ended(&self) -> LocalBoxFuture<'static, Option<String>> {
        self.0.ended()
    }
}

/// Calls a function of the caller, as soon as there is room for its answer.
async fn answered(
    life: Rc<RunState>,
    room: Rc<CallRoom>,
    function: u64,
    args: EncodedValue,
    back: Callback,
) -> FunctionReply {
    let backlog = life.backlog.clone();
    let mut start = backlog.start().await;
    let mut call = Box::pin(called(&life, function, args, &back));
    let first = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
    let waited = first.is_pending();
    let result = match first {
        Poll::Ready(result) => result,
        Poll::Pending => {
            drop(start.take());
            call.await
        }
    };
    let answer = match result {
        Ok(packed) => FunctionResult::Value(packed),
        Err(thrown) => FunctionResult::Error(pack_error(&thrown)),
    };
    let (FunctionResult::Value(packed) | FunctionResult::Error(packed)) = &answer;
    let reserved = room.take();
    // An answer with reserved room, or from synchronous work, is sent immediately.
    let held = match waited && reserved.is_empty() {
        true => backlog.send(packed.size()).await,
        false => backlog.send_now(packed.size()),
    };
    drop((reserved, start));
    FunctionReply { answer, held }
}

/// Calls a function of the caller.
async fn called(
    life: &Rc<RunState>,
    function: u64,
    args: EncodedValue,
    back: &Callback,
) -> Result<EncodedValue, Exception> {
    let function = life.function(function).ok_or_else(|| Exception::new("There is no such function."))?;
    let room = SizeAllowance::default();
    // A function among the arguments does not keep the run alive: this call belongs to the run.
    let args = taken(life, args, back, &room, None)?;
    let _under_way = life.calls.hold(room.taken()).ok_or_else(|| {
        let limit = limits::CODE_CALLS_BYTES;
        Exception::unserializable(format!(
            "The arguments of the calls under way have more than {limit} bytes, the limit."
        ))
    })?;
    match args {
        Value::Array(args) => pack(&guarded(&function, args).await?, &mut |function| life.give(function)),
        _ => Err(Exception::new("The arguments of a call are an array.")),
    }
}

/// Decodes a value of the sandbox. With `keep`, functions in it keep the run alive while they are held.
fn taken(
    life: &Rc<RunState>,
    packed: EncodedValue,
    back: &Callback,
    room: &SizeAllowance,
    keep: Option<Rc<RunGuard>>,
) -> Result<Value, Exception> {
    unpack(&packed, room, &|id, name| proxy(life, id, name, back, keep.clone()))
}

/// A proxy for a function of the sandbox.
fn proxy(life: &Rc<RunState>, id: u64, name: &str, back: &Callback, keep: Option<Rc<RunGuard>>) -> Function {
    let (weak, back) = (Rc::downgrade(life), back.clone());
    let function = Function::new(name, move |args| {
        let (life, back) = (weak.clone(), back.clone());
        Box::pin(async move {
            let gone = || Exception::new("The function is gone: its sandbox has ended.");
            let life = life.upgrade().filter(|life| life.keep().is_some()).ok_or_else(gone)?;
            let args = pack(&Value::Array(args), &mut |function| life.give(function))?;
            match select(back(id, args), life.ended()).await {
                Either::Left((FunctionResult::Value(value), _)) => {
                    taken(&life, value, &back, &SizeAllowance::default(), life.keep())
                }
                Either::Left((FunctionResult::Error(thrown), _)) => Err(unpack_error(&thrown)),
                Either::Right(_) => Err(gone()),
            }
        })
    });
    function.of(life, keep)
}

/// Converts the sandbox's outcome to a result.
pub(super) fn read(life: &Rc<RunState>, outcome: Outcome) -> CodeResult {
    let Outcome { mut status, value, mut error, logs, mut logs_cut, duration_ms, back } = outcome;
    let mut result = Value::Undefined;
    if status == Status::Success {
        match taken(life, value.unwrap_or_default(), &back, &SizeAllowance::default(), life.keep()) {
            Ok(value) => result = value,
            Err(thrown) => (status, error) = (Status::Error, Some(thrown.into())),
        }
    }
    // Console output may repeat large values: all lines together have the limit of one value.
    let room = SizeAllowance::default();
    let mut read = Vec::with_capacity(logs.len());
    for log in logs {
        if room.spent() {
            logs_cut = true;
            break;
        }
        read.push(line(life, log, &back, &room));
    }
    CodeResult { status, result, error, logs: read, logs_cut, reports: Vec::new(), duration_ms }
}

fn line(life: &Rc<RunState>, log: RawLog, back: &Callback, room: &SizeAllowance) -> Log {
    let args = match taken(life, log.args, back, room, life.keep()) {
        Ok(Value::Array(args)) => args,
        Ok(other) => vec![other],
        Err(thrown) => vec![Value::String(format!("[{}]", thrown.message))],
    };
    Log { level: log.level, args, timestamp: log.timestamp }
}

/// Calls a function of the caller. A panic fails only this call.
async fn guarded(function: &Function, args: Vec<Value>) -> Result<Value, Exception> {
    let call = AssertUnwindSafe(async { function.call(args).await }).catch_unwind();
    call.await.unwrap_or_else(|_| Err(Exception::new("A function of the host's panicked.")))
}
