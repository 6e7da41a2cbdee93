//! Code in the isolate Worker: requests of the engine to it, and requests of the sandbox to the engine.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::rc::{Rc, Weak};

use bobbin::sandbox::{
    Callback, CodeError, EncodedValue, FunctionReply, FunctionResult, HostCalls, Outcome, RawLog, Run, Status,
};
use serde::Deserialize;
use wasm_bindgen::prelude::*;

use crate::bindings::{CallHandler, HearEnded, HearReport, HearTaken, SandboxRun, log, thrown};
use crate::lifecycle::promise;

/// The isolate's report of a run, without its values.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunReport {
    status: Status,
    error: Option<CodeError>,
    logs: Vec<Line>,
    #[serde(default)]
    logs_cut: bool,
    duration_ms: f64,
}

#[derive(Deserialize)]
struct Line {
    level: String,
    timestamp: f64,
}

/// A run, with the closures that JavaScript may call.
struct RunningSandbox {
    run: SandboxRun,
    _heard: (CallHandler, HearTaken, HearReport, HearEnded),
}

impl Drop for RunningSandbox {
    fn drop(&mut self) {
        if let Err(error) = self.run.leave() {
            log(&format!("a run could not be left: {}", thrown(&error)));
        }
    }
}

/// Runs code. A lost sandbox is an outcome, too.
pub(crate) async fn run(isolate: Option<JsValue>, wanted: Run, door: Rc<dyn HostCalls>) -> Outcome {
    let Some(isolate) = isolate else {
        let error =
            CodeError::new("NoSandbox", "No sandbox is bound: wrangler.toml has no service “ISOLATE”.");
        return Outcome::failed(Status::LinkError, error);
    };
    match ask(&isolate, &wanted, door).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome::lost(&thrown(&error)),
    }
}

async fn ask(isolate: &JsValue, wanted: &Run, door: Rc<dyn HostCalls>) -> Result<Outcome, JsValue> {
    let request = serde_json::to_string(wanted).map_err(|error| JsValue::from_str(&error.to_string()))?;
    let open = open(&door)?;
    let EncodedValue { text, bytes } = &wanted.values;
    let answer = open.run.run(isolate, &request, text, &arrays(bytes)).await?;
    let answer: js_sys::Array = answer.unchecked_into();
    let said: RunReport = bobbin::json::from_str(&answer.get(0).as_string().unwrap_or_default())
        .map_err(|error| JsValue::from_str(&format!("its answer cannot be read: {error}")))?;
    let (texts, bytes) = (js_sys::Array::from(&answer.get(1)), js_sys::Array::from(&answer.get(2)));
    let packed =
        |at: u32| Some(EncodedValue { text: texts.get(at).as_string()?, bytes: vectors(&bytes.get(at)) });
    let logs = (1..).zip(said.logs).map(|(at, line)| RawLog {
        level: line.level,
        timestamp: line.timestamp,
        args: packed(at).unwrap_or_default(),
    });
    let outcome = Outcome {
        status: said.status,
        value: packed(0),
        error: said.error,
        logs: logs.collect(),
        logs_cut: said.logs_cut,
        duration_ms: said.duration_ms,
        back: back(Rc::downgrade(&open), answer.get(3)),
    };
    // Kept until the host, which tracks them, no longer holds functions of the sandbox.
    wasm_bindgen_futures::spawn_local(async move {
        door.ended().await;
        drop(open);
    });
    Ok(outcome)
}

fn open(door: &Rc<dyn HostCalls>) -> Result<Rc<RunningSandbox>, JsValue> {
    // The sandbox's functions are called through the run, which owns the closures. State that a panic leaves
    // incomplete belongs to this run only.
    let this: AssertUnwindSafe<Rc<RefCell<Weak<RunningSandbox>>>> = AssertUnwindSafe(Rc::default());
    let door = AssertUnwindSafe(door.clone());
    let call = {
        let (door, this) = (AssertUnwindSafe(door.0.clone()), AssertUnwindSafe(this.0.clone()));
        Closure::new(move |function: f64, text: String, bytes: js_sys::Array, functions: JsValue| {
            let args = EncodedValue { text, bytes: vectors(&bytes) };
            let answer = door.call(function as u64, args, back(this.borrow().clone(), functions));
            promise(async move { Ok(answered(answer.await)) })
        })
    };
    let taken = {
        let door = AssertUnwindSafe(door.clone());
        Closure::new(move |bytes: f64| door.taken(bytes as usize))
    };
    let report = {
        let (door, this) = (AssertUnwindSafe(door.0.clone()), AssertUnwindSafe(this.0.clone()));
        Closure::new(move |text: String, bytes: js_sys::Array, functions: JsValue| {
            let value = EncodedValue { text, bytes: vectors(&bytes) };
            let heard = door.report(value, back(this.borrow().clone(), functions));
            promise(async move {
                heard.await;
                Ok(JsValue::UNDEFINED)
            })
        })
    };
    let ended = {
        let door = AssertUnwindSafe(door.0.clone());
        Closure::new(move || {
            let ended = door.ended();
            promise(async move { Ok(ended.await.map_or(JsValue::UNDEFINED, JsValue::from)) })
        })
    };
    let run = SandboxRun::new(&call, &taken, &report, &ended)?;
    let open = Rc::new(RunningSandbox { run, _heard: (call, taken, report, ended) });
    *this.borrow_mut() = Rc::downgrade(&open);
    Ok(open)
}

/// Calls functions of the sandbox, while the run is open.
fn back(open: Weak<RunningSandbox>, functions: JsValue) -> Callback {
    Rc::new(move |function, args| {
        let (open, functions) = (open.clone(), functions.clone());
        Box::pin(async move {
            let Some(open) = open.upgrade().filter(|_| !functions.is_undefined()) else {
                return lost("its sandbox has ended");
            };
            let EncodedValue { text, bytes } = &args;
            let answer = open.run.back(&functions, function as f64, text, &arrays(bytes)).await;
            match answer.map(JsCast::unchecked_into::<js_sys::Array>) {
                Ok(answer) => {
                    let packed = EncodedValue {
                        text: answer.get(1).as_string().unwrap_or_default(),
                        bytes: vectors(&answer.get(2)),
                    };
                    if answer.get(0).is_truthy() {
                        FunctionResult::Value(packed)
                    } else {
                        FunctionResult::Error(packed)
                    }
                }
                Err(error) => lost(&thrown(&error)),
            }
        })
    })
}

fn lost(why: &str) -> FunctionResult {
    FunctionResult::Error(EncodedValue::error(&format!("The function cannot be called: {why}.")))
}

/// `[ok, text, bytes, held]`.
fn answered(FunctionReply { answer, held }: FunctionReply) -> JsValue {
    let (ok, packed) = match answer {
        FunctionResult::Value(packed) => (true, packed),
        FunctionResult::Error(packed) => (false, packed),
    };
    js_sys::Array::of4(&ok.into(), &packed.text.into(), &arrays(&packed.bytes).into(), &held.into()).into()
}

fn arrays(bytes: &[bytes::Bytes]) -> js_sys::Array {
    bytes.iter().map(|bytes| js_sys::Uint8Array::from(bytes.as_ref())).collect()
}

fn vectors(bytes: &JsValue) -> Vec<bytes::Bytes> {
    let list = if bytes.is_undefined() { js_sys::Array::new() } else { js_sys::Array::from(bytes) };
    list.iter().map(|one| bytes::Bytes::from(js_sys::Uint8Array::new(&one).to_vec())).collect()
}
