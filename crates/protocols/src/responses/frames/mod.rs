//! Frames of streams (docs/streams.md).
//!
//! A frame of this file begins with its `type`. `live`: the frames of live events, which end with their `type`
//! and time.

pub mod live;

use serde::Serialize;
use serde_json::Value;

use super::Micros;
use super::runs::{OutcomeKind, PauseKind, RunError, RunStatus, RunUsage};
use super::threads::ThreadState;
use super::waits::Wait;

#[cfg(feature = "schema")]
use super::messages::Message;

/// The text of an unfinished reply.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Partial"))]
pub struct PartialReply<'a> {
    /// The future id of the reply.
    pub message_id: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The text so far.
    pub text: &'a str,
}

/// The current state of a thread.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "snapshot")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SnapshotFrame"))]
pub struct SnapshotFrame<'a> {
    /// The newest messages, in the order of the conversation.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Message<'static>>"))]
    pub messages: Vec<Value>,
    /// Whether there are older messages.
    #[serde(rename = "hasMore")]
    pub has_more: bool,
    /// The unfinished reply. `null` if it has no text.
    pub partial: Option<PartialReply<'a>>,
    /// The state of the thread.
    pub state: ThreadState,
    /// The open waits. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Vec<Wait<'a>>>,
    /// The last frame `progress` of the active run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::Object>"))]
    pub progress: Option<Value>,
}

/// A stored message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "message_data")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MessageDataFrame"))]
pub struct MessageDataFrame {
    /// The id of the message.
    pub message_id: String,
    /// The depth of the called prompt that the message belongs to, 0 for the thread itself.
    pub depth: u32,
    /// The message.
    #[cfg_attr(feature = "schema", schemars(with = "Message<'static>"))]
    pub data: Value,
}

/// More text of a reply.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "message_chunk")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MessageChunkFrame"))]
pub struct MessageChunkFrame<'a> {
    /// The future id of the reply.
    pub message_id: String,
    /// The depth of the called prompt that writes the reply, 0 for the thread itself.
    pub depth: u32,
    /// The text.
    pub chunk: &'a str,
    /// The number of the attempt.
    pub attempt: u32,
    /// The place of the text in the reply, in bytes of UTF-8.
    pub offset: u64,
}

/// A lost attempt.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "message_reset")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MessageResetFrame"))]
pub struct MessageResetFrame {
    /// The future id of the reply.
    pub message_id: String,
    /// The number of the next attempt.
    pub attempt: u32,
}

/// More of the reasoning that a model shows.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "reasoning_chunk")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReasoningChunkFrame"))]
pub struct ReasoningChunkFrame<'a> {
    /// The future id of the reply.
    pub message_id: String,
    /// The depth of the called prompt that writes the reply, 0 for the thread itself.
    pub depth: u32,
    /// The text.
    pub chunk: &'a str,
}

/// The type of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ItemType {
    /// The visible reasoning of the model.
    Reasoning,
    /// A reply's text.
    AgentMessage,
    /// The call of a tool.
    CommandExecution,
    /// The call of a tool of an MCP server.
    McpToolCall,
    /// The call of a tool that returned files.
    FileChange,
    /// A status message of the runtime about a failure.
    Error,
}

/// A part of a message, for pages that show a run as a list of activities.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "item", rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ItemFrame"))]
pub struct ItemFrame {
    /// Always `completed`.
    pub event: &'static str,
    /// The id of the item: the message's, for reasoning with a suffix.
    pub item_id: String,
    /// The type of the item.
    pub item_type: ItemType,
    /// The content. Its fields depend on the type.
    #[cfg_attr(feature = "schema", schemars(with = "super::Object"))]
    pub data: Value,
}

/// The nearest limit on cost.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressBudget {
    /// The usage, in USD.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cost_usd: Value,
    /// The limit, in USD.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub limit: Value,
}

/// The current work, in one line.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "progress")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ProgressFrame"))]
pub struct ProgressFrame {
    /// The subject of the line, such as `provider_call` (docs/streams.md).
    pub kind: &'static str,
    /// The line.
    pub message: String,
    /// The number of the step. `null` without an active run.
    pub step: Option<u32>,
    /// The smallest limit on steps. `null` without an active run.
    pub max_steps: Option<u32>,
    /// The tools that the line is about.
    pub tool_names: Vec<String>,
    /// The duration of the work, in seconds. `null` if the line is not about running work.
    pub elapsed_seconds: Option<i64>,
    /// The depth of calls around the subject.
    pub depth: u32,
    /// The nearest limit on cost, with the usage. `null` without such a limit.
    pub budget: Option<ProgressBudget>,
    /// Milliseconds since 1970.
    pub timestamp: i64,
}

/// The state of a run at the beginning of its feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FeedState {
    /// The message waits for a run.
    Queued,
    /// The run has completed.
    Ok,
    /// The run waits.
    Paused,
    /// The run has failed or was stopped.
    Error,
    /// The run is working.
    Running,
}

impl From<RunStatus> for FeedState {
    fn from(status: RunStatus) -> FeedState {
        match status {
            RunStatus::Ok => FeedState::Ok,
            RunStatus::Paused => FeedState::Paused,
            RunStatus::Error => FeedState::Error,
            RunStatus::Running => FeedState::Running,
        }
    }
}

/// The beginning of a feed.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "run", rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RunFrame"))]
pub struct RunFrame<'a> {
    /// The id of the run. `null` while the message waits for a run.
    pub run: Option<String>,
    /// The agent of the thread.
    pub agent: &'a str,
    /// The state of the run.
    pub state: FeedState,
    /// The time of the start, in microseconds since 1970. `null` while the message waits for a run.
    pub started_at: Option<Micros>,
}

/// A subagent that a call waits for.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentUnderWay {
    /// The call that waits for the subagent.
    pub call_id: String,
    /// The id of the subagent's thread.
    pub thread: String,
    /// The agent of the subagent.
    pub agent: String,
    /// The status of the subagent.
    pub status: String,
}

/// A run that waits.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "run_parked", rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RunParkedFrame"))]
pub struct RunParkedFrame<'a> {
    /// The id of the run.
    pub run: String,
    /// The party that can resume the run.
    pub pause_kind: PauseKind,
    /// The open waits.
    pub waits: Vec<Wait<'a>>,
    /// Subagents that calls of the run wait for.
    pub subagents: Vec<SubagentUnderWay>,
}

/// The end of a run.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "run_ended")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RunEndedFrame"))]
pub struct RunEndedFrame {
    /// The id of the run. `null` for a message that no run took in.
    pub run: Option<String>,
    /// The outcome.
    #[cfg_attr(feature = "schema", schemars(with = "OutcomeKind"))]
    pub outcome: Option<OutcomeKind>,
    /// Why the run ended (docs/errors.md).
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub reason: Option<&'static str>,
    /// Why the run failed or was stopped. `null` if it has completed.
    pub error: Option<RunError>,
    /// The run's last reply. `null` if there is none.
    pub message_id: Option<String>,
    /// The usage of the run. `null` for a message that no run took in.
    pub usage: Option<RunUsage>,
}

/// A frame of `/events` and `/stream`.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(tag = "type", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a schema, which has no values")]
pub enum Frame {
    /// The current state. A client starts over with it.
    Snapshot(SnapshotFrame<'static>),
    /// A stored message; it replaces any earlier one with that id.
    MessageData(MessageDataFrame),
    /// More text of a reply.
    MessageChunk(MessageChunkFrame<'static>),
    /// The attempt was lost. Discard the text of the reply.
    MessageReset(MessageResetFrame),
    /// More of the reasoning that a model shows.
    ReasoningChunk(ReasoningChunkFrame<'static>),
    /// A part of a message, for pages that show a run as a list of activities.
    Item(ItemFrame),
    /// A step starts.
    StepStarted(live::Live<live::StepStartedFrame>),
    /// A step has ended.
    StepCompleted(live::Live<live::StepCompletedFrame>),
    /// A request to a model starts.
    LlmRequest(live::Live<live::LlmRequestFrame<'static>>),
    /// A model has responded.
    LlmResponse(live::Live<live::LlmResponseFrame>),
    /// The next request goes to another model.
    FallbackTriggered(live::Live<live::FallbackTriggeredFrame<'static>>),
    /// A tool starts.
    ToolStarted(live::Live<live::ToolStartedFrame<'static>>),
    /// A tool has ended.
    ToolCompleted(live::Live<live::ToolCompletedFrame<'static>>),
    /// An event of a tool or an endpoint, or of the thread's data.
    Event(live::Live<live::EventFrame<'static>>),
    /// Another agent has taken the thread over.
    AgentHandoff(live::Live<live::AgentHandoffFrame<'static>>),
    /// Everything after a message was deleted.
    MessagesCut(live::Live<live::MessagesCutFrame>),
    /// A wait opens.
    WaitOpened(live::Live<live::WaitOpenedFrame<'static>>),
    /// A wait closes.
    WaitClosed(live::Live<live::WaitClosedFrame<'static>>),
    /// The current work, in one line.
    Progress(ProgressFrame),
    /// The selection of an agent, or an event of a subagent.
    Subagent(live::Live<live::SubagentFrame<'static>>),
    /// A limit of the budget is near, reached or extended.
    Budget(live::Live<live::BudgetFrame<'static>>),
    /// A run has ended.
    Stopped(live::Live<live::StoppedFrame>),
    /// A client has stopped the run.
    StoppedByUser(live::Live<live::StoppedByUserFrame>),
    /// The first frame of the feed of a run. Discard your state of the run.
    Run(RunFrame<'static>),
    /// The run of a feed waits for a person, a subagent or a later attempt.
    RunParked(RunParkedFrame<'static>),
    /// The last frame of the feed of a run.
    RunEnded(RunEndedFrame),
}
