//! Messages.

use schemars::JsonSchema;

use super::budgets::GivenBudget;
use super::{Micros, Object};

/// A message that is sent.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewMessage {
    role: NewRole,
    /// At most 1 MB; may be blank where files come with it.
    content: Option<String>,
    #[schemars(length(max = 20))]
    attachments: Option<Vec<NewAttachment>>,
    /// Hidden from clients that do not ask for silent ones.
    silent: Option<bool>,
    /// For you, at most 64 KB.
    metadata: Option<Object>,
    /// How what fails is tried again (docs/models.md).
    retry: Option<Object>,
    budget: Option<GivenBudget>,
    /// What would be told is an error.
    diagnostics: Option<Strict>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum NewRole {
    /// Starts or joins a run.
    User,
    /// Is stored, and starts nothing.
    System,
    /// Makes side B act, of agents with two.
    Assistant,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Strict {
    Default,
    Strict,
}

/// A file of the thread's, or a new one.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum NewAttachment {
    Path(AttachedPath),
    File(AttachedFile),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AttachedPath {
    path: String,
    description: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AttachedFile {
    name: String,
    mime_type: String,
    /// Base64, or a `data:` URL.
    data: String,
    width: Option<u32>,
    height: Option<u32>,
    description: Option<String>,
    thumbnail: Option<String>,
    metadata: Option<Object>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum ToolStatus {
    Success,
    Error,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum MessageStatus {
    /// No run has taken it in.
    Pending,
    Completed,
}

/// A stored message.
#[derive(JsonSchema)]
pub(crate) struct Message {
    id: String,
    role: Role,
    content: Option<String>,
    /// Of a result: the tool.
    name: Option<String>,
    /// JSON: a list of calls.
    tool_calls: Option<String>,
    tool_call_id: Option<String>,
    tool_status: Option<ToolStatus>,
    status: MessageStatus,
    created_at: Micros,
    parent_id: Option<String>,
    depth: u32,
    silent: bool,
    metadata: Object,
    attachments: Vec<Attachment>,
    /// The reference of the subagent that it is about; then the other fields of its name say what that is now.
    subagent_id: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    subagent_name: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    subagent_title: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    subagent_description: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    subagent_status: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    subagent_resumable: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    subagent_blocking: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    subagent_thread_name: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    subagent_spawn_group_id: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Attachment {
    id: String,
    #[schemars(rename = "type")]
    kind: String,
    path: String,
    name: String,
    mime_type: String,
    size: i64,
    #[schemars(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Why models are not shown what is said to be an image.
    #[schemars(skip_serializing_if = "Option::is_none")]
    not_shown: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct MessagePage {
    messages: Vec<Message>,
    total: i64,
    has_more: bool,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Queued {
    status: String,
    queue_id: String,
    message_id: String,
    message: Message,
    state: super::threads::ThreadState,
    /// The run that it has begun.
    run: Option<String>,
}

/// What is to be changed.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct MessageChange {
    content: Option<String>,
    silent: Option<bool>,
    /// Is merged key by key; `null` takes a key away.
    metadata: Option<Object>,
}

#[derive(JsonSchema)]
pub(crate) struct MessageChanged {
    success: bool,
    /// With `truncate=true`: how many messages followed it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    deleted: Option<i64>,
    /// The run that answers it, with `run=true`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

/// What is answered anew.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Regenerated {
    status: String,
    /// What somebody has said, and is answered.
    message_id: String,
    run: Option<String>,
    /// How many messages followed it; `null` where the request came before.
    deleted: Option<i64>,
    state: super::threads::ThreadState,
}
