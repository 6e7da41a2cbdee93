//! Agents, tokens, and the server itself.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

use super::{Object, Seconds};

/// The state of the server.
#[derive(JsonSchema)]
pub(crate) struct Health {
    status: String,
    version: String,
    /// The number of agents.
    agents: u32,
    /// For administrators: the number of warnings of the compiled definitions.
    #[schemars(skip_serializing_if = "Option::is_none")]
    warnings: Option<u32>,
}

/// A definition that an agent uses.
#[derive(JsonSchema)]
pub(crate) struct UsedDefinition {
    kind: String,
    name: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// A missing part of an agent.
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
    /// Whether the deployment or a definition has a value for it.
    set: bool,
}

#[derive(JsonSchema)]
pub(crate) struct AgentExplained {
    agent: String,
    file: String,
    uses: Vec<UsedDefinition>,
    /// Agents that may take over the thread, or work as subagents.
    leads: Vec<LedAgent>,
    variables: Vec<ExplainedVariable>,
    missing: Vec<MissingPart>,
    /// Definitions that no agent uses.
    unused: Vec<UsedDefinition>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Leading {
    Handoff,
    Subagent,
    Worker,
}

/// An agent that another agent uses.
#[derive(JsonSchema)]
pub(crate) struct LedAgent {
    agent: String,
    how: Leading,
    /// The prompt with the entry.
    prompt: String,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewToken {
    /// Such as `owner:alice` or `thread:6f0c8a52-…`, within the scope of the caller.
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

/// The first facts for an operator (docs/runs.md).
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ThreadDiagnostics {
    thread_id: String,
    /// The number of this thread among those of its key, from 1.
    life: i64,
    state: bobbin_protocols::responses::threads::ThreadState,
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
