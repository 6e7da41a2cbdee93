//! Routes as OpenAI's clients know them, below `/v1`.

use crate::error::Result;
use crate::request::route::{no_route, not_allowed};

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
}

impl OpenAiRoute {
    /// The query parameters that it knows.
    pub(super) const fn parameters(&self) -> &'static [&'static str] {
        match self {
            OpenAiRoute::Models | OpenAiRoute::Model(_) => &[],
            OpenAiRoute::Complete => &["reasoning"],
            OpenAiRoute::Response(_) => {
                &["stream", "starting_after", "include", "include[]", "include_obfuscation"]
            }
            OpenAiRoute::Respond | OpenAiRoute::CancelResponse(_) | OpenAiRoute::DeleteResponse(_) => &[],
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
            (["responses", _], _) => Err(not_allowed(method, "GET, DELETE")),
            (["responses"] | ["responses", _, "cancel"], _) => Err(not_allowed(method, "POST")),
            (["models"] | ["models", _], _) => Err(not_allowed(method, "GET")),
            (["chat", "completions"], _) => Err(not_allowed(method, "POST")),
            _ => Err(no_route()),
        }
    }
}
