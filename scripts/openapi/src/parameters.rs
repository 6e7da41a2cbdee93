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
        let mut parameter = json!({ "name": name, "in": "query", "schema": query(operation.id, name) });
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
        "path" => "The file's path; its slashes may stand as they are.",
        "memory" => "The memory's name.",
        "documentId" => "The document's id, or its key.",
        "index" => "The chunk's place, from 0.",
        _ => return None,
    })
}

/// The page size of a list.
fn limit(operation: &str) -> Value {
    let (maximum, default, of) = match operation {
        "listConversationItems" => (100, 20, "Items of a page, which ends behind a whole reply."),
        "listThreads" => (PAGE_MAX, 50, ROWS),
        "listRuns" => (PAGE_MAX, 20, ROWS),
        "listSubagents" => (PAGE_MAX, 500, ROWS),
        _ => (PAGE_MAX, 100, ROWS),
    };
    json!({ "type": "integer", "minimum": 1, "maximum": maximum, "default": default, "description": of })
}

const ROWS: &str = "Rows of a page, which also ends after 1 MB.";

fn query(operation: &str, name: &str) -> Value {
    let flag = json!({ "type": "boolean", "default": false });
    let one = |of: &[&str], default: &str| json!({ "type": "string", "enum": of, "default": default });
    let bit = |default: &str| json!({ "type": "string", "enum": ["0", "1"], "default": default });
    match (operation, name) {
        (_, "limit") => limit(operation),
        ("getAgUi", "offset") => {
            json!({ "type": "string", "default": "-1", "description": "The id of the last event that was read; `-1`: the run comes from its beginning. The header `Last-Event-ID` goes before." })
        }
        (_, "offset") => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX, "default": 0 }),
        (_, "depth") => json!({ "type": "integer", "minimum": 0, "maximum": 8, "default": 0 }),
        (_, "cursor") => json!({ "type": "string", "description": "That of the page before." }),
        ("listThreads", "sort") => one(&["activity", "created", "oldest"], "activity"),
        (_, "order") => one(&["desc", "asc"], "desc"),
        ("listWaits", "state") => one(&["open", "all"], "open"),
        ("listThreads", "key") => {
            json!({ "type": "string", "minLength": 1, "maxLength": 255, "description": "The key of the one thread that is wanted." })
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
            json!({ "type": "string", "description": "Ids with commas between them." })
        }
        (_, "startDate" | "endDate") => {
            json!({ "type": "string", "description": "`2026-11-21`, `2026-11-21T10:00:00Z`, or seconds since 1970." })
        }
        ("listThreads" | "listOpenWaits", "user_id") => {
            json!({ "type": "string", "description": "The owner that is meant; administrators name one, or `*` for all owners." })
        }
        (_, "user_id") => {
            json!({ "type": "string", "description": "The owner that is meant; administrators name one." })
        }
        (_, "token") => {
            json!({ "type": "string", "description": "A token, as pages cannot set headers here." })
        }
        (_, "include") => {
            json!({ "type": "array", "items": { "type": "string" }, "description": "Clients of OpenAI send it; it changes nothing." })
        }
        ("getResponse", "stream") => json!({ "type": "boolean", "default": false }),
        ("getResponse", "starting_after") => {
            json!({ "type": "integer", "minimum": 0, "description": "The number of an event, with `stream`." })
        }
        _ => json!({ "type": "string" }),
    }
}
