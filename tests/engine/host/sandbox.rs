//! The sandbox, scripted: what a source does is a future that the test gives. What it asks of its door is real.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bobbin::sandbox::{Callback, CodeError, EncodedValue, FunctionResult, HostCalls, Outcome, Run, Status};
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

/// One run, as its script sees it.
#[derive(Clone)]
pub struct Ran {
    /// What was asked for.
    pub run: Run,
    door: Rc<dyn HostCalls>,
    aside: Aside,
}

/// Lets something go on beside the run.
pub(super) type Aside = Rc<dyn Fn(LocalBoxFuture<'static, ()>)>;

type Script = Rc<dyn Fn(Ran) -> LocalBoxFuture<'static, Outcome>>;

/// Sources and what they do.
#[derive(Default)]
pub struct Sandbox {
    scripts: RefCell<BTreeMap<String, Script>>,
    /// Runs that were asked for, in order.
    pub runs: RefCell<Vec<Run>>,
}

impl Sandbox {
    /// Scripts a source.
    pub fn code<F: Future<Output = Outcome> + 'static>(
        &self,
        source: &str,
        script: impl Fn(Ran) -> F + 'static,
    ) {
        self.scripts.borrow_mut().insert(source.into(), Rc::new(move |ran| Box::pin(script(ran))));
    }

    pub(super) fn clear(&self) {
        self.scripts.borrow_mut().clear();
    }

    pub(super) fn start(
        &self,
        run: Run,
        door: Rc<dyn HostCalls>,
        aside: Aside,
    ) -> LocalBoxFuture<'static, Outcome> {
        self.runs.borrow_mut().push(run.clone());
        let script = self.scripts.borrow().get(&run.source).cloned();
        match script {
            Some(script) => script(Ran { run, door, aside }),
            None => Box::pin(async { Outcome::lost("nothing is known of this source") }),
        }
    }
}

/// A value on its way, of what JSON writes in one piece.
pub fn packed(value: &Value) -> EncodedValue {
    EncodedValue { text: json!([value]).to_string(), bytes: Vec::new() }
}

/// The same for the arguments of a call.
fn arguments(args: &[Value]) -> EncodedValue {
    EncodedValue { text: json!([[1], ["a", args]]).to_string(), bytes: Vec::new() }
}

/// The run ended with this text or number.
pub fn gives(value: Value) -> Outcome {
    Outcome { value: Some(packed(&value)), error: None, status: Status::Success, ..Outcome::lost("") }
}

/// The run was told to end.
pub fn ended(reason: &str) -> Outcome {
    Outcome::failed(Status::Terminated, CodeError::new("Terminated", reason))
}

impl Ran {
    /// A back that has no functions.
    fn back() -> Callback {
        Rc::new(|_, _| Box::pin(async { FunctionResult::Error(packed(&json!("there are none"))) }))
    }

    /// Calls a function of the caller's, by its id; what it gave, or what it threw.
    pub async fn call(&self, function: u64, args: &[Value]) -> Result<Value, String> {
        let table = |packed: EncodedValue| serde_json::from_str::<Value>(&packed.text).unwrap_or(Value::Null);
        let answered = self.door.call(function, arguments(args), Ran::back()).await;
        self.door.taken(answered.held);
        match answered.answer {
            FunctionResult::Value(value) => Ok(table(value)),
            FunctionResult::Error(error) => Err(table(error)[1][2].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// The same, and does not wait for it: the call has left when this returns.
    pub fn call_aside(&self, function: u64, args: &[Value]) {
        let call = self.door.call(function, arguments(args), Ran::back());
        (self.aside)(Box::pin(async move {
            // Nobody hears what comes of it.
            let _unheard = call.await;
        }));
    }

    /// Reports a value.
    pub async fn report(&self, value: Value) {
        self.door.report(packed(&value), Ran::back()).await;
    }

    /// Waits until it is told to end: why, or that nobody needs it any more.
    pub async fn ended(&self) -> Option<String> {
        self.door.ended().await
    }
}
