//! Routes of pages that talk with an agent: chats of the AI SDK, and conversations of AG-UI.

/// What a client of AG-UI asks.
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
    /// `POST /`: says something, answers, wants another answer.
    Post,
    /// `GET /:id`.
    History(String),
    /// `GET /:id/stream`: the reply that is under way.
    Stream(String),
    /// `POST /:id/stop`.
    Stop(String),
}
