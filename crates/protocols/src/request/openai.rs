//! Routes of OpenAI's clients, below `/v1`.

/// A route below `/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenAiRoute {
    /// `GET /models`: the agents.
    Models,
    /// `GET /models/:id`.
    Model(String),
    /// `POST /chat/completions`.
    Complete,
    /// `POST /responses`.
    Respond,
    /// `GET /responses/:id`.
    Response(String),
    /// `POST /responses/:id/cancel`.
    CancelResponse(String),
    /// `DELETE /responses/:id`.
    DeleteResponse(String),
    /// `POST /conversations`: creates a thread.
    Converse,
    /// `GET /conversations/:id`.
    Conversation(String),
    /// `POST /conversations/:id`: changes its metadata.
    ChangeConversation(String),
    /// `DELETE /conversations/:id`.
    DeleteConversation(String),
    /// `GET /conversations/:id/items`: the items of the conversation.
    Items(String),
    /// `POST /conversations/:id/items`.
    AddItems(String),
    /// `GET /conversations/:id/items/:item`.
    Item(String, String),
    /// `DELETE /conversations/:id/items/:item`.
    DeleteItem(String, String),
}
