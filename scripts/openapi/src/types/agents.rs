//! Agents, tokens, and the server itself.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

use super::{Object, Seconds};

/// What `GET /healthz` answers.
#[derive(JsonSchema)]
pub(crate) struct Health {
    status: String,
    version: String,
    /// How many agents there are.
    agents: u32,
    /// For administrators: warnings that the definitions had when they were compiled.
    #[schemars(skip_serializing_if = "Option::is_none")]
    warnings: Option<u32>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum AgentType {
    /// One side answers people.
    AiHuman,
    /// Two sides talk to each other.
    DualAi,
}

/// An agent, as threads and lists show it.
#[derive(JsonSchema)]
pub(crate) struct AgentSummary {
    name: String,
    title: String,
    #[schemars(rename = "type")]
    kind: AgentType,
    description: Option<String>,
    /// An address.
    icon: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ListedAgent {
    #[schemars(flatten)]
    summary: AgentSummary,
    #[schemars(skip_serializing_if = "Option::is_none")]
    package_name: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    license: Option<String>,
}

#[derive(JsonSchema)]
pub(crate) struct AgentList {
    agents: Vec<ListedAgent>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct AgentSide {
    label: Option<String>,
    prompt: String,
    model: Option<String>,
    tools: Vec<String>,
    max_steps: Option<u32>,
    stop_on_response: Option<bool>,
    stop_tool: Option<String>,
}

/// A variable that a thread of the agent may be given.
#[derive(JsonSchema)]
pub(crate) struct DeclaredVariable {
    name: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct AgentDetail {
    #[schemars(flatten)]
    listed: ListedAgent,
    side_a: AgentSide,
    #[schemars(skip_serializing_if = "Option::is_none")]
    side_b: Option<AgentSide>,
    max_session_turns: Option<u32>,
    variables: Vec<DeclaredVariable>,
}

/// A definition that an agent uses.
#[derive(JsonSchema)]
pub(crate) struct UsedDefinition {
    kind: String,
    name: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// What an agent lacks.
#[derive(JsonSchema)]
pub(crate) struct MissingPart {
    code: String,
    kind: String,
    name: String,
    message: String,
}

#[derive(JsonSchema)]
pub(crate) struct ExplainedVariable {
    name: String,
    #[schemars(rename = "type")]
    kind: String,
    required: bool,
    /// Whether the deployment or a definition gives it a value.
    set: bool,
}

#[derive(JsonSchema)]
pub(crate) struct AgentExplained {
    agent: String,
    file: String,
    uses: Vec<UsedDefinition>,
    /// The agents that its models may hand the thread to, or have work for them.
    leads: Vec<LedAgent>,
    variables: Vec<ExplainedVariable>,
    missing: Vec<MissingPart>,
    /// Definitions that no agent leads to.
    unused: Vec<UsedDefinition>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Leading {
    Handoff,
    Subagent,
    Worker,
}

/// An agent that another one leads to.
#[derive(JsonSchema)]
pub(crate) struct LedAgent {
    agent: String,
    how: Leading,
    /// The prompt that says so.
    prompt: String,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewToken {
    /// Such as `owner:alice`, `thread:6f0c8a52-…`; within the caller's own.
    scope: String,
    /// Seconds.
    #[schemars(range(min = 1, max = 604_800))]
    ttl: Option<i64>,
}

#[derive(JsonSchema)]
pub(crate) struct Token {
    token: String,
    scope: String,
    expires_at: Seconds,
}

/// Spans as OTLP in JSON (docs/observability.md).
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Spans {
    resource_spans: Vec<Value>,
}

/// What an operator wants to know first (docs/http.md).
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ThreadDiagnostics {
    thread_id: String,
    /// Which thread of its key it is, from 1.
    life: i64,
    state: super::threads::ThreadState,
    phase: String,
    run: Option<Object>,
    queue: Object,
    effects: Object,
    waiting_receipts: Vec<Value>,
    children: Vec<Value>,
    alarm: Object,
    due: Vec<Value>,
    flow: Object,
    #[schemars(flatten)]
    more: BTreeMap<String, Value>,
}
