//! Frames of live events, which are sent once. The runtime adds the `type` and the time.

use bobbin_definitions::definitions::message::ToolStatus;
use serde::Serialize;
use serde_json::Value;

use crate::responses::budgets::BudgetScope;
use crate::responses::waits::{Wait, WaitKind, WaitState};

// Without a text, so that the schema has that of the event.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(rename = "{Event}")]
#[expect(missing_docs, dead_code, reason = "the schema of an event with its time")]
pub struct Live<Event> {
    #[schemars(flatten)]
    event: Event,
    /// Milliseconds since 1970.
    timestamp: i64,
}

/// A step starts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepStartedFrame {
    /// The number of the step in the run, from 1.
    pub step: u32,
    /// The side of the agent that acts: `a` or `b`.
    pub side: &'static str,
    /// The id of the run.
    pub run: String,
    /// The future id of the reply. `null` if the run has just ended.
    pub message_id: Option<String>,
}

/// A step has ended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepCompletedFrame {
    /// The number of the step in the run, from 1.
    pub step: u32,
    /// Whether the run ends with this step.
    pub stopped: bool,
}

/// A request to a model starts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlmRequestFrame<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// The number of the attempt.
    pub attempt: u32,
}

/// A model has responded.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlmResponseFrame {
    /// The tokens of the response.
    pub tokens: u64,
    /// Milliseconds from the request to the end of the response.
    pub latency: i64,
}

/// The next request goes to another model.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FallbackTriggeredFrame<'a> {
    /// The name of the failed model.
    pub from: &'a str,
    /// The name of the next model.
    pub to: &'a str,
}

/// A tool starts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolStartedFrame<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// The model's id of the call. `null` for calls of code.
    pub call_id: Option<&'a str>,
    /// The arguments as the model wrote them, if they have at most 8 KB. `null` for calls of code.
    pub arguments: Option<String>,
    /// The future id of the result. `null` for calls of code.
    pub message_id: Option<String>,
}

/// A tool has ended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCompletedFrame<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// Whether the call has succeeded.
    pub status: ToolStatus,
    /// The model's id of the call. `null` for calls of code.
    pub call_id: Option<&'a str>,
    /// The id of the result. `null` for calls of code.
    pub message_id: Option<String>,
}

/// An event of a tool or an endpoint, or of the thread's data.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventFrame<'a> {
    /// The type that the code has chosen, or one of docs/streams.md.
    pub event_type: &'a str,
    /// The data of the event.
    pub data: Value,
}

/// Another agent has taken the thread over.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentHandoffFrame<'a> {
    /// The name of the agent.
    pub new_agent_id: &'a str,
    /// The title of the agent. `null` if it has none.
    pub new_agent_title: Option<&'a str>,
}

/// Everything after a message was deleted.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessagesCutFrame {
    /// The message.
    pub after: String,
    /// The number of deleted messages.
    pub count: u64,
}

/// A wait opens.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitOpenedFrame<'a> {
    /// The wait.
    pub wait: Wait<'a>,
    /// For a wait in a subagent, or below it: the id of the subagent's thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<&'a str>,
}

/// A wait closes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitClosedFrame<'a> {
    /// The id of the wait.
    pub id: String,
    /// The kind of the wait.
    pub kind: WaitKind,
    /// The state of the wait.
    pub state: WaitState,
    /// The decision. `null` if the wait ended without one.
    pub decision: Option<&'a str>,
    /// For a wait in a subagent, or below it: the id of the subagent's thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<&'a str>,
}

/// The selection of an agent, or an event of a subagent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentFrame<'a> {
    /// `selected` for an agent; `started`, `completed`, `failed` or `closed` for a subagent.
    pub event: &'a str,
    /// The id of a worker for models. `null` for other subagents and agents.
    pub agent_id: Option<&'a str>,
    /// The id of the subagent's thread. `null` for an agent.
    pub reference: Option<&'a str>,
    /// The name of the agent.
    pub agent: &'a str,
}

/// A limit of the budget is near, reached or extended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetFrame<'a> {
    /// `warning`, `asked`, `extended` or `exceeded` (docs/budgets.md).
    pub kind: &'a str,
    /// The scope of the limit.
    pub scope: BudgetScope,
    /// The limited amount, such as `costUsd` or `steps`.
    pub unit: &'static str,
    /// The usage: USD, seconds, or a count.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub spent: Value,
    /// The limit, in the same unit.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub limit: Value,
}

/// A run has ended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoppedFrame {
    /// Why the run ended (docs/errors.md).
    pub reason: Option<&'static str>,
    /// The side of the agent that acted last: `a` or `b`.
    pub side: &'static str,
}

/// A client has stopped the run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoppedByUserFrame {}
