//! Threads and their subagents (docs/http.md).

use bobbin_definitions::json_text::JsonText;
use serde::Serialize;
use serde_json::Value;

use super::agents::AgentSummary;
#[cfg(feature = "schema")]
use super::variables::{Types, Values};
use super::{Object, Seconds};

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ThreadState {
    Idle,
    Running,
    Parked,
    Stopped,
    Terminated,
}

/// A thread in a list, which may lag behind the thread for a moment.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedThread<'a> {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub id: Option<&'a str>,
    /// The key that its creator has chosen.
    pub key: Option<&'a str>,
    pub agent_id: &'a str,
    /// The agent that the thread was created with.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub origin_agent_id: Option<&'a str>,
    pub user_id: Option<&'a str>,
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub tags: Value,
    /// The thread that has created this one.
    pub parent: Option<&'a str>,
    pub terminated: Option<Seconds>,
    pub created_at: Option<Seconds>,
    pub last_activity_at: Option<Seconds>,
    pub executing: bool,
    /// The reason of the last run, if that run failed.
    pub failed: Option<&'a str>,
    pub last_message_preview: Option<&'a str>,
    pub last_message_at: Option<Seconds>,
    /// `null` if its definition no longer exists.
    pub agent: Option<AgentSummary<'a>>,
}

/// A page of threads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadPage {
    pub threads: Vec<JsonText<ListedThread<'static>>>,
    pub total: i64,
    pub has_more: bool,
    /// With `user_id=*`: the number of owners whose threads are not in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owners_left_out: Option<i64>,
}

/// An owner of threads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedOwner<'a> {
    /// `null` for the threads without an owner.
    #[serde(rename = "user_id")]
    pub user_id: Option<&'a str>,
    pub thread_count: i64,
}

/// A page of owners.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnerPage {
    pub owners: Vec<JsonText<ListedOwner<'static>>>,
    pub total: i64,
    pub has_more: bool,
}

/// The state of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ForkState {
    Copying,
    Copied,
    Failed,
}

/// The original of a copied thread.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fork<'a> {
    pub thread_id: &'a str,
    /// The id of the last copied message in the original.
    pub up_to: Option<&'a str>,
    pub state: ForkState,
    /// Why the copy failed.
    pub error: Option<&'a str>,
}

/// The facts about a thread.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadFacts<'a> {
    pub id: &'a str,
    /// The key that its creator has chosen.
    pub key: Option<&'a str>,
    /// The number of this thread among those that have had this id, from 1.
    pub life: i64,
    pub agent_id: &'a str,
    pub origin_agent_id: &'a str,
    pub user_id: Option<&'a str>,
    pub tags: &'a [String],
    pub properties: &'a Object,
    /// The values of type `text`.
    #[cfg_attr(feature = "schema", schemars(with = "Values"))]
    pub env: Object,
    #[cfg_attr(feature = "schema", schemars(with = "Types"))]
    pub env_types: Object,
    /// The thread that has created this one.
    pub parent: Option<&'a str>,
    /// The original, if the thread is a copy.
    pub fork: Option<Fork<'a>>,
    pub terminated: Option<Seconds>,
    pub created_at: Seconds,
    pub executing: bool,
    pub state: ThreadState,
}

/// Counts of a thread.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadStats {
    pub message_count: i64,
    pub log_count: i64,
    pub last_activity: Seconds,
}

/// A thread.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thread<'a> {
    pub thread: ThreadFacts<'a>,
    /// `null` if its definition no longer exists.
    pub agent: Option<AgentSummary<'a>>,
    pub stats: ThreadStats,
}

/// The state of a thread after a change.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadChanged<'a> {
    pub id: &'a str,
    pub agent_id: &'a str,
    pub user_id: Option<&'a str>,
    pub tags: &'a [String],
    pub properties: &'a Object,
    /// The values of type `text`.
    #[cfg_attr(feature = "schema", schemars(with = "Values"))]
    pub env: Object,
    #[cfg_attr(feature = "schema", schemars(with = "Types"))]
    pub env_types: Object,
    pub created_at: Seconds,
}

/// A subagent in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedSubagent<'a> {
    /// The id of the subagent's thread.
    pub id: &'a str,
    #[serde(rename = "agent_name")]
    pub agent_name: &'a str,
    pub title: Option<&'a str>,
    pub thread_name: Option<&'a str>,
    pub description: &'a str,
    pub status: &'a str,
    pub resumable: bool,
    pub blocking: bool,
    pub parent_communication: &'static str,
    pub spawn_group_id: Option<&'a str>,
    #[serde(rename = "created_at")]
    pub created_at: Seconds,
    /// The id that models use, if the subagent is a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<&'a str>,
}

/// A page of subagents.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentPage {
    pub subagents: Vec<JsonText<ListedSubagent<'static>>>,
    pub total: u64,
    pub has_more: bool,
}

/// A thread that a request has created, or that exists already.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadCreated<'a> {
    /// The id of the thread.
    #[serde(rename = "threadId")]
    pub thread_id: &'a str,
    /// The agent of the thread.
    pub agent_id: &'a str,
    /// The result, for people.
    pub message: &'static str,
    /// The key, if the request has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<&'a str>,
    /// With a key: whether this request has created the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
}

/// A copy of a thread.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forked<'a> {
    /// The id of the copy.
    #[serde(rename = "threadId")]
    pub thread_id: &'a str,
    /// The agent of the copy.
    pub agent_id: &'a str,
    /// Whether this request has created it.
    pub created: bool,
    /// The original, and the state of the copy.
    pub fork: Option<Fork<'a>>,
    /// The key, if the request has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<&'a str>,
}

/// A deleted thread.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadDeleted<'a> {
    /// Always `true`.
    pub success: bool,
    /// The id of the thread.
    pub thread_id: &'a str,
    /// The id of the thread, then those of the threads below it.
    pub deleted_thread_ids: &'a [String],
    /// The number of deleted threads.
    pub deleted_count: i64,
    /// The result, for people.
    pub message: &'static str,
}

/// The result of a stop.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stopped {
    /// Always `stopped`.
    pub status: &'static str,
    /// The result, for people.
    pub message: &'static str,
}

/// A run that continues without a new message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Continued {
    /// Always `queued`.
    pub status: &'static str,
    /// The id of the run.
    pub queue_id: String,
    /// The result, for people.
    pub message: &'static str,
}

/// A terminated thread.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Terminated<'a> {
    /// Always `terminated`.
    pub status: &'static str,
    /// The id of the thread.
    pub thread_id: &'a str,
    /// The time of the termination, in seconds since 1970.
    #[cfg_attr(feature = "schema", schemars(with = "Seconds"))]
    pub terminated: Option<Seconds>,
}
