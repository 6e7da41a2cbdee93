//! Outcomes of runs.

use schemars::JsonSchema;
use serde_json::Value;

use super::messages::Message;
use super::{Micros, Object};

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum RunStatus {
    Ok,
    Paused,
    Error,
    Running,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum OutcomeKind {
    Completed,
    Failed,
    Stopped,
    Parked,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum PauseKind {
    Human,
    External,
    System,
}

/// Why a run has failed or was stopped.
#[derive(JsonSchema)]
pub(crate) struct RunError {
    /// The reason (docs/errors.md).
    code: String,
    message: String,
}

/// What there is of its work.
#[derive(JsonSchema)]
pub(crate) struct Artefact {
    message: Option<Message>,
    /// Paths.
    files: Vec<String>,
    result: Option<Object>,
}

/// What was wrong.
#[derive(JsonSchema)]
pub(crate) struct Diagnostic {
    level: String,
    kind: String,
    code: String,
    message: String,
    data: Option<Object>,
    at: String,
}

/// What its requests to models have taken.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct RunUsage {
    cost_usd: f64,
    input_tokens: i64,
    output_tokens: i64,
    model_calls: i64,
    tool_calls: i64,
    steps: i64,
    seconds: f64,
}

/// What came of a run.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct RunOutcome {
    run: Option<String>,
    status: RunStatus,
    outcome: Option<OutcomeKind>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    message: Option<Message>,
    artefact: Artefact,
    /// Of its one open question, to decide it with.
    token: Option<String>,
    /// What it waits for: people (see `Wait`), or a subagent.
    waits: Vec<Object>,
    /// The subagents that it waits for.
    #[schemars(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<Vec<Object>>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    pause_kind: Option<PauseKind>,
    error: Option<RunError>,
    diagnostics: Vec<Diagnostic>,
    usage: Option<RunUsage>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    result: Option<Object>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    started_at: Option<Micros>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Micros>,
    /// With `trace=1`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<TraceEvent>>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}

/// What happened in a run.
#[derive(JsonSchema)]
pub(crate) struct TraceEvent {
    kind: String,
    at: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

/// A run in a list.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ListedRun {
    run: String,
    status: RunStatus,
    outcome: Option<OutcomeKind>,
    reason: Option<String>,
    error: Option<RunError>,
    /// Its last reply.
    message_id: Option<String>,
    steps: i64,
    /// How many.
    diagnostics: i64,
    started_at: Micros,
    ended_at: Option<Micros>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct RunPage {
    runs: Vec<ListedRun>,
    has_more: bool,
}

/// Where a request is from.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum RequestSource {
    /// It was kept as it was sent (`BOBBIN_LOG_BODIES`).
    Stored,
    /// It follows from the messages that were there and from today's definitions, in the form of chat completions.
    Rebuilt,
}

/// What a model was sent.
#[derive(JsonSchema)]
pub(crate) struct StepRequest {
    /// The reply.
    message: String,
    source: RequestSource,
    prompt: String,
    /// By its name among the definitions, where the log has it still.
    model: Option<String>,
    /// The attempt that gave the reply.
    log: Option<String>,
    /// Of a request that was rebuilt: how many messages it has. The log says how many were sent.
    messages: Option<u32>,
    tokens: StepTokens,
    body: Object,
}

/// About how many tokens each part of a request has, as its model counts them.
#[derive(JsonSchema)]
pub(crate) struct StepTokens {
    system: u64,
    tools: u64,
    messages: u64,
}
