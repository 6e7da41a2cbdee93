//! The run, for code in one of its steps.

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::Shared;
use serde_json::Value;

use crate::definitions::AgentKind;
use crate::engine::handle::ThreadHandle;
use crate::engine::run_trace::no_run;
use crate::error::{Code, Error, Result};
use crate::request::Query;
use crate::sdk::run_handle::{Abort, Context, RunApi, RunSnapshot};
use crate::store::side::CodeRequest;

impl RunApi for ThreadHandle {
    fn execution(&self) -> Result<Option<RunSnapshot>> {
        if !self.scope.origin.in_step() {
            return Ok(None);
        }
        let run = self.thread.read(|state, _| Ok(state.active().cloned()))?;
        let mut prompt_path = self.scope.path.clone();
        if prompt_path.is_empty() {
            prompt_path.extend(self.thread.definitions()?.map(|found| found.prompt.name.clone()));
        }
        Ok(run.map(|run| RunSnapshot { run, prompt_path }))
    }

    fn ask(&self, asked: CodeRequest) -> Result<()> {
        self.scope.writes("end or turn the run")?;
        self.thread.transition(|state, sql| {
            if matches!(asked, CodeRequest::Turn(_)) && self.thread.kind(state) == AgentKind::AiHuman {
                let text = "Side b is a person here: only between two AI sides can a turn be forced.";
                return Err(Error::field("side", text));
            }
            let over = || Error::new(Code::Conflict, "The step that this code worked in is over.");
            let run = state.run.as_mut().filter(|run| run.block_open()).ok_or_else(over)?;
            run.asked = Some(asked);
            run.update(sql)
        })
    }

    fn context(&self, key: &str) -> Option<Value> {
        self.thread.ephemeral.context.borrow().get(key).cloned()
    }

    fn whole_context(&self) -> Context {
        if self.scope.origin.in_step() {
            self.thread.ephemeral.context.borrow().clone()
        } else {
            Context::new()
        }
    }

    fn set_context(&self, key: &str, value: Value) {
        // A read-only caller of this or of `remove_context` fails at the end of its call.
        if self.scope.origin.in_step() && self.scope.writes("set the context").is_ok() {
            self.thread.ephemeral.context.borrow_mut().insert(key.to_owned(), value);
        }
    }

    fn remove_context(&self, key: &str) {
        if self.scope.origin.in_step() && self.scope.writes("set the context").is_ok() {
            self.thread.ephemeral.context.borrow_mut().remove(key);
        }
    }

    fn at_work(&self) -> bool {
        self.scope.origin.in_step()
    }

    fn history(&self) -> Result<Vec<Value>> {
        let query = Query(vec![("includeSilent".to_owned(), "true".to_owned())]);
        Ok(self.thread.records().messages(&query)?.messages)
    }

    fn trace(&self, kind: &str, data: Value) -> Result<()> {
        self.scope.writes("add to the trace")?;
        if !self.scope.origin.in_step() {
            return Err(no_run());
        }
        self.thread.traces().trace(kind, data)
    }

    fn progress(&self, text: &str) -> Result<()> {
        self.thread.activity().note_progress(text, self.scope.depth.saturating_sub(1))
    }

    fn aborted(&self) -> Shared<oneshot::Receiver<()>> {
        let mut aborted = self.thread.ephemeral.aborted.borrow_mut();
        let abort = aborted.get_or_insert_with(|| {
            let (end, signal) = oneshot::channel();
            Abort { _end: end, signal: signal.shared() }
        });
        abort.signal.clone()
    }
}
