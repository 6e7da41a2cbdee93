//! Every route of the API, and the query parameters that its requests may have. A parameter that a route does not know
//! is refused, because it would otherwise be ignored silently.

use crate::request::{AgUiRoute, MemoryRoute, Route, ThreadRoute};

const NONE: &[&str] = &[];
const PAGE: &[&str] = &["limit", "offset"];
const FILES: &[&str] = &["stats", "grep", "find", "format", "stat", "thumbnail", "limit", "cursor"];
const FILE: &[&str] = &["format", "stat", "thumbnail", "limit", "cursor"];
const STREAM: &[&str] = &["includeSilent", "depth", "reasoning", "items", "progress", "token", "lastEventId"];
const EVENTS: &[&str] =
    &["includeSilent", "depth", "reasoning", "items", "progress", "token", "lastEventId", "run", "after"];
/// Of `GET …/messages`, and of `state.getMessages` in code.
pub const MESSAGES: &[&str] =
    &["limit", "offset", "before", "after", "order", "includeSilent", "depth", "ids"];
/// Of `GET …/logs`, and of `state.getLogs` in code.
pub const LOGS: &[&str] = &["limit", "offset", "order", "ids", "messageIds"];

impl Route {
    /// The query parameters that it knows; `None` where the thread's object knows them ([`ThreadRoute::parameters`]).
    pub fn parameters(&self) -> Option<&'static [&'static str]> {
        Some(match self {
            Route::Health
            | Route::Agents
            | Route::Agent(_)
            | Route::ExplainAgent(_)
            | Route::CreateThread
            | Route::MintToken
            | Route::Mcp(_)
            | Route::ListServers
            | Route::ClientDocument
            | Route::Resume => NONE,
            Route::ListWaits => &["user_id", "kind", "limit", "cursor"],
            Route::ListThreads => &[
                "limit",
                "offset",
                "agent_id",
                "user_id",
                "key",
                "search",
                "startDate",
                "endDate",
                "executing",
                "terminated",
                "failed",
                "include_children",
                "sort",
            ],
            Route::Chat { .. } => &["agent", "features", "reasoning", "approvals"],
            Route::AgUi { of: AgUiRoute::Read, .. } => {
                &["threadId", "runId", "offset", "limit", "before", "reasoning", "parts", "revise"]
            }
            Route::AgUi { of: AgUiRoute::Run, .. } => &["threadId", "reasoning", "parts", "revise"],
            Route::OpenAi(of) => of.parameters(),
            Route::ListOwners => PAGE,
            Route::GetEnv(_) | Route::PatchEnv(_) => &["user_id"],
            Route::Memory { of: MemoryRoute::ListDocuments, .. } => &["user_id", "limit", "cursor", "tag"],
            Route::Memory { of: MemoryRoute::Logs, .. } => &["user_id", "limit", "cursor"],
            Route::Memory { .. } => &["user_id"],
            // Whatever else an authorization server says is passed over.
            Route::SignedIn => &["state", "code", "iss", "error"],
            // The socket is asked for here, and the object never sees the query.
            Route::Thread(_, route @ (ThreadRoute::Stream | ThreadRoute::Events)) => {
                return route.parameters();
            }
            Route::Thread(..) => return None,
        })
    }
}

impl ThreadRoute {
    /// The query parameters that it knows; `None` for endpoints, which know their own.
    pub fn parameters(&self) -> Option<&'static [&'static str]> {
        Some(match self {
            ThreadRoute::Memory { of, .. } => of.parameters(),
            ThreadRoute::ListWaits => &["state", "descendants", "limit", "cursor"],
            ThreadRoute::GetContext => &["history"],
            ThreadRoute::ListRuns => &["limit", "before"],
            ThreadRoute::GetRun(_) => &["trace"],
            ThreadRoute::PostMessage => &["wait"],
            ThreadRoute::PatchMessage(_) => &["truncate", "run"],
            ThreadRoute::ListMessages => MESSAGES,
            ThreadRoute::ListLogs => LOGS,
            ThreadRoute::ListSubagents | ThreadRoute::ListEffects => PAGE,
            ThreadRoute::GetValues => &["key", "limit", "offset", "prefix", "search", "cursor"],
            ThreadRoute::DeleteValue => &["key"],
            ThreadRoute::ListUploads => &["limit", "cursor"],
            ThreadRoute::ListFiles => FILES,
            ThreadRoute::GetFile(_) | ThreadRoute::HeadFile(_) => FILE,
            ThreadRoute::DeleteFile(_) => &["recursive"],
            ThreadRoute::Events => EVENTS,
            ThreadRoute::Stream => STREAM,
            ThreadRoute::Endpoint { .. } => return None,
            // Whatever it is sent is refused.
            _ => NONE,
        })
    }
}

/// Every route: its method and its path, with `:thread` and `:item` for ids. What holds for all of them is tested with it.
pub const TABLE: &[(&str, &str)] = &[
    ("GET", "/healthz"),
    ("GET", "/api/agents"),
    ("GET", "/api/agents/:item"),
    ("GET", "/api/agents/:item/explain"),
    ("POST", "/api/chat"),
    ("GET", "/api/chat/:item"),
    ("GET", "/api/chat/:item/stream"),
    ("POST", "/api/chat/:item/stop"),
    ("POST", "/api/agents/:item/chat"),
    ("GET", "/api/agents/:item/chat/:item"),
    ("GET", "/api/agents/:item/chat/:item/stream"),
    ("POST", "/api/agents/:item/chat/:item/stop"),
    ("GET", "/api/agents/:item/ag-ui"),
    ("POST", "/api/agents/:item/ag-ui"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/:item"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("GET", "/v1/responses/:item"),
    ("DELETE", "/v1/responses/:item"),
    ("POST", "/v1/responses/:item/cancel"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/conversations/:item"),
    ("POST", "/v1/conversations/:item"),
    ("DELETE", "/v1/conversations/:item"),
    ("GET", "/v1/conversations/:item/items"),
    ("POST", "/v1/conversations/:item/items"),
    ("GET", "/v1/conversations/:item/items/:item"),
    ("DELETE", "/v1/conversations/:item/items/:item"),
    ("POST", "/mcp"),
    ("GET", "/.well-known/oauth-protected-resource"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ("POST", "/api/tokens"),
    ("GET", "/api/waits"),
    ("GET", "/api/mcp"),
    ("POST", "/api/resume"),
    ("GET", "/api/oauth/callback"),
    ("GET", "/.well-known/bobbin-client.json"),
    ("GET", "/api/envs/instance"),
    ("PATCH", "/api/envs/instance"),
    ("GET", "/api/envs/account"),
    ("PATCH", "/api/envs/account"),
    ("GET", "/api/memory/:item"),
    ("DELETE", "/api/memory/:item"),
    ("GET", "/api/memory/:item/documents"),
    ("POST", "/api/memory/:item/documents"),
    ("GET", "/api/memory/:item/documents/:item"),
    ("DELETE", "/api/memory/:item/documents/:item"),
    ("POST", "/api/memory/:item/search"),
    ("GET", "/api/memory/:item/logs"),
    ("GET", "/api/threads"),
    ("POST", "/api/threads"),
    ("GET", "/api/threads/owners"),
    ("GET", "/api/threads/:thread"),
    ("PATCH", "/api/threads/:thread"),
    ("DELETE", "/api/threads/:thread"),
    ("GET", "/api/threads/:thread/context"),
    ("POST", "/api/threads/:thread/context/summarize"),
    ("DELETE", "/api/threads/:thread/context/summary"),
    ("GET", "/api/threads/:thread/messages"),
    ("POST", "/api/threads/:thread/messages"),
    ("GET", "/api/threads/:thread/messages/:item"),
    ("PATCH", "/api/threads/:thread/messages/:item"),
    ("DELETE", "/api/threads/:thread/messages/:item"),
    ("POST", "/api/threads/:thread/messages/:item/regenerate"),
    ("POST", "/api/threads/:thread/fork"),
    ("POST", "/api/threads/:thread/stop"),
    ("POST", "/api/threads/:thread/continue"),
    ("POST", "/api/threads/:thread/terminate"),
    ("GET", "/api/threads/:thread/logs"),
    ("GET", "/api/threads/:thread/logs/:item"),
    ("GET", "/api/threads/:thread/runs"),
    ("GET", "/api/threads/:thread/runs/:item"),
    ("GET", "/api/threads/:thread/diagnostics"),
    ("GET", "/api/threads/:thread/subagents"),
    ("GET", "/api/threads/:thread/cost"),
    ("GET", "/api/threads/:thread/budget"),
    ("PATCH", "/api/threads/:thread/budget"),
    ("GET", "/api/threads/:thread/runs/:item/spans"),
    ("GET", "/api/threads/:thread/steps/:item/request"),
    ("GET", "/api/threads/:thread/kv"),
    ("POST", "/api/threads/:thread/kv"),
    ("DELETE", "/api/threads/:thread/kv"),
    ("GET", "/api/threads/:thread/effects"),
    ("POST", "/api/threads/:thread/effects"),
    ("GET", "/api/threads/:thread/effects/:item"),
    ("POST", "/api/threads/:thread/effects/:item/run"),
    ("POST", "/api/threads/:thread/effects/:item/cancel"),
    ("GET", "/api/threads/:thread/fs"),
    ("GET", "/api/threads/:thread/fs/:item"),
    ("HEAD", "/api/threads/:thread/fs/:item"),
    ("PUT", "/api/threads/:thread/fs/:item"),
    ("POST", "/api/threads/:thread/fs/:item"),
    ("PATCH", "/api/threads/:thread/fs/:item"),
    ("DELETE", "/api/threads/:thread/fs/:item"),
    ("GET", "/api/threads/:thread/uploads"),
    ("POST", "/api/threads/:thread/uploads"),
    ("GET", "/api/threads/:thread/uploads/:item"),
    ("PUT", "/api/threads/:thread/uploads/:item/0"),
    ("POST", "/api/threads/:thread/uploads/:item/complete"),
    ("DELETE", "/api/threads/:thread/uploads/:item"),
    ("GET", "/api/threads/:thread/variables/:item"),
    ("POST", "/api/threads/:thread/variables/:item"),
    ("GET", "/api/threads/:thread/waits"),
    ("POST", "/api/threads/:thread/waits"),
    ("DELETE", "/api/threads/:thread/waits/remembered"),
    ("GET", "/api/threads/:thread/waits/:item"),
    ("POST", "/api/threads/:thread/waits/:item"),
    ("GET", "/api/threads/:thread/memory/:item"),
    ("DELETE", "/api/threads/:thread/memory/:item"),
    ("GET", "/api/threads/:thread/memory/:item/documents"),
    ("POST", "/api/threads/:thread/memory/:item/documents"),
    ("GET", "/api/threads/:thread/memory/:item/documents/:item"),
    ("DELETE", "/api/threads/:thread/memory/:item/documents/:item"),
    ("POST", "/api/threads/:thread/memory/:item/search"),
    ("GET", "/api/threads/:thread/stream"),
    ("GET", "/api/threads/:thread/events"),
];

#[cfg(test)]
mod tests {
    use bobbin_definitions::sorted::SortedSet;
    use std::mem::{Discriminant, discriminant};

    use super::*;
    use crate::request::Target;
    use bobbin_definitions::definitions::endpoint::RESERVED;

    const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

    fn route(method: &str, path: &str) -> Option<Route> {
        Route::of(method, &Target::of(&format!("https://host{path}"))).ok()
    }

    fn kind(route: &Route) -> (Discriminant<Route>, Option<Discriminant<ThreadRoute>>) {
        match route {
            Route::Thread(_, of) => (discriminant(route), Some(discriminant(of))),
            _ => (discriminant(route), None),
        }
    }

    #[test]
    fn the_table_has_every_route_once() {
        let listed: Vec<_> = TABLE.iter().map(|(method, path)| route(method, path).unwrap()).collect();
        let distinct: SortedSet<_> = TABLE.iter().collect();
        assert_eq!(distinct.len(), TABLE.len());
        // Whatever else leads to a route of the runtime leads to one of these.
        for method in METHODS {
            let of_threads = RESERVED.iter().flat_map(|name| {
                ["", "/x", "/x/0", "/x/run", "/x/cancel", "/x/complete", "/x/spans", "/x/request"]
                    .map(|below| format!("/api/threads/t/{name}{below}"))
            });
            let others = [
                "agents",
                "agents/x",
                "agents/x/explain",
                "tokens",
                "waits",
                "mcp",
                "resume",
                "oauth/callback",
                "envs/instance",
                "envs/account",
                "memory/x",
                "memory/x/documents",
                "memory/x/documents/x",
                "memory/x/search",
                "memory/x/logs",
                "threads",
            ]
            .into_iter()
            .chain(["threads/owners", "threads/t"])
            .map(|path| format!("/api/{path}"));
            for path in of_threads.chain(others) {
                let Some(found) = route(method, &path) else { continue };
                if matches!(found, Route::Thread(_, ThreadRoute::Endpoint { .. })) {
                    continue;
                }
                assert!(listed.iter().any(|known| kind(known) == kind(&found)), "{method} {path} is missing");
            }
        }
    }
}
