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

/// Why a run failed or was stopped.
#[derive(JsonSchema)]
pub(crate) struct RunError {
    /// The reason of the run (docs/errors.md).
    code: String,
    message: String,
}

/// The results of a run's work.
#[derive(JsonSchema)]
pub(crate) struct Artefact {
    message: Option<Message>,
    /// Paths of files.
    files: Vec<String>,
    result: Option<Object>,
}

/// A problem of a run.
#[derive(JsonSchema)]
pub(crate) struct Diagnostic {
    level: String,
    kind: String,
    code: String,
    message: String,
    data: Option<Object>,
    at: String,
}

/// The usage of a run.
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

/// The outcome of a run.
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
    /// A token to decide the run's only open question.
    token: Option<String>,
    /// The waits of a parked run: for people (see `Wait`), or a subagent.
    waits: Vec<Object>,
    /// The subagents that the run waits for.
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

/// An event of a run (docs/runs.md).
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
    /// The last reply of the run.
    message_id: Option<String>,
    steps: i64,
    /// The number of diagnostics.
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

/// The source of a request.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum RequestSource {
    /// Stored when it was sent (`BOBBIN_LOG_BODIES`).
    Stored,
    /// Rebuilt from the earlier messages and the current definitions, in the form of chat completions.
    Rebuilt,
}

/// A request to a model.
#[derive(JsonSchema)]
pub(crate) struct StepRequest {
    /// The reply.
    message: String,
    source: RequestSource,
    prompt: String,
    /// The name of its definition, if the log still has it.
    model: Option<String>,
    /// The log entry of the attempt that wrote the reply.
    log: Option<String>,
    /// For a rebuilt request: its number of messages. The log has the number that was sent.
    messages: Option<u32>,
    tokens: StepTokens,
    body: Object,
}

/// The approximate tokens of each part of a request.
#[derive(JsonSchema)]
pub(crate) struct StepTokens {
    system: u64,
    tools: u64,
    messages: u64,
}
