//! Input that a tool, or the MCP server of a tool, requests from people during a call. The run is parked, and the
//! call is repeated with the answers. Nothing is kept in memory, so the wait survives restarts and deployments.

use serde_json::{Map, Value};

use crate::definitions::message::ToolResult;
use crate::definitions::tier::tier;
use crate::definitions::{Implementation, Tool};
use crate::engine::definitions::Definitions;
use crate::engine::features::Waits;
use crate::engine::waits::NewWait;
use crate::engine::waits::gate::{too_large, would_wait};
use crate::error::{Error, Result};
use crate::limits;
use crate::mcp_client::elicit::{InputRequest, asked_by_tool, response};
use crate::sdk::scope::{EntryMode, Scope};
use crate::store::receipts::ServerCallState;
use crate::store::runs::Parking;
use crate::store::waits::{DecisionScope, InputForm, Wait, WaitData, WaitKind, WaitState, WaitingCall};
use crate::store::{receipts, waits};
use crate::text::shorten;

/// The `error_code` with which a tool of the application requests input (docs/tools.md).
const NEEDS_INPUT: &str = "needs_input";

/// A call that requests input from people.
pub(crate) struct InputCall<'a> {
    pub(crate) tool: &'a Tool,
    /// The MCP server that requests it; `None` for the tool itself.
    pub(crate) server: Option<&'a str>,
    pub(crate) inside: &'a Scope,
    pub(crate) definitions: &'a Definitions<'a>,
    /// The call's id and arguments.
    pub(crate) call: (String, Value),
}

impl Waits<'_> {
    /// The stored state of a call for which a tool of the application has requested input.
    pub(crate) fn input_state_of_call(&self, inside: &Scope, tool: &Tool) -> Result<Option<ServerCallState>> {
        match tool.run {
            Implementation::Mcp(_) => Ok(None),
            _ => self.stored_call_state(inside),
        }
    }

    /// The stored state of a call that waited for input, for a task or for a sign-in.
    pub(in crate::engine) fn stored_call_state(&self, inside: &Scope) -> Result<Option<ServerCallState>> {
        let (Some(receipt), EntryMode::Again) = (inside.receipt, inside.entered) else { return Ok(None) };
        self.read(|_, sql| Ok(receipts::find(sql, receipt)?.and_then(|receipt| receipt.data.mcp)))
    }

    /// The people's answers, by the names that the tool gave.
    pub(in crate::engine) fn input_answers(
        &self,
        call_state: &ServerCallState,
    ) -> Result<Map<String, Value>> {
        self.read(|_, sql| {
            let mut answers = Map::new();
            for id in &call_state.waits {
                let wait = waits::find(sql, *id)?.filter(|wait| wait.state == WaitState::Decided);
                let Some(Wait {
                    asked: WaitData { input: Some(input), .. }, decision: Some(decision), ..
                }) = wait
                else {
                    continue;
                };
                answers.insert(input.name, response(&decision.decision, decision.content.as_ref()));
            }
            Ok(answers)
        })
    }

    /// Returns the result, unless the tool requests input. Then it parks the run, and the tool is called
    /// again with the answers.
    pub(crate) async fn request_input(
        &self,
        asking: InputCall<'_>,
        mut result: ToolResult,
        call_state: Option<ServerCallState>,
    ) -> Result<ToolResult> {
        let is_of_server = matches!(asking.tool.run, Implementation::Mcp(_));
        if is_of_server || result.error_code.as_deref() != Some(NEEDS_INPUT) {
            return Ok(result);
        }
        let wrong = |text: &str| {
            Ok(ToolResult::error(format!("\"{}\" asks people wrongly: {text}.", asking.tool.name)))
        };
        let asked = match asked_by_tool(result.error_data.take().unwrap_or_default()) {
            Ok(asked) if asked.is_empty() => return wrong("it does not say what"),
            Ok(asked) => asked,
            Err(text) => return wrong(&text),
        };
        let mut call_state = call_state.unwrap_or_default();
        call_state.round += 1;
        if call_state.round > limits::MCP_ROUNDS {
            return wrong("it asks again and again");
        }
        self.park_for_input(asking, asked, call_state).await
    }

    /// Opens a wait for each requested input, and parks the run. Returns only where the run cannot be parked,
    /// with the model's error result.
    pub(in crate::engine) async fn park_for_input(
        &self,
        at: InputCall<'_>,
        requests: Vec<InputRequest>,
        call_state: ServerCallState,
    ) -> Result<ToolResult> {
        let (Some(receipt), Parking::Possible) = (at.inside.receipt, at.inside.parking) else {
            return Ok(would_wait(&at.tool.name));
        };
        let asked: Vec<WaitData> = requests.into_iter().map(|one| self.input_wait_data(&at, one)).collect();
        if !asked.iter().all(WaitData::fits) {
            return Ok(too_large(at.tool));
        }
        let lasts_us = self.timeout_us(at.definitions);
        let opened = self.transition(|state, sql| {
            let found = receipts::find(sql, receipt)?;
            let batch = found.ok_or_else(|| Error::internal("a receipt is gone"))?.reply;
            let mut opened = Vec::with_capacity(asked.len());
            for asked in asked {
                let digest = String::new();
                let new = NewWait { kind: WaitKind::Elicitation, receipt, batch, digest, asked, lasts_us };
                opened.push(self.open_wait(state, sql, new)?);
            }
            // No polls of the call's task until people have answered.
            for of_task in waits::open(sql)?.iter().filter(|wait| wait.is_of_task(receipt)) {
                waits::defer(sql, of_task.id, self.host.now_us() + lasts_us)?;
                state.wait_due.take();
            }
            // A server keeps earlier answers in its state. A tool receives all of them again.
            let before = if at.server.is_some() { &[][..] } else { &call_state.waits };
            let waits = before.iter().copied().chain(opened.iter().map(|wait| wait.id)).collect();
            receipts::wait_at_server(sql, receipt, &ServerCallState { waits, ..call_state.clone() })?;
            self.mcp().post_mcp(state, sql)?;
            self.park_run(state, sql)?;
            Ok(opened)
        })?;
        self.end_parked_flow(&opened).await
    }

    /// The public data of one requested input. The title is the asker's message; the asker is named
    /// separately.
    fn input_wait_data(&self, at: &InputCall<'_>, one: InputRequest) -> WaitData {
        let mut title = match one.message.as_str() {
            "" => format!("{} needs input", at.tool.name),
            message => self.variables().redact(message.to_owned()),
        };
        shorten(&mut title, limits::WAIT_REASON_BYTES);
        let (id, args) = at.call.clone();
        WaitData {
            title,
            reason: at.server.map(|server| format!("The MCP server “{server}” asks this.")),
            by: DecisionScope::Thread,
            call: Some(WaitingCall { id, tool: at.tool.name.clone(), tier: tier(at.tool), args }),
            input: Some(InputForm {
                server: at.server.unwrap_or_default().to_owned(),
                name: one.name,
                form: one.schema.map(|schema| self.variables().redact_json(schema)),
                url: one.url,
            }),
            ..WaitData::default()
        }
    }
}
