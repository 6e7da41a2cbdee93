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
    /// No run is active, and no message waits.
    Idle,
    /// A run is working.
    Running,
    /// A run waits.
    Parked,
    /// No run is active. The last one was stopped, or messages wait in the queue.
    Stopped,
    /// The thread refuses all further work.
    Terminated,
}

/// A thread in a list, which may lag behind the thread for a moment.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedThread<'a> {
    /// The id of the thread.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub id: Option<&'a str>,
    /// The key that its creator has chosen.
    pub key: Option<&'a str>,
    /// The current agent.
    pub agent_id: &'a str,
    /// The agent that the thread was created with.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub origin_agent_id: Option<&'a str>,
    /// The owner. `null` if the thread has none.
    pub user_id: Option<&'a str>,
    /// The tags.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub tags: Value,
    /// The thread that has created this one.
    pub parent: Option<&'a str>,
    /// The time of the termination, in seconds since 1970. `null` if the thread is not terminated.
    pub terminated: Option<Seconds>,
    /// The time of the creation, in seconds since 1970.
    pub created_at: Option<Seconds>,
    /// The time of the last activity, in seconds since 1970. `null` before the first.
    pub last_activity_at: Option<Seconds>,
    /// Whether a run is active.
    pub executing: bool,
    /// The reason of the last run, if that run failed.
    pub failed: Option<&'a str>,
    /// The beginning of the newest message. `null` if there is none.
    pub last_message_preview: Option<&'a str>,
    /// The time of the newest message, in seconds since 1970. `null` if there is none.
    pub last_message_at: Option<Seconds>,
    /// `null` if its definition no longer exists.
    pub agent: Option<AgentSummary<'a>>,
}

/// A page of threads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadPage {
    /// The threads.
    pub threads: Vec<JsonText<ListedThread<'static>>>,
    /// The number of threads that match the request.
    pub total: i64,
    /// Whether more threads follow.
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
    /// The number of threads.
    pub thread_count: i64,
}

/// A page of owners.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnerPage {
    /// The owners.
    pub owners: Vec<JsonText<ListedOwner<'static>>>,
    /// The number of owners.
    pub total: i64,
    /// Whether more owners follow.
    pub has_more: bool,
}

/// The state of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ForkState {
    /// The content is being copied.
    Copying,
    /// The copy is complete.
    Copied,
    /// The copy has failed for good.
    Failed,
}

/// The original of a copied thread.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fork<'a> {
    /// The id of the original.
    pub thread_id: &'a str,
    /// The id of the last copied message in the original.
    pub up_to: Option<&'a str>,
    /// The state of the copy.
    pub state: ForkState,
    /// Why the copy failed.
    pub error: Option<&'a str>,
}

/// The facts about a thread.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadFacts<'a> {
    /// The id of the thread.
    pub id: &'a str,
    /// The key that its creator has chosen.
    pub key: Option<&'a str>,
    /// The number of this thread among those that have had this id, from 1.
    pub life: i64,
    /// The current agent.
    pub agent_id: &'a str,
    /// The agent that the thread was created with.
    pub origin_agent_id: &'a str,
    /// The owner. `null` if the thread has none.
    pub user_id: Option<&'a str>,
    /// The tags.
    pub tags: &'a [String],
    /// Data of the creator.
    pub properties: &'a Object,
    /// The values of type `text`.
    #[cfg_attr(feature = "schema", schemars(with = "Values"))]
    pub env: Object,
    /// The types of all values.
    #[cfg_attr(feature = "schema", schemars(with = "Types"))]
    pub env_types: Object,
    /// The thread that has created this one.
    pub parent: Option<&'a str>,
    /// The original, if the thread is a copy.
    pub fork: Option<Fork<'a>>,
    /// The time of the termination, in seconds since 1970. `null` if the thread is not terminated.
    pub terminated: Option<Seconds>,
    /// The time of the creation, in seconds since 1970.
    pub created_at: Seconds,
    /// Whether a run is active.
    pub executing: bool,
    /// The state of the thread.
    pub state: ThreadState,
}

/// Counts of a thread.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadStats {
    /// The number of messages that are not silent.
    pub message_count: i64,
    /// The number of log entries.
    pub log_count: i64,
    /// The time of the last activity, in seconds since 1970.
    pub last_activity: Seconds,
}

/// A thread.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thread<'a> {
    /// The facts.
    pub thread: ThreadFacts<'a>,
    /// `null` if its definition no longer exists.
    pub agent: Option<AgentSummary<'a>>,
    /// The counts.
    pub stats: ThreadStats,
}

/// The state of a thread after a change.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadChanged<'a> {
    /// The id of the thread.
    pub id: &'a str,
    /// The current agent.
    pub agent_id: &'a str,
    /// The owner. `null` if the thread has none.
    pub user_id: Option<&'a str>,
    /// The tags.
    pub tags: &'a [String],
    /// Data of the creator.
    pub properties: &'a Object,
    /// The values of type `text`.
    #[cfg_attr(feature = "schema", schemars(with = "Values"))]
    pub env: Object,
    /// The types of all values.
    #[cfg_attr(feature = "schema", schemars(with = "Types"))]
    pub env_types: Object,
    /// The time of the creation, in seconds since 1970.
    pub created_at: Seconds,
}

/// A subagent in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedSubagent<'a> {
    /// The id of the subagent's thread.
    pub id: &'a str,
    /// The agent of the subagent.
    #[serde(rename = "agent_name")]
    pub agent_name: &'a str,
    /// The title of the subagent. `null` if it has none.
    pub title: Option<&'a str>,
    /// The name that the model gave the subagent. `null` if it gave none.
    pub thread_name: Option<&'a str>,
    /// What the subagent does.
    pub description: &'a str,
    /// The status of the subagent.
    pub status: &'a str,
    /// Whether the subagent receives further messages.
    pub resumable: bool,
    /// Whether calls wait for the subagent.
    pub blocking: bool,
    /// How the subagent reports to its parent.
    pub parent_communication: &'static str,
    /// The message whose call created the subagent. `null` if no such call did.
    pub spawn_group_id: Option<&'a str>,
    /// The time of the creation, in seconds since 1970.
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
    /// The subagents, newest first.
    pub subagents: Vec<JsonText<ListedSubagent<'static>>>,
    /// The number of subagents.
    pub total: u64,
    /// Whether more subagents follow.
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
