//! The waits of threads for people (docs/approvals.md).

use bobbin_definitions::definitions::Tier;
use bobbin_definitions::definitions::budget::Unit;
use bobbin_definitions::json_text::JsonText;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Micros;
use super::budgets::BudgetScope;
use super::threads::ThreadState;

/// The kind of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WaitKind {
    /// A decision whether a call may run.
    Approval,
    /// A person's answer to a question of the model.
    Question,
    /// The result of a call that the client performs.
    ClientTool,
    /// A decision whether the run may continue spending.
    Budget,
    /// A long pause before the next attempt at a model or a tool. It ends by itself; a client may end it
    /// earlier.
    Retry,
    /// The outcomes of workers.
    Children,
    /// A person's answer to an MCP server's question, or a visit of its page.
    Elicitation,
    /// A task of an MCP server. Each expiry polls the server.
    Task,
    /// A person's sign-in to an MCP server. Polled, because the sign-in may complete elsewhere.
    SignIn,
}

impl WaitKind {
    const ALL: [WaitKind; 9] = [
        WaitKind::Approval,
        WaitKind::Question,
        WaitKind::ClientTool,
        WaitKind::Budget,
        WaitKind::Retry,
        WaitKind::Children,
        WaitKind::Elicitation,
        WaitKind::Task,
        WaitKind::SignIn,
    ];

    /// The form in the table and for clients.
    pub const fn as_str(self) -> &'static str {
        match self {
            WaitKind::Approval => "approval",
            WaitKind::Question => "question",
            WaitKind::ClientTool => "client_tool",
            WaitKind::Budget => "budget",
            WaitKind::Retry => "retry",
            WaitKind::Children => "children",
            WaitKind::Elicitation => "elicitation",
            WaitKind::Task => "task",
            WaitKind::SignIn => "sign_in",
        }
    }

    /// The kind with a name.
    pub fn parse(text: &str) -> Option<WaitKind> {
        WaitKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The state of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WaitState {
    /// It waits for a decision.
    Open,
    /// It is decided.
    Decided,
    /// It expired without a decision.
    Expired,
    /// The run was stopped, or the thread terminated.
    Cancelled,
    /// The subject of the question has changed.
    Void,
}

impl WaitState {
    const ALL: [WaitState; 5] =
        [WaitState::Open, WaitState::Decided, WaitState::Expired, WaitState::Cancelled, WaitState::Void];

    /// The form in the table and for clients.
    pub const fn as_str(self) -> &'static str {
        match self {
            WaitState::Open => "open",
            WaitState::Decided => "decided",
            WaitState::Expired => "expired",
            WaitState::Cancelled => "cancelled",
            WaitState::Void => "void",
        }
    }

    /// The state with a name.
    pub fn parse(text: &str) -> Option<WaitState> {
        WaitState::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// The group that may decide a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DecisionScope {
    /// Everyone who may send to the thread.
    Thread,
    /// The thread's owner and administrators.
    #[default]
    Owner,
    /// Administrators.
    Admin,
}

/// The outcome of a wait that expires; never an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OnExpiry {
    /// The call is denied, and the run continues.
    #[default]
    Deny,
    /// The run fails.
    Fail,
    /// The run continues: it waited only for time.
    Continue,
    /// The run has one last step, for a wait about its budget.
    Finish,
}

/// The call that a wait is about.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingCall<'a> {
    /// The model's id of the call.
    pub id: &'a str,
    /// The name of the tool.
    pub tool: &'a str,
    /// The changes that the call may make.
    pub tier: Tier,
    /// The arguments.
    pub args: &'a Value,
    /// The digest of the call, if the decision is about the call itself.
    pub digest: Option<String>,
    /// The reply with the call. `null` for a call of code.
    pub message_id: Option<String>,
}

/// The person or program that has decided.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecidedBy<'a> {
    /// The scope of the credentials.
    pub scope: &'a str,
    /// Which of several keys was used. `null` if it is unknown.
    pub fingerprint: Option<&'a str>,
    /// The name that the request gave. `null` if it gave none.
    pub actor: Option<&'a str>,
}

/// The party that can extend a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BudgetExtender {
    /// The parent of the subagent.
    Parent,
    /// People.
    People,
}

/// The limit that a run has reached.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingBudget<'a> {
    /// The scope of the limit.
    pub scope: BudgetScope,
    /// The limited amount.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub unit: Unit,
    /// The limit: USD, seconds, or a count.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub limit: Value,
    /// The usage, in the same unit.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub spent: Value,
    /// The minimum that the next attempt needs.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub needed: Value,
    /// The subagent that makes the attempt, if it is a subagent's.
    pub for_child: Option<&'a str>,
    /// The party that can extend the limit.
    pub asks: BudgetExtender,
}

/// The number of workers that a wait needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WorkersNeeded {
    /// The outcomes of all workers.
    All,
    /// The outcome of one worker.
    Any,
}

/// A question of a run, or another event that a run waits for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wait<'a> {
    /// The id of the wait.
    pub id: String,
    /// The kind.
    pub kind: WaitKind,
    /// The state.
    pub state: WaitState,
    /// The id of the thread.
    pub thread_id: &'a str,
    /// The run that waits. `null` if no run does.
    pub run: Option<String>,
    /// Waits with the same batch belong to one reply.
    pub batch: Option<String>,
    /// The call that the wait is about. `null` if it is about none.
    pub call: Option<WaitingCall<'a>>,
    /// The question, in one line.
    pub title: &'a str,
    /// Why the decision is needed. `null` if there is no reason.
    pub reason: Option<&'a str>,
    /// The decisions that the wait accepts.
    pub allows: Vec<&'static str>,
    /// The scope that may decide.
    pub by: DecisionScope,
    /// The time at which it opened, in microseconds since 1970.
    pub created_at: Micros,
    /// The time at which it expires, in microseconds since 1970.
    pub expires_at: Micros,
    /// The outcome if it expires.
    pub on_expiry: OnExpiry,
    /// The decision. `null` while it is open, or if it ended without one.
    pub decision: Option<&'a str>,
    /// The time at which it closed, in microseconds since 1970. `null` while it is open.
    pub decided_at: Option<Micros>,
    /// The person or program that has decided. `null` if nobody has.
    pub decided_by: Option<DecidedBy<'a>>,
    /// Arguments that the approver may change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<&'a [String]>,
    /// For a question: the answers to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<&'a [String]>,
    /// For a question: whether other answers are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_text: Option<bool>,
    /// For a wait about a budget: the reached limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<WaitingBudget<'a>>,
    /// For a question of a tool: its name in the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// For a question of an MCP server: the name of its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<&'a str>,
    /// For a question of an MCP server or a tool: the JSON Schema of a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::Object>"))]
    pub form: Option<&'a Value>,
    /// For a question of an MCP server or a sign-in: a page to visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<&'a str>,
    /// For a wait for workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_ids: Option<Vec<&'a str>>,
    /// For a wait for workers: `all` or `any` of them.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub wanted: Option<WorkersNeeded>,
}

/// A page of waits.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitPage {
    /// The waits, newest first.
    pub waits: Vec<JsonText<Wait<'static>>>,
    /// The `cursor` of the next page. `null` on the last page.
    pub cursor: Option<String>,
}

/// A wait.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneWait<'a> {
    /// The wait.
    pub wait: Wait<'a>,
}

/// The result of a decision.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitDecided {
    /// The wait after the decision.
    pub wait: JsonText<Wait<'static>>,
    /// The state of the thread.
    pub state: ThreadState,
}

/// The result of several decisions.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitsDecided {
    /// The waits after the decisions.
    pub waits: Vec<JsonText<Wait<'static>>>,
}

/// An open wait in the list of an owner.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InboxWait<'a> {
    /// The id of the wait.
    pub id: &'a str,
    /// The id of its thread.
    pub thread_id: &'a str,
    /// The kind.
    #[cfg_attr(feature = "schema", schemars(with = "WaitKind"))]
    pub kind: &'a str,
    /// The state.
    pub state: WaitState,
    /// The question, in one line.
    pub title: &'a str,
    /// The time at which it opened, in microseconds since 1970.
    pub created_at: Micros,
    /// The time at which it expires, in microseconds since 1970.
    pub expires_at: Micros,
}

/// A page of open waits in all threads of an owner.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InboxPage {
    /// The waits, newest first.
    pub waits: Vec<JsonText<InboxWait<'static>>>,
    /// The `cursor` of the next page. `null` on the last page.
    pub cursor: Option<String>,
    /// With `user_id=*`: the number of owners whose waits are not in the list.
    #[serde(rename = "ownersLeftOut", skip_serializing_if = "Option::is_none")]
    pub owners_left_out: Option<i64>,
}
