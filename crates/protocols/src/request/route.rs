//! Routes as types, and the route of a request. `table` has a row for each.

use std::mem::discriminant;

use serde::{Deserialize, Serialize};

use crate::request::row::{Row, find};
use crate::request::table::{FOLLOWS, OfThread, ROUTES, STREAMS, TEXTS};
use crate::request::target::Target;
use crate::request::{AgUiRoute, BodyRule, ChatRoute, MemoryRoute, OpenAiRoute};
use bobbin_definitions::definitions::endpoint::{self, Method};
use bobbin_definitions::error::{Code, Error, Result};

/// A route of the API, prefix `/api` (and `/healthz`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A route that needs no credentials.
    Open(OpenRoute),
    /// `GET /api/agents`.
    Agents,
    /// `GET /api/agents/:name`.
    Agent(String),
    /// `GET /api/agents/:name/explain`: its definitions, and what the deployment lacks for it.
    ExplainAgent(String),
    /// `POST /api/threads`.
    CreateThread,
    /// `GET /api/threads`.
    ListThreads,
    /// `GET /api/threads/owners`.
    ListOwners,
    /// `POST /api/tokens`.
    MintToken,
    /// `GET /api/waits`: open waits in all threads of an owner.
    ListWaits,
    /// `GET /api/mcp`: the MCP servers and their status.
    ListServers,
    /// `GET /api/envs/instance`, `GET /api/envs/account`.
    GetEnv(EnvLevel),
    /// `PATCH /api/envs/instance`, `PATCH /api/envs/account`.
    PatchEnv(EnvLevel),
    /// Below `/api/memory/:name`: a memory that threads share.
    Memory {
        /// The memory's name.
        memory: String,
        /// The route below it.
        of: MemoryRoute,
    },
    /// Below `/api/chat` and `/api/agents/:agent/chat`: a chat of the AI SDK.
    Chat {
        /// The agent in the path.
        agent: Option<String>,
        /// The route below it.
        of: ChatRoute,
    },
    /// `GET` and `POST /api/agents/:agent/ag-ui`: a conversation of AG-UI.
    AgUi {
        /// The agent.
        agent: String,
        /// The operation.
        of: AgUiRoute,
    },
    /// Below `/v1`: OpenAI's APIs.
    OpenAi(OpenAiRoute),
    /// `POST /mcp`: a message of an MCP client.
    Mcp,
    /// Below `/api/threads/:id`: answered with a text.
    Thread(String, ThreadRoute),
    /// Below `/api/threads/:id`: files, uploads, and endpoints of the application.
    Stream(String, StreamRoute),
    /// `GET /api/threads/:id/stream` and `…/events`.
    Follow(String, Follow),
}

/// A route that needs no credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenRoute {
    /// `GET /healthz`.
    Health,
    /// `GET /.well-known/oauth-protected-resource`, also with `/mcp` appended: the issuer of tokens for MCP.
    McpMetadata,
    /// `GET /.well-known/bobbin-client.json`: the deployment's metadata as an OAuth client.
    ClientDocument,
    /// `GET /api/oauth/callback`: the browser returns after a sign-in to an MCP server.
    SignedIn,
    /// `POST /api/resume`: a decision, with the token of a link.
    Resume,
}

/// The level of variables, besides a thread's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvLevel {
    /// The deployment's.
    Instance,
    /// An owner's: the caller's, or that of the query's `user_id`.
    Account,
}

/// A route of one thread, below `/api/threads/:id`, that the object answers with a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "route", content = "id", rename_all = "snake_case")]
pub enum ThreadRoute {
    /// Creates the thread. Between objects only: sent for `POST /threads`.
    Create,
    /// Creates the thread as a copy of another. Between objects only.
    CreateFork,
    /// Reads a page for the copy of a thread. Between objects only.
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
    /// `POST /messages/:id/regenerate`: replaces this reply and everything after it by a new one.
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
    /// `GET /context`: the contents of the next request to a model.
    GetContext,
    /// `POST /context/summarize`: writes a summary.
    Summarize,
    /// `DELETE /context/summary`: replaces the summary by its messages.
    DropSummary,
    /// `GET /runs/:run/spans`.
    GetSpans(String),
    /// `GET /steps/:message/request`: the request to the model that wrote this reply.
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
    /// `GET /variables/:id`: the variables that a subagent waits for.
    GetVariables(String),
    /// `POST /variables/:id`: sets them, and starts the subagent.
    PostVariables(String),
    /// `GET /waits`: questions to people.
    ListWaits,
    /// `POST /waits`: decides several.
    DecideWaits,
    /// `DELETE /waits/remembered`: forgets approvals of later calls.
    ForgetWaits,
    /// `GET /waits/:id`.
    GetWait(String),
    /// `POST /waits/:id`: decides it.
    DecideWait(String),
    /// Below `/memory/:name`.
    Memory {
        /// The memory's name.
        memory: String,
        /// The route below it.
        of: MemoryRoute,
    },
    /// A message from another thread of the family. Between objects only.
    Envelope,
    /// The callback of a sign-in. Between objects only: sent for `GET /api/oauth/callback` to the thread that its
    /// state names.
    CameBack,
    /// A call of a member of `state` by code of another thread of the family. Between objects only.
    Member,
    /// A tool call of an MCP client. Between objects only.
    Call,
    /// The outcome of such a call, by its message, with the contents of its files. Between objects only.
    Called(String),
    /// A file's content in the same form. Between objects only.
    FileContent(String),
}

/// A route of one thread whose bodies pass between client and object as streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "route", content = "id", rename_all = "snake_case")]
pub enum StreamRoute {
    /// `GET /fs`: the root's listing, numbers, or a search.
    ListFiles,
    /// `GET /fs/{path}`: a file, its record, or a directory's listing. The path is not normalized.
    GetFile(String),
    /// `HEAD /fs/{path}`.
    HeadFile(String),
    /// `PUT /fs/{path}`: writes the body.
    PutFile(String),
    /// `POST /fs/{path}`: writes the body, or performs the operation in a JSON body.
    PostFile(String),
    /// `PATCH /fs/{path}`: moves.
    MoveFile(String),
    /// `DELETE /fs/{path}`.
    DeleteFile(String),
    /// `GET /uploads`: unfinished uploads.
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
    /// Any other path: the object looks for an endpoint of its catalog.
    Endpoint {
        /// The request's method.
        method: Method,
        /// The segments below the thread, decoded.
        path: Vec<String>,
    },
}

/// A connection that follows a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// `GET /stream`: a WebSocket.
    Socket,
    /// `GET /events`: server-sent events.
    Events,
}

/// The route of a request, and what holds for it.
#[derive(Debug)]
pub struct Matched {
    /// The route.
    pub route: Route,
    /// The query parameters that the Worker checks; `None` where the thread's object does, after it has
    /// checked the caller.
    pub parameters: Option<&'static [&'static str]>,
    /// What it accepts as its body.
    pub body: BodyRule,
}

impl Route {
    /// The route of a request, whose path segments are decoded one by one.
    ///
    /// # Errors
    /// `not_found` for an unknown path; `method_not_allowed` for a known path with another method, with its
    /// methods as hint; `invalid_field` for a path with a segment `.` or `..`.
    pub fn of(method: &str, target: &Target) -> Result<Matched> {
        let segments = target.segments();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if segments.iter().any(|segment| matches!(*segment, "." | "..")) {
            let text = "The path has a segment `.` or `..`, escaped or not.";
            return Err(Error::field("path", text).hint("Write where it leads to."));
        }
        let matched = Route::find(method, &segments, target)?;
        // Clients and proxies resolve such segments, too. `…/messages/..` then ends with a slash, and was not
        // meant to be the thread.
        let is_endpoint = matches!(matched.route, Route::Stream(_, StreamRoute::Endpoint { .. }));
        if !is_endpoint && target.path.ends_with('/') && !matches!(method, "GET" | "HEAD") {
            return Err(Error::field(
                "path",
                "The path ends with a slash, as one that ended with `..` does.",
            )
            .hint("Leave the slash out if this is the path that you mean."));
        }
        Ok(matched)
    }

    fn find(method: &str, segments: &[&str], target: &Target) -> Result<Matched> {
        // A load balancer may send `HEAD`.
        let method = if (segments, method) == (&["healthz"], "HEAD") { "GET" } else { method };
        if let Some((route, row)) = find(ROUTES, method, segments)? {
            return Ok(Matched { route, parameters: Some(row.parameters), body: row.body });
        }
        match segments {
            ["api", "threads", thread, rest @ ..] => of_thread(method, segments, thread, rest),
            ["api", "memory", _, ..] => Err(no_memory_route()),
            ["api", "chat", ..] | ["api", "agents", _, "chat", ..] => Err(no_route()),
            ["v1", ..] => Err(not_offered()),
            _ => Err(Error::new(Code::NotFound, format!("There is no route {}.", target.path))
                .hint("The API is below /api; GET /api/agents lists the agents.")),
        }
    }
}

fn of_thread(method: &str, segments: &[&str], thread: &str, rest: &[&str]) -> Result<Matched> {
    match rest {
        // The runtime's own names come first, whatever the catalog has.
        [first, ..] if endpoint::is_reserved(first) => {}
        [] if matches!(method, "GET" | "HEAD" | "PATCH" | "DELETE") => {}
        _ => {
            let method = Method::of(method).ok_or_else(|| unknown_method(method))?;
            let path = rest.iter().map(|segment| (*segment).to_owned()).collect();
            let route = Route::Stream(thread.to_owned(), StreamRoute::Endpoint { method, path });
            return Ok(Matched { route, parameters: None, body: BodyRule::Streamed });
        }
    }
    if let Some(((thread, route), row)) = find(TEXTS, method, segments)? {
        return Ok(Matched { route: Route::Thread(thread, route), parameters: None, body: row.body });
    }
    if let Some(((thread, route), row)) = find(STREAMS, method, segments)? {
        return Ok(Matched { route: Route::Stream(thread, route), parameters: None, body: row.body });
    }
    if let Some(((thread, route), row)) = find(FOLLOWS, method, segments)? {
        let parameters = Some(row.parameters);
        return Ok(Matched { route: Route::Follow(thread, route), parameters, body: row.body });
    }
    Err(match rest {
        ["memory", _, ..] => no_memory_route(),
        _ => no_route(),
    })
}

impl ThreadRoute {
    /// The row of this kind of route; `None` for requests between objects.
    fn row(&self) -> Option<&'static Row<OfThread<ThreadRoute>>> {
        let kind = |route: &ThreadRoute| match route {
            ThreadRoute::Memory { of, .. } => (discriminant(route), Some(discriminant(of))),
            _ => (discriminant(route), None),
        };
        TEXTS.iter().find(|row| kind(&row.example().1) == kind(self))
    }

    /// The query parameters that it knows.
    pub fn parameters(&self) -> &'static [&'static str] {
        self.row().map_or(&[], |row| row.parameters)
    }

    /// Whether it only reads: callers who may read the thread may request it, and the request may be repeated
    /// if its response was lost.
    pub fn reads(&self) -> bool {
        match self {
            ThreadRoute::Called(_) | ThreadRoute::FileContent(_) => true,
            ThreadRoute::Memory { of, .. } => of.reads(),
            _ => self.row().is_some_and(Row::reads),
        }
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

    /// The request headers that reach the object with the request, in lower case: those that name a trace.
    pub const fn headers(&self) -> &'static [&'static str] {
        if self.may_begin_run() { crate::trace::HEADERS } else { &[] }
    }
}

impl StreamRoute {
    /// The query parameters that it knows; `None` for endpoints, which know their own.
    pub fn parameters(&self) -> Option<&'static [&'static str]> {
        if matches!(self, StreamRoute::Endpoint { .. }) {
            return None;
        }
        Some(self.row().map_or(&[], |row| row.parameters))
    }

    /// Whether it only reads, as [`ThreadRoute::reads`].
    pub fn reads(&self) -> bool {
        match self {
            StreamRoute::Endpoint { method, .. } => method.reads(),
            _ => self.row().is_some_and(Row::reads),
        }
    }

    fn row(&self) -> Option<&'static Row<OfThread<StreamRoute>>> {
        STREAMS.iter().find(|row| discriminant(&row.example().1) == discriminant(self))
    }

    /// The request headers that reach the object with the request, in lower case; `*` for all that
    /// [`crate::request::endpoints::passes_header`] lets pass.
    pub const fn headers(&self) -> &'static [&'static str] {
        match self {
            StreamRoute::GetFile(_) | StreamRoute::HeadFile(_) => {
                &["range", "if-range", "if-match", "if-none-match"]
            }
            StreamRoute::Endpoint { .. } => &["*"],
            _ => &["content-type", "content-length", "if-match", "if-none-match"],
        }
    }
}

fn no_memory_route() -> Error {
    Error::new(Code::NotFound, "A memory has no such route.")
}

/// The error for what OpenAI has and Bobbin has not, such as embeddings and images.
fn not_offered() -> Error {
    Error::new(Code::NotFound, "This part of OpenAI's API is not offered here.").hint(
        "There are /v1/models, /v1/chat/completions, /v1/responses and /v1/conversations. For everything else ask the provider of the model.",
    )
}

/// The error for a path below a thread that is neither a route nor an endpoint.
pub fn no_route() -> Error {
    Error::new(Code::NotFound, "A thread has no such route.")
}

/// The error for a method that no endpoint can have. Only the catalog knows which endpoints have the others.
fn unknown_method(method: &str) -> Error {
    Error::new(Code::MethodNotAllowed, format!("{method} is not possible here."))
        .hint("Endpoints answer GET, HEAD, POST, PUT, PATCH and DELETE.")
}

#[cfg(test)]
mod tests;
