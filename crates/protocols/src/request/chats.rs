//! Routes of pages that talk with an agent: chats of the AI SDK, and conversations of AG-UI.

use crate::request::route::{no_route, not_allowed};
use bobbin_definitions::error::Result;

/// What a client of AG-UI asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgUiRoute {
    /// `GET`: the conversation, or a run from its beginning.
    Read,
    /// `POST`: a run.
    Run,
}

impl AgUiRoute {
    /// The route of this path, and its agent.
    pub(super) fn find(method: &str, segments: &[&str]) -> Result<Option<(String, AgUiRoute)>> {
        let ["api", "agents", agent, "ag-ui"] = segments else { return Ok(None) };
        let of = match method {
            "GET" => AgUiRoute::Read,
            "POST" => AgUiRoute::Run,
            _ => return Err(not_allowed(method, "GET, POST")),
        };
        Ok(Some(((*agent).to_owned(), of)))
    }
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

impl ChatRoute {
    /// The route of a path below a chat's, and the agent that the path names.
    pub(super) fn find(method: &str, segments: &[&str]) -> Result<Option<(Option<String>, ChatRoute)>> {
        Ok(match segments {
            ["api", "chat", rest @ ..] => Some((None, ChatRoute::of(method, rest)?)),
            ["api", "agents", agent, "chat", rest @ ..] => {
                Some((Some((*agent).to_owned()), ChatRoute::of(method, rest)?))
            }
            _ => None,
        })
    }

    fn of(method: &str, rest: &[&str]) -> Result<ChatRoute> {
        let id = |id: &str| id.to_owned();
        match (rest, method) {
            ([], "POST") => Ok(ChatRoute::Post),
            ([chat], "GET") => Ok(ChatRoute::History(id(chat))),
            ([chat, "stream"], "GET") => Ok(ChatRoute::Stream(id(chat))),
            ([chat, "stop"], "POST") => Ok(ChatRoute::Stop(id(chat))),
            ([] | [_, "stop"], _) => Err(not_allowed(method, "POST")),
            ([_] | [_, "stream"], _) => Err(not_allowed(method, "GET")),
            _ => Err(no_route()),
        }
    }
}
