//! Messages (docs/http.md).

use bobbin_definitions::definitions::message::{Role, ToolStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::threads::ThreadState;
use super::{Micros, Object};

/// Whether a run has taken a message in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MessageStatus {
    /// No run has taken the message in.
    Pending,
    /// A run has taken the message in, or no run needs to.
    Completed,
}

/// The type of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AttachmentType {
    /// A file of the thread.
    File,
}

/// Why models do not receive a file that is declared as an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AttachmentFlaw {
    /// Its bytes have none of the four formats.
    NoImage,
    /// It is truncated.
    CutOff,
    /// It has more pixels on a side than providers accept.
    TooManyPixels,
    /// It has more bytes than providers accept.
    TooManyBytes,
}

/// A file of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attachment<'a> {
    /// The id of the attachment.
    pub id: &'a str,
    /// Always `file`.
    #[serde(rename = "type")]
    pub kind: AttachmentType,
    /// The path of the file.
    pub path: &'a str,
    /// The name for people.
    pub name: &'a str,
    /// The media type as given.
    pub mime_type: &'a str,
    /// Bytes.
    pub size: u64,
    /// Pixels. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Pixels. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// The description for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    /// Why models do not receive a file that is declared as an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<AttachmentFlaw>,
}

/// The current data of the subagent that a message is about.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentFacts<'a> {
    /// The agent of the subagent.
    pub subagent_name: &'a str,
    /// The title of the subagent. `null` if it has none.
    pub subagent_title: Option<&'a str>,
    /// What the subagent does.
    pub subagent_description: &'a str,
    /// The status of the subagent.
    pub subagent_status: &'a str,
    /// Whether the subagent receives further messages.
    pub subagent_resumable: bool,
    /// Whether calls wait for the subagent.
    pub subagent_blocking: bool,
    /// The name that the model gave the subagent. `null` if it gave none.
    pub subagent_thread_name: Option<&'a str>,
    /// The message whose call created the subagent. `null` if no such call did.
    pub subagent_spawn_group_id: Option<&'a str>,
}

/// A stored message.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message<'a> {
    /// The id of the message.
    pub id: String,
    /// The author.
    pub role: Role,
    /// The text. `null` if it has none.
    pub content: Option<&'a str>,
    /// For a result: the name of the tool.
    pub name: Option<&'a str>,
    /// A JSON text with a list of calls.
    pub tool_calls: Option<String>,
    /// For a result: the id of the call. Otherwise `null`.
    pub tool_call_id: Option<&'a str>,
    /// For a result: whether the call has succeeded. Otherwise `null`.
    pub tool_status: Option<ToolStatus>,
    /// Whether a run has taken the message in.
    pub status: MessageStatus,
    /// The time at which it was stored, in microseconds since 1970.
    pub created_at: Micros,
    /// For a message of a called prompt: the result of the call. Otherwise `null`.
    pub parent_id: Option<String>,
    /// The depth of the called prompt that the message belongs to, 0 for the thread itself.
    pub depth: u32,
    /// Whether it is hidden from clients that do not request silent messages.
    pub silent: bool,
    /// Data of the author, and data of Bobbin about the message.
    pub metadata: Object,
    /// The attached files.
    pub attachments: Vec<Attachment<'a>>,
    /// The reference of the subagent that the message is about. The other `subagent_` fields have its current
    /// values.
    pub subagent_id: Option<String>,
    /// The current data of the subagent. Absent if the message is about no known subagent.
    #[serde(flatten)]
    pub subagent: Option<SubagentFacts<'a>>,
}

/// A page of messages, in the order of the conversation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessagePage {
    /// The messages.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Message<'static>>"))]
    pub messages: Vec<Value>,
    /// The number of messages that match the request, apart from its cursors.
    pub total: i64,
    /// Whether more messages follow in the requested direction.
    pub has_more: bool,
}

/// A stored message that a run answers, or will answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Queued {
    /// Always `queued`.
    pub status: &'static str,
    /// The same as `messageId`.
    pub queue_id: String,
    /// The id of the message.
    pub message_id: String,
    /// The message.
    #[cfg_attr(feature = "schema", schemars(with = "Message<'static>"))]
    pub message: Value,
    /// The state of the thread.
    pub state: ThreadState,
    /// The run that the message has started. `null` if it has started none.
    pub run: Option<String>,
}

/// A changed message.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageChanged {
    /// Always `true`.
    pub success: bool,
    /// With `truncate=true`: the number of deleted messages. `null` in the response to a repeated request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Option<u64>>,
    /// With `run=true`: the run that answers the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// The result of answering a message again.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Regenerated {
    /// Always `queued`.
    pub status: &'static str,
    /// The answered message.
    pub message_id: String,
    /// The run that answers it. `null` if the run of a repeated request no longer exists.
    pub run: Option<String>,
    /// The number of deleted messages. `null` in the response to a repeated request.
    pub deleted: Option<u64>,
    /// The state of the thread.
    pub state: ThreadState,
}
