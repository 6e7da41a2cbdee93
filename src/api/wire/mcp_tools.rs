//! Agents as tools of MCP: `ask_<agent>` for each that is offered, and `thread_…` for what is done with any thread.

use serde_json::Value;

use crate::json;
use crate::request::agents;
use crate::signing::digest;
use crate::spec::{Agent, Catalog};

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tool<'a> {
    /// Says something to an agent and waits for what comes of it.
    Ask(&'a Agent),
    /// The same without waiting.
    Start,
    /// How a thread is.
    Get,
    /// Answers what a thread asks.
    Respond,
    /// Stops what a thread does.
    Cancel,
}

/// Characters of a tool's name: models of several providers take no longer ones.
const NAME_CHARS: usize = 64;
/// Those of the hash that makes a shortened one another one than the next.
const HASH_CHARS: usize = 8;

/// The longest time that `thread_get` waits, milliseconds.
pub const WAIT_MAX_MS: i64 = 50_000;

/// The tool of this name.
pub fn find<'a>(catalog: &'a Catalog, name: &str) -> Option<Tool<'a>> {
    match name {
        "thread_start" => return Some(Tool::Start),
        "thread_get" => return Some(Tool::Get),
        "thread_respond" => return Some(Tool::Respond),
        "thread_cancel" => return Some(Tool::Cancel),
        _ => {}
    }
    name.strip_prefix("ask_")?;
    exposed(catalog).find(|agent| ask_name(agent) == name).map(Tool::Ask)
}

fn exposed(catalog: &Catalog) -> impl Iterator<Item = &Agent> {
    catalog.shown_agents().filter(|agent| agent.is_exposed())
}

/// The name of the tool that asks an agent.
fn ask_name(agent: &Agent) -> String {
    let name = format!("ask_{}", agent.name);
    match name.get(..NAME_CHARS - HASH_CHARS - 1) {
        Some(start) if name.len() > NAME_CHARS => {
            let hash = digest(&[&agent.name]);
            format!("{start}_{}", hash.get(..HASH_CHARS).unwrap_or_default())
        }
        _ => name,
    }
}

/// `tools/list`.
pub fn list(catalog: &Catalog, origin: &str) -> Value {
    let mut tools: Vec<Value> = exposed(catalog).map(|agent| ask(agent, origin)).collect();
    let names: Vec<&str> = exposed(catalog).map(|agent| agent.name.as_str()).collect();
    if !names.is_empty() {
        tools.extend([start(&names), get(), respond(), cancel()]);
    }
    json!({ "tools": tools })
}

fn thread(text: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": text })
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// What every tool tells of a thread. Fields may be added.
fn output(more: Value) -> Value {
    let mut properties = json!({
        "thread": { "type": "string", "description": "Give it again to go on with this conversation." },
        "run": { "type": ["string", "null"] },
        "outcome": { "type": ["string", "null"], "description": "completed, failed, stopped; parked while it waits" },
        "reason": { "type": ["string", "null"] },
        "pending": { "type": "array", "items": { "type": "object" }, "description": "what waits for a person" },
    });
    if let (Some(fields), Value::Object(more)) = (properties.as_object_mut(), more) {
        fields.extend(more);
    }
    json!({ "type": "object", "properties": properties, "required": ["thread"] })
}

fn hints(read_only: bool, destructive: bool, idempotent: bool, open_world: bool) -> Value {
    json!({
        "readOnlyHint": read_only, "destructiveHint": destructive, "idempotentHint": idempotent,
        "openWorldHint": open_world,
    })
}

fn ask(agent: &Agent, origin: &str) -> Value {
    let shown = agents::summary(agent, origin);
    let title = agent.title.as_deref().unwrap_or(&agent.name);
    let about = agent.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    let properties = json!({
        "message": { "type": "string", "minLength": 1, "description": "what to say to the agent" },
        "thread": thread("the conversation to go on with, as an earlier result names it; a new one without it"),
    });
    let mut tool = json!({
        "name": ask_name(agent), "title": title,
        "description": format!("Asks the agent {title} and waits for its answer{about}"),
        "inputSchema": object(properties, &["message"]),
        "outputSchema": output(json!({})),
        "annotations": hints(false, true, false, true),
    });
    let icon = shown.get("icon").and_then(Value::as_str).filter(|icon| icon.starts_with("http"));
    if let (Some(icon), Some(fields)) = (icon, tool.as_object_mut()) {
        fields.insert("icons".into(), json!([{ "src": icon }]));
    }
    tool
}

fn start(agents: &[&str]) -> Value {
    let properties = json!({
        "agent": { "type": "string", "enum": agents },
        "message": { "type": "string", "minLength": 1, "description": "what to say to the agent" },
        "thread": thread("the conversation to go on with; a new one without it"),
    });
    json!({
        "name": "thread_start", "title": "Start work without waiting",
        "description": "Says something to an agent and returns at once; the work goes on whatever becomes of this call. \
            Read what comes of it with thread_get.",
        "inputSchema": object(properties, &["agent", "message"]),
        "outputSchema": output(json!({})),
        "annotations": hints(false, true, false, true),
    })
}

fn get() -> Value {
    let properties = json!({
        "thread": thread("the thread"),
        "wait_ms": {
            "type": "integer", "minimum": 0, "maximum": WAIT_MAX_MS,
            "description": "how long to wait for its work to end or to ask something, milliseconds",
        },
    });
    let more = json!({
        "state": { "type": "string", "description": "idle, running, parked, queued or terminated" },
        "reply": { "type": ["string", "null"], "description": "the newest reply" },
        "poll_after_ms": { "type": ["integer", "null"] },
    });
    json!({
        "name": "thread_get", "title": "Look at a thread",
        "description": "How a thread is: its state, its newest reply, and what waits for a person.",
        "inputSchema": object(properties, &["thread"]),
        "outputSchema": output(more),
        "annotations": hints(true, false, true, false),
    })
}

fn respond() -> Value {
    let response = object(
        json!({
            "id": { "type": "string", "description": "of what is pending" },
            "decision": { "type": "string", "enum": ["approve", "deny", "answer", "retry", "extend", "finish"] },
            "reason": { "type": "string", "description": "why it is denied" },
            "text": { "type": "string", "description": "the answer to a question" },
            "choice": { "type": "integer", "description": "which of the choices, from 0" },
            "result": { "description": "what a call has given that is left to the client" },
            "args": { "type": "object", "description": "other arguments to approve, where they may be edited" },
            "add": { "type": "object", "description": "by how much a budget is extended" },
        }),
        &["id", "decision"],
    );
    let properties = json!({
        "thread": thread("the thread"),
        "responses": { "type": "array", "minItems": 1, "items": response },
    });
    json!({
        "name": "thread_respond", "title": "Answer for a person",
        "description": "Passes on what a person has decided about what a thread has pending. Only they decide: show them \
            what is asked first.",
        "inputSchema": object(properties, &["thread", "responses"]),
        "outputSchema": output(json!({ "decided": { "type": "array", "items": { "type": "object" } } })),
        "annotations": hints(false, true, true, true),
    })
}

fn cancel() -> Value {
    json!({
        "name": "thread_cancel", "title": "Stop a thread's work",
        "description": "Stops what a thread does now. It can be asked something again.",
        "inputSchema": object(json!({ "thread": thread("the thread") }), &["thread"]),
        "outputSchema": output(json!({ "state": { "type": "string" } })),
        "annotations": hints(false, true, true, false),
    })
}
