//! Code that runs in the sandbox for a thread (spec §17): `runCode`.

pub(crate) mod args;
pub(crate) mod bridge;
pub(crate) mod fetch;
pub(crate) mod file;
pub(crate) mod kinds;
pub(crate) mod outbound;
pub(crate) mod place;
pub(crate) mod web;

use crate::work::code::bridge::afar::Asked;
use crate::work::code::web::Web;

use std::rc::Rc;

use crate::engine::Thread;
use crate::error::Error;
use crate::error::Result;
use crate::request::Reply;
use crate::request::ThreadRequest;
use crate::sdk::Open;
use crate::sdk::ThreadState;
use crate::sdk::Where;
use crate::work::sandbox::Execution;
use crate::work::sandbox::Options;
use crate::work::sandbox::execution::Start;
use crate::work::sandbox::execution::start;

impl ThreadState {
    /// Runs an ES module in the sandbox (spec §17.1): TypeScript unless the options say otherwise, with nothing of the
    /// host's but what they give it. It starts at once; the handle gives its result, ends it, and must be held for as long
    /// as it is to run. There is no time limit: whoever wants one calls [`Execution::terminate`].
    ///
    /// Whatever is wrong with the source or the options is a result, too.
    pub fn run_code(&self, source: &str, options: Options) -> Execution {
        self.code_door().run_code(source, options)
    }
}

impl ThreadState {
    /// What this code needs to reach these hosts, and no others.
    pub(crate) fn web(&self, code: &str, allowed_hosts: Vec<String>) -> Web {
        self.code_door().web(code, allowed_hosts)
    }

    /// Names of what the prompt offers here.
    pub(crate) fn offered(&self) -> Result<Vec<String>> {
        self.code_door().offered()
    }
}

/// The thread behind it.
pub(crate) trait CodeDoor {
    fn run_code(&self, source: &str, options: Options) -> Execution;
    fn web(&self, code: &str, allowed_hosts: Vec<String>) -> Web;
    fn offered(&self) -> Result<Vec<String>>;
}

impl CodeDoor for Open {
    fn run_code(&self, source: &str, options: Options) -> Execution {
        self.thread.run_code(source, options)
    }

    fn web(&self, code: &str, allowed_hosts: Vec<String>) -> Web {
        self.thread.web(code, allowed_hosts)
    }

    fn offered(&self) -> Result<Vec<String>> {
        let Some(definitions) = self.thread.definitions_in(&self.scope)? else { return Ok(Vec::new()) };
        let offers = self.thread.offers(&definitions)?;
        Ok(offers.iter().map(|offer| offer.name.clone()).collect())
    }
}

impl Thread {
    /// A call of a member by code of another thread of the family.
    pub(crate) async fn answer_member(self: &Rc<Self>, request: &ThreadRequest) -> Result<Reply> {
        let asked: Asked = serde_json::from_str(&request.body).map_err(Error::internal)?;
        let state = self.state_at(Where::Apart, asked.package.as_deref());
        let apart = self.work_apart(&state)?;
        let answer = crate::work::code::bridge::afar::answer(&state, asked).await;
        self.end_apart(apart)?;
        Ok(Reply::json(200, &answer?))
    }

    fn run_code(self: &Rc<Self>, source: &str, options: Options) -> Execution {
        let id: String = self.host.random().iter().map(|byte| format!("{byte:02x}")).collect();
        let owner = self.read(|state, _| Ok(state.meta.thread_id.clone())).unwrap_or_default();
        let wanted = Start { source: source.to_owned(), options, id, owner, sleep: self.sleep() };
        let (execution, drive) = start(wanted, |run, door| self.sandbox.run(run, door));
        if let Some(drive) = drive {
            self.host.spawn(drive);
        }
        execution
    }
}
