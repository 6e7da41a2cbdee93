//! `ThreadState.execution` (spec §13): the run, for code inside one of its steps.

use std::rc::Rc;

use futures::channel::oneshot;
use futures::future::{FutureExt, Shared};
use serde_json::{Map, Value};

use crate::error::Result;
use crate::sdk::ThreadState;
use crate::store::side::{CodeRequest, Side};

/// The run in which code works, as a snapshot.
#[derive(Clone)]
pub struct RunHandle {
    /// The run's id, as the API shows it.
    pub flow_id: String,
    /// The side that acts.
    pub current_side: Side,
    /// Number of steps of the run so far, including this one.
    pub step_count: u32,
    /// Steps of side A since its counter was last reset.
    pub side_a_step_count: u32,
    /// Steps of side B.
    pub side_b_step_count: u32,
    /// Whether the run ends after this step.
    pub stopped: bool,
    /// The side that requested the end.
    pub stopped_by: Option<Side>,
    /// The prompts that led here, the active side's first.
    pub prompt_path: Vec<String>,
    door: Rc<dyn RunApi>,
}

impl RunHandle {
    /// Makes a side act next, once the step's calls are done, whatever the reply is. If that side is active,
    /// its turn continues. Stored before this returns; the last request in a step wins.
    ///
    /// # Errors
    /// `invalid_field` when side B is the user; `conflict` when no step is running.
    pub fn force_turn(&self, side: Side) -> Result<()> {
        self.door.ask(CodeRequest::Turn(side))
    }

    /// The newest messages, oldest first, including silent ones, as the API shows them: at most
    /// [`limits::PAGE_DEFAULT`](crate::limits::PAGE_DEFAULT).
    pub fn message_history(&self) -> Result<Vec<Value>> {
        self.door.history()
    }

    /// A signal for the end of the run. A tool's own future is dropped at the end; use the signal for work
    /// that it started elsewhere.
    pub fn abort_signal(&self) -> AbortSignal {
        AbortSignal(self.door.aborted())
    }

    /// Ends the run once the step's calls are done, with the reason `stopped_by_code`. Queued messages wait
    /// for the next send or `continue`.
    ///
    /// # Errors
    /// `conflict` when no step is running.
    pub fn stop(&self) -> Result<()> {
        self.door.ask(CodeRequest::Stop)
    }
}

/// Signals the end of a run.
#[derive(Clone)]
pub struct AbortSignal(Shared<oneshot::Receiver<()>>);

impl AbortSignal {
    /// Whether the run has ended.
    pub fn is_aborted(&self) -> bool {
        self.0.clone().now_or_never().is_some()
    }

    /// Waits for the end.
    pub async fn aborted(&self) {
        // The sender never sends: it is dropped with the run.
        let _gone = self.0.clone().await;
    }
}

/// The end of the active run; dropped when it comes.
pub(crate) struct Abort {
    pub(crate) _end: oneshot::Sender<()>,
    pub(crate) signal: Shared<oneshot::Receiver<()>>,
}

impl ThreadState {
    /// The run in which this code works; `None` in detached work: effects and endpoints.
    pub fn execution(&self) -> Result<Option<RunHandle>> {
        let door = self.run_api();
        let seen = door.clone().execution()?;
        Ok(seen.map(|execution| execution.with(door)))
    }

    /// A value of the run's scratch space. It is in memory only, and lost when the run or the process ends.
    pub fn get_context(&self, key: &str) -> Option<Value> {
        self.run_api().context(key)
    }

    /// The whole scratch space.
    pub(crate) fn whole_context(&self) -> Context {
        self.run_api().whole_context()
    }

    /// Removes a scratch value.
    pub fn remove_context(&self, key: &str) {
        self.run_api().remove_context(key);
    }

    /// Sets a scratch value. Does nothing outside a run ([`ThreadState::execution`]).
    pub fn set_context(&self, key: &str, value: Value) {
        self.run_api().set_context(key, value);
    }
}

/// A [`RunHandle`] without its thread.
pub(crate) struct RunSnapshot {
    pub(crate) run: crate::store::runs::Run,
    pub(crate) prompt_path: Vec<String>,
}

impl RunSnapshot {
    fn with(self, door: Rc<dyn RunApi>) -> RunHandle {
        let RunSnapshot { run, prompt_path } = self;
        let [side_a_step_count, side_b_step_count] = run.side_steps;
        RunHandle {
            flow_id: run.public_id(),
            current_side: run.side,
            step_count: run.step,
            side_a_step_count,
            side_b_step_count,
            stopped: run.asked == Some(CodeRequest::Stop),
            stopped_by: (run.asked == Some(CodeRequest::Stop)).then_some(run.side),
            prompt_path,
            door,
        }
    }
}

/// The thread's side of the run.
pub(crate) trait RunApi {
    fn execution(&self) -> Result<Option<RunSnapshot>>;
    fn ask(&self, asked: CodeRequest) -> Result<()>;
    fn context(&self, key: &str) -> Option<Value>;
    fn whole_context(&self) -> Context;
    fn set_context(&self, key: &str, value: Value);
    fn remove_context(&self, key: &str);
    fn history(&self) -> Result<Vec<Value>>;
    fn trace(&self, kind: &str, data: Value) -> Result<()>;
    fn progress(&self, text: &str) -> Result<()>;
    /// Whether a run is active here.
    fn at_work(&self) -> bool;
    fn aborted(&self) -> Shared<oneshot::Receiver<()>>;
}

/// Scratch space of the active run.
pub(crate) type Context = Map<String, Value>;
