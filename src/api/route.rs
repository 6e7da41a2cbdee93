//! Which request goes where. Path segments are decoded before they get here.

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};

/// A route of the API, prefix `/api` (and `/healthz`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `GET /healthz`: no credentials.
    Health,
    /// `GET /api/agents`.
    Agents,
    /// `GET /api/agents/:name`.
    Agent(String),
    /// `POST /api/threads`.
    CreateThread,
    /// `GET /api/threads`.
    ListThreads,
    /// `GET /api/threads/owners`.
    ListOwners,
    /// `POST /api/tokens`.
    MintToken,
    /// Anything below `/api/threads/:id`.
    Thread(String, ThreadRoute),
}

/// A route of one thread, below `/api/threads/:id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "route", content = "id", rename_all = "snake_case")]
pub enum ThreadRoute {
    /// Creates the thread: not a route of its own, but what `POST /threads` sends to the new object.
    Create,
    /// `GET /`.
    Get,
    /// `PATCH /`.
    Patch,
    /// `DELETE /`.
    Delete,
    /// `POST /messages`.
    PostMessage,
    /// `GET /messages`.
    ListMessages,
    /// `GET /messages/:id`.
    GetMessage(String),
    /// `PATCH /messages/:id`.
    PatchMessage(String),
    /// `DELETE /messages/:id`.
    DeleteMessage(String),
    /// `POST /stop`.
    Stop,
    /// `POST /continue`.
    Continue,
    /// `POST /terminate`.
    Terminate,
    /// `GET /logs`.
    ListLogs,
    /// `GET /logs/:id`.
    GetLog(String),
    /// `GET /diagnostics`.
    Diagnostics,
    /// `GET /kv`: one value, or a page of them.
    GetValues,
    /// `POST /kv`: sets, deletes or renames one.
    PostValue,
    /// `DELETE /kv`: deletes one.
    DeleteValue,
    /// `GET /effects`.
    ListEffects,
    /// `POST /effects`: schedules one.
    PostEffect,
    /// `GET /effects/:id`.
    GetEffect(String),
    /// `POST /effects/:id/run`: now, or again.
    RunEffect(String),
    /// `POST /effects/:id/cancel`.
    CancelEffect(String),
    /// `GET /stream`: a WebSocket.
    Stream,
    /// `GET /events`: server-sent events.
    Events,
}

impl Route {
    /// The route of a request. Unknown paths are `not_found`, known paths with another method
    /// `method_not_allowed` with the allowed ones as hint.
    pub fn of(method: &str, path: &str) -> Result<Route> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let allowed = |methods: &str| Err(not_allowed(method, methods));
        match segments.as_slice() {
            ["healthz"] => match method {
                "GET" | "HEAD" => Ok(Route::Health),
                _ => allowed("GET"),
            },
            ["api", "agents"] => match method {
                "GET" => Ok(Route::Agents),
                _ => allowed("GET"),
            },
            ["api", "agents", name] => match method {
                "GET" => Ok(Route::Agent((*name).to_owned())),
                _ => allowed("GET"),
            },
            ["api", "tokens"] => match method {
                "POST" => Ok(Route::MintToken),
                _ => allowed("POST"),
            },
            ["api", "threads"] => match method {
                "GET" => Ok(Route::ListThreads),
                "POST" => Ok(Route::CreateThread),
                _ => allowed("GET, POST"),
            },
            ["api", "threads", "owners"] => match method {
                "GET" => Ok(Route::ListOwners),
                _ => allowed("GET"),
            },
            ["api", "threads", id, rest @ ..] => {
                ThreadRoute::of(method, rest).map(|route| Route::Thread((*id).to_owned(), route))
            }
            _ => Err(Error::new(Code::NotFound, format!("There is no route {path}."))
                .hint("The API is below /api; GET /api/agents lists the agents.")),
        }
    }
}

impl ThreadRoute {
    /// The route below `/api/threads/:id`.
    pub fn of(method: &str, rest: &[&str]) -> Result<ThreadRoute> {
        let (routes, allowed): (&[(&str, ThreadRoute)], &str) = match rest {
            [] => (
                &[("GET", ThreadRoute::Get), ("PATCH", ThreadRoute::Patch), ("DELETE", ThreadRoute::Delete)],
                "GET, PATCH, DELETE",
            ),
            ["messages"] => {
                (&[("GET", ThreadRoute::ListMessages), ("POST", ThreadRoute::PostMessage)], "GET, POST")
            }
            ["messages", id] => {
                let id = (*id).to_owned();
                return match method {
                    "GET" => Ok(ThreadRoute::GetMessage(id)),
                    "PATCH" => Ok(ThreadRoute::PatchMessage(id)),
                    "DELETE" => Ok(ThreadRoute::DeleteMessage(id)),
                    _ => Err(not_allowed(method, "GET, PATCH, DELETE")),
                };
            }
            ["stop"] => (&[("POST", ThreadRoute::Stop)], "POST"),
            ["continue"] => (&[("POST", ThreadRoute::Continue)], "POST"),
            ["terminate"] => (&[("POST", ThreadRoute::Terminate)], "POST"),
            ["logs"] => (&[("GET", ThreadRoute::ListLogs)], "GET"),
            ["logs", id] => {
                return match method {
                    "GET" => Ok(ThreadRoute::GetLog((*id).to_owned())),
                    _ => Err(not_allowed(method, "GET")),
                };
            }
            ["diagnostics"] => (&[("GET", ThreadRoute::Diagnostics)], "GET"),
            ["kv"] => (
                &[
                    ("GET", ThreadRoute::GetValues),
                    ("POST", ThreadRoute::PostValue),
                    ("DELETE", ThreadRoute::DeleteValue),
                ],
                "GET, POST, DELETE",
            ),
            ["effects"] => {
                (&[("GET", ThreadRoute::ListEffects), ("POST", ThreadRoute::PostEffect)], "GET, POST")
            }
            ["effects", id, action @ ..] => {
                let id = (*id).to_owned();
                return match (action, method) {
                    ([], "GET") => Ok(ThreadRoute::GetEffect(id)),
                    ([], _) => Err(not_allowed(method, "GET")),
                    (["run"], "POST") => Ok(ThreadRoute::RunEffect(id)),
                    (["cancel"], "POST") => Ok(ThreadRoute::CancelEffect(id)),
                    (["run" | "cancel"], _) => Err(not_allowed(method, "POST")),
                    _ => Err(no_such_route()),
                };
            }
            ["stream"] => (&[("GET", ThreadRoute::Stream)], "GET"),
            ["events"] => (&[("GET", ThreadRoute::Events)], "GET"),
            _ => return Err(no_such_route()),
        };
        routes
            .iter()
            .find(|(m, _)| *m == method)
            .map(|(_, route)| route.clone())
            .ok_or_else(|| not_allowed(method, allowed))
    }
}

fn no_such_route() -> Error {
    Error::new(Code::NotFound, "A thread has no such route.")
}

fn not_allowed(method: &str, allowed: &str) -> Error {
    Error::new(Code::MethodNotAllowed, format!("{method} is not possible here."))
        .hint(format!("Allowed: {allowed}."))
}
