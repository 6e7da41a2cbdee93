//! Threads, their subagents, and the waits of those.

use std::collections::BTreeMap;

use bobbin_definitions::definitions::message::ToolStatus;
use bobbin_protocols::responses::messages::Attachment;
use bobbin_protocols::responses::threads::ThreadState;
use schemars::JsonSchema;

use super::agents::AgentSummary;
use super::budgets::GivenBudget;
use super::{Object, Seconds};

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum VariableType {
    Text,
    Secret,
}

/// A thread to create.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewThread {
    agent_id: String,
    /// The owner. A caller whose scope is an owner does not need it.
    user_id: Option<String>,
    /// Your name for the thread: 1 to 255 visible characters. An owner has one thread for each key.
    #[schemars(length(min = 1, max = 255))]
    key: Option<String>,
    tags: Option<Vec<String>>,
    /// For you.
    properties: Option<Object>,
    /// Values of variables, by name.
    env: Option<BTreeMap<String, String>>,
    /// The types of the values, `secret` by default.
    env_types: Option<BTreeMap<String, VariableType>>,
    /// The old name of `env`.
    tenvs: Option<BTreeMap<String, String>>,
    budget: Option<GivenBudget>,
    /// Earlier messages.
    history: Option<Vec<Earlier>>,
    /// The id of the original thread in another deployment. `history` then has whole messages.
    #[schemars(length(min = 1, max = 255))]
    copied_from: Option<String>,
    /// Seconds until the thread deletes itself.
    #[schemars(range(min = 1, max = 31_536_000))]
    expires_in: Option<i64>,
}

/// An earlier message for a new thread.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Earlier {
    role: EarlierRole,
    content: Option<String>,
    silent: Option<bool>,
    /// This field and the following ones only with `copied_from`, as in the original thread. The number is kept.
    id: Option<String>,
    name: Option<String>,
    tool_calls: Option<String>,
    tool_call_id: Option<String>,
    tool_status: Option<ToolStatus>,
    created_at: Option<i64>,
    parent_id: Option<String>,
    depth: Option<u32>,
    metadata: Option<Object>,
    attachments: Option<Vec<Attachment<'static>>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum EarlierRole {
    User,
    Assistant,
    System,
    /// Only with `copied_from`.
    Tool,
}

#[derive(JsonSchema)]
pub(crate) struct ThreadCreated {
    #[schemars(rename = "threadId")]
    thread_id: String,
    agent_id: String,
    /// The key, if the request has one.
    #[schemars(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// With a key: whether this request has created the thread.
    #[schemars(skip_serializing_if = "Option::is_none")]
    created: Option<bool>,
    message: String,
}

/// A thread in a list, which may lag behind the thread for a moment.
#[derive(JsonSchema)]
pub(crate) struct ListedThread {
    id: String,
    /// The key that its creator has chosen.
    key: Option<String>,
    agent_id: String,
    /// The agent that the thread was created with.
    origin_agent_id: String,
    user_id: Option<String>,
    tags: Vec<String>,
    /// The thread that has created this one.
    parent: Option<String>,
    terminated: Option<Seconds>,
    created_at: Option<Seconds>,
    last_activity_at: Option<Seconds>,
    executing: bool,
    /// The reason of the last run, if that run failed.
    failed: Option<String>,
    last_message_preview: Option<String>,
    last_message_at: Option<Seconds>,
    /// `null` if its definition no longer exists.
    agent: Option<AgentSummary>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ThreadPage {
    threads: Vec<ListedThread>,
    total: i64,
    has_more: bool,
    /// With `user_id=*`: the number of owners whose threads are not in the list.
    #[schemars(skip_serializing_if = "Option::is_none")]
    owners_left_out: Option<i64>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ListedOwner {
    #[schemars(rename = "user_id")]
    user_id: Option<String>,
    thread_count: i64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct OwnerPage {
    owners: Vec<ListedOwner>,
    total: i64,
    has_more: bool,
}

#[derive(JsonSchema)]
pub(crate) struct ThreadFacts {
    id: String,
    /// The key that its creator has chosen.
    key: Option<String>,
    /// The number of this thread among those that have had this id, from 1.
    life: i64,
    agent_id: String,
    origin_agent_id: String,
    user_id: Option<String>,
    tags: Vec<String>,
    properties: Object,
    /// The values of type `text`.
    env: BTreeMap<String, String>,
    env_types: BTreeMap<String, VariableType>,
    parent: Option<String>,
    /// The original, if the thread is a copy.
    fork: Option<Fork>,
    terminated: Option<Seconds>,
    created_at: Seconds,
    executing: bool,
    state: ThreadState,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum ForkState {
    Copying,
    Copied,
    Failed,
}

/// The original of a copied thread.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Fork {
    thread_id: String,
    /// The id of the last copied message in the original.
    up_to: Option<String>,
    state: ForkState,
    /// Why the copy failed.
    error: Option<String>,
}

/// A copy to create.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// The last copied message. By default, the last complete message.
    up_to: Option<String>,
    /// Alternative to `up_to`: a message. The copy ends with the whole answer to it.
    answer_to: Option<String>,
    /// Your name for the copy.
    #[schemars(length(min = 1, max = 255))]
    key: Option<String>,
    /// By default, those of the thread.
    tags: Option<Vec<String>>,
    /// By default, those of the thread.
    properties: Option<Object>,
    /// Seconds until the thread deletes itself.
    #[schemars(range(min = 1, max = 31_536_000))]
    expires_in: Option<i64>,
}

#[derive(JsonSchema)]
pub(crate) struct Forked {
    #[schemars(rename = "threadId")]
    thread_id: String,
    agent_id: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Whether this request has created it.
    created: bool,
    fork: Option<Fork>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ThreadStats {
    message_count: i64,
    log_count: i64,
    last_activity: Seconds,
}

#[derive(JsonSchema)]
pub(crate) struct Thread {
    thread: ThreadFacts,
    agent: Option<AgentSummary>,
    stats: ThreadStats,
}

/// Changes of a thread. At least one field is required.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ThreadChange {
    tags: Option<Vec<String>>,
    properties: Option<Object>,
    agent_id: Option<String>,
    env_patch: Option<BTreeMap<String, String>>,
    env_type_patch: Option<BTreeMap<String, VariableType>>,
    env_delete: Option<Vec<String>>,
}

#[derive(JsonSchema)]
pub(crate) struct ThreadChanged {
    id: String,
    agent_id: String,
    user_id: Option<String>,
    tags: Vec<String>,
    properties: Object,
    env: BTreeMap<String, String>,
    env_types: BTreeMap<String, VariableType>,
    created_at: Seconds,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ThreadDeleted {
    success: bool,
    thread_id: String,
    deleted_thread_ids: Vec<String>,
    deleted_count: i64,
    message: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ListedSubagent {
    /// The id of the subagent's thread.
    id: String,
    #[schemars(rename = "agent_name")]
    agent_name: String,
    title: Option<String>,
    thread_name: Option<String>,
    description: Option<String>,
    status: String,
    resumable: bool,
    blocking: bool,
    parent_communication: String,
    spawn_group_id: Option<String>,
    /// The id that models use, if the subagent is a worker.
    #[schemars(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    #[schemars(rename = "created_at")]
    created_at: Seconds,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct SubagentPage {
    subagents: Vec<ListedSubagent>,
    total: i64,
    has_more: bool,
}

/// The variables that a subagent waits for before it is created.
#[derive(JsonSchema)]
pub(crate) struct MissingVariables {
    request_id: String,
    parent_thread_id: String,
    agent_name: String,
    registry_agent_name: String,
    name: Option<String>,
    required: Vec<String>,
    missing: Vec<String>,
    created_at: Seconds,
    expires_at: Seconds,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct GivenVariables {
    env: BTreeMap<String, String>,
    env_types: Option<BTreeMap<String, VariableType>>,
}

#[derive(JsonSchema)]
pub(crate) struct VariablesTaken {
    request_id: String,
    child_thread_id: String,
    status: String,
}

/// The visible values of variables of the instance or an account.
#[derive(JsonSchema)]
pub(crate) struct ShownEnv {
    env: BTreeMap<String, String>,
    env_types: BTreeMap<String, VariableType>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct EnvChange {
    env_patch: Option<BTreeMap<String, String>>,
    env_type_patch: Option<BTreeMap<String, VariableType>>,
    env_delete: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Stop {
    /// Stop only if this run is active.
    run: Option<String>,
    /// Stop only if the active run answers this message, and nobody has sent a message since.
    answer_to: Option<String>,
}

#[derive(JsonSchema)]
pub(crate) struct Stopped {
    status: String,
    message: String,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Continue {
    side: Option<SideName>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum SideName {
    A,
    B,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Continued {
    status: String,
    queue_id: Option<String>,
    message: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Terminated {
    status: String,
    thread_id: String,
    terminated: Seconds,
}

/// The tokens of the next request to the model (docs/context.md).
#[derive(JsonSchema)]
pub(crate) struct Context {
    model: String,
    window: i64,
    budget: i64,
    factor: f64,
    parts: BTreeMap<String, i64>,
    used: f64,
    history: Object,
    summary: Option<Object>,
    /// With `history=true`: the earlier summaries, too.
    #[schemars(skip_serializing_if = "Option::is_none")]
    summaries: Option<Vec<Object>>,
}

#[derive(JsonSchema)]
pub(crate) struct SummaryAsked {
    /// The epoch that the summary starts from.
    epoch: i64,
    /// The last message that the summary will cover.
    upto: Option<String>,
}
