//! Decisions about waits (docs/approvals.md).

use schemars::JsonSchema;
use serde_json::Value;

use super::budgets::Limits;
use super::{Object, Seconds};

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum DecisionKind {
    Approve,
    Deny,
    Answer,
    Defer,
    Retry,
    Extend,
    Finish,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Interrupt {
    Continue,
    /// Bobbin deletes the reply with its calls, and sends the request again.
    Restart,
}

/// What is decided; which fields go with it depends on the decision.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct DecisionFields {
    decision: DecisionKind,
    /// For `approve`: changed arguments, only those in the wait's `edit`.
    args: Option<Object>,
    /// For `deny`.
    reason: Option<String>,
    /// For `deny`: also stops the run.
    stop: Option<bool>,
    /// For `answer`: a text.
    text: Option<String>,
    /// For `answer`: the index in `choices`.
    choice: Option<u32>,
    /// For `answer`: the result of a client's tool.
    result: Option<Value>,
    is_error: Option<bool>,
    /// For `answer`: the completed form of an MCP server.
    content: Option<Value>,
    /// For `defer`: the new end, in seconds since 1970.
    until: Option<Seconds>,
    /// For `extend`: the added limits.
    add: Option<Limits>,
    /// A name for the log.
    actor: Option<String>,
    interrupt: Option<Interrupt>,
}

/// A decision about a wait.
#[derive(JsonSchema)]
pub(crate) struct Decision {
    /// The id of the wait. Not needed if the path has it.
    id: Option<String>,
    #[schemars(flatten)]
    fields: DecisionFields,
}

/// Decisions of which all apply, or none.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Decisions {
    #[schemars(length(min = 1, max = 100))]
    decisions: Vec<Decision>,
}

/// A decision with the token of a link.
#[derive(JsonSchema)]
pub(crate) struct Resume {
    token: String,
    #[schemars(flatten)]
    fields: DecisionFields,
}
