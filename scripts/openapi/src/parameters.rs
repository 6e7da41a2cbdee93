//! Parameters of paths, queries and headers. The runtime defines the names of query parameters; this file
//! describes them.

use bobbin_definitions::limits::PAGE_MAX;
use serde_json::{Value, json};

use crate::operation::Operation;

/// The parameters of a request.
pub(super) fn of(operation: &Operation) -> Vec<Value> {
    let mut all = Vec::new();
    for name in names(operation.path) {
        let mut parameter = json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } });
        if name == "index" {
            parameter["schema"] = json!({ "type": "integer", "minimum": 0 });
        }
        if let Some(text) = told(name) {
            parameter["description"] = text.into();
        }
        all.push(parameter);
    }
    // Skip the bracketed alias of a list's name: client generators would make one variable of both.
    for name in operation.parameters.iter().copied().filter(|name| !name.ends_with("[]")) {
        let mut schema = query(operation.id, name);
        let described = schema.get("description").is_some();
        if let Some(text) = meaning(operation.id, name).filter(|_| !described) {
            schema["description"] = text.into();
        }
        let mut parameter = json!({ "name": name, "in": "query", "schema": schema });
        if matches!((operation.id, name), ("deleteValue", "key")) {
            parameter["required"] = true.into();
        }
        all.push(parameter);
    }
    if operation.keyed {
        all.push(json!({
            "name": "Idempotency-Key", "in": "header", "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" },
            "description": "The same key with the same body takes effect once, for 24 hours.",
        }));
    }
    all
}

/// The names in a path's braces.
fn names(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn told(name: &str) -> Option<&'static str> {
    Some(match name {
        "threadId" => "The thread's id, or `key:` and its key.",
        "run" => "The run's id, such as `r_7`.",
        "path" => "The path of the file. Its slashes need no escapes.",
        "memory" => "The memory's name.",
        "documentId" => "The id of the document, or its key.",
        "index" => "The index of the chunk, from 0.",
        "name" => "The name of the agent.",
        "messageId" => "The id of the message.",
        "requestId" => "The id of the request, from the error result of the call.",
        "waitId" => "The id of the wait.",
        "effectId" => "The id of the effect.",
        "uploadId" => "The id of the upload.",
        "logId" => "The id of the log entry.",
        "chatId" => "The id of the chat: a key or an id of a thread.",
        "responseId" => "The id of the response.",
        "conversationId" => "The id of the conversation.",
        "itemId" => "The id of the item.",
        _ => return None,
    })
}

/// The page size of a list.
fn limit(operation: &str) -> Value {
    let (maximum, default, of) = match operation {
        "listConversationItems" => (100, 20, "Maximum items of a page, which ends after a whole reply."),
        "listThreads" => (PAGE_MAX, 50, ROWS),
        "listRuns" => (PAGE_MAX, 20, ROWS),
        "listSubagents" => (PAGE_MAX, 500, ROWS),
        _ => (PAGE_MAX, 100, ROWS),
    };
    json!({ "type": "integer", "minimum": 1, "maximum": maximum, "default": default, "description": of })
}

const ROWS: &str = "Maximum rows of a page, which also ends after 1 MB.";

fn query(operation: &str, name: &str) -> Value {
    let flag = json!({ "type": "boolean", "default": false });
    let one = |of: &[&str], default: &str| json!({ "type": "string", "enum": of, "default": default });
    let bit = |default: &str| json!({ "type": "string", "enum": ["0", "1"], "default": default });
    match (operation, name) {
        (_, "limit") => limit(operation),
        ("getAgUi", "offset") => {
            json!({ "type": "string", "default": "-1", "description": "The id of the last received event. `-1`: from the beginning of the run. The header `Last-Event-ID` has priority." })
        }
        (_, "offset") => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX, "default": 0 }),
        (_, "depth") => json!({ "type": "integer", "minimum": 0, "maximum": 8, "default": 0 }),
        (_, "cursor") => json!({ "type": "string", "description": "The `cursor` of the previous page." }),
        ("listThreads", "sort") => one(&["activity", "created", "oldest"], "activity"),
        (_, "order") => one(&["desc", "asc"], "desc"),
        ("listWaits", "state") => one(&["open", "all"], "open"),
        ("listThreads", "key") => {
            json!({ "type": "string", "minLength": 1, "maxLength": 255, "description": "Only the thread with this key." })
        }
        ("listThreads", "executing" | "terminated" | "failed") => json!({ "type": "boolean" }),
        ("changeMessage", "truncate" | "run")
        | (_, "wait" | "includeSilent" | "include_children" | "descendants" | "history" | "recursive") => {
            flag
        }
        (_, "reasoning" | "parts" | "revise" | "items" | "trace" | "stats" | "stat" | "thumbnail") => {
            bit("0")
        }
        (_, "progress") => bit("1"),
        // Without it the response is the file's content.
        (_, "format") => json!({ "type": "string", "enum": ["json"] }),
        (_, "ids" | "messageIds") => {
            json!({ "type": "string", "description": "Comma-separated ids." })
        }
        (_, "startDate" | "endDate") => {
            json!({ "type": "string", "description": "`2026-11-21`, `2026-11-21T10:00:00Z`, or seconds since 1970." })
        }
        ("listThreads" | "listOpenWaits", "user_id") => {
            json!({ "type": "string", "description": "The owner. Administrators name one, or `*` for all owners." })
        }
        (_, "user_id") => {
            json!({ "type": "string", "description": "The owner. Administrators name one." })
        }
        (_, "token") => {
            json!({ "type": "string", "description": "A token, because browsers cannot set headers on this request." })
        }
        (_, "include") => {
            json!({ "type": "array", "items": { "type": "string" }, "description": "Accepted from clients of OpenAI. It has no effect." })
        }
        ("getResponse", "stream") => json!({ "type": "boolean", "default": false }),
        ("getResponse", "starting_after") => {
            json!({ "type": "integer", "minimum": 0, "description": "With `stream`: the number of the last received event." })
        }
        _ => json!({ "type": "string" }),
    }
}

/// The meaning of a query parameter whose schema has no description.
fn meaning(operation: &str, name: &str) -> Option<&'static str> {
    Some(match (operation, name) {
        ("listOpenWaits", "kind") => "Only waits of this kind.",
        ("signedIn", "state" | "code" | "iss" | "error") => "From the authorization server.",
        (_, "agent_id") => "Only threads of this agent.",
        ("listThreads", "search") => {
            "Only threads with this text in ids, agents, tags or the newest message."
        }
        (_, "executing") => "Only threads with an active run, or with `false` without one.",
        (_, "terminated") => "Only terminated threads, or with `false` only the others.",
        (_, "failed") => "Only threads whose last run failed, or with `false` only the others.",
        (_, "include_children") => "Also lists subagents.",
        (_, "sort") => "By the last activity, or by creation with the newest or the oldest first.",
        (_, "offset") => "Rows to skip.",
        (_, "history") => "Also returns the earlier summaries.",
        (_, "wait") => "Responds with the outcome of the run.",
        ("listRuns", "before") => "Only runs before this id.",
        (_, "before") => "Only messages before this id.",
        ("listMessages", "after") => "Only messages after this id.",
        ("streamEvents", "after") => "Everything after this message, until its run ends.",
        ("listConversationItems", "after") => "Only items after this id.",
        (_, "order") => "`desc`: from the newest end; `asc`: from the oldest.",
        (_, "includeSilent") => "Also silent messages.",
        (_, "depth") => "Also messages of called prompts, down to this depth.",
        ("changeMessage", "truncate") => "Also deletes everything after the message.",
        ("changeMessage", "run") => "With `truncate`: starts a run that answers the message.",
        ("streamEvents", "run") => "Only this run, until it ends.",
        (_, "trace") => "Also returns the trace.",
        ("listWaits", "state") => "Only open waits, or all.",
        (_, "descendants") => "Also waits of subagents and theirs.",
        ("getValues", "key") => "Only this value.",
        ("deleteValue", "key") => "The key of the value.",
        (_, "prefix") => "Only keys that begin with this text.",
        ("getValues", "search") => "Only keys that contain this text.",
        (_, "stats") => "Returns counts of all files.",
        (_, "grep") => "Searches for this text in files.",
        (_, "find") => "Searches for paths with this pattern.",
        (_, "format" | "stat") => "Returns the record of the file instead of its content.",
        (_, "thumbnail") => "Returns the thumbnail instead of the content.",
        (_, "recursive") => "Also deletes the content of a directory.",
        (_, "tag") => "Only documents with this tag.",
        (_, "reasoning") => "Also sends the reasoning that models show.",
        (_, "items") => "Also sends items.",
        (_, "progress") => "Sends progress lines.",
        (_, "lastEventId") => "The id of the last received frame, like the header `Last-Event-ID`.",
        (_, "agent") => "The agent, if the path has none.",
        (_, "features") => "Features of the page, comma-separated (docs/clients.md).",
        (_, "approvals") => "`data`: approval requests are data parts (docs/clients.md).",
        (_, "threadId") => "The key or id of the thread.",
        (_, "runId") => "The run to stream.",
        (_, "parts") => "Returns messages with `parts`.",
        (_, "revise") => "The list of messages of the client is authoritative.",
        ("getResponse", "stream") => "Streams the events of the response.",
        (_, "include_obfuscation") => "Accepted from clients of OpenAI. It has no effect.",
        _ => return None,
    })
}
