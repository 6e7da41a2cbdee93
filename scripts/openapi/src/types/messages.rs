//! Messages.

use bobbin_protocols::responses::messages::Message;
use schemars::JsonSchema;

use super::Object;
use super::budgets::GivenBudget;

/// A message to send.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NewMessage {
    role: NewRole,
    /// A text of at most 1 MB. It may be blank when files are attached.
    content: Option<String>,
    #[schemars(length(max = 20))]
    attachments: Option<Vec<NewAttachment>>,
    /// Hidden from clients that do not request silent messages.
    silent: Option<bool>,
    /// For you, at most 64 KB.
    metadata: Option<Object>,
    /// How the run repeats failed requests (docs/models.md).
    retry: Option<Object>,
    budget: Option<GivenBudget>,
    /// `strict`: diagnostics of the run are errors (docs/runs.md).
    diagnostics: Option<Strict>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum NewRole {
    /// Starts or joins a run.
    User,
    /// Stored, and starts nothing.
    System,
    /// Makes side B act, for agents with two AI sides.
    Assistant,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Strict {
    Default,
    Strict,
}

/// A file of the thread, or a new file.
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
#[schemars(rename_all = "camelCase")]
pub(crate) struct MessagePage {
    messages: Vec<Message<'static>>,
    total: i64,
    has_more: bool,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Queued {
    status: String,
    queue_id: String,
    message_id: String,
    message: Message<'static>,
    state: bobbin_protocols::responses::threads::ThreadState,
    /// The run that the message has started.
    run: Option<String>,
}

/// Changes of a message.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct MessageChange {
    content: Option<String>,
    silent: Option<bool>,
    /// Merged key by key. `null` removes a key.
    metadata: Option<Object>,
}

#[derive(JsonSchema)]
pub(crate) struct MessageChanged {
    success: bool,
    /// With `truncate=true`: the number of deleted messages.
    #[schemars(skip_serializing_if = "Option::is_none")]
    deleted: Option<i64>,
    /// With `run=true`: the run that answers the message.
    #[schemars(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

/// The result of answering a message again.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Regenerated {
    status: String,
    /// The answered message.
    message_id: String,
    run: Option<String>,
    /// The number of deleted messages. `null` in the response to a repeated request.
    deleted: Option<i64>,
    state: bobbin_protocols::responses::threads::ThreadState,
}
