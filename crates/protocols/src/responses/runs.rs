//! Runs: their outcomes and traces (docs/runs.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Micros, Object};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RunStatus {
    /// It has completed.
    Ok,
    /// It waits.
    Paused,
    /// It has failed or was stopped.
    Error,
    /// It is working.
    Running,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OutcomeKind {
    /// It has completed.
    Completed,
    /// It has failed.
    Failed,
    /// It was stopped.
    Stopped,
    /// It waits.
    Parked,
}

/// The party that can resume a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PauseKind {
    /// A person.
    Human,
    /// A subagent, a client or another system.
    External,
    /// Bobbin itself, after a pause.
    System,
}

/// Why a run failed or was stopped.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunError {
    /// The reason of the run (docs/errors.md).
    pub code: &'static str,
    /// What happened, for people.
    pub message: String,
}

/// The result of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// The text.
    pub text: String,
    /// Paths of files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<String>,
}

/// The results of a run's work.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Artefact {
    /// The last reply. `null` if there is none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::messages::Message<'static>>"))]
    pub message: Option<Value>,
    /// Paths of files.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub files: Value,
    /// The result of a session. `null` if there is none.
    pub result: Option<RunResult>,
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DiagnosticLevel {
    /// Information only.
    Info,
    /// The run did without something.
    Warn,
    /// Ends strict runs.
    Error,
}

/// The area of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DiagnosticKind {
    /// Something that the run needs is missing.
    Requirement,
    /// Something broke its own declaration.
    Contract,
    /// A definition has no effect where it is listed, or takes effect where it is not.
    Pipeline,
    /// Detached work.
    Workflow,
    /// The run continues with other definitions than at its start.
    Resume,
    /// Something outside the runtime.
    Adapter,
    /// Contradictory definitions.
    Recipe,
}

/// A problem of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnostic {
    /// The severity.
    pub level: DiagnosticLevel,
    /// The area.
    pub kind: DiagnosticKind,
    /// A stable code for programs (docs/runs.md).
    pub code: String,
    /// The problem, for people.
    pub message: String,
    /// Data about the problem. Its fields depend on the code.
    pub data: Object,
    /// The time, such as `2026-11-21T10:00:00.000Z`.
    pub at: String,
}

/// The usage of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunUsage {
    /// USD.
    pub cost_usd: f64,
    /// Tokens of requests.
    pub input_tokens: i64,
    /// Tokens of responses.
    pub output_tokens: i64,
    /// Requests to models.
    pub model_calls: i64,
    /// Calls of tools.
    pub tool_calls: i64,
    /// Steps.
    pub steps: u32,
    /// Seconds from the start to the end, or until now.
    pub seconds: i64,
}

/// The outcome of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunOutcome {
    /// The id of the run. `null` if no run took the message in.
    pub run: Option<String>,
    /// The state of the run.
    pub status: RunStatus,
    /// The last message for people. `null` until the run has ended.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::messages::Message<'static>>"))]
    pub message: Option<Value>,
    /// The outcome. `null` while the run is working.
    pub outcome: Option<OutcomeKind>,
    /// Why the run ended or waits. Absent if no run took the message in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Option<String>>,
    /// The results of the run's work.
    pub artefact: Artefact,
    /// A token to decide the run's only open question.
    pub token: Option<String>,
    /// Why the run failed or was stopped. `null` otherwise.
    pub error: Option<RunError>,
    /// The problems of the run.
    pub diagnostics: Vec<Diagnostic>,
    /// The usage of the run. `null` if no run took the message in.
    pub usage: Option<RunUsage>,
    /// The result of a session. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
    /// For a parked run: the party that can resume it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_kind: Option<PauseKind>,
    /// The subagents that the run waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Object>>"))]
    pub waiting_for: Option<Vec<Value>>,
    /// The waits of a parked run: for people (see `Wait`), or a subagent.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Object>"))]
    pub waits: Vec<Value>,
    /// The time of the start, in microseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Micros>,
    /// `null` until the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Option<Micros>>,
    /// With `trace=1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<TraceEvent>>,
    /// With `trace=1`: whether some events are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}

/// An event of a run (docs/runs.md).
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceEvent {
    /// The type of the event, such as `model.attempt`.
    pub kind: String,
    /// The time, such as `2026-11-21T10:00:00.000Z`.
    pub at: String,
    /// The data of the event. Absent if there is none.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// A run in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedRun {
    /// The id of the run.
    pub run: String,
    /// The state of the run.
    pub status: RunStatus,
    /// The outcome. `null` while the run is working.
    pub outcome: Option<OutcomeKind>,
    /// Why the run ended. `null` until then.
    pub reason: Option<&'static str>,
    /// Why the run failed or was stopped. `null` otherwise.
    pub error: Option<RunError>,
    /// The last reply of the run.
    pub message_id: Option<String>,
    /// The number of steps.
    pub steps: u32,
    /// The number of diagnostics.
    pub diagnostics: u64,
    /// The time of the start, in microseconds since 1970.
    pub started_at: Micros,
    /// The time of the end, in microseconds since 1970. `null` until then.
    pub ended_at: Option<Micros>,
}

/// A page of runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunPage {
    /// The runs, newest first.
    pub runs: Vec<bobbin_definitions::json_text::JsonText<ListedRun>>,
    /// Whether there are older runs.
    pub has_more: bool,
}

/// The source of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RequestSource {
    /// Stored when it was sent (`BOBBIN_LOG_BODIES`).
    Stored,
    /// Rebuilt from the earlier messages and the current definitions, in the form of chat completions.
    Rebuilt,
}

/// The approximate tokens of each part of a request.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepTokens {
    /// The system prompt.
    pub system: u64,
    /// The definitions of the tools.
    pub tools: u64,
    /// The messages.
    pub messages: u64,
}

/// A request to a model.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepRequest<'a> {
    /// The reply.
    pub message: &'a str,
    /// Whether the request was stored or rebuilt.
    pub source: RequestSource,
    /// The name of the prompt.
    pub prompt: &'a str,
    /// The name of its definition, if the log still has it.
    pub model: Option<&'a str>,
    /// The log entry of the attempt that wrote the reply.
    pub log: Option<String>,
    /// For a rebuilt request: its number of messages. The log has the number that was sent.
    pub messages: Option<u64>,
    /// The approximate tokens of each part.
    pub tokens: StepTokens,
    /// The body of the request.
    #[cfg_attr(feature = "schema", schemars(with = "Object"))]
    pub body: &'a serde_json::value::RawValue,
}

/// Spans as OTLP in JSON (docs/observability.md).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spans {
    /// One entry, with the spans of the run.
    pub resource_spans: Vec<Value>,
}
