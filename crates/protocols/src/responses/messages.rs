//! Messages (docs/http.md).

use bobbin_definitions::definitions::message::{Role, ToolStatus};
use serde::{Deserialize, Serialize};

use super::{Micros, Object};

/// Whether a run has taken a message in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MessageStatus {
    /// No run has taken the message in.
    Pending,
    Completed,
}

/// The type of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AttachmentType {
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
    pub id: &'a str,
    #[serde(rename = "type")]
    pub kind: AttachmentType,
    pub path: &'a str,
    pub name: &'a str,
    pub mime_type: &'a str,
    /// Bytes.
    pub size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
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
    pub subagent_name: &'a str,
    pub subagent_title: Option<&'a str>,
    pub subagent_description: &'a str,
    pub subagent_status: &'a str,
    pub subagent_resumable: bool,
    pub subagent_blocking: bool,
    pub subagent_thread_name: Option<&'a str>,
    pub subagent_spawn_group_id: Option<&'a str>,
}

/// A stored message.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message<'a> {
    pub id: String,
    pub role: Role,
    pub content: Option<&'a str>,
    /// For a result: the name of the tool.
    pub name: Option<&'a str>,
    /// A JSON text with a list of calls.
    pub tool_calls: Option<String>,
    pub tool_call_id: Option<&'a str>,
    pub tool_status: Option<ToolStatus>,
    pub status: MessageStatus,
    pub created_at: Micros,
    pub parent_id: Option<String>,
    pub depth: u32,
    pub silent: bool,
    pub metadata: Object,
    pub attachments: Vec<Attachment<'a>>,
    /// The reference of the subagent that the message is about. The other `subagent_` fields have its current
    /// values.
    pub subagent_id: Option<String>,
    #[serde(flatten)]
    pub subagent: Option<SubagentFacts<'a>>,
}
