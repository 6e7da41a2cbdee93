//! The waits of threads for people, and the decisions (docs/approvals.md).

use schemars::JsonSchema;
use serde_json::Value;

use super::budgets::Limits;
use super::{Micros, Object, Seconds};

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum WaitKind {
    Approval,
    Question,
    ClientTool,
    Budget,
    Retry,
    Children,
    Elicitation,
    Task,
    SignIn,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum WaitState {
    Open,
    Decided,
    Expired,
    Cancelled,
    Void,
}

/// The call that a wait is about.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct WaitingCall {
    id: String,
    tool: String,
    tier: String,
    args: Value,
    /// The digest of the call, if the decision is about the call itself.
    digest: Option<String>,
    message_id: Option<String>,
}

#[derive(JsonSchema)]
pub(crate) struct DecidedBy {
    scope: String,
    fingerprint: Option<String>,
    actor: Option<String>,
}

/// A question of a run, or another event that a run waits for.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Wait {
    id: String,
    kind: WaitKind,
    state: WaitState,
    thread_id: String,
    run: Option<String>,
    /// Waits with the same batch belong to one reply.
    batch: Option<String>,
    call: Option<WaitingCall>,
    title: String,
    reason: Option<String>,
    allows: Vec<String>,
    /// Arguments that the approver may change.
    #[schemars(skip_serializing_if = "Option::is_none")]
    edit: Option<Vec<String>>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<String>>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    free_text: Option<bool>,
    /// For a wait for workers.
    #[schemars(skip_serializing_if = "Option::is_none")]
    agent_ids: Option<Vec<String>>,
    /// For a wait for workers: `all` or `any` of them.
    #[schemars(rename = "for", skip_serializing_if = "Option::is_none")]
    wanted: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    budget: Option<Object>,
    /// For a question of an MCP server: the name of its file.
    #[schemars(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// For a question of an MCP server: the JSON Schema of a form.
    #[schemars(skip_serializing_if = "Option::is_none")]
    form: Option<Object>,
    /// For a question of an MCP server or a sign-in: a page to visit.
    #[schemars(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The scope that may decide.
    by: String,
    created_at: Micros,
    expires_at: Micros,
    on_expiry: String,
    decision: Option<String>,
    decided_at: Option<Micros>,
    decided_by: Option<DecidedBy>,
}

#[derive(JsonSchema)]
pub(crate) struct WaitPage {
    waits: Vec<Wait>,
    cursor: Option<String>,
}

#[derive(JsonSchema)]
pub(crate) struct OneWait {
    wait: Wait,
}

#[derive(JsonSchema)]
pub(crate) struct WaitDecided {
    wait: Wait,
    state: super::threads::ThreadState,
}

#[derive(JsonSchema)]
pub(crate) struct WaitsDecided {
    waits: Vec<Wait>,
}

/// A page of open waits in all threads of an owner.
#[derive(JsonSchema)]
pub(crate) struct InboxPage {
    waits: Vec<Object>,
    cursor: Option<String>,
    /// With `user_id=*`: the number of owners whose waits are not in the list.
    #[schemars(rename = "ownersLeftOut", skip_serializing_if = "Option::is_none")]
    owners_left_out: Option<i64>,
}

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
