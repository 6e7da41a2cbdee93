//! Routes as OpenAI's clients know them, below `/v1`.

use crate::request::route::not_allowed;
use bobbin_definitions::error::{Code, Error, Result};

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
    /// `POST /conversations`: a thread.
    Converse,
    /// `GET /conversations/:id`.
    Conversation(String),
    /// `POST /conversations/:id`: what is kept with it.
    ChangeConversation(String),
    /// `DELETE /conversations/:id`.
    DeleteConversation(String),
    /// `GET /conversations/:id/items`: what was said.
    Items(String),
    /// `POST /conversations/:id/items`.
    AddItems(String),
    /// `GET /conversations/:id/items/:item`.
    Item(String, String),
    /// `DELETE /conversations/:id/items/:item`.
    DeleteItem(String, String),
}

impl OpenAiRoute {
    /// The query parameters that it knows.
    pub(super) const fn parameters(&self) -> &'static [&'static str] {
        match self {
            OpenAiRoute::Complete => &["reasoning"],
            OpenAiRoute::Response(_) => {
                &["stream", "starting_after", "include", "include[]", "include_obfuscation"]
            }
            OpenAiRoute::Items(_) => &["after", "limit", "order", "include", "include[]"],
            OpenAiRoute::AddItems(_) | OpenAiRoute::Item(..) => &["include", "include[]"],
            _ => &[],
        }
    }

    /// The route of a path below `/v1`.
    pub(super) fn of(method: &str, rest: &[&str]) -> Result<OpenAiRoute> {
        match (rest, method) {
            (["models"], "GET") => Ok(OpenAiRoute::Models),
            (["models", id], "GET") => Ok(OpenAiRoute::Model((*id).to_owned())),
            (["chat", "completions"], "POST") => Ok(OpenAiRoute::Complete),
            (["responses"], "POST") => Ok(OpenAiRoute::Respond),
            (["responses", id], "GET") => Ok(OpenAiRoute::Response((*id).to_owned())),
            (["responses", id], "DELETE") => Ok(OpenAiRoute::DeleteResponse((*id).to_owned())),
            (["responses", id, "cancel"], "POST") => Ok(OpenAiRoute::CancelResponse((*id).to_owned())),
            (["conversations"], "POST") => Ok(OpenAiRoute::Converse),
            (["conversations", id, rest @ ..], _) => of_conversation(method, (*id).to_owned(), rest),
            (["responses", _], _) => Err(not_allowed(method, "GET, DELETE")),
            (["responses"] | ["conversations"] | ["responses", _, "cancel"], _) => {
                Err(not_allowed(method, "POST"))
            }
            (["models"] | ["models", _], _) => Err(not_allowed(method, "GET")),
            (["chat", "completions"], _) => Err(not_allowed(method, "POST")),
            _ => Err(not_offered()),
        }
    }
}

/// The error for what OpenAI has and Bobbin has not, such as embeddings and images.
fn not_offered() -> Error {
    Error::new(Code::NotFound, "This part of OpenAI's API is not offered here.").hint(
        "There are /v1/models, /v1/chat/completions, /v1/responses and /v1/conversations. For everything else ask the provider of the model.",
    )
}

fn of_conversation(method: &str, id: String, rest: &[&str]) -> Result<OpenAiRoute> {
    match (rest, method) {
        ([], "GET") => Ok(OpenAiRoute::Conversation(id)),
        ([], "POST") => Ok(OpenAiRoute::ChangeConversation(id)),
        ([], "DELETE") => Ok(OpenAiRoute::DeleteConversation(id)),
        (["items"], "GET") => Ok(OpenAiRoute::Items(id)),
        (["items"], "POST") => Ok(OpenAiRoute::AddItems(id)),
        (["items", item], "GET") => Ok(OpenAiRoute::Item(id, (*item).to_owned())),
        (["items", item], "DELETE") => Ok(OpenAiRoute::DeleteItem(id, (*item).to_owned())),
        ([], _) => Err(not_allowed(method, "GET, POST, DELETE")),
        (["items"], _) => Err(not_allowed(method, "GET, POST")),
        (["items", _], _) => Err(not_allowed(method, "GET, DELETE")),
        _ => Err(not_offered()),
    }
}
