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

/// The call of a tool that waits.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct WaitingCall {
    id: String,
    tool: String,
    tier: String,
    args: Value,
    /// What exactly is decided on, where that is the call itself.
    digest: Option<String>,
    message_id: Option<String>,
}

#[derive(JsonSchema)]
pub(crate) struct DecidedBy {
    scope: String,
    fingerprint: Option<String>,
    actor: Option<String>,
}

/// What a run asks.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Wait {
    id: String,
    kind: WaitKind,
    state: WaitState,
    thread_id: String,
    run: Option<String>,
    /// Those with the same one are of one reply.
    batch: Option<String>,
    call: Option<WaitingCall>,
    title: String,
    reason: Option<String>,
    allows: Vec<String>,
    /// Arguments that who approves may change.
    #[schemars(skip_serializing_if = "Option::is_none")]
    edit: Option<Vec<String>>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<String>>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    free_text: Option<bool>,
    /// Of a wait for workers.
    #[schemars(skip_serializing_if = "Option::is_none")]
    agent_ids: Option<Vec<String>>,
    /// Of a wait for workers: `all` or `any` of them.
    #[schemars(rename = "for", skip_serializing_if = "Option::is_none")]
    wanted: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    budget: Option<Object>,
    /// Of what an MCP server asks: its name in the folder.
    #[schemars(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The same: JSON Schema of a form to fill in.
    #[schemars(skip_serializing_if = "Option::is_none")]
    form: Option<Object>,
    /// The same, or where somebody signs in to it: a page to visit.
    #[schemars(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Who may decide.
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

/// An open wait of one of an owner's threads, as the list of them has it.
#[derive(JsonSchema)]
pub(crate) struct InboxPage {
    waits: Vec<Object>,
    cursor: Option<String>,
    /// With `user_id=*`: owners whose waits are not in the list.
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
    /// The reply is dropped with its calls, and the model is asked again.
    Restart,
}

/// What is decided; which fields go with it depends on the decision.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct DecisionFields {
    decision: DecisionKind,
    /// Of `approve`: changed arguments, those in the wait's `edit`.
    args: Option<Object>,
    /// Of `deny`.
    reason: Option<String>,
    /// Of `deny`: ends the run, too.
    stop: Option<bool>,
    /// Of `answer`: words.
    text: Option<String>,
    /// Of `answer`: the place in `choices`.
    choice: Option<u32>,
    /// Of `answer`: what a client's tool came to.
    result: Option<Value>,
    is_error: Option<bool>,
    /// Of `answer`: what was filled in for an MCP server.
    content: Option<Value>,
    /// Of `defer`.
    until: Option<Seconds>,
    /// Of `extend`: by how much.
    add: Option<Limits>,
    /// For the log.
    actor: Option<String>,
    interrupt: Option<Interrupt>,
}

/// A decision.
#[derive(JsonSchema)]
pub(crate) struct Decision {
    /// The wait's id; not needed where the address has it.
    id: Option<String>,
    #[schemars(flatten)]
    fields: DecisionFields,
}

/// Decisions, all of which are taken, or none.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Decisions {
    #[schemars(length(min = 1, max = 100))]
    decisions: Vec<Decision>,
}

/// A decision by a link.
#[derive(JsonSchema)]
pub(crate) struct Resume {
    token: String,
    #[schemars(flatten)]
    fields: DecisionFields,
}
