//! Calls of the tools of MCP servers (docs/mcp.md). They have receipts like all calls and follow the same rules
//! for repetition: once a request is sent, its effect is unknown unless a response arrives.
//!
//! * Here: one call. `input`: input that a server requests from people. `tasks`: long-running calls. `lists`: live
//!   tool lists; `live_catalog`: the catalog with them. `sessions`: sessions with servers. `tokens`: access
//!   tokens. `sign_in`: a person's sign-in; `callback`: the browser's return from it. `sealed_text`: texts that
//!   only this thread, or the threads of one owner, can read. `reports`: reports about servers to the deployment.
//!   `cache`: what the object knows while it lives.

pub(super) mod cache;
mod callback;
mod input;
mod lists;
mod live_catalog;
mod reports;
mod sealed_text;
mod sessions;
mod sign_in;
mod tasks;
mod tokens;

use serde_json::{Map, Value};

use crate::definitions::message::ToolResult;
use crate::definitions::{McpServer, McpTool, Tool, template};
use crate::engine::definitions::Definitions;
use crate::engine::features::McpClient;
use crate::engine::mcp::sessions::Sessions;
use crate::engine::mcp::tokens::ServerConnection;
use crate::engine::thread::Thread;
use crate::engine::waits::gate::WOULD_WAIT;
use crate::engine::waits::input::InputCall;
use crate::error::Result;
use crate::json;
use crate::limits;
use crate::mcp_client::ask::{Ask, Asker, CALL};
use crate::mcp_client::outcome::{self, Outcome, is_missing, result_is_missing};
use crate::mcp_client::task;
use crate::sdk::scope::Scope;
use crate::store::receipts::{ServerCallState, ServerTask};
use crate::store::runs::Parking;
use crate::trace::span_id;
use crate::work::ExecutionPlan;
use crate::work::mcp::{Address, PROTOCOL, Peer, RequestError, TOOL_MISSING, TransportError};
use crate::work::native::NativeCall;

/// A call of a server's tool.
#[derive(Clone, Copy)]
pub(super) struct ServerCall<'a> {
    pub(super) tool: &'a Tool,
    pub(super) of: &'a McpTool,
    pub(super) inside: &'a Scope,
    pub(super) definitions: &'a Definitions<'a>,
}

impl<'a> ServerCall<'a> {
    /// The request for input that this call makes.
    fn asks(self, call: &NativeCall) -> InputCall<'a> {
        let ServerCall { tool, of, inside, definitions } = self;
        InputCall { tool, server: Some(&of.server), inside, definitions, call: call.id_and_args() }
    }
}

/// A thread's connection to a server for one call; it adds a token if the definition has `auth`.
struct ServerClient<'a> {
    thread: &'a Thread,
    signed: ServerConnection<'a>,
    /// The name in error texts: the tool.
    subject: String,
    /// The timeout of each request, in milliseconds.
    limit_ms: u64,
    asker: Asker,
    /// The trace headers.
    trace: Vec<(String, String)>,
}

impl ServerClient<'_> {
    /// Sends a request and returns its result.
    async fn ask(&self, ask: &Ask) -> Result<Map<String, Value>, RequestError> {
        let send = async |address: &Address| {
            let peer = Peer {
                context: self.signed.context,
                subject: &self.subject,
                limit_ms: self.limit_ms,
                asker: self.asker.clone(),
                trace: self.trace.clone(),
                sessions: &Sessions::new(self.thread, address),
                address,
            };
            peer.ask(ask).await
        };
        self.thread.mcp().signed(&self.signed, send).await
    }
}

/// The error of a server that needs input or a task, for a client without these capabilities.
const MISSING_CAPABILITY: i64 = -32021;

impl McpClient<'_> {
    /// Makes a call of a server's tool, once, or continues one that its server waits for. It may park the
    /// run; then it never returns.
    pub(super) async fn mcp_call(
        &self,
        at: ServerCall<'_>,
        plan: &ExecutionPlan<'_>,
        call: NativeCall,
    ) -> Result<Result<ToolResult, TransportError>> {
        let ServerCall { tool, of, inside, .. } = at;
        let Some(server) = self.catalog.mcp.get(&of.server) else {
            let text = format!("The MCP server \"{}\" of \"{}\" is not there.", of.server, tool.name);
            return Ok(Err(TransportError::new(TOOL_MISSING, text)));
        };
        if uses_values(server, of)
            && let Err(error) = self.variables().refresh_env().await
        {
            return Ok(Ok(ToolResult::error(error.into_message())));
        }
        let context = self.work_context();
        let found = Address::of(server, &*context, plan.env)
            .and_then(|address| Ok((address, provided(of, call.args.clone(), plan.env)?)));
        let (address, args) = match found {
            Ok(found) => found,
            Err(text) => return Ok(Ok(ToolResult::error(text))),
        };
        let trace = self.mcp_trace(inside, plan).headers();
        let mut meta = vec![(CALL.to_owned(), call.idempotency_key.clone())];
        meta.extend(trace.iter().cloned());
        let limit_ms = plan.http_ms.unwrap_or((limits::HTTP_TOOL_US / 1000) as u64);
        let asking = ServerClient {
            thread: self,
            signed: ServerConnection { context: &*context, server, address: &address, env: plan.env },
            subject: format!("\"{}\"", tool.name),
            limit_ms: limit_ms.min(limits::HTTP_TOOL_MAX_MS),
            asker: Asker { capabilities: capabilities(inside), meta },
            trace,
        };
        let call_state = self.waits().stored_call_state(inside)?.unwrap_or_default();
        self.continue_server_call(at, &asking, args, &call, call_state).await
    }

    /// Continues the call: sends it with the people's answers, or polls its task.
    async fn continue_server_call(
        &self,
        at: ServerCall<'_>,
        asking: &ServerClient<'_>,
        args: Value,
        call: &NativeCall,
        mut call_state: ServerCallState,
    ) -> Result<Result<ToolResult, TransportError>> {
        let of = at.of;
        let (responses, back) = self.answered_input(&call_state)?;
        if call_state.task.is_some() {
            return self.poll_task(at, asking, call, call_state, responses).await;
        }
        let mut ask = Ask::call(of, args.clone()).with_input(responses, back);
        loop {
            let answer = asking.ask(&ask).await;
            let challenge = self
                .wants_sign_in(&asking.signed, answer.as_ref().err().and_then(RequestError::trouble))
                .cloned();
            let outcome = self.mcp_outcome(of, answer);
            self.record_server_result(
                &of.server,
                outcome.as_ref().err().map(|trouble| (trouble.code, &*trouble.text)),
            );
            let required = match outcome {
                Ok(Outcome::Done(result)) => return Ok(Ok(*result)),
                Ok(Outcome::Input(required)) => required,
                Ok(Outcome::Task(id, poll_us)) => {
                    let task = ServerTask { id, since_us: self.host.now_us(), ..ServerTask::default() };
                    let call_state = ServerCallState {
                        round: call_state.round,
                        task: Some(task),
                        ..ServerCallState::default()
                    };
                    return self.park_for_task(at, call, call_state, poll_us).await.map(Ok);
                }
                Err(trouble) => {
                    let Some(challenge) = challenge else { return Ok(Err(trouble)) };
                    return self.park_for_sign_in(at, asking, call, &challenge, call_state).await;
                }
            };
            call_state.round += 1;
            if call_state.round > limits::MCP_ROUNDS {
                return Ok(Err(endless_input(of)));
            }
            if !required.asked.is_empty() {
                return self.park_for_server_input(at.asks(call), required, call_state).await.map(Ok);
            }
            // The server only wants the request again.
            self.retries().pause_before_retry(limits::SECOND_US).await;
            ask = Ask::call(of, args.clone()).with_input(None, required.state);
        }
    }

    /// Converts a response or a failure to the outcome of a call.
    fn mcp_outcome(
        &self,
        of: &McpTool,
        answer: Result<Map<String, Value>, RequestError>,
    ) -> Result<Outcome, TransportError> {
        let McpTool { server, tool, .. } = of;
        match answer {
            Ok(result) => match outcome::of_call(result) {
                Ok(Outcome::Done(result)) if result_is_missing(&result, tool) => {
                    Err(missing(of, &result.error.unwrap_or_default()))
                }
                Ok(outcome) => Ok(outcome),
                Err(text) => {
                    let text =
                        format!("The answer of the MCP server \"{server}\" is not of the protocol: {text}.");
                    Err(TransportError::new(PROTOCOL, text))
                }
            },
            Err(RequestError::Trouble(trouble)) => Err(trouble),
            Err(RequestError::Rpc(error)) => {
                let is_missing = is_missing(&error, tool);
                let said = self.variables().shown(error.message).cut(limits::HTTP_TOOL_ERROR_BYTES);
                if is_missing {
                    return Err(missing(of, &said.to_string()));
                }
                let text = format!("The MCP server \"{server}\" answered with error {}: {said}", error.code);
                let code = if error.code == MISSING_CAPABILITY { WOULD_WAIT } else { PROTOCOL };
                Err(TransportError::new(code, text))
            }
        }
    }

    /// The trace of a request to a server, within the call's span.
    fn mcp_trace(&self, inside: &Scope, plan: &ExecutionPlan<'_>) -> crate::trace::Trace {
        let trace = (plan.trace)();
        let stem: Result<String> = self.read(|state, _| Ok(state.meta.stem.clone()));
        match (inside.receipt.filter(|_| !inside.is_detached()), stem) {
            (Some(receipt), Ok(stem)) => trace.within(span_id(&stem, "mcp", receipt)),
            _ => trace,
        }
    }
}

/// The error about a server that requests input without end.
fn endless_input(of: &McpTool) -> TransportError {
    TransportError::new(PROTOCOL, format!("The MCP server \"{}\" asks for input again and again.", of.server))
}

/// The client's capabilities. None that wait for people where the run cannot be parked.
fn capabilities(inside: &Scope) -> Value {
    match inside.parking {
        Parking::Possible => {
            json!({ "elicitation": { "form": {}, "url": {} }, "extensions": task::capability() })
        }
        Parking::Impossible => json!({}),
    }
}

/// The error for a tool that the server no longer has, with the server's message.
fn missing(of: &McpTool, said: &str) -> TransportError {
    let McpTool { server, tool, .. } = of;
    let text = format!(
        "The MCP server \"{server}\" has no tool \"{tool}\" any more. Its list has changed: `bobbin mcp pull {server}` fetches it again. It says: {said}"
    );
    TransportError::new(TOOL_MISSING, text)
}

/// Whether a request to the server contains values of variables.
fn uses_values(server: &McpServer, of: &McpTool) -> bool {
    let named = |text: &str| text.contains("{{");
    server.auth.is_some()
        || named(&server.url)
        || server.headers.values().any(|value| named(value))
        || of.provide.values().any(|value| named(&value.to_string()))
}

/// The arguments, with those that the definition provides.
fn provided(of: &McpTool, mut args: Value, env: &dyn Fn(&str) -> Option<String>) -> Result<Value, String> {
    if of.provide.is_empty() {
        return Ok(args);
    }
    if !args.is_object() {
        args = json!({});
    }
    let Some(fields) = args.as_object_mut() else { return Ok(args) };
    for (name, value) in &of.provide {
        let unset = |error: template::Error| format!("\"{}\" is not set up: {error}.", of.tool);
        fields.insert(name.clone(), filled(value, env).map_err(unset)?);
    }
    Ok(args)
}

/// Fills in the variables that the texts of a value name, at any depth.
fn filled(value: &Value, env: &dyn Fn(&str) -> Option<String>) -> Result<Value, template::Error> {
    Ok(match value {
        Value::String(text) => template::render(text, env)?.into(),
        Value::Array(items) => items.iter().map(|item| filled(item, env)).collect::<Result<_, _>>()?,
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| Ok((name.clone(), filled(value, env)?)));
            Value::Object(fields.collect::<Result<_, template::Error>>()?)
        }
        other => other.clone(),
    })
}
