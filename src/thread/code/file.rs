//! Files of a deployment that run in the sandbox: tools, effects, hooks and endpoints with `"run": {"code": …}`.

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::bridge;
use super::fetch::fetch;
use crate::code::{CodeResult, Execution, Function, Options, Status, Thrown, Value};
use crate::error::Result;
use crate::spec::Code;
use crate::thread::Thread;
use crate::thread::host::Host;
use crate::thread::thread_state::ThreadState;

/// See [`Job::order`]: the file's own name and the order of its arguments are the only differences.
const HARNESS: &str = include_str!("harness.js");

/// One call of a file's default export.
pub(in crate::thread) struct Job<'a> {
    /// What runs.
    pub(in crate::thread) code: &'a Code,
    /// The thread.
    pub(in crate::thread) state: ThreadState,
    /// Values of declared variables.
    pub(in crate::thread) env: Map<String, Json>,
    /// What it is given besides `state`.
    pub(in crate::thread) args: Vec<Value>,
    /// Where `state` stands among them.
    pub(in crate::thread) order: Order,
}

/// How a handler takes its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::thread) enum Order {
    /// `(state, ...args)`: tools, effects and hooks.
    StateFirst,
    /// `(request, state, ...rest)`: endpoints.
    StateSecond,
}

impl Order {
    const fn placed(self) -> &'static str {
        match self {
            Order::StateFirst => "state, ...args",
            Order::StateSecond => "args[0], state, ...args.slice(1)",
        }
    }
}

impl<H: Host> Thread<H> {
    /// Calls it; what it gives, or what went wrong in words.
    pub(in crate::thread) async fn run_file(
        self: &Rc<Self>,
        job: Job<'_>,
    ) -> std::result::Result<Value, String> {
        let file = &job.code.file;
        let modules = self.catalog.modules_of(file);
        if modules.is_empty() {
            return Err(format!("There is no file {file} any more."));
        }
        let execution = self.start_file(modules, job).map_err(|error| error.message)?;
        let result = execution.await;
        self.log_lines(file, &result);
        match (result.status, &result.error) {
            (Status::Success, _) => Ok(result.result.clone()),
            (_, Some(error)) => Err(match (error.line, &error.filename) {
                (Some(line), Some(filename)) if error.filename.as_deref() != Some(NAME) => {
                    format!("{}: {} ({filename}:{line})", error.name, error.message)
                }
                _ => format!("{}: {}", error.name, error.message),
            }),
            (status, None) => Err(status.as_str().to_owned()),
        }
    }

    fn start_file(self: &Rc<Self>, modules: Vec<(String, String)>, job: Job<'_>) -> Result<Execution> {
        let Job { code, state, env, args, order } = job;
        let specifier = format!("./{}", code.file);
        let harness = HARNESS.replace("FILE", &specifier).replace("PLACED", order.placed());
        let facts = bridge::facts(&state)?;
        let host = Value::Object(vec![
            ("call".to_owned(), bridge::call(&state, env).into()),
            ("runCode".to_owned(), run_code(&state).into()),
            ("fetch".to_owned(), fetch(self, code.allowed_hosts.clone()).into()),
        ]);
        let options = Options {
            engine: code.engine,
            filename: NAME.to_owned(),
            language: crate::code::Language::Typescript,
            modules,
            args,
            memory_limit_bytes: code
                .memory_limit_bytes
                .map_or(Options::default().memory_limit_bytes, |bytes| bytes as f64),
            ..Options::default()
        };
        Ok(state.run_code(&harness, options.global("host", host).global("facts", facts)))
    }

    /// What the code wrote to its console is for the operator.
    fn log_lines(&self, file: &str, result: &CodeResult) {
        for log in &result.logs {
            let words: Vec<String> = log
                .args
                .iter()
                .map(|word| match word.to_json() {
                    Some(Json::String(text)) => text,
                    Some(json) => json.to_string(),
                    None => "undefined".to_owned(),
                })
                .collect();
            self.log(&format!("{file} {}: {}", log.level, self.redact(words.join(" "))));
        }
    }
}

/// What the harness is called.
const NAME: &str = "<bobbin>";

/// `state.runCode` of sandboxed code: started at once; the handle is an object of functions.
fn run_code(state: &ThreadState) -> Function {
    let state = state.clone();
    Function::new("runCode", move |args| {
        let state = state.clone();
        Box::pin(async move {
            let mut args = args.into_iter();
            let source = match args.next() {
                Some(Value::String(source)) => source,
                _ => return Err(Thrown::new("runCode(source, options): `source` must be a string.")),
            };
            let options = match args.next() {
                None | Some(Value::Undefined) => Ok(Options::default()),
                Some(options) => Options::from_value(options),
            };
            Ok(match options {
                Ok(options) => handle(state.run_code(&source, options)),
                Err(error) => ended(CodeResult::failed(Status::LinkError, error).to_value()),
            })
        })
    })
}

fn handle(execution: Execution) -> Value {
    let execution = Rc::new(execution);
    let held = execution.clone();
    let result = Function::new("result", move |_| {
        // Held until it has settled; its functions hold the sandbox from there on.
        let held = held.clone();
        Box::pin(async move { Ok(held.result().await.to_value()) })
    });
    let terminate = Function::new("terminate", move |args| {
        let reason = args.first().and_then(Value::text).filter(|reason| !reason.is_empty());
        execution.terminate(reason.unwrap_or("The execution was terminated."));
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
