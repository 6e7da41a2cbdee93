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
    /// `GET /fs`: the root's listing, numbers, or a search.
    ListFiles,
    /// `GET /fs/{path}`: a file, its record, or a directory's listing. The path is as it was asked for.
    GetFile(String),
    /// `HEAD /fs/{path}`.
    HeadFile(String),
    /// `PUT /fs/{path}`: writes the body.
    PutFile(String),
    /// `POST /fs/{path}`: writes the body, or does what a JSON body says.
    PostFile(String),
    /// `PATCH /fs/{path}`: moves.
    MoveFile(String),
    /// `DELETE /fs/{path}`.
    DeleteFile(String),
    /// `POST /uploads`: begins an upload in chunks.
    StartUpload,
    /// `GET /uploads/:id`.
    GetUpload(String),
    /// `PUT /uploads/:id/:index`.
    PutChunk {
        /// The upload's id.
        upload: String,
        /// The chunk's place, from 0.
        index: String,
    },
    /// `POST /uploads/:id/complete`.
    CompleteUpload(String),
    /// `DELETE /uploads/:id`.
    DeleteUpload(String),
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
            ["fs"] => (&[("GET", ThreadRoute::ListFiles)], "GET"),
            ["fs", path @ ..] => {
                let path = path.join("/");
                return match method {
                    "GET" => Ok(ThreadRoute::GetFile(path)),
                    "HEAD" => Ok(ThreadRoute::HeadFile(path)),
                    "PUT" => Ok(ThreadRoute::PutFile(path)),
                    "POST" => Ok(ThreadRoute::PostFile(path)),
                    "PATCH" => Ok(ThreadRoute::MoveFile(path)),
                    "DELETE" => Ok(ThreadRoute::DeleteFile(path)),
                    _ => Err(not_allowed(method, "GET, HEAD, POST, PUT, PATCH, DELETE")),
                };
            }
            ["uploads"] => (&[("POST", ThreadRoute::StartUpload)], "POST"),
            ["uploads", id] => {
                let id = (*id).to_owned();
                return match method {
                    "GET" => Ok(ThreadRoute::GetUpload(id)),
                    "DELETE" => Ok(ThreadRoute::DeleteUpload(id)),
                    _ => Err(not_allowed(method, "GET, DELETE")),
                };
            }
            ["uploads", id, "complete"] => {
                return match method {
                    "POST" => Ok(ThreadRoute::CompleteUpload((*id).to_owned())),
                    _ => Err(not_allowed(method, "POST")),
                };
            }
            ["uploads", id, index] => {
                return match method {
                    "PUT" => {
                        Ok(ThreadRoute::PutChunk { upload: (*id).to_owned(), index: (*index).to_owned() })
                    }
                    _ => Err(not_allowed(method, "PUT")),
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

impl ThreadRoute {
    /// Whether a request of this route reaches the object as a stream and is answered by
    /// [`crate::thread::Thread::serve`]; every other one is a text, answered by `handle`.
    pub const fn is_streamed(&self) -> bool {
        matches!(
            self,
            ThreadRoute::ListFiles
                | ThreadRoute::GetFile(_)
                | ThreadRoute::HeadFile(_)
                | ThreadRoute::PutFile(_)
                | ThreadRoute::PostFile(_)
                | ThreadRoute::MoveFile(_)
                | ThreadRoute::DeleteFile(_)
                | ThreadRoute::StartUpload
                | ThreadRoute::GetUpload(_)
                | ThreadRoute::PutChunk { .. }
                | ThreadRoute::CompleteUpload(_)
                | ThreadRoute::DeleteUpload(_)
        )
    }

    /// Whether it only reads, and so may be asked again when its answer was lost.
    pub const fn reads(&self) -> bool {
        matches!(
            self,
            ThreadRoute::Get
                | ThreadRoute::ListMessages
                | ThreadRoute::GetMessage(_)
                | ThreadRoute::ListLogs
                | ThreadRoute::GetLog(_)
                | ThreadRoute::Diagnostics
                | ThreadRoute::GetValues
                | ThreadRoute::ListEffects
                | ThreadRoute::GetEffect(_)
                | ThreadRoute::ListFiles
                | ThreadRoute::GetFile(_)
                | ThreadRoute::HeadFile(_)
                | ThreadRoute::GetUpload(_)
        )
    }

    /// The request headers that reach the object with a streamed request, in lower case.
    pub const fn headers(&self) -> &'static [&'static str] {
        match self {
            ThreadRoute::GetFile(_) | ThreadRoute::HeadFile(_) => {
                &["range", "if-range", "if-match", "if-none-match"]
            }
            _ => &["content-type", "content-length", "if-match", "if-none-match"],
        }
    }
}

fn not_allowed(method: &str, allowed: &str) -> Error {
    Error::new(Code::MethodNotAllowed, format!("{method} is not possible here."))
        .hint(format!("Allowed: {allowed}."))
}
