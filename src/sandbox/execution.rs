//! The handle of an execution (spec §17.3), and how one starts.

use std::future::IntoFuture;
use std::rc::Rc;

use futures::channel::oneshot;
use futures::future::{Either, FutureExt, LocalBoxFuture, Shared, select};

use crate::host::Sleep;
use crate::limits;
use crate::sandbox::ancestry;
use crate::sandbox::boundary::{HostCalls, Outcome, Run};
use crate::sandbox::options::{Options, Reports};
use crate::sandbox::packed::{EncodedValue, pack};
use crate::sandbox::result::{CodeError, CodeResult, Status};
use crate::sandbox::run_state::{RunGuard, RunState};
use crate::sandbox::session::{Session, read};
use crate::sandbox::value::{Exception, Value};

/// Running code. It always settles with a [`CodeResult`] and never fails:
///
/// ```
/// # use bobbin::sandbox::{Options, Status};
/// # use bobbin::definitions::message::ToolResult;
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
/// Dropping the handle terminates the code; so does the end of the tool, hook or run that waited for it.
pub struct CodeHandle {
    keep: Rc<RunGuard>,
    settled: Shared<oneshot::Receiver<Rc<CodeResult>>>,
}

impl CodeHandle {
    /// Ends the code immediately. Does nothing a second time, or after its end.
    pub fn terminate(&self, reason: &str) {
        self.keep.0.end(reason);
    }

    /// Whether it has not settled yet.
    pub fn running(&self) -> bool {
        self.keep.0.running()
    }

    /// The values reported so far.
    pub fn reports(&self) -> Vec<Value> {
        match self.settled.peek() {
            Some(Ok(result)) => result.reports.clone(),
            _ => self.keep.0.reports(),
        }
    }

    /// Resolves when none of its calls to the host is active: some may outlive the result.
    pub(crate) fn calls_ended(&self) -> impl Future<Output = ()> + 'static {
        self.keep.0.calls.none()
    }

    /// The result; the same each time.
    pub fn result(&self) -> LocalBoxFuture<'static, Rc<CodeResult>> {
        let settled = self.settled.clone();
        async move {
            // No result arrives when the whole object is torn down.
            let lost = || CodeError::new("Terminated", "The runtime was lost while the code ran.");
            settled.await.unwrap_or_else(|_| Rc::new(CodeResult::failed(Status::Terminated, lost())))
        }
        .boxed_local()
    }
}

#[cfg(test)]
impl CodeHandle {
    pub(super) fn life(&self) -> &Rc<RunState> {
        &self.keep.0
    }
}

impl Drop for CodeHandle {
    fn drop(&mut self) {
        if self.running() {
            self.terminate("Nobody waits for the code any more.");
        }
    }
}

impl IntoFuture for CodeHandle {
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

/// The parameters of an execution.
pub(crate) struct Start {
    pub(crate) source: String,
    pub(crate) options: Options,
    pub(crate) id: String,
    /// The thread's id.
    pub(crate) owner: String,
    /// The thread's account, or the thread's id if it has none.
    pub(crate) account: String,
    pub(crate) sleep: Sleep,
}

/// Starts code. Drive the returned future beside the caller until the execution has settled.
pub(crate) fn start<F>(
    start: Start,
    sandbox: impl FnOnce(Run, Rc<dyn HostCalls>) -> F,
) -> (CodeHandle, Option<LocalBoxFuture<'static, ()>>)
where
    F: Future<Output = Outcome> + 'static,
{
    let (settle, settled) = oneshot::channel();
    let Start { source, mut options, id, owner, account, sleep } = start;
    let ancestors = ancestry::runs();
    let runs = ancestors.iter().cloned().chain([id.clone()]).collect();
    let reports = !matches!(options.report, Reports::No);
    let keep = RunState::begin(runs, std::mem::take(&mut options.report));
    let execution = CodeHandle { keep: keep.clone(), settled: settled.shared() };
    let life = keep.0.clone();
    let settle = move |result: CodeResult| {
        let reports = life.settled(result.status == Status::Success);
        // The handle may have been dropped.
        let _gone = settle.send(Rc::new(CodeResult { reports, ..result }));
    };
    let refused = |error: CodeError| CodeResult::failed(Status::LinkError, error);
    if let Err(error) = options.check() {
        settle(refused(error.into()));
        return (execution, None);
    }
    let (values, given) = match values(&options, &keep.0) {
        Ok(packed) => packed,
        Err(error) => {
            settle(refused(error.into()));
            return (execution, None);
        }
    };
    let run = run(RunIdentity { id, owner, account, ancestors, source, reports }, &options, values);
    let outcome = sandbox(run, Rc::new(Session(keep.0.clone())));
    let late = late(&keep.0, sleep);
    drop(options);
    let drive = async move {
        let result = match select(Box::pin(outcome), late).await {
            Either::Left((outcome, _)) => read(&keep.0, outcome),
            Either::Right((reason, _)) => {
                CodeResult::failed(Status::Terminated, CodeError::new("Terminated", reason))
            }
        };
        settle(result);
        // From here on, the handle or the result's functions keep it.
        drop((keep, given));
    };
    (execution, Some(drive.boxed_local()))
}

/// Identity and origin of a run.
struct RunIdentity {
    id: String,
    owner: String,
    account: String,
    ancestors: Vec<String>,
    source: String,
    reports: bool,
}

/// Packs the values for the code. Also returns handles for functions of other runs among them, which must
/// stay alive while the code runs. Enclosing runs stay alive by themselves.
fn values(options: &Options, life: &RunState) -> Result<(EncodedValue, Vec<Rc<RunGuard>>), Exception> {
    let imports = options
        .imports
        .iter()
        .map(|(specifier, namespace)| (specifier.clone(), Value::Object(namespace.clone())));
    let values = Value::Object(vec![
        ("args".to_owned(), Value::Array(options.args.clone())),
        ("globals".to_owned(), Value::Object(options.globals.clone())),
        ("imports".to_owned(), Value::Object(imports.collect())),
    ]);
    let mut kept = Vec::new();
    let packed = pack(&values, &mut |function| {
        kept.extend(function.kept().filter(|keep| !life.is_within(&keep.0)));
        life.give(function)
    })?;
    Ok((packed, kept))
}

fn run(named: RunIdentity, options: &Options, values: EncodedValue) -> Run {
    let names = |fields: &[(String, Value)]| fields.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let RunIdentity { id, owner, account, ancestors, source, reports } = named;
    Run {
        id,
        owner,
        account,
        ancestors,
        engine: options.engine,
        source,
        language: options.language,
        form: options.form,
        filename: options.filename.clone(),
        function: options.function.clone(),
        modules: options.modules.clone(),
        memory_limit_bytes: options.memory_limit_bytes.ceil() as u64,
        fuel: options.fuel,
        report: reports,
        awaits_calls: options.awaits_calls,
        globals: names(&options.globals),
        imports: options
            .imports
            .iter()
            .map(|(specifier, fields)| (specifier.clone(), names(fields)))
            .collect(),
        values,
    }
}

/// Resolves with the reason some time after the end was requested, in case the sandbox does not respond.
fn late(life: &Rc<RunState>, sleep: Sleep) -> LocalBoxFuture<'static, String> {
    let ended = life.ended();
    async move {
        match ended.await {
            Some(reason) => {
                sleep(limits::CODE_END_US).await;
                reason
            }
            // The execution has settled.
            None => std::future::pending().await,
        }
    }
    .boxed_local()
}
