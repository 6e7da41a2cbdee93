//! `runCode`, for code in a thread.

use std::rc::Rc;

use crate::engine::handle::ThreadHandle;
use crate::engine::thread::Thread;
use crate::error::{Error, Result};
use crate::request::{Reply, ThreadRequest};
use crate::sandbox::execution::{Start, start};
use crate::sandbox::{CodeHandle, Options};
use crate::sdk::code::{CodeApi, Web};
use crate::sdk::remote_call::MemberCall;
use crate::sdk::scope::{Access, Origin};
use crate::store::meta::Meta;

impl CodeApi for ThreadHandle {
    fn run_code(&self, source: &str, options: Options) -> CodeHandle {
        self.thread.run_code(source, options)
    }

    fn web(&self, code: &str, allowed_hosts: Vec<String>) -> Web {
        crate::work::code::web::web(&self.thread.work_context(), code, allowed_hosts)
    }

    fn offered(&self) -> Result<Vec<String>> {
        let Some(definitions) = self.thread.definitions_in(&self.scope)? else { return Ok(Vec::new()) };
        let offers = self.thread.model_context().offers(&definitions)?;
        Ok(offers.iter().map(|offer| offer.name.clone()).collect())
    }
}

impl Thread {
    /// Answers a call of a member by code of another thread of the family.
    pub(crate) async fn answer_member(&self, request: &ThreadRequest) -> Result<Reply> {
        let asked: MemberCall = crate::json::from_str(&request.body).map_err(Error::internal)?;
        let access = if asked.only_reads { Access::Reads(Rc::default()) } else { Access::Writes };
        let state = self.state_with(Origin::Detached, asked.package.as_deref(), access);
        let detached = self.begin_detached(&state)?;
        let answer = crate::work::code::bridge::remote_thread::answer(&state, asked).await;
        self.end_detached(detached)?;
        Ok(Reply::json(200, &answer?))
    }

    fn run_code(&self, source: &str, options: Options) -> CodeHandle {
        let id: String = self.host.random().iter().map(|byte| format!("{byte:02x}")).collect();
        let whose = |meta: &Meta| (meta.thread_id.clone(), meta.owner.clone());
        let (owner, account) = self.read(|state, _| Ok(whose(&state.meta))).unwrap_or_default();
        let account = account.unwrap_or_else(|| owner.clone());
        let wanted = Start { source: source.to_owned(), options, id, owner, account, sleep: self.sleep() };
        let (execution, drive) = start(wanted, |run, door| self.sandbox.run(run, door));
        if let Some(drive) = drive {
            self.host.spawn(drive);
        }
        execution
    }
}
