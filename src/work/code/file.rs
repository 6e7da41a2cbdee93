//! Files of a deployment that run in the sandbox: tools, effects, hooks and endpoints with `"run": {"code":
//! …}`.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use serde_json::{Map, Value as Json};

use crate::definitions::{Code, WEB_HTTP};
use crate::host::{Host, Sleep};
use crate::limits;
use crate::sandbox::{
    BinaryKind, CodeError, CodeHandle, CodeResult, Exception, Function, Options, Status, Value,
};
use crate::sdk::ThreadState;
use crate::work::WorkContext;
use crate::work::code::bridge;
use crate::work::code::fetch::fetch;
use crate::work::code::place::place;

/// The code that creates `state` for every file.
const HARNESS: &str = include_str!("harness.js");
/// Prepended for a file that uses `execution.abortSignal`. It adds no line, so that positions in the harness
/// stay the same.
const SIGNALS: &str = r#"import { AbortController } from "./bobbin/events.js"; "#;
/// The module with `AbortController`; package/compiler/code.mjs adds it to files that mention `abortSignal`.
const WEB_EVENTS: &str = "./bobbin/events.js";
/// The end of the harness, which calls the file's function, by [`FileCall::order`].
const CALLS: &str = include_str!("harness/call.js");
const ANSWERS: &str = include_str!("harness/answer.js");

/// One call of a file's default export.
pub(crate) struct FileCall {
    /// The thread.
    pub(crate) state: ThreadState,
    /// Values of declared variables.
    pub(crate) env: Map<String, Json>,
    /// Its arguments besides `state`.
    pub(crate) args: Vec<Value>,
    /// Position of `state` in the arguments.
    pub(crate) order: Order,
}

/// The order of a handler's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// `(state, ...args)`: tools, effects and hooks.
    StateFirst,
    /// `(request, state, ...rest)`: endpoints.
    StateSecond,
}

impl Order {
    /// The end of the harness.
    const fn caller(self) -> &'static str {
        match self {
            Order::StateFirst => CALLS,
            Order::StateSecond => ANSWERS,
        }
    }
}

/// Calls the function. Returns its value, or an error text.
pub(crate) async fn run_file(
    context: Rc<dyn WorkContext>,
    code: &Code,
    call: FileCall,
) -> Result<Value, String> {
    let file = &code.file;
    let catalog = context.catalog();
    let modules = match call.order {
        Order::StateFirst => catalog.modules_of(&[file]),
        Order::StateSecond => catalog.modules_of(&[file, WEB_HTTP]),
    };
    if !catalog.code.contains_key(file) {
        return Err(format!("There is no file {file} any more."));
    }
    let execution = start_file(&context, code, modules, call).map_err(|error| error.into_message())?;
    let result = execution.await;
    log_lines(&*context, file, &result);
    match (result.status, &result.error) {
        (Status::Success, _) => Ok(result.result.clone()),
        (_, Some(error)) => {
            let place = place(catalog, error).map(|place| format!(" ({place})"));
            Err(format!("{}: {}{}", error.name, error.message, place.unwrap_or_default()))
        }
        (status, None) => Err(status.as_str().to_owned()),
    }
}

fn start_file(
    context: &Rc<dyn WorkContext>,
    code: &Code,
    modules: Vec<(String, String)>,
    call: FileCall,
) -> crate::error::Result<CodeHandle> {
    let FileCall { state, env, args, order } = call;
    let specifier = Json::String(format!("./{}", code.file)).to_string();
    let mentions = |name: &str| {
        modules.first().is_some_and(|(_, source)| source.contains(name)) && state.run_api().at_work()
    };
    // Both cost something, so only the few files that mention them get them.
    let signal = modules.iter().any(|(name, _)| name == WEB_EVENTS) && mentions("abortSignal");
    let harness = if signal { SIGNALS } else { "" }.to_owned()
        + &HARNESS.replace("\"FILE\"", &specifier)
        + order.caller();
    let facts = bridge::facts(&state, entropy(&**context.host()), mentions("messageHistory"))?;
    let (fetch, abort) = fetch(context, code.allowed_hosts.clone());
    let host = Value::Object(vec![
        ("call".to_owned(), bridge::call(&state, env).into()),
        ("runCode".to_owned(), run_code(&state).into()),
        ("fetch".to_owned(), fetch.into()),
        ("abort".to_owned(), abort.into()),
        ("sleep".to_owned(), sleep(context.sleep()).into()),
    ]);
    let options = Options {
        engine: code.engine,
        filename: NAME.to_owned(),
        language: crate::sandbox::Language::Typescript,
        modules,
        args,
        memory_limit_bytes: code
            .memory_limit_bytes
            .map_or(Options::default().memory_limit_bytes, |bytes| bytes as f64),
        ..Options::default()
    };
    Ok(state.run_code(&harness, options.global("host", host).global("facts", facts)))
}

/// The seed of `crypto` in the sandbox.
fn entropy(host: &dyn Host) -> Value {
    let bytes = [host.random(), host.random()].concat();
    Value::Binary(BinaryKind::Uint8Array, Bytes::from(bytes))
}

/// Writes the code's console output to the operator's log.
fn log_lines(context: &dyn WorkContext, file: &str, result: &CodeResult) {
    for log in &result.logs {
        let text: String = context.without_secrets(log.text()).into();
        context.log(&format!("{file} {}: {text}", log.level));
    }
}

/// File name of the harness.
const NAME: &str = "<bobbin>";

/// Waits for some milliseconds, for `setTimeout` in the sandbox.
pub(super) fn sleep(sleep: Sleep) -> Function {
    Function::new("sleep", move |args| {
        let ms = match args.first() {
            Some(Value::Number(ms)) if (0.0..=limits::CODE_TIMER_MS).contains(ms) => *ms,
            _ => limits::CODE_TIMER_MS,
        };
        let waited = sleep((ms * 1_000.0) as i64);
        Box::pin(async move {
            waited.await;
            Ok(Value::Undefined)
        })
    })
}

/// `state.runCode` for sandboxed code. The code starts at once, and the handle is an object of functions.
/// Errors in the call are results, too (spec §17.2).
fn run_code(state: &ThreadState) -> Function {
    let state = state.clone();
    Function::new("runCode", move |args| {
        let mut args = args.into_iter();
        let (source, options) = (args.next(), args.next());
        let options = match (&source, options) {
            (Some(Value::String(_)), None | Some(Value::Undefined)) => Ok(Options::default()),
            (Some(Value::String(_)), Some(options)) => Options::from_value(options).map_err(CodeError::from),
            _ => Err(CodeError::new("InvalidCodeExecutionOptions", "source must be a string.")),
        };
        let handle = match options {
            Ok(options) => {
                handle(state.run_code(source.as_ref().and_then(Value::text).unwrap_or_default(), options))
            }
            Err(error) => ended(CodeResult::failed(Status::LinkError, error).to_value()),
        };
        Box::pin(async { Ok(handle) })
    })
}

/// The handle for sandboxed code. The holder owns the execution, which ends with it. Once the result was
/// taken, only the functions in the result are held.
fn handle(execution: CodeHandle) -> Value {
    let held = Rc::new(RefCell::new(Some(execution)));
    let execution = held.clone();
    let result = Function::new("result", move |_| {
        let settled = execution.borrow().as_ref().map(CodeHandle::result);
        let execution = execution.clone();
        Box::pin(async move {
            let settled = settled.ok_or_else(|| Exception::new("The result of this execution was taken."))?;
            let result = settled.await;
            drop(execution.take());
            Ok(result.to_value())
        })
    });
    let terminate = Function::new("terminate", move |args| {
        let reason = args.first().and_then(Value::text).filter(|reason| !reason.is_empty());
        if let Some(execution) = held.borrow().as_ref() {
            execution.terminate(reason.unwrap_or("The execution was terminated."));
        }
        Box::pin(async { Ok(Value::Undefined) })
    });
    Value::Object(vec![("result".to_owned(), result.into()), ("terminate".to_owned(), terminate.into())])
}

fn ended(result: Value) -> Value {
    let given = Function::new("result", move |_| {
        let result = result.clone();
        Box::pin(async move { Ok(result) })
    });
    let nothing = Function::new("terminate", |_| Box::pin(async { Ok(Value::Undefined) }));
    Value::Object(vec![("result".to_owned(), given.into()), ("terminate".to_owned(), nothing.into())])
}
