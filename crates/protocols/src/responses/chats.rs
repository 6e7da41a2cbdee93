//! Chats of the AI SDK (docs/clients.md).

use serde::Serialize;
use serde_json::Value;

/// A chat.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chat<'a> {
    /// The id that the page has chosen.
    pub id: &'a str,
    /// The id of the thread. `null` before the first message.
    pub thread_id: Option<&'a str>,
    /// `UIMessage`s of the AI SDK.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<super::Object>"))]
    pub messages: Vec<Value>,
    /// The run whose reply the stream sends. `null` if no run is active.
    pub active_run: Option<String>,
}

/// The result of a stop.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatStopped {
    /// Always `stopped`.
    pub status: &'static str,
}
