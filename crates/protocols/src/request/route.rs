//! Which request goes where.

use serde::{Deserialize, Serialize};

use crate::request::target::Target;
use crate::request::{AgUiRoute, ChatRoute, McpRoute, MemoryRoute, OpenAiRoute};
use bobbin_definitions::definitions::endpoint::{self, Method};
use bobbin_definitions::error::{Code, Error, Result};

/// A route of the API, prefix `/api` (and `/healthz`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `GET /healthz`: no credentials.
    Health,
    /// `GET /api/agents`.
    Agents,
    /// `GET /api/agents/:name`.
    Agent(String),
    /// `GET /api/agents/:name/explain`: what it uses, and what of it is missing.
    ExplainAgent(String),
    /// `POST /api/threads`.
    CreateThread,
    /// `GET /api/threads`.
    ListThreads,
    /// `GET /api/threads/owners`.
    ListOwners,
    /// `POST /api/tokens`.
    MintToken,
    /// `GET /api/waits`: what is open in all threads of an owner.
    ListWaits,
    /// `GET /api/mcp`: the MCP servers, and how they answer.
    ListServers,
    /// `POST /api/resume`: decides with the token of a link.
    Resume,
    /// `GET /api/oauth/callback`: a browser comes back from where somebody has signed in to an MCP server.
    SignedIn,
    /// `GET /.well-known/bobbin-client.json`: what the deployment says of itself where people sign in.
    ClientDocument,
    /// `GET /api/envs/instance`, `GET /api/envs/account`.
    GetEnv(EnvOf),
    /// `PATCH /api/envs/instance`, `PATCH /api/envs/account`.
    PatchEnv(EnvOf),
    /// Below `/api/memory/:name`: a memory that threads share.
    Memory {
        /// The memory.
        memory: String,
        /// What of it.
        of: MemoryRoute,
    },
    /// Below `/api/chat` and `/api/agents/:agent/chat`: a chat of the AI SDK.
    Chat {
        /// The agent that the path names.
        agent: Option<String>,
        /// What of it.
        of: ChatRoute,
    },
    /// `GET` and `POST /api/agents/:agent/ag-ui`: a conversation of AG-UI.
    AgUi {
        /// The agent.
        agent: String,
        /// What is asked.
        of: AgUiRoute,
    },
    /// Below `/v1`: what clients of OpenAI ask.
    OpenAi(OpenAiRoute),
    /// `/mcp`: what clients of MCP ask.
    Mcp(McpRoute),
    /// Anything below `/api/threads/:id`.
    Thread(String, ThreadRoute),
}

/// Whose values of variables, besides a thread's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvOf {
    /// The deployment's.
    Instance,
    /// An owner's: the caller's, or that of the query's `user_id`.
    Account,
}

/// A route of one thread, below `/api/threads/:id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "route", content = "id", rename_all = "snake_case")]
pub enum ThreadRoute {
    /// Creates the thread: not a route of its own, but what `POST /threads` sends to the new object.
    Create,
    /// Creates the thread as a copy of another: no route of the API, but what that one sends to the new object.
    CreateFork,
    /// A page for the copy of a thread: no route of the API, either.
    CopyPage,
    /// `POST /fork`: a copy of the thread.
    Fork,
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
    /// `POST /messages/:id/regenerate`: what was said before it is answered anew.
    Regenerate(String),
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
    /// `GET /runs`.
    ListRuns,
    /// `GET /runs/:id`.
    GetRun(String),
    /// `GET /diagnostics`.
    Diagnostics,
    /// `GET /subagents`.
    ListSubagents,
    /// `GET /cost`.
    GetCost,
    /// `GET /budget`.
    GetBudget,
    /// `PATCH /budget`: sets limits.
    PatchBudget,
    /// `GET /context`: what the next request to a model would hold.
    GetContext,
    /// `POST /context/summarize`: a summary is to be made.
    Summarize,
    /// `DELETE /context/summary`: messages take its place again.
    DropSummary,
    /// `GET /runs/:run/spans`.
    GetSpans(String),
    /// `GET /steps/:message/request`: what the model was sent that wrote this reply.
    GetStepRequest(String),
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
    /// `GET /uploads`: those that are under way.
    ListUploads,
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
    /// `GET /variables/:id`: what a subagent waits for.
    GetVariables(String),
    /// `POST /variables/:id`: gives it, and starts the subagent.
    PostVariables(String),
    /// `GET /waits`: what the thread asks of people.
    ListWaits,
    /// `POST /waits`: decides several.
    DecideWaits,
    /// `DELETE /waits/remembered`: approvals count for no later call any more.
    ForgetWaits,
    /// `GET /waits/:id`.
    GetWait(String),
    /// `POST /waits/:id`: decides it.
    DecideWait(String),
    /// Below `/memory/:name`.
    Memory {
        /// The memory.
        memory: String,
        /// What of it.
        of: MemoryRoute,
    },
    /// `GET /stream`: a WebSocket.
    Stream,
    /// `GET /events`: server-sent events.
    Events,
    /// What another thread of the family tells this one: no route of the API, but what one object sends to another.
    Envelope,
    /// A browser has come back from where somebody has signed in: no route of a thread, either, but what
    /// `GET /api/oauth/callback` sends to the object that its state names.
    CameBack,
    /// A call of a member of the thread by code of another one of its family: no route of the API, either.
    Member,
    /// A call of a tool that a client of MCP makes: no route of the API.
    Call,
    /// What came of such a call, by its message, with its files' contents: no route of the API.
    Called(String),
    /// A file's content, in the same form: no route of the API.
    FileContent(String),
    /// Any other path: the object looks for an endpoint of its catalog.
    Endpoint {
        /// The request's method.
        method: Method,
        /// The segments below the thread, decoded.
        path: Vec<String>,
    },
}

impl Route {
    /// The route of a request, whose path segments are decoded one by one. Unknown paths are `not_found`, known paths with another method
    /// `method_not_allowed` with the allowed ones as hint.
    pub fn of(method: &str, target: &Target) -> Result<Route> {
        let segments = target.segments();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if segments.iter().any(|segment| matches!(*segment, "." | "..")) {
            let text = "The path has a segment `.` or `..`, escaped or not.";
            return Err(Error::field("path", text).hint("Write where it leads to."));
        }
        let chat = ChatRoute::find(method, &segments)?.map(|(agent, of)| Route::Chat { agent, of });
        let route = match chat {
            Some(route) => route,
            None => match (AgUiRoute::find(method, &segments)?, McpRoute::find(method, &segments)?) {
                (Some((agent, of)), _) => Route::AgUi { agent, of },
                (None, Some(of)) => Route::Mcp(of),
                (None, None) => Route::of_segments(method, &segments, target)?,
            },
        };
        // Clients and proxies resolve such segments, too: what is left of `…/messages/..` ends with a slash, and was
        // not to be the thread.
        let of_ours = !matches!(route, Route::Thread(_, ThreadRoute::Endpoint { .. }));
        if of_ours && target.path.ends_with('/') && !matches!(method, "GET" | "HEAD") {
            return Err(Error::field(
                "path",
                "The path ends with a slash, as one that ended with `..` does.",
            )
            .hint("Leave the slash out if this is the path that you mean."));
        }
        Ok(route)
    }

    fn of_segments(method: &str, segments: &[&str], target: &Target) -> Result<Route> {
        let allowed = |methods: &str| Err(not_allowed(method, methods));
        match segments {
            ["healthz"] => match method {
                "GET" | "HEAD" => Ok(Route::Health),
                _ => allowed("GET"),
            },
            ["api", list @ ("agents" | "waits" | "mcp")] => match (method, *list) {
                ("GET", "agents") => Ok(Route::Agents),
                ("GET", "waits") => Ok(Route::ListWaits),
                ("GET", _) => Ok(Route::ListServers),
                _ => allowed("GET"),
            },
            ["api", "agents", name] | ["api", "agents", name, "explain"] => match (method, segments.len()) {
                ("GET", 3) => Ok(Route::Agent((*name).to_owned())),
                ("GET", _) => Ok(Route::ExplainAgent((*name).to_owned())),
                _ => allowed("GET"),
            },
            ["v1", rest @ ..] => OpenAiRoute::of(method, rest).map(Route::OpenAi),
            ["api", of @ ("tokens" | "resume")] => match (method, *of) {
                ("POST", "tokens") => Ok(Route::MintToken),
                ("POST", _) => Ok(Route::Resume),
                _ => allowed("POST"),
            },
            ["api", "oauth", "callback"] | [".well-known", "bobbin-client.json"] => {
                match (method, segments.len()) {
                    ("GET", 3) => Ok(Route::SignedIn),
                    ("GET", _) => Ok(Route::ClientDocument),
                    _ => allowed("GET"),
                }
            }
            ["api", "envs", of @ ("instance" | "account")] => {
                let of = if *of == "instance" { EnvOf::Instance } else { EnvOf::Account };
                match method {
                    "GET" => Ok(Route::GetEnv(of)),
                    "PATCH" => Ok(Route::PatchEnv(of)),
                    _ => allowed("GET, PATCH"),
                }
            }
            ["api", "memory", memory, rest @ ..] => {
                Ok(Route::Memory { memory: (*memory).to_owned(), of: MemoryRoute::of(method, rest)? })
            }
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
            _ => Err(Error::new(Code::NotFound, format!("There is no route {}.", target.path))
                .hint("The API is below /api; GET /api/agents lists the agents.")),
        }
    }
}

impl ThreadRoute {
    /// The route below `/api/threads/:id`.
    pub fn of(method: &str, rest: &[&str]) -> Result<ThreadRoute> {
        match rest {
            // The runtime's own names come first, whatever the catalog has.
            [first, ..] if endpoint::is_reserved(first) => {}
            [] if matches!(method, "GET" | "HEAD" | "PATCH" | "DELETE") => {}
            _ => {
                let method = Method::of(method).ok_or_else(|| unknown_method(method))?;
                let path = rest.iter().map(|segment| (*segment).to_owned()).collect();
                return Ok(ThreadRoute::Endpoint { method, path });
            }
        }
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
            ["messages", id, "regenerate"] => {
                return only(method, "POST", ThreadRoute::Regenerate((*id).to_owned()));
            }
            ["fork"] => (&[("POST", ThreadRoute::Fork)], "POST"),
            ["stop"] => (&[("POST", ThreadRoute::Stop)], "POST"),
            ["continue"] => (&[("POST", ThreadRoute::Continue)], "POST"),
            ["terminate"] => (&[("POST", ThreadRoute::Terminate)], "POST"),
            ["logs"] => (&[("GET", ThreadRoute::ListLogs)], "GET"),
            ["logs", id] => return only(method, "GET", ThreadRoute::GetLog((*id).to_owned())),
            ["runs"] => (&[("GET", ThreadRoute::ListRuns)], "GET"),
            ["runs", id] => return only(method, "GET", ThreadRoute::GetRun((*id).to_owned())),
            ["diagnostics"] => (&[("GET", ThreadRoute::Diagnostics)], "GET"),
            ["subagents"] => (&[("GET", ThreadRoute::ListSubagents)], "GET"),
            ["cost"] => (&[("GET", ThreadRoute::GetCost)], "GET"),
            ["budget"] => {
                (&[("GET", ThreadRoute::GetBudget), ("PATCH", ThreadRoute::PatchBudget)], "GET, PATCH")
            }
            ["context"] => (&[("GET", ThreadRoute::GetContext)], "GET"),
            ["context", "summarize"] => (&[("POST", ThreadRoute::Summarize)], "POST"),
            ["context", "summary"] => (&[("DELETE", ThreadRoute::DropSummary)], "DELETE"),
            ["runs", run, "spans"] => return only(method, "GET", ThreadRoute::GetSpans((*run).to_owned())),
            ["steps", message, "request"] => {
                return only(method, "GET", ThreadRoute::GetStepRequest((*message).to_owned()));
            }
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
                    _ => Err(no_route()),
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
            ["uploads"] => {
                (&[("GET", ThreadRoute::ListUploads), ("POST", ThreadRoute::StartUpload)], "GET, POST")
            }
            ["uploads", id] => {
                let id = (*id).to_owned();
                return match method {
                    "GET" => Ok(ThreadRoute::GetUpload(id)),
                    "DELETE" => Ok(ThreadRoute::DeleteUpload(id)),
                    _ => Err(not_allowed(method, "GET, DELETE")),
                };
            }
            ["uploads", id, "complete"] => {
                return only(method, "POST", ThreadRoute::CompleteUpload((*id).to_owned()));
            }
            ["uploads", id, index] => {
                return match method {
                    "PUT" => {
                        Ok(ThreadRoute::PutChunk { upload: (*id).to_owned(), index: (*index).to_owned() })
                    }
                    _ => Err(not_allowed(method, "PUT")),
                };
            }
            ["variables", id] => {
                let id = (*id).to_owned();
                return match method {
                    "GET" => Ok(ThreadRoute::GetVariables(id)),
                    "POST" => Ok(ThreadRoute::PostVariables(id)),
                    _ => Err(not_allowed(method, "GET, POST")),
                };
            }
            ["waits"] => {
                (&[("GET", ThreadRoute::ListWaits), ("POST", ThreadRoute::DecideWaits)], "GET, POST")
            }
            ["waits", "remembered"] => (&[("DELETE", ThreadRoute::ForgetWaits)], "DELETE"),
            ["waits", id] => {
                let id = (*id).to_owned();
                return match method {
                    "GET" => Ok(ThreadRoute::GetWait(id)),
                    "POST" => Ok(ThreadRoute::DecideWait(id)),
                    _ => Err(not_allowed(method, "GET, POST")),
                };
            }
            ["memory", memory, rest @ ..] => {
                let of = MemoryRoute::of(method, rest)?;
                return Ok(ThreadRoute::Memory { memory: (*memory).to_owned(), of });
            }
            ["stream"] => (&[("GET", ThreadRoute::Stream)], "GET"),
            ["events"] => (&[("GET", ThreadRoute::Events)], "GET"),
            _ => return Err(no_route()),
        };
        routes
            .iter()
            .find(|(m, _)| *m == method)
            .map(|(_, route)| route.clone())
            .ok_or_else(|| not_allowed(method, allowed))
    }
}

impl ThreadRoute {
    /// Whether a request of this route reaches the object as a stream and is answered by
    /// `Thread::serve`; every other one is a text, answered by `handle`.
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
                | ThreadRoute::ListUploads
                | ThreadRoute::StartUpload
                | ThreadRoute::GetUpload(_)
                | ThreadRoute::PutChunk { .. }
                | ThreadRoute::CompleteUpload(_)
                | ThreadRoute::DeleteUpload(_)
                | ThreadRoute::Endpoint { .. }
        )
    }

    /// Whether it only reads: whoever may read the thread may ask it, and it may be asked again when its answer was lost.
    pub const fn reads(&self) -> bool {
        if let ThreadRoute::Memory { of, .. } = self {
            return of.reads();
        }
        matches!(
            self,
            ThreadRoute::Get
                | ThreadRoute::ListMessages
                | ThreadRoute::GetMessage(_)
                | ThreadRoute::ListLogs
                | ThreadRoute::GetLog(_)
                | ThreadRoute::ListRuns
                | ThreadRoute::GetRun(_)
                | ThreadRoute::Diagnostics
                | ThreadRoute::ListSubagents
                | ThreadRoute::GetCost
                | ThreadRoute::GetBudget
                | ThreadRoute::GetContext
                | ThreadRoute::GetSpans(_)
                | ThreadRoute::GetStepRequest(_)
                | ThreadRoute::GetValues
                | ThreadRoute::ListEffects
                | ThreadRoute::GetEffect(_)
                | ThreadRoute::ListWaits
                | ThreadRoute::GetWait(_)
                | ThreadRoute::ListFiles
                | ThreadRoute::GetFile(_)
                | ThreadRoute::HeadFile(_)
                | ThreadRoute::ListUploads
                | ThreadRoute::GetUpload(_)
                | ThreadRoute::GetVariables(_)
                | ThreadRoute::Called(_)
                | ThreadRoute::FileContent(_)
                | ThreadRoute::Endpoint { method: Method::Get | Method::Head, .. }
        )
    }

    /// Whether a run may begin with it, which then is part of the trace that the request names.
    pub const fn may_begin_run(&self) -> bool {
        matches!(
            self,
            ThreadRoute::PostMessage
                | ThreadRoute::Call
                | ThreadRoute::Continue
                | ThreadRoute::Regenerate(_)
                | ThreadRoute::PatchMessage(_)
        )
    }

    /// The request headers that reach the object with the request, in lower case: those that name a trace where a run may
    /// begin, and of streamed requests; `*` for all that
    /// [`crate::request::endpoints::tells_header`] lets pass.
    pub const fn headers(&self) -> &'static [&'static str] {
        match self {
            ThreadRoute::GetFile(_) | ThreadRoute::HeadFile(_) => {
                &["range", "if-range", "if-match", "if-none-match"]
            }
            ThreadRoute::Endpoint { .. } => &["*"],
            route if route.may_begin_run() => crate::trace::HEADERS,
            _ => &["content-type", "content-length", "if-match", "if-none-match"],
        }
    }
}

/// Nothing is there, and nothing of the application's own.
pub fn no_route() -> Error {
    Error::new(Code::NotFound, "A thread has no such route.")
}

/// A method that no endpoint can answer. Whether there is one for others, only the catalog knows.
fn unknown_method(method: &str) -> Error {
    Error::new(Code::MethodNotAllowed, format!("{method} is not possible here."))
        .hint("Endpoints answer GET, HEAD, POST, PUT, PATCH and DELETE.")
}

/// The route of a path that has one method.
fn only(method: &str, allowed: &str, route: ThreadRoute) -> Result<ThreadRoute> {
    if method == allowed { Ok(route) } else { Err(not_allowed(method, allowed)) }
}

/// The error for a method that a path does not have.
pub fn not_allowed(method: &str, allowed: &str) -> Error {
    Error::new(Code::MethodNotAllowed, format!("{method} is not possible here."))
        .hint(format!("Allowed: {allowed}."))
}

#[cfg(test)]
mod tests;
