//! Tasks of MCP servers. The run is parked, and the alarm polls the server. When the run is stopped, a job
//! cancels the task.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::Implementation;
use crate::definitions::message::ToolResult;
use crate::definitions::tier::tier;
use crate::engine::features::McpClient;
use crate::engine::jobs::JobEnd;
use crate::engine::mcp::tokens::ServerConnection;
use crate::engine::mcp::{ServerCall, ServerClient, endless_input};
use crate::engine::waits::NewWait;
use crate::engine::waits::gate::would_wait;
use crate::error::{Error, Result};
use crate::host::Sql;
use crate::json;
use crate::limits;
use crate::mcp_client::ask::Asker;
use crate::mcp_client::elicit::{InputRequest, InputRequired};
use crate::mcp_client::outcome::Outcome;
use crate::mcp_client::task::{self, Progress};
use crate::store::jobs::{Job, Kind};
use crate::store::receipts::{Receipt, ServerCallState, ServerTask};
use crate::store::runs::Parking;
use crate::store::state::State;
use crate::store::waits::{InputForm, OnExpiry, WaitData, WaitKind, WaitState, WaitingCall};
use crate::store::{jobs, receipts, waits};
use crate::work::mcp::{Address, PROTOCOL, RequestError, TransportError, UNREACHABLE};
use crate::work::native::NativeCall;

/// The data of a job.
#[derive(Serialize, Deserialize)]
struct CancelData {
    /// The name of the called tool.
    tool: String,
}

/// The state of a task after a poll.
enum PollOutcome {
    /// In progress. The pause before the next poll in microseconds, and the error if this poll failed.
    Working(i64, Option<TransportError>),
    /// It requests input from people.
    InputRequired(Vec<InputRequest>),
    /// It has ended.
    Ended(Box<Result<ToolResult, TransportError>>),
}

impl PollOutcome {
    fn ended(result: Result<ToolResult, TransportError>) -> PollOutcome {
        PollOutcome::Ended(Box::new(result))
    }

    fn error(&self) -> Option<&TransportError> {
        match self {
            PollOutcome::Working(_, error) => error.as_ref(),
            PollOutcome::Ended(over) => (**over).as_ref().err(),
            PollOutcome::InputRequired(_) => None,
        }
    }
}

impl McpClient<'_> {
    /// Polls a task, and ends its call or parks the run again. Polls have no effects, so failures are retried
    /// for long.
    pub(super) async fn poll_task(
        &self,
        at: ServerCall<'_>,
        asking: &ServerClient<'_>,
        call: &NativeCall,
        mut call_state: ServerCallState,
        responses: Option<Value>,
    ) -> Result<Result<ToolResult, TransportError>> {
        let mut task = call_state.task.take().unwrap_or_default();
        let response = poll(asking, &mut task, &mut call_state, responses).await;
        let challenge = self
            .wants_sign_in(&asking.signed, response.as_ref().err().and_then(RequestError::trouble))
            .cloned();
        let outcome = self.poll_outcome(at, &task, response);
        self.record_server_result(
            &at.of.server,
            outcome.error().map(|trouble| (trouble.code, &*trouble.text)),
        );
        if let Some(challenge) = challenge {
            let call_state = ServerCallState { task: Some(task), ..call_state };
            return self.park_for_sign_in(at, asking, call, &challenge, call_state).await;
        }
        let over = match outcome {
            PollOutcome::Ended(over) => *over,
            PollOutcome::InputRequired(asked) => {
                call_state.round += 1;
                if call_state.round <= limits::MCP_ROUNDS {
                    let call_state = ServerCallState { task: Some(task), ..call_state };
                    let required = InputRequired { asked, state: None };
                    return self.park_for_server_input(at.asks(call), required, call_state).await.map(Ok);
                }
                Err(endless_input(at.of))
            }
            PollOutcome::Working(poll_us, missed) => {
                task.misses = if missed.is_some() { task.misses + 1 } else { 0 };
                let late = self.host.now_us() - task.since_us > limits::WAIT_MAX_US;
                match missed {
                    Some(trouble) if trouble.may_pass.is_none() || task.misses > limits::MCP_POLL_MISSES => {
                        Err(TransportError { may_pass: None, ..trouble })
                    }
                    _ if late => {
                        let text = format!(
                            "The MCP server \"{}\" has not ended its task within 30 days.",
                            at.of.server
                        );
                        Err(TransportError::new(UNREACHABLE, text))
                    }
                    _ => {
                        let call_state = ServerCallState { task: Some(task), ..call_state };
                        return self.park_for_task(at, call, call_state, poll_us).await.map(Ok);
                    }
                }
            }
        };
        if let Some(receipt) = at.inside.receipt {
            self.waits().close_waits_of_call(receipt, WaitState::Decided)?;
        }
        Ok(over)
    }

    fn poll_outcome(
        &self,
        at: ServerCall<'_>,
        task: &ServerTask,
        response: Result<Map<String, Value>, RequestError>,
    ) -> PollOutcome {
        let server = &at.of.server;
        match response.map(task::progress) {
            Ok(Ok(Progress::Working(poll_us))) => PollOutcome::Working(poll_us, None),
            Ok(Ok(Progress::Input(mut asked, poll_us))) => {
                // A server may repeat a request for input until it has processed the answer.
                asked.retain(|one| !task.answered.contains(&one.name));
                if asked.is_empty() {
                    PollOutcome::Working(poll_us, None)
                } else {
                    PollOutcome::InputRequired(asked)
                }
            }
            Ok(Ok(Progress::Completed(result))) => {
                PollOutcome::ended(self.mcp_outcome(at.of, Ok(result)).and_then(|outcome| match outcome {
                    Outcome::Done(result) => Ok(*result),
                    Outcome::Input(_) | Outcome::Task(..) => Err(TransportError::new(
                        PROTOCOL,
                        format!("The task of the MCP server \"{server}\" ended without a result."),
                    )),
                }))
            }
            Ok(Ok(Progress::Failed(error))) | Err(RequestError::Rpc(error)) => PollOutcome::ended(
                self.mcp_outcome(at.of, Err(RequestError::Rpc(error))).map(|_| ToolResult::error("")),
            ),
            Ok(Ok(Progress::Cancelled)) => PollOutcome::ended(Ok(ToolResult::error(format!(
                "The MCP server \"{server}\" has cancelled the task."
            )))),
            Ok(Err(text)) => {
                let text =
                    format!("The answer of the MCP server \"{server}\" is not of the protocol: {text}.");
                PollOutcome::ended(Err(TransportError::new(PROTOCOL, text)))
            }
            Err(RequestError::Trouble(trouble)) => {
                let poll_us = limits::MCP_POLL_US << task.misses.min(8);
                PollOutcome::Working(poll_us.min(limits::MCP_POLL_MAX_US), Some(trouble))
            }
        }
    }

    /// Parks the run until the next poll. Returns only where it cannot be parked, with the model's error
    /// result.
    pub(super) async fn park_for_task(
        &self,
        at: ServerCall<'_>,
        call: &NativeCall,
        call_state: ServerCallState,
        poll_us: i64,
    ) -> Result<ToolResult> {
        let (Some(receipt), Parking::Possible) = (at.inside.receipt, at.inside.parking) else {
            return Ok(would_wait(&at.tool.name));
        };
        let opened = self.transition(|state, sql| {
            let now = self.host.now_us();
            let open = if state.meta.waits == 0 { Vec::new() } else { waits::open(sql)? };
            let of_call = open.into_iter().find(|wait| wait.is_of_task(receipt));
            let mut opened = Vec::new();
            match of_call {
                // A task has a single wait, however often it is polled.
                Some(wait) => {
                    waits::defer(sql, wait.id, now + poll_us)?;
                    state.wait_due.take();
                    self.arm_at(state, sql, now + poll_us, now)?;
                }
                None => {
                    let found = receipts::find(sql, receipt)?;
                    let batch = found.ok_or_else(|| Error::internal("a receipt is gone"))?.reply;
                    let (kind, digest, asked) =
                        (WaitKind::Task, String::new(), self.task_wait_data(at, call));
                    let new = NewWait { kind, receipt, batch, digest, asked, lasts_us: poll_us };
                    opened.push(self.waits().open_wait(state, sql, new)?);
                }
            }
            receipts::wait_at_server(sql, receipt, &call_state)?;
            self.post_mcp(state, sql)?;
            self.waits().park_run(state, sql)?;
            Ok(opened)
        })?;
        self.waits().end_parked_flow(&opened).await
    }

    fn task_wait_data(&self, at: ServerCall<'_>, call: &NativeCall) -> WaitData {
        let server = at.of.server.clone();
        let asked = WaitData {
            title: format!("{} is under way", at.tool.name),
            reason: Some(format!("The MCP server “{server}” works on it.")),
            on_expiry: OnExpiry::Continue,
            call: Some(WaitingCall {
                id: call.call_id.clone(),
                tool: at.tool.name.clone(),
                tier: tier(at.tool),
                args: call.args.clone(),
            }),
            input: Some(InputForm { server, name: String::new(), form: None, url: None }),
            ..WaitData::default()
        };
        match asked.fits() {
            true => asked,
            false => WaitData { call: None, ..asked },
        }
    }

    /// Adds a job that cancels the task of a call, when a run ends during its step.
    pub(crate) fn schedule_task_cancel(
        &self,
        state: &mut State,
        sql: &dyn Sql,
        receipt: &Receipt,
        now: i64,
    ) -> Result<()> {
        let Some(task) = receipt.task() else { return Ok(()) };
        let data =
            serde_json::to_string(&CancelData { tool: receipt.name.clone() }).map_err(Error::internal)?;
        if jobs::add(state, sql, Kind::CancelTask, &task.id, now, &data)? {
            self.arm_at(state, sql, now, now)?;
        }
        Ok(())
    }

    /// Runs one attempt of the job. A task that the server does not know needs no cancellation.
    pub(crate) async fn cancel_task(&self, job: &Job) -> Result<JobEnd> {
        let done = || JobEnd::Done(Box::new(|_, _| Ok(None)));
        let CancelData { tool } = crate::json::from_str(&job.data).map_err(Error::internal)?;
        let server = self.catalog.tools.get(&tool).and_then(|tool| match &tool.run {
            Implementation::Mcp(of) => self.catalog.mcp.get(&of.server),
            _ => None,
        });
        let Some(server) = server else {
            self.variables().log(&format!("a task was not cancelled: there is no tool \"{tool}\" any more"));
            return Ok(done());
        };
        self.variables().refresh_env().await?;
        let agent = self.read(|state, _| Ok(state.meta.agent.clone()))?;
        let context = self.work_context();
        let env = |name: &str| self.variables().agent_env(&agent, name);
        let address = match Address::of(server, &*context, &env) {
            Ok(address) => address,
            Err(text) => {
                self.variables().log(&format!("a task was not cancelled: {text}"));
                return Ok(done());
            }
        };
        let asking = ServerClient {
            thread: self,
            signed: ServerConnection { context: &*context, server, address: &address, env: &env },
            subject: format!("\"{tool}\""),
            limit_ms: limits::CANCEL_MS,
            asker: Asker { capabilities: json!({ "extensions": task::capability() }), meta: Vec::new() },
            trace: Vec::new(),
        };
        Ok(match asking.ask(&task::cancel(&job.subject)).await {
            Ok(_) | Err(RequestError::Rpc(_)) => done(),
            Err(RequestError::Trouble(trouble)) => {
                JobEnd::Failed { error: trouble.text, after_us: 0, data: job.data.clone() }
            }
        })
    }
}

/// Sends the people's answers to a task, and polls it.
async fn poll(
    asking: &ServerClient<'_>,
    task: &mut ServerTask,
    call_state: &mut ServerCallState,
    responses: Option<Value>,
) -> Result<Map<String, Value>, RequestError> {
    if send_answers(asking, task, responses).await? {
        call_state.waits.clear();
    }
    asking.ask(&task::get(&task.id)).await
}

/// Sends the people's answers to a task. Returns whether there were any. A refused answer is logged and not
/// marked as delivered: the server's next state shows what it still needs.
async fn send_answers(
    asking: &ServerClient<'_>,
    task: &mut ServerTask,
    responses: Option<Value>,
) -> Result<bool, RequestError> {
    let Some(responses) = responses else { return Ok(false) };
    let names: Vec<String> =
        responses.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    match asking.ask(&task::update(&task.id, responses)).await {
        Ok(_) => task.answered.extend(names),
        Err(RequestError::Rpc(error)) => asking.thread.variables().log(&format!(
            "the MCP server \"{}\" did not take what people answered: error {}: {}",
            asking.signed.server.name,
            error.code,
            asking.thread.variables().shown(error.message).cut(limits::MCP_TOLD_BYTES)
        )),
        Err(trouble) => return Err(trouble),
    }
    Ok(true)
}
