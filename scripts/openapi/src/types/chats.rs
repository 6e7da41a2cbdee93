//! Chats of the AI SDK (docs/clients.md).

use schemars::JsonSchema;

use super::Object;

/// A chat.
#[derive(JsonSchema)]
#[schemars(rename = "Chat", rename_all = "camelCase")]
pub(crate) struct Chat {
    id: String,
    /// `null` before the first message.
    thread_id: Option<String>,
    /// `UIMessage`s of the AI SDK.
    messages: Vec<Object>,
    /// The run whose reply the stream sends.
    active_run: Option<String>,
}

/// The result of a stop.
#[derive(JsonSchema)]
#[schemars(rename = "ChatStopped")]
pub(crate) struct Stopped {
    status: String,
}
