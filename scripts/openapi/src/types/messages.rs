//! Messages.

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

/// Changes of a message.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct MessageChange {
    content: Option<String>,
    silent: Option<bool>,
    /// Merged key by key. `null` removes a key.
    metadata: Option<Object>,
}
