//! Routes of chat pages: chats of the AI SDK, and conversations of AG-UI.

/// A route of AG-UI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgUiRoute {
    /// `GET`: the conversation, or a run from its beginning.
    Read,
    /// `POST`: a run.
    Run,
}

/// A route of a chat; the chat is a thread's key or its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatRoute {
    /// `POST /`: sends a message, decides a wait, or regenerates a reply.
    Post,
    /// `GET /:id`.
    History(String),
    /// `GET /:id/stream`: the active reply.
    Stream(String),
    /// `POST /:id/stop`.
    Stop(String),
}
