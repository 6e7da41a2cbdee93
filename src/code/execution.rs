//! The handle of an execution (spec §17.3), and the life behind it.

use std::cell::{Cell, RefCell};
use std::future::IntoFuture;
use std::rc::Rc;

use futures_channel::oneshot;
use futures_util::future::{Either, FutureExt, LocalBoxFuture, Shared, select};

use super::inner::{Inner, Inside};
use super::inside;
use super::options::{Options, Reports};
use super::packed::pack;
use super::result::{CodeError, CodeResult, Status};
use super::sandbox::{Door, Outcome, Run};
use super::value::{Function, Value};
use crate::limits;
use crate::thread::host::Sleep;

/// Running code. It settles with a [`CodeResult`], whatever happens, and never fails:
///
/// ```
/// # use bobbin::code::{Options, Status};
/// # use bobbin::spec::message::ToolResult;
/// bobbin::tools::register("evaluate", |call| {
///     let source = call.args["code"].as_str().unwrap_or_default().to_owned();
///     Box::pin(async move {
///         let ended = call.state.run_code(&source, Options::default()).await;
///         match ended.status {
///             Status::Success => ToolResult::success(ended.to_json()["result"].to_string()),
///             _ => ToolResult::error(ended.to_json()["error"]["message"].to_string()),
///         }
///     })
/// });
/// ```
///
/// Code that nobody holds any more is ended: dropping the handle terminates, and so does the end of the tool, hook or run
/// that waited for it.
pub struct Execution {
    life: Rc<Life>,
    settled: Shared<oneshot::Receiver<Rc<CodeResult>>>,
}

impl Execution {
    /// Ends the code, at once whatever it does. A second time, or after its end, nothing changes.
    pub fn terminate(&self, reason: &str) {
        self.life.end(Some(reason.to_owned()));
    }

    /// Whether it has not settled yet.
    pub fn running(&self) -> bool {
        self.life.running.get()
    }

    /// What was reported so far.
    pub fn reports(&self) -> Vec<Value> {
        self.life.reports.borrow().clone()
    }

    /// What comes of it; asked twice, the same.
    pub fn result(&self) -> LocalBoxFuture<'static, Rc<CodeResult>> {
        let settled = self.settled.clone();
        async move {
            // Nobody settles it when the object is torn down with everything in it.
            let lost = || CodeError::new("Terminated", "The runtime was lost while the code ran.");
            settled.await.unwrap_or_else(|_| Rc::new(CodeResult::failed(Status::Terminated, lost())))
        }
        .boxed_local()
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if self.running() {
            self.terminate("Nobody waits for the code any more.");
        }
    }
}

impl IntoFuture for Execution {
    type Output = Rc<CodeResult>;
    type IntoFuture = LocalBoxFuture<'static, Rc<CodeResult>>;

    fn into_future(self) -> Self::IntoFuture {
        let result = self.result();
        async move {
            let result = result.await;
            drop(self);
            result
        }
        .boxed_local()
    }
}

/// What both sides of an execution know of it. It ends when nothing holds it: no handle and no function of the sandbox's.
pub(super) struct Life {
    running: Cell<bool>,
    reports: RefCell<Vec<Value>>,
    /// Why it is to end; inside, nothing: only because nobody needs it.
    ended: RefCell<Option<Option<String>>>,
    told: RefCell<Vec<oneshot::Sender<Option<String>>>>,
}

impl Life {
    /// A value was reported.
    pub(super) fn reported(&self, value: Value) {
        if self.running.get() {
            self.reports.borrow_mut().push(value);
        }
    }

    fn end(&self, reason: Option<String>) {
        if !self.running.get() && reason.is_some() {
            return;
        }
        let mut ended = self.ended.borrow_mut();
        if ended.is_some() {
            return;
        }
        for told in self.told.take() {
            // Whoever asked may be gone.
            let _gone = told.send(reason.clone());
        }
        *ended = Some(reason);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.running.set(false);
        self.end(None);
    }
}

/// What it takes to start one.
pub(crate) struct Start {
    pub(crate) source: String,
    pub(crate) options: Options,
    pub(crate) id: String,
    pub(crate) sleep: Sleep,
}

/// Starts code. The second value drives it and is to run beside the caller, until the execution has settled.
pub(crate) fn start<F>(
    start: Start,
    sandbox: impl FnOnce(Run, Rc<dyn Door>) -> F,
) -> (Execution, Option<LocalBoxFuture<'static, ()>>)
where
    F: Future<Output = Outcome> + 'static,
{
    let (settle, settled) = oneshot::channel();
    let life = Rc::new(Life {
        running: Cell::new(true),
        reports: RefCell::default(),
        ended: RefCell::default(),
        told: RefCell::default(),
    });
    let execution = Execution { life: life.clone(), settled: settled.shared() };
    let settle = {
        let life = life.clone();
        move |result: CodeResult| {
            life.running.set(false);
            let reports = life.reports.borrow().clone();
            // The handle may be gone.
            let _gone = settle.send(Rc::new(CodeResult { reports, ..result }));
        }
    };
    if let Err(error) = start.options.check() {
        settle(CodeResult::failed(Status::LinkError, error.into()));
        return (execution, None);
    }
    let Start { source, options, id, sleep } = start;
    let mut runs = inside::runs();
    let mut functions = Vec::new();
    let run = run(runs.clone(), id.clone(), source, &options, &mut functions);
    runs.push(id);
    let inner = Rc::new(Inner {
        life: Rc::downgrade(&life),
        functions: RefCell::new(functions),
        report: options.report,
        runs,
    });
    let outcome = sandbox(run, Rc::new(Inside(inner.clone())));
    let late = late(&life, sleep);
    let drive = async move {
        let result = match select(Box::pin(outcome), late).await {
            Either::Left((outcome, _)) => inner.read(outcome),
            Either::Right((reason, _)) => {
                CodeResult::failed(Status::Terminated, CodeError::new("Terminated", reason))
            }
        };
        settle(result);
        // Functions in the result hold it from here on.
        drop(life);
    };
    (execution, Some(drive.boxed_local()))
}

fn run(
    ancestors: Vec<String>,
    id: String,
    source: String,
    options: &Options,
    functions: &mut Vec<Function>,
) -> Run {
    let imports = options
        .imports
        .iter()
        .map(|(specifier, namespace)| (specifier.clone(), Value::Object(namespace.clone())));
    let values = Value::Object(vec![
        ("args".to_owned(), Value::Array(options.args.clone())),
        ("globals".to_owned(), Value::Object(options.globals.clone())),
        ("imports".to_owned(), Value::Object(imports.collect())),
    ]);
    let names = |fields: &[(String, Value)]| fields.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    Run {
        id,
        ancestors,
        engine: options.engine,
        source,
        language: options.language,
        filename: options.filename.clone(),
        function: options.function.clone(),
        modules: options.modules.clone(),
        memory_limit_bytes: options.memory_limit_bytes.ceil() as u64,
        fuel: options.fuel,
        report: !matches!(options.report, Reports::No),
        globals: names(&options.globals),
        imports: options
            .imports
            .iter()
            .map(|(specifier, fields)| (specifier.clone(), names(fields)))
            .collect(),
        values: pack(&values, functions),
    }
}

/// Resolves with the reason some time after the code was told to end, should the sandbox not answer.
fn late(life: &Rc<Life>, sleep: Sleep) -> LocalBoxFuture<'static, String> {
    let ended = ended(life);
    async move {
        match ended.await {
            Some(reason) => {
                sleep(limits::CODE_END_US).await;
                reason
            }
            // Only once it has settled.
            None => std::future::pending().await,
        }
    }
    .boxed_local()
}

pub(super) fn ended(life: &Rc<Life>) -> LocalBoxFuture<'static, Option<String>> {
    if let Some(reason) = life.ended.borrow().clone() {
        return async move { reason }.boxed_local();
    }
    let (tell, told) = oneshot::channel();
    life.told.borrow_mut().push(tell);
    async move { told.await.unwrap_or_default() }.boxed_local()
}
