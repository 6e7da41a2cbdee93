//! Calls of the tools of MCP servers (docs/mcp.md). They have receipts as any call has, and are made again by the same rules: once
//! a request was sent, nobody knows what became of it unless its answer came.
//!
//! * Here: one call. `sessions`: what the thread keeps of servers. `tokens`: for those that have to know who asks. `sealed`: texts
//!   that only this thread, or the threads of one owner, can read. `told`: what the deployment is told of servers.

mod sealed;
mod sessions;
mod tokens;
mod told;

use std::rc::Rc;

use serde_json::{Map, Value};

pub(crate) use crate::engine::mcp::sessions::KnownSession;
use crate::engine::mcp::sessions::Sessions;
use crate::engine::mcp::tokens::Signed;
use crate::engine::thread::Thread;
use crate::error::Result;
use crate::json;
use crate::limits;
use crate::mcp::ask::{Ask, Asker, CALL};
use crate::mcp::outcome::{self, Outcome, is_missing, result_is_missing};
use crate::sdk::scope::Scope;
use crate::spec::message::ToolResult;
use crate::spec::{McpServer, McpTool, Tool, template};
use crate::trace::span_id;
use crate::work::Way;
use crate::work::mcp::{Address, Failed, PROTOCOL, Peer, TOOL_MISSING, Trouble};
use crate::work::native::NativeCall;

impl Thread {
    /// Makes a call of a server's tool, once.
    pub(crate) async fn mcp_call(
        self: &Rc<Self>,
        inside: &Scope,
        tool: &Tool,
        (of, way): (&McpTool, &Way<'_>),
        call: NativeCall,
    ) -> Result<Result<ToolResult, Trouble>> {
        let Some(server) = self.catalog.mcp.get(&of.server) else {
            let text = format!("The MCP server \"{}\" of \"{}\" is not there.", of.server, tool.name);
            return Ok(Err(Trouble::new(TOOL_MISSING, text)));
        };
        if uses_values(server, of)
            && let Err(error) = self.refresh_env().await
        {
            return Ok(Ok(ToolResult::error(error.into_message())));
        }
        let lender = self.lender();
        let found = Address::of(server, &*lender, way.env)
            .and_then(|address| Ok((address, provided(of, call.args, way.env)?)));
        let (address, args) = match found {
            Ok(found) => found,
            Err(text) => return Ok(Ok(ToolResult::error(text))),
        };
        let trace = self.mcp_trace(inside, way).headers();
        let mut meta = vec![(CALL.to_owned(), call.idempotency_key)];
        meta.extend(trace.iter().cloned());
        let limit_ms = way.http_ms.unwrap_or((limits::HTTP_TOOL_US / 1000) as u64);
        let asker = Asker { capabilities: json!({}), meta };
        let ask = Ask::call(of, args);
        let signed = Signed { around: &*lender, server, address: &address, env: way.env };
        let send = async |address: &Address| {
            let peer = Peer {
                around: &*lender,
                subject: &format!("\"{}\"", tool.name),
                limit_ms: limit_ms.min(limits::HTTP_TOOL_MAX_MS),
                asker: asker.clone(),
                trace: trace.clone(),
                memory: &Sessions::new(self, address),
                address,
            };
            peer.ask(&ask).await
        };
        let outcome = self.mcp_outcome(of, self.signed(&signed, send).await);
        self.mcp_went(&server.name, outcome.as_ref().err().map(|trouble| (trouble.code, &*trouble.text)));
        Ok(outcome)
    }

    /// What an answer, or that there is none, makes of a call.
    fn mcp_outcome(
        &self,
        of: &McpTool,
        answer: Result<Map<String, Value>, Failed>,
    ) -> Result<ToolResult, Trouble> {
        let McpTool { server, tool, .. } = of;
        match answer {
            Ok(result) => match outcome::of_call(result) {
                Ok(Outcome::Done(result)) if result_is_missing(&result, tool) => Err(missing(of)),
                Ok(Outcome::Done(result)) => Ok(*result),
                Err(text) => {
                    let text =
                        format!("The answer of the MCP server \"{server}\" is not of the protocol: {text}.");
                    Err(Trouble::new(PROTOCOL, text))
                }
            },
            Err(Failed::Trouble(trouble)) => Err(trouble),
            Err(Failed::Rpc(error)) if is_missing(&error, tool) => Err(missing(of)),
            Err(Failed::Rpc(error)) => {
                let said = self.shown(error.message).cut(limits::HTTP_TOOL_ERROR_BYTES);
                let text = format!("The MCP server \"{server}\" answered with error {}: {said}", error.code);
                Err(Trouble::new(PROTOCOL, text))
            }
        }
    }

    /// The trace of a request to a server, in its span.
    fn mcp_trace(&self, inside: &Scope, way: &Way<'_>) -> crate::trace::Trace {
        let trace = (way.trace)();
        let stem: Result<String> = self.read(|state, _| Ok(state.meta.stem.clone()));
        match (inside.receipt.filter(|_| !inside.is_detached()), stem) {
            (Some(receipt), Ok(stem)) => trace.within(span_id(&stem, "mcp", receipt)),
            _ => trace,
        }
    }
}

/// What is told where the server has no such tool.
fn missing(of: &McpTool) -> Trouble {
    let McpTool { server, tool, .. } = of;
    let text = format!(
        "The MCP server \"{server}\" has no tool \"{tool}\" any more. Its list has changed: `bobbin mcp pull {server}` fetches it again."
    );
    Trouble::new(TOOL_MISSING, text)
}

/// Whether a value stands in what a server is sent.
fn uses_values(server: &McpServer, of: &McpTool) -> bool {
    let named = |text: &str| text.contains("{{");
    server.auth.is_some()
        || named(&server.url)
        || server.headers.values().any(|value| named(value))
        || of.provide.values().any(|value| named(&value.to_string()))
}

/// The arguments, with those that the application fills in.
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

/// A value with the variables that its texts name, at any depth.
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
