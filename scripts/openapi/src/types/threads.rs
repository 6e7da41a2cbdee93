//! Threads, their subagents, and the waits of those.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::agents::AgentSummary;
use super::budgets::GivenBudget;
use super::messages::{Attachment, ToolStatus};
use super::{Object, Seconds};

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum ThreadState {
    Idle,
    Running,
    Parked,
    Stopped,
    Terminated,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum VariableType {
    Text,
    Secret,
}

/// A thread that is to be made.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewThread {
    agent_id: String,
    /// The owner; not needed by a caller whose scope is one.
    user_id: Option<String>,
    /// What you call the thread: 1 to 255 visible characters. There is one thread for each key of an owner.
    #[schemars(length(min = 1, max = 255))]
    key: Option<String>,
    tags: Option<Vec<String>>,
    /// For you.
    properties: Option<Object>,
    /// Values of variables, by name.
    env: Option<BTreeMap<String, String>>,
    /// `secret` unless given.
    env_types: Option<BTreeMap<String, VariableType>>,
    /// The same as `env`, as the specification calls it.
    tenvs: Option<BTreeMap<String, String>>,
    budget: Option<GivenBudget>,
    /// What was said before it.
    history: Option<Vec<Earlier>>,
    /// The id that the thread has elsewhere which `history` is of: then its messages are whole ones.
    #[schemars(length(min = 1, max = 255))]
    copied_from: Option<String>,
    /// Seconds after which it deletes itself.
    #[schemars(range(min = 1, max = 31_536_000))]
    expires_in: Option<i64>,
}

/// A message of the time before a thread.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Earlier {
    role: EarlierRole,
    content: Option<String>,
    silent: Option<bool>,
    /// This and what follows only with `copied_from`: as the other thread has it. Its number is kept.
    id: Option<String>,
    name: Option<String>,
    tool_calls: Option<String>,
    tool_call_id: Option<String>,
    tool_status: Option<ToolStatus>,
    created_at: Option<i64>,
    parent_id: Option<String>,
    depth: Option<u32>,
    metadata: Option<Object>,
    attachments: Option<Vec<Attachment>>,
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
    /// With a key: that.
    #[schemars(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// With a key: whether it was made now.
    #[schemars(skip_serializing_if = "Option::is_none")]
    created: Option<bool>,
    message: String,
}

/// A thread in a list, which may lag a moment behind it.
#[derive(JsonSchema)]
pub(crate) struct ListedThread {
    id: String,
    /// What its creator calls it.
    key: Option<String>,
    agent_id: String,
    /// The agent that it was made with.
    origin_agent_id: String,
    user_id: Option<String>,
    tags: Vec<String>,
    /// The thread that has made it.
    parent: Option<String>,
    terminated: Option<Seconds>,
    created_at: Option<Seconds>,
    last_activity_at: Option<Seconds>,
    executing: bool,
    /// Why its last run failed, if it did: the reason of that run.
    failed: Option<String>,
    last_message_preview: Option<String>,
    last_message_at: Option<Seconds>,
    /// `null` where its definition is gone.
    agent: Option<AgentSummary>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ThreadPage {
    threads: Vec<ListedThread>,
    total: i64,
    has_more: bool,
    /// With `user_id=*`: owners whose threads are not in the list.
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
    /// What its creator calls it.
    key: Option<String>,
    /// Which of the threads that have had this id it is, from 1.
    life: i64,
    agent_id: String,
    origin_agent_id: String,
    user_id: Option<String>,
    tags: Vec<String>,
    properties: Object,
    /// Those of the type `text`.
    env: BTreeMap<String, String>,
    env_types: BTreeMap<String, VariableType>,
    parent: Option<String>,
    /// What it is a copy of.
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

/// What a thread is a copy of.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Fork {
    thread_id: String,
    /// The id there of the last message that is copied.
    up_to: Option<String>,
    state: ForkState,
    /// Why there is no copy.
    error: Option<String>,
}

/// A copy that is to be made.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// The last message that is copied; the last one that is complete unless given.
    up_to: Option<String>,
    /// Instead: a message whose whole answer is copied, up to what was said next.
    answer_to: Option<String>,
    /// What you call the copy.
    #[schemars(length(min = 1, max = 255))]
    key: Option<String>,
    /// Those of the thread unless given.
    tags: Option<Vec<String>>,
    /// Those of the thread unless given.
    properties: Option<Object>,
    /// Seconds after which it deletes itself.
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
    /// Whether it was made now.
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

/// What is to be changed; at least one of them.
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
    /// Its thread.
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
    /// The id that a model calls it by, if it is a worker.
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

/// What a subagent that was not made yet waits for.
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

/// Values of variables of the instance or an account, as far as they may be shown.
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
    /// Nothing is stopped unless this run is active.
    run: Option<String>,
    /// Nothing is stopped unless the active run is at the answer to this message, and nothing was said behind it.
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

/// What the next request to a model would hold, in tokens (docs/context.md).
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
    /// With `history=true`: the summaries before it, too.
    #[schemars(skip_serializing_if = "Option::is_none")]
    summaries: Option<Vec<Object>>,
}

#[derive(JsonSchema)]
pub(crate) struct SummaryAsked {
    /// The epoch that it starts from.
    epoch: i64,
    /// The last message that it will cover.
    upto: Option<String>,
}
