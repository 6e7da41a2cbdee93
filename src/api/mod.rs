//! The routes of a thread. [`Thread::handle`] and [`Thread::serve`] dispatch each route to its function.
//! Changes to the thread are in the engine; this module has the reads, and the responses that have their own
//! format.
//!
//! * `create`: a new thread; `history`: its earlier messages. `read`: the thread and its diagnostics.
//!   `files`: the routes of the files. `runs`: the runs and their outcomes; `trace`: the events of one run;
//!   `spans`: the same for tracing systems.
//! * `context`: the next request to a model; `steps`: an earlier request, `step_parts`: the sizes of its
//!   parts. `budget`: the limits of runs, and their use.
//! * `waits`: questions to people, and their answers.
//! * `servers`: MCP servers and their status. `calls`: calls of a tool by an MCP client. `import`: messages of
//!   another deployment.
//! * `endpoints`: the application's own routes; `endpoint_answer`: their responses.

mod budget;
mod calls;
mod context;
mod create;
mod endpoint_answer;
mod endpoints;
mod files;
pub(crate) mod history;
pub(crate) mod import;
mod read;
mod runs;
pub mod servers;
mod spans;
mod step_parts;
mod steps;
mod trace;
mod waits;

use crate::access::{Action, no_thread};
use crate::engine::features::handle;
use crate::engine::thread::{LostFrames, Thread};
use crate::error::{Code, Error, Result};
use crate::host::http;
use crate::protocols::responses::values::Initiator;
use crate::request::fields::Body;
use crate::request::{RawResponse, Reply, StreamRoute, ThreadRequest, ThreadRoute};
use futures::future::LocalBoxFuture;

handle! {
    /// Responses to requests of the API.
    struct Api, api
}

impl Thread {
    /// Answers a request of the API. Any wake of an object with an unfinished run continues the run.
    ///
    /// Futures that other crates await are boxed. Otherwise each crate that awaits an async function compiles
    /// its whole body again (docs/decisions/020).
    pub fn handle(self, request: ThreadRequest) -> LocalBoxFuture<'static, Reply> {
        Box::pin(async move {
            let _lost = LostFrames(&*self.host);
            let answer = self.answer(request).await;
            answer.unwrap_or_else(|error| {
                if error.code == Code::Internal {
                    self.variables().log(&format!("internal error: {error}"));
                }
                Reply::from(self.variables().redact_error(error))
            })
        })
    }

    /// Answers a request of a streamed route with its body, which is read only as far as needed. Otherwise like [`Thread::handle`].
    pub fn serve(
        self,
        request: ThreadRequest<StreamRoute>,
        body: http::Body,
    ) -> LocalBoxFuture<'static, RawResponse> {
        Box::pin(async move {
            let _lost = LostFrames(&*self.host);
            let served = self.answer_streamed(request, body).await;
            served.unwrap_or_else(|error| {
                if error.code == Code::Internal {
                    self.variables().log(&format!("internal error: {error}"));
                }
                RawResponse::from(self.variables().redact_error(error))
            })
        })
    }

    async fn answer_streamed(
        &self,
        request: ThreadRequest<StreamRoute>,
        body: http::Body,
    ) -> Result<RawResponse> {
        self.check_generation(&request)?;
        let action = match &request.route {
            StreamRoute::Endpoint { method, path } => self.api().endpoint_action(*method, path),
            route if route.reads() => Action::ReadThread,
            _ => Action::Manage,
        };
        self.authorise(&request, &action)?;
        request.route.parameters().map_or(Ok(()), |known| request.query.check(known))?;
        self.history().copied_first().await?;
        self.wake()?;
        if let StreamRoute::Endpoint { method, path } = &request.route {
            return self.api().serve_endpoint(&request, *method, path, body).await;
        }
        self.api().serve_file(&request, body).await
    }

    async fn answer(&self, request: ThreadRequest) -> Result<Reply> {
        if request.route == ThreadRoute::Create {
            return self.api().create(&request).await;
        }
        if request.route == ThreadRoute::CreateFork {
            return self.history().create_fork(&request).await;
        }
        self.check_generation(&request)?;
        if request.route == ThreadRoute::Envelope {
            return self.subagents().receive_envelope(&request).await;
        }
        if request.route == ThreadRoute::CameBack {
            self.wake()?;
            // The `state` in the body authorises the request.
            return self.mcp().came_back(&request.body).await;
        }
        self.authorise(&request, &action(&request.route))?;
        request.query.check(request.route.parameters())?;
        if !matches!(request.route, ThreadRoute::Get | ThreadRoute::Delete) {
            self.history().copied_first().await?;
        }
        self.wake()?;
        match &request.route {
            // Answered above, before the caller's scope is compared.
            ThreadRoute::Create | ThreadRoute::CreateFork | ThreadRoute::Envelope | ThreadRoute::CameBack => {
                Err(Error::internal("a request between objects came twice"))
            }
            ThreadRoute::Member => self.answer_member(&request).await,
            ThreadRoute::Call => self.api().call_offered(&request),
            ThreadRoute::Called(message) => self.api().called(message),
            ThreadRoute::FileContent(path) => self.api().file_content(path),
            ThreadRoute::CopyPage => self.history().copy_page(&request.body),
            ThreadRoute::Fork => self.history().fork(&request).await,
            ThreadRoute::Get => self.api().get(&request),
            ThreadRoute::Patch => self.history().patch(&request.body).await,
            ThreadRoute::Delete => self.control().delete(&request).await,
            ThreadRoute::PostMessage => self.post_message(&request).await,
            ThreadRoute::ListMessages => self.records().list_messages(&request.query),
            ThreadRoute::GetMessage(id) => self.records().get_message(id),
            ThreadRoute::PatchMessage(id) => self.history().patch_message(&request, id).await,
            ThreadRoute::DeleteMessage(id) => self.history().delete_message(id),
            ThreadRoute::Regenerate(id) => self.history().regenerate(&request, id),
            ThreadRoute::Stop => self.control().stop(&request.body),
            ThreadRoute::Continue => self.control().continue_run(&request),
            ThreadRoute::Terminate => {
                Body::parse(&request.body)?.known(&[])?;
                self.control().terminate().await
            }
            ThreadRoute::ListLogs => self.records().list_logs(&request.query),
            ThreadRoute::GetLog(id) => self.records().get_log(id),
            ThreadRoute::ListRuns => self.api().list_runs(&request.query),
            ThreadRoute::GetRun(id) => self.api().get_run(&request, id),
            ThreadRoute::Diagnostics => self.api().diagnostics().await,
            ThreadRoute::ListSubagents => self.subagents().list_subagents(&request.query),
            ThreadRoute::GetCost => self.subagents().get_cost().await,
            ThreadRoute::GetBudget => self.api().get_budget(),
            ThreadRoute::PatchBudget => self.api().patch_budget(&request),
            ThreadRoute::GetContext => self.api().get_context(&request.query).await,
            ThreadRoute::Summarize => self.summarizer().summarize(&request.body).await,
            ThreadRoute::DropSummary => self.summarizer().drop_summary(),
            ThreadRoute::GetSpans(run) => self.api().get_spans(run),
            ThreadRoute::GetStepRequest(message) => self.api().get_step_request(message).await,
            ThreadRoute::GetValues => self.key_values().get_values(&request.query),
            ThreadRoute::PostValue => self.key_values().post_value(&request.body),
            ThreadRoute::DeleteValue => self.key_values().delete_value(&request.query),
            ThreadRoute::GetVariables(id) => self.subagents().get_variables(id).await,
            ThreadRoute::PostVariables(id) => self.subagents().post_variables(&request, id).await,
            ThreadRoute::ListEffects => self.effects().list_effects(&request.query),
            ThreadRoute::PostEffect => self.effects().post_effect(&request),
            ThreadRoute::GetEffect(id) => self.effects().get_effect(id),
            ThreadRoute::RunEffect(id) => {
                Body::parse(&request.body)?.known(&[])?;
                self.effects().run_effect_now(id)
            }
            ThreadRoute::CancelEffect(id) => {
                Body::parse(&request.body)?.known(&[])?;
                self.effects().cancel_effect(id, Initiator::User)
            }
            ThreadRoute::ListWaits => self.api().list_waits(&request).await,
            ThreadRoute::DecideWaits => self.api().decide_waits(&request),
            ThreadRoute::ForgetWaits => self.api().forget_waits(),
            ThreadRoute::GetWait(id) => self.api().get_wait(id),
            ThreadRoute::DecideWait(id) => self.api().decide_wait(&request, id),
            ThreadRoute::Memory { memory, of } => self.memories().answer_memory(&request, memory, of).await,
        }
    }

    /// Refuses requests for an earlier or later thread with the same id.
    fn check_generation<R>(&self, request: &ThreadRequest<R>) -> Result<()> {
        let Some(generation) = request.life else { return Ok(()) };
        let own = self.read(|state, _| Ok(state.meta.life))?;
        if own == generation { Ok(()) } else { Err(no_thread()) }
    }

    /// Checks the caller's scope against the thread's owner. A thread of another owner is reported as not
    /// found.
    fn authorise<R>(&self, request: &ThreadRequest<R>, action: &Action<'_>) -> Result<()> {
        self.read(|state, _| request.caller.may(action, Some(state.meta.thread())))
    }
}

/// The permission that a route needs.
fn action(route: &ThreadRoute) -> Action<'_> {
    match route {
        ThreadRoute::GetWait(id) | ThreadRoute::DecideWait(id) => Action::Wait { id },
        // The trace is for the owner, not for everybody who may write to the thread.
        ThreadRoute::GetSpans(_) => Action::Manage,
        // It contains the texts of prompts, which belong to the application.
        ThreadRoute::GetStepRequest(_) => Action::ReadPrompts,
        route if route.reads() => Action::ReadThread,
        // Each wait defines who may decide it.
        ThreadRoute::PostMessage | ThreadRoute::Call | ThreadRoute::DecideWaits => Action::Send,
        ThreadRoute::Stop | ThreadRoute::Continue => Action::StopContinue,
        _ => Action::Manage,
    }
}
