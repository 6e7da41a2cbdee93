//! Runs: their outcomes and traces (docs/runs.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Micros, Object};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RunStatus {
    Ok,
    Paused,
    Error,
    Running,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OutcomeKind {
    Completed,
    Failed,
    Stopped,
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
    pub message: String,
}

/// The result of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    pub text: String,
    /// Paths of files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<String>,
}

/// The results of a run's work.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Artefact {
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::messages::Message<'static>>"))]
    pub message: Option<Value>,
    /// Paths of files.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub files: Value,
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
    pub level: DiagnosticLevel,
    pub kind: DiagnosticKind,
    pub code: String,
    pub message: String,
    pub data: Object,
    /// The time, such as `2026-11-21T10:00:00.000Z`.
    pub at: String,
}

/// The usage of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunUsage {
    pub cost_usd: f64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub model_calls: i64,
    pub tool_calls: i64,
    pub steps: u32,
    pub seconds: i64,
}

/// The outcome of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunOutcome {
    pub run: Option<String>,
    pub status: RunStatus,
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::messages::Message<'static>>"))]
    pub message: Option<Value>,
    pub outcome: Option<OutcomeKind>,
    /// Why the run ended or waits. Absent if no run took the message in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Option<String>>,
    pub artefact: Artefact,
    /// A token to decide the run's only open question.
    pub token: Option<String>,
    pub error: Option<RunError>,
    pub diagnostics: Vec<Diagnostic>,
    pub usage: Option<RunUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_kind: Option<PauseKind>,
    /// The subagents that the run waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Object>>"))]
    pub waiting_for: Option<Vec<Value>>,
    /// The waits of a parked run: for people (see `Wait`), or a subagent.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Object>"))]
    pub waits: Vec<Value>,
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
    pub kind: String,
    /// The time, such as `2026-11-21T10:00:00.000Z`.
    pub at: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// A run in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedRun {
    pub run: String,
    pub status: RunStatus,
    pub outcome: Option<OutcomeKind>,
    pub reason: Option<&'static str>,
    pub error: Option<RunError>,
    /// The last reply of the run.
    pub message_id: Option<String>,
    pub steps: u32,
    /// The number of diagnostics.
    pub diagnostics: u64,
    pub started_at: Micros,
    pub ended_at: Option<Micros>,
}

/// A page of runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunPage {
    pub runs: Vec<bobbin_definitions::json_text::JsonText<ListedRun>>,
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
    pub system: u64,
    pub tools: u64,
    pub messages: u64,
}

/// A request to a model.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepRequest<'a> {
    /// The reply.
    pub message: &'a str,
    pub source: RequestSource,
    pub prompt: &'a str,
    /// The name of its definition, if the log still has it.
    pub model: Option<&'a str>,
    /// The log entry of the attempt that wrote the reply.
    pub log: Option<String>,
    /// For a rebuilt request: its number of messages. The log has the number that was sent.
    pub messages: Option<u64>,
    pub tokens: StepTokens,
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
