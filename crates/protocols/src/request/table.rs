//! Every route of the API. To add one, add a row here with its variant in `route`, its handler, and its
//! description in `scripts/openapi`; tests name what is missing.

use bobbin_definitions::limits::{DOCUMENT_REQUEST_BYTES, MESSAGE_REQUEST_BYTES};

use crate::request::body::{CHAT, REQUEST};
use crate::request::route::{EnvLevel, Follow, OpenRoute, Route, StreamRoute, ThreadRoute};
use crate::request::row::{Ids, Row};
use crate::request::{AgUiRoute, BodyRule, ChatRoute, MemoryRoute, OpenAiRoute};

/// A body of JSON with the size of a message.
const fn message(what: &'static str) -> BodyRule {
    BodyRule::Json { limit: MESSAGE_REQUEST_BYTES, what }
}

const DOCUMENT: BodyRule = BodyRule::Json { limit: DOCUMENT_REQUEST_BYTES, what: "a document" };

const PAGE: &[&str] = &["limit", "offset"];
const THREADS: &[&str] = &[
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
];
const FILES: &[&str] = &["stats", "grep", "find", "format", "stat", "thumbnail", "limit", "cursor"];
const FILE: &[&str] = &["format", "stat", "thumbnail", "limit", "cursor"];
const SOCKET: &[&str] = &["includeSilent", "depth", "reasoning", "items", "progress", "token", "lastEventId"];
const EVENTS: &[&str] =
    &["includeSilent", "depth", "reasoning", "items", "progress", "token", "lastEventId", "run", "after"];
const CHATS: &[&str] = &["agent", "features", "reasoning", "approvals"];
const AG_UI: &[&str] = &["threadId", "runId", "offset", "limit", "before", "reasoning", "parts", "revise"];
const OWNER: &[&str] = &["user_id"];
/// Of `GET …/messages`, and of `state.getMessages` in code.
pub const MESSAGES: &[&str] =
    &["limit", "offset", "before", "after", "order", "includeSilent", "depth", "ids"];
/// Of `GET …/logs`, and of `state.getLogs` in code.
pub const LOGS: &[&str] = &["limit", "offset", "order", "ids", "messageIds"];

/// Routes that the Worker answers, or that name no thread.
#[rustfmt::skip]
pub const ROUTES: &[Row<Route>] = &[
    Row::get("/healthz", "health", |_| Route::Open(OpenRoute::Health)),
    Row::get("/api/agents", "listAgents", |_| Route::Agents),
    Row::get("/api/agents/{name}", "getAgent", |ids| Route::Agent(ids.take())),
    Row::get("/api/agents/{name}/explain", "explainAgent", |ids| Route::ExplainAgent(ids.take())),
    Row::post("/api/tokens", "mintToken", |_| Route::MintToken).body(REQUEST),
    Row::get("/api/waits", "listOpenWaits", |_| Route::ListWaits).query(&["user_id", "kind", "limit", "cursor"]),
    Row::get("/api/mcp", "listMcpServers", |_| Route::ListServers),
    Row::post("/api/resume", "resume", |_| Route::Open(OpenRoute::Resume)).body(message("a decision")),
    // An authorization server may send further parameters: the handler ignores them.
    Row::get("/api/oauth/callback", "signedIn", |_| Route::Open(OpenRoute::SignedIn)).query(&["state", "code", "iss", "error"]),
    Row::get("/.well-known/bobbin-client.json", "clientDocument", |_| Route::Open(OpenRoute::ClientDocument)),
    Row::get("/api/envs/instance", "getInstanceEnv", |_| Route::GetEnv(EnvLevel::Instance)).query(OWNER),
    Row::patch("/api/envs/instance", "changeInstanceEnv", |_| Route::PatchEnv(EnvLevel::Instance)).query(OWNER).body(REQUEST),
    Row::get("/api/envs/account", "getAccountEnv", |_| Route::GetEnv(EnvLevel::Account)).query(OWNER),
    Row::patch("/api/envs/account", "changeAccountEnv", |_| Route::PatchEnv(EnvLevel::Account)).query(OWNER).body(REQUEST),
    Row::get("/api/threads", "listThreads", |_| Route::ListThreads).query(THREADS),
    Row::post("/api/threads", "createThread", |_| Route::CreateThread).body(REQUEST),
    Row::get("/api/threads/owners", "listOwners", |_| Route::ListOwners).query(PAGE),

    Row::get("/api/memory/{memory}", "getMemoryShared", |ids| shared(ids, MemoryRoute::Get)).query(OWNER),
    Row::delete("/api/memory/{memory}", "clearMemoryShared", |ids| shared(ids, MemoryRoute::Clear)).query(OWNER),
    Row::get("/api/memory/{memory}/documents", "listDocumentsShared", |ids| shared(ids, MemoryRoute::ListDocuments)).query(&["user_id", "limit", "cursor", "tag"]),
    Row::post("/api/memory/{memory}/documents", "addDocumentShared", |ids| shared(ids, MemoryRoute::AddDocument)).query(OWNER).body(DOCUMENT),
    Row::get("/api/memory/{memory}/documents/{documentId}", "getDocumentShared", |ids| shared_item(ids, MemoryRoute::GetDocument)).query(OWNER),
    Row::delete("/api/memory/{memory}/documents/{documentId}", "deleteDocumentShared", |ids| shared_item(ids, MemoryRoute::DeleteDocument)).query(OWNER),
    Row::post("/api/memory/{memory}/search", "searchMemoryShared", |ids| shared(ids, MemoryRoute::Search)).query(OWNER).body(DOCUMENT),
    Row::get("/api/memory/{memory}/logs", "listSharedMemoryLogs", |ids| shared(ids, MemoryRoute::Logs)).query(&["user_id", "limit", "cursor"]),

    Row::post("/api/chat", "postChat", |_| chat(None, ChatRoute::Post)).query(CHATS).body(message(CHAT)),
    Row::get("/api/chat/{chatId}", "getChat", |ids| chat(None, ChatRoute::History(ids.take()))).query(CHATS),
    Row::get("/api/chat/{chatId}/stream", "resumeChat", |ids| chat(None, ChatRoute::Stream(ids.take()))).query(CHATS),
    Row::post("/api/chat/{chatId}/stop", "stopChat", |ids| chat(None, ChatRoute::Stop(ids.take()))).query(CHATS).body(REQUEST),
    Row::post("/api/agents/{name}/chat", "postChatOfAgent", |ids| chat(Some(ids.take()), ChatRoute::Post)).query(CHATS).body(message(CHAT)),
    Row::get("/api/agents/{name}/chat/{chatId}", "getChatOfAgent", |ids| chat(Some(ids.take()), ChatRoute::History(ids.take()))).query(CHATS),
    Row::get("/api/agents/{name}/chat/{chatId}/stream", "resumeChatOfAgent", |ids| chat(Some(ids.take()), ChatRoute::Stream(ids.take()))).query(CHATS),
    Row::post("/api/agents/{name}/chat/{chatId}/stop", "stopChatOfAgent", |ids| chat(Some(ids.take()), ChatRoute::Stop(ids.take()))).query(CHATS).body(REQUEST),

    Row::get("/api/agents/{name}/ag-ui", "getAgUi", |ids| Route::AgUi { agent: ids.take(), of: AgUiRoute::Read }).query(AG_UI),
    Row::post("/api/agents/{name}/ag-ui", "runAgUi", |ids| Route::AgUi { agent: ids.take(), of: AgUiRoute::Run }).query(&["threadId", "reasoning", "parts", "revise"]).body(message("a request for a run")),

    Row::get("/.well-known/oauth-protected-resource", "getResourceMetadata", |_| Route::Open(OpenRoute::McpMetadata)),
    Row::get("/.well-known/oauth-protected-resource/mcp", "getMcpMetadata", |_| Route::Open(OpenRoute::McpMetadata)),
    Row::post("/mcp", "postMcp", |_| Route::Mcp).body(REQUEST),

    Row::get("/v1/models", "listModels", |_| Route::OpenAi(OpenAiRoute::Models)),
    Row::get("/v1/models/{name}", "getModel", |ids| Route::OpenAi(OpenAiRoute::Model(ids.take()))),
    Row::post("/v1/chat/completions", "createChatCompletion", |_| Route::OpenAi(OpenAiRoute::Complete)).query(&["reasoning"]).body(message(ANSWER)),
    Row::post("/v1/responses", "createResponse", |_| Route::OpenAi(OpenAiRoute::Respond)).body(message(ANSWER)),
    Row::get("/v1/responses/{responseId}", "getResponse", |ids| Route::OpenAi(OpenAiRoute::Response(ids.take()))).query(&["stream", "starting_after", "include", "include[]", "include_obfuscation"]),
    Row::delete("/v1/responses/{responseId}", "deleteResponse", |ids| Route::OpenAi(OpenAiRoute::DeleteResponse(ids.take()))),
    Row::post("/v1/responses/{responseId}/cancel", "cancelResponse", |ids| Route::OpenAi(OpenAiRoute::CancelResponse(ids.take()))).body(REQUEST),
    Row::post("/v1/conversations", "createConversation", |_| Route::OpenAi(OpenAiRoute::Converse)).body(REQUEST),
    Row::get("/v1/conversations/{conversationId}", "getConversation", |ids| Route::OpenAi(OpenAiRoute::Conversation(ids.take()))),
    Row::post("/v1/conversations/{conversationId}", "changeConversation", |ids| Route::OpenAi(OpenAiRoute::ChangeConversation(ids.take()))).body(REQUEST),
    Row::delete("/v1/conversations/{conversationId}", "deleteConversation", |ids| Route::OpenAi(OpenAiRoute::DeleteConversation(ids.take()))),
    Row::get("/v1/conversations/{conversationId}/items", "listConversationItems", |ids| Route::OpenAi(OpenAiRoute::Items(ids.take()))).query(&["after", "limit", "order", "include", "include[]"]),
    Row::post("/v1/conversations/{conversationId}/items", "addConversationItems", |ids| Route::OpenAi(OpenAiRoute::AddItems(ids.take()))).query(&["include", "include[]"]).body(REQUEST),
    Row::get("/v1/conversations/{conversationId}/items/{itemId}", "getConversationItem", |ids| Route::OpenAi(OpenAiRoute::Item(ids.take(), ids.take()))).query(&["include", "include[]"]),
    Row::delete("/v1/conversations/{conversationId}/items/{itemId}", "deleteConversationItem", |ids| Route::OpenAi(OpenAiRoute::DeleteItem(ids.take(), ids.take()))),
];

const ANSWER: &str = "a request for an answer";

fn shared(ids: &mut Ids, of: MemoryRoute) -> Route {
    Route::Memory { memory: ids.take(), of }
}

fn shared_item(ids: &mut Ids, of: fn(String) -> MemoryRoute) -> Route {
    Route::Memory { memory: ids.take(), of: of(ids.take()) }
}

fn chat(agent: Option<String>, of: ChatRoute) -> Route {
    Route::Chat { agent, of }
}

/// A route of one thread: the thread, and the route.
pub(super) type OfThread<R> = (String, R);

/// Routes that a thread's object answers with a text.
#[rustfmt::skip]
pub const TEXTS: &[Row<OfThread<ThreadRoute>>] = &[
    Row::get("/api/threads/{threadId}", "getThread", |ids| of(ids, ThreadRoute::Get)),
    Row::patch("/api/threads/{threadId}", "changeThread", |ids| of(ids, ThreadRoute::Patch)).body(REQUEST),
    Row::delete("/api/threads/{threadId}", "deleteThread", |ids| of(ids, ThreadRoute::Delete)),
    Row::post("/api/threads/{threadId}/fork", "forkThread", |ids| of(ids, ThreadRoute::Fork)).body(REQUEST),
    Row::post("/api/threads/{threadId}/stop", "stopThread", |ids| of(ids, ThreadRoute::Stop)).body(REQUEST),
    Row::post("/api/threads/{threadId}/continue", "continueThread", |ids| of(ids, ThreadRoute::Continue)).body(REQUEST),
    Row::post("/api/threads/{threadId}/terminate", "terminateThread", |ids| of(ids, ThreadRoute::Terminate)).body(REQUEST),
    Row::get("/api/threads/{threadId}/subagents", "listSubagents", |ids| of(ids, ThreadRoute::ListSubagents)).query(PAGE),
    Row::get("/api/threads/{threadId}/variables/{requestId}", "getMissingVariables", |ids| item(ids, ThreadRoute::GetVariables)),
    Row::post("/api/threads/{threadId}/variables/{requestId}", "giveVariables", |ids| item(ids, ThreadRoute::PostVariables)).body(REQUEST),
    Row::get("/api/threads/{threadId}/context", "getContext", |ids| of(ids, ThreadRoute::GetContext)).query(&["history"]),
    Row::post("/api/threads/{threadId}/context/summarize", "summarize", |ids| of(ids, ThreadRoute::Summarize)).body(REQUEST),
    Row::delete("/api/threads/{threadId}/context/summary", "dropSummary", |ids| of(ids, ThreadRoute::DropSummary)),
    Row::get("/api/threads/{threadId}/diagnostics", "getDiagnostics", |ids| of(ids, ThreadRoute::Diagnostics)),
    Row::get("/api/threads/{threadId}/messages", "listMessages", |ids| of(ids, ThreadRoute::ListMessages)).query(MESSAGES),
    Row::post("/api/threads/{threadId}/messages", "sendMessage", |ids| of(ids, ThreadRoute::PostMessage)).query(&["wait"]).body(message("a message request")),
    Row::get("/api/threads/{threadId}/messages/{messageId}", "getMessage", |ids| item(ids, ThreadRoute::GetMessage)),
    Row::patch("/api/threads/{threadId}/messages/{messageId}", "changeMessage", |ids| item(ids, ThreadRoute::PatchMessage)).query(&["truncate", "run"]).body(REQUEST),
    Row::delete("/api/threads/{threadId}/messages/{messageId}", "deleteMessage", |ids| item(ids, ThreadRoute::DeleteMessage)),
    Row::post("/api/threads/{threadId}/messages/{messageId}/regenerate", "regenerateMessage", |ids| item(ids, ThreadRoute::Regenerate)).body(REQUEST),
    Row::get("/api/threads/{threadId}/runs", "listRuns", |ids| of(ids, ThreadRoute::ListRuns)).query(&["limit", "before"]),
    Row::get("/api/threads/{threadId}/runs/{run}", "getRun", |ids| item(ids, ThreadRoute::GetRun)).query(&["trace"]),
    Row::get("/api/threads/{threadId}/runs/{run}/spans", "getSpans", |ids| item(ids, ThreadRoute::GetSpans)),
    Row::get("/api/threads/{threadId}/steps/{messageId}/request", "getStepRequest", |ids| item(ids, ThreadRoute::GetStepRequest)),
    Row::get("/api/threads/{threadId}/cost", "getCost", |ids| of(ids, ThreadRoute::GetCost)),
    Row::get("/api/threads/{threadId}/budget", "getBudget", |ids| of(ids, ThreadRoute::GetBudget)),
    Row::patch("/api/threads/{threadId}/budget", "changeBudget", |ids| of(ids, ThreadRoute::PatchBudget)).body(REQUEST),
    Row::get("/api/threads/{threadId}/logs", "listLogs", |ids| of(ids, ThreadRoute::ListLogs)).query(LOGS),
    Row::get("/api/threads/{threadId}/logs/{logId}", "getLog", |ids| item(ids, ThreadRoute::GetLog)),
    Row::get("/api/threads/{threadId}/waits", "listWaits", |ids| of(ids, ThreadRoute::ListWaits)).query(&["state", "descendants", "limit", "cursor"]),
    Row::post("/api/threads/{threadId}/waits", "decideWaits", |ids| of(ids, ThreadRoute::DecideWaits)).body(message("a decision")),
    Row::delete("/api/threads/{threadId}/waits/remembered", "forgetApprovals", |ids| of(ids, ThreadRoute::ForgetWaits)),
    Row::get("/api/threads/{threadId}/waits/{waitId}", "getWait", |ids| item(ids, ThreadRoute::GetWait)),
    Row::post("/api/threads/{threadId}/waits/{waitId}", "decideWait", |ids| item(ids, ThreadRoute::DecideWait)).body(message("a decision")),
    Row::get("/api/threads/{threadId}/kv", "getValues", |ids| of(ids, ThreadRoute::GetValues)).query(&["key", "limit", "offset", "prefix", "search", "cursor"]),
    Row::post("/api/threads/{threadId}/kv", "setValue", |ids| of(ids, ThreadRoute::PostValue)).body(REQUEST),
    Row::delete("/api/threads/{threadId}/kv", "deleteValue", |ids| of(ids, ThreadRoute::DeleteValue)).query(&["key"]),
    Row::get("/api/threads/{threadId}/effects", "listEffects", |ids| of(ids, ThreadRoute::ListEffects)).query(PAGE),
    Row::post("/api/threads/{threadId}/effects", "scheduleEffect", |ids| of(ids, ThreadRoute::PostEffect)).body(REQUEST),
    Row::get("/api/threads/{threadId}/effects/{effectId}", "getEffect", |ids| item(ids, ThreadRoute::GetEffect)),
    Row::post("/api/threads/{threadId}/effects/{effectId}/run", "runEffect", |ids| item(ids, ThreadRoute::RunEffect)).body(REQUEST),
    Row::post("/api/threads/{threadId}/effects/{effectId}/cancel", "cancelEffect", |ids| item(ids, ThreadRoute::CancelEffect)).body(REQUEST),
    Row::get("/api/threads/{threadId}/memory/{memory}", "getMemory", |ids| own(ids, MemoryRoute::Get)),
    Row::delete("/api/threads/{threadId}/memory/{memory}", "clearMemory", |ids| own(ids, MemoryRoute::Clear)),
    Row::get("/api/threads/{threadId}/memory/{memory}/documents", "listDocuments", |ids| own(ids, MemoryRoute::ListDocuments)).query(&["limit", "cursor", "tag"]),
    Row::post("/api/threads/{threadId}/memory/{memory}/documents", "addDocument", |ids| own(ids, MemoryRoute::AddDocument)).body(DOCUMENT),
    Row::get("/api/threads/{threadId}/memory/{memory}/documents/{documentId}", "getDocument", |ids| own_item(ids, MemoryRoute::GetDocument)),
    Row::delete("/api/threads/{threadId}/memory/{memory}/documents/{documentId}", "deleteDocument", |ids| own_item(ids, MemoryRoute::DeleteDocument)),
    Row::post("/api/threads/{threadId}/memory/{memory}/search", "searchMemory", |ids| own(ids, MemoryRoute::Search)).body(DOCUMENT),
    // Always 404: the response names the thread's log.
    Row::get("/api/threads/{threadId}/memory/{memory}/logs", UNDESCRIBED, |ids| own(ids, MemoryRoute::Logs)).query(&["limit", "cursor"]),
];

/// Routes whose bodies pass between client and object as streams.
#[rustfmt::skip]
pub const STREAMS: &[Row<OfThread<StreamRoute>>] = &[
    Row::get("/api/threads/{threadId}/fs", "listFiles", |ids| of(ids, StreamRoute::ListFiles)).query(FILES).body(BodyRule::Streamed),
    Row::get("/api/threads/{threadId}/fs/{path}", "readFile", |ids| item(ids, StreamRoute::GetFile)).query(FILE).body(BodyRule::Streamed),
    Row::head("/api/threads/{threadId}/fs/{path}", "headFile", |ids| item(ids, StreamRoute::HeadFile)).query(FILE).body(BodyRule::Streamed),
    Row::post("/api/threads/{threadId}/fs/{path}", "postFile", |ids| item(ids, StreamRoute::PostFile)).body(BodyRule::Streamed),
    Row::put("/api/threads/{threadId}/fs/{path}", "writeFile", |ids| item(ids, StreamRoute::PutFile)).body(BodyRule::Streamed),
    Row::patch("/api/threads/{threadId}/fs/{path}", "moveFile", |ids| item(ids, StreamRoute::MoveFile)).body(BodyRule::Streamed),
    Row::delete("/api/threads/{threadId}/fs/{path}", "deleteFile", |ids| item(ids, StreamRoute::DeleteFile)).query(&["recursive"]).body(BodyRule::Streamed),
    Row::get("/api/threads/{threadId}/uploads", "listUploads", |ids| of(ids, StreamRoute::ListUploads)).query(&["limit", "cursor"]).body(BodyRule::Streamed),
    Row::post("/api/threads/{threadId}/uploads", "startUpload", |ids| of(ids, StreamRoute::StartUpload)).body(BodyRule::Streamed),
    Row::get("/api/threads/{threadId}/uploads/{uploadId}", "getUpload", |ids| item(ids, StreamRoute::GetUpload)).body(BodyRule::Streamed),
    Row::delete("/api/threads/{threadId}/uploads/{uploadId}", "deleteUpload", |ids| item(ids, StreamRoute::DeleteUpload)).body(BodyRule::Streamed),
    Row::post("/api/threads/{threadId}/uploads/{uploadId}/complete", "completeUpload", |ids| item(ids, StreamRoute::CompleteUpload)).body(BodyRule::Streamed),
    Row::put("/api/threads/{threadId}/uploads/{uploadId}/{index}", "putChunk", chunk).body(BodyRule::Streamed),
];

/// Routes that follow a thread.
pub const FOLLOWS: &[Row<OfThread<Follow>>] = &[
    Row::get("/api/threads/{threadId}/events", "streamEvents", |ids| of(ids, Follow::Events)).query(EVENTS),
    Row::get("/api/threads/{threadId}/stream", "openSocket", |ids| of(ids, Follow::Socket)).query(SOCKET),
];

fn of<R>(ids: &mut Ids, route: R) -> OfThread<R> {
    (ids.take(), route)
}

fn item<R>(ids: &mut Ids, route: fn(String) -> R) -> OfThread<R> {
    (ids.take(), route(ids.take()))
}

fn own(ids: &mut Ids, of: MemoryRoute) -> OfThread<ThreadRoute> {
    (ids.take(), ThreadRoute::Memory { memory: ids.take(), of })
}

fn own_item(ids: &mut Ids, of: fn(String) -> MemoryRoute) -> OfThread<ThreadRoute> {
    (ids.take(), ThreadRoute::Memory { memory: ids.take(), of: of(ids.take()) })
}

fn chunk(ids: &mut Ids) -> OfThread<StreamRoute> {
    (ids.take(), StreamRoute::PutChunk { upload: ids.take(), index: ids.take() })
}

/// A row as its documentation needs it.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// Its name.
    pub id: &'static str,
    /// Its method.
    pub method: &'static str,
    /// Its path, with names in braces.
    pub path: &'static str,
    /// Its query parameters.
    pub parameters: &'static [&'static str],
}

/// The name of a row that the description of the API leaves out.
const UNDESCRIBED: &str = "";

/// All routes that the description of the API has.
pub fn all() -> impl Iterator<Item = Described> {
    fn described<R>(rows: &'static [Row<R>]) -> impl Iterator<Item = Described> {
        rows.iter().map(|row| Described {
            id: row.id,
            method: row.method,
            path: row.path,
            parameters: row.parameters,
        })
    }
    described(ROUTES)
        .chain(described(TEXTS))
        .chain(described(STREAMS))
        .chain(described(FOLLOWS))
        .filter(|row| row.id != UNDESCRIBED)
}
