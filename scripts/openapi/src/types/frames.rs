//! Frames of streams (docs/streams.md).

use bobbin_protocols::responses::messages::Message;
use bobbin_protocols::responses::runs::{OutcomeKind, PauseKind, RunError, RunUsage};
use bobbin_protocols::responses::threads::ThreadState;
use bobbin_protocols::responses::waits::Wait;
use schemars::JsonSchema;
use serde_json::Value;

use super::{Micros, Object};

/// A frame of `/events` and `/stream`.
#[derive(JsonSchema)]
#[schemars(tag = "type", rename_all = "snake_case")]
pub(crate) enum Frame {
    /// The current state. A client starts over with it.
    Snapshot(SnapshotFrame),
    /// A stored message; it replaces any earlier one with that id.
    MessageData(MessageDataFrame),
    /// More text of a reply.
    MessageChunk(MessageChunkFrame),
    /// The attempt was lost. Discard the text of the reply.
    MessageReset(MessageResetFrame),
    ReasoningChunk(ReasoningChunkFrame),
    Item(ItemFrame),
    StepStarted(StepStartedFrame),
    StepCompleted(StepCompletedFrame),
    LlmRequest(LlmRequestFrame),
    LlmResponse(LlmResponseFrame),
    FallbackTriggered(FallbackTriggeredFrame),
    ToolStarted(ToolStartedFrame),
    ToolCompleted(ToolCompletedFrame),
    Event(EventFrame),
    AgentHandoff(AgentHandoffFrame),
    MessagesCut(MessagesCutFrame),
    WaitOpened(WaitOpenedFrame),
    WaitClosed(WaitClosedFrame),
    Progress(ProgressFrame),
    Subagent(SubagentFrame),
    Budget(BudgetFrame),
    Stopped(StoppedFrame),
    StoppedByUser(StoppedByUserFrame),
    /// The first frame of the feed of a run. Discard your state of the run.
    Run(RunFrame),
    /// The run of a feed waits for a person, a subagent or a later attempt.
    RunParked(RunParkedFrame),
    /// The last frame of the feed of a run.
    RunEnded(RunEndedFrame),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct RunFrame {
    /// `null` while the message waits for a run.
    run: Option<String>,
    agent: String,
    state: String,
    started_at: Option<Micros>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct RunParkedFrame {
    run: String,
    pause_kind: PauseKind,
    waits: Vec<Wait<'static>>,
    /// Subagents that calls of the run wait for.
    subagents: Vec<SubagentUnderWay>,
}

#[derive(JsonSchema)]
pub(crate) struct SubagentUnderWay {
    /// The call that waits for the subagent.
    call_id: String,
    /// The id of the subagent's thread.
    thread: String,
    agent: String,
    status: String,
}

#[derive(JsonSchema)]
pub(crate) struct RunEndedFrame {
    /// `null` for a message that no run took in.
    run: Option<String>,
    outcome: OutcomeKind,
    reason: String,
    error: Option<RunError>,
    /// The run's last reply.
    message_id: Option<String>,
    usage: Option<RunUsage>,
}

#[derive(JsonSchema)]
pub(crate) struct Partial {
    message_id: String,
    attempt: i64,
    text: String,
}

#[derive(JsonSchema)]
pub(crate) struct SnapshotFrame {
    messages: Vec<Message<'static>>,
    #[schemars(rename = "hasMore")]
    has_more: bool,
    partial: Option<Partial>,
    state: ThreadState,
    #[schemars(skip_serializing_if = "Option::is_none")]
    waits: Option<Vec<Wait<'static>>>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    progress: Option<Object>,
}

#[derive(JsonSchema)]
pub(crate) struct MessageDataFrame {
    message_id: String,
    depth: u32,
    data: Message<'static>,
}

#[derive(JsonSchema)]
pub(crate) struct MessageChunkFrame {
    message_id: String,
    depth: u32,
    chunk: String,
    attempt: i64,
    /// In bytes of UTF-8.
    offset: i64,
}

#[derive(JsonSchema)]
pub(crate) struct MessageResetFrame {
    message_id: String,
    attempt: i64,
}

#[derive(JsonSchema)]
pub(crate) struct ReasoningChunkFrame {
    message_id: String,
    depth: u32,
    chunk: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ItemFrame {
    event: String,
    item_id: String,
    item_type: String,
    data: Object,
}

#[derive(JsonSchema)]
pub(crate) struct StepStartedFrame {
    step: i64,
    side: Option<String>,
    run: String,
    /// The future id of the reply.
    message_id: Option<String>,
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct StepCompletedFrame {
    step: i64,
    stopped: bool,
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct LlmRequestFrame {
    model: String,
    attempt: i64,
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct LlmResponseFrame {
    tokens: Option<i64>,
    /// Milliseconds.
    latency: i64,
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct FallbackTriggeredFrame {
    from: String,
    to: String,
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct ToolStartedFrame {
    tool: String,
    /// The model's id of the call. `null` for calls of code.
    call_id: Option<String>,
    /// The arguments as the model wrote them, if they have at most 8 KB.
    arguments: Option<String>,
    /// The future id of the result.
    message_id: Option<String>,
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct ToolCompletedFrame {
    tool: String,
    status: String,
    call_id: Option<String>,
    message_id: Option<String>,
    timestamp: i64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct EventFrame {
    event_type: String,
    data: Value,
    /// Milliseconds since 1970.
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct AgentHandoffFrame {
    new_agent_id: String,
    new_agent_title: Option<String>,
    /// Milliseconds since 1970.
    timestamp: i64,
}

/// Everything after a message was deleted.
#[derive(JsonSchema)]
pub(crate) struct MessagesCutFrame {
    /// The message.
    after: String,
    /// The number of deleted messages.
    count: i64,
    /// Milliseconds since 1970.
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct WaitOpenedFrame {
    wait: Wait<'static>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    /// Milliseconds since 1970.
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct WaitClosedFrame {
    id: String,
    kind: String,
    state: String,
    decision: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    /// Milliseconds since 1970.
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct ProgressFrame {
    kind: String,
    message: String,
    step: Option<i64>,
    max_steps: Option<i64>,
    tool_names: Vec<String>,
    elapsed_seconds: Option<i64>,
    /// The depth of calls around the subject.
    depth: i64,
    /// The nearest limit on cost, with the usage, in USD: `costUsd` and `limit`.
    budget: Option<Object>,
    /// Milliseconds since 1970.
    timestamp: i64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct SubagentFrame {
    event: String,
    agent_id: Option<String>,
    reference: Option<String>,
    agent: Option<String>,
    /// Milliseconds since 1970.
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct BudgetFrame {
    kind: String,
    scope: String,
    unit: String,
    spent: f64,
    limit: f64,
    /// Milliseconds since 1970.
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct StoppedFrame {
    reason: Option<String>,
    side: Option<String>,
    /// Milliseconds since 1970.
    timestamp: i64,
}

#[derive(JsonSchema)]
pub(crate) struct StoppedByUserFrame {
    /// Milliseconds since 1970.
    timestamp: i64,
}
