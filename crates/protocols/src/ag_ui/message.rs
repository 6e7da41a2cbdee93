//! AG-UI messages, derived from a thread's rows. A client that reads the history gets the same messages as a
//! client that has read the stream.

use serde_json::Value;

use crate::access::links::Links;
use crate::ag_ui::parts::{assistant, reasoning_id, tool};
use crate::run_events::{calls_of, text_of};
use bobbin_definitions::json;

/// Settings for the display of messages.
#[derive(Debug, Default)]
pub struct DisplaySettings<'a> {
    /// The thread.
    pub thread: &'a str,
    /// The signer of addresses of files.
    pub links: Option<&'a Links>,
    /// Whether reasoning is shown.
    pub reasoning: bool,
}

/// Number of runs that are kept with a message, besides the last one that answered it.
const EARLIER_RUNS: usize = 20;

/// Metadata that is kept with a client's message: the client's ids of its messages, of its run, and of
/// earlier runs that answered it.
pub fn kept(messages: &[&str], run: &str, earlier: &[&str], forwarded: Option<&Value>) -> Value {
    let mut kept = json!({ "messages": messages, "run": run });
    if let Some(fields) = kept.as_object_mut() {
        if !earlier.is_empty() {
            let dropped = earlier.len().saturating_sub(EARLIER_RUNS);
            fields.insert("earlier".into(), json!(earlier.get(dropped..).unwrap_or_default()));
        }
        fields.extend(forwarded.map(|props| ("forwardedProps".to_owned(), props.clone())));
    }
    json!({ "ag_ui": kept })
}

/// Whether the client knows a message of the thread by this id.
pub fn is_called(row: &Value, id: &str) -> bool {
    let mut made_of = row.pointer("/metadata/ag_ui/messages").and_then(Value::as_array).into_iter().flatten();
    text_of(row, "id") == id || made_of.any(|known| known == id)
}

/// Whether a message is a page's context.
pub fn is_context(row: &Value) -> bool {
    row.pointer("/metadata/ag_ui/context").is_some()
}

/// The client's id of the run that a message was sent for.
pub fn run_of(row: &Value) -> Option<&str> {
    row.pointer("/metadata/ag_ui/run").and_then(Value::as_str)
}

/// The client's ids of the runs that have answered a message, the last one at the end.
pub fn runs_of(row: &Value) -> Vec<&str> {
    let earlier = row.pointer("/metadata/ag_ui/earlier").and_then(Value::as_array).into_iter().flatten();
    earlier.filter_map(Value::as_str).chain(run_of(row)).collect()
}

/// Whether a message was answered in the run that the client calls so.
pub fn is_run_of(row: &Value, run: &str) -> bool {
    runs_of(row).contains(&run)
}

/// The messages of rows, in their order.
pub fn messages(rows: &[Value], shown: &DisplaySettings<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    for row in rows.iter().filter(|row| row.get("silent").and_then(Value::as_bool) != Some(true)) {
        let (id, text) = (text_of(row, "id"), text_of(row, "content"));
        let has = |name: &str| row.pointer(&format!("/metadata/{name}")).is_some();
        match text_of(row, "role") {
            // A row about a failed run is not a reply.
            "assistant" if has("status_kind") => {}
            "assistant" => reply(row, shown, &mut messages),
            // The other side of an agent with two sides.
            "user" if has("prompt") && !has("ag_ui") => reply(row, shown, &mut messages),
            "user" => messages.push(of_person(row, shown)),
            "tool" => {
                let failed = text_of(row, "tool_status") == "error";
                messages.push(tool(id, text_of(row, "tool_call_id"), text, failed));
            }
            "system" => messages.push(json!({ "id": id, "role": "system", "content": text })),
            _ => {}
        }
    }
    messages
}

fn reply(row: &Value, shown: &DisplaySettings<'_>, messages: &mut Vec<Value>) {
    let (id, text) = (text_of(row, "id"), text_of(row, "content"));
    let reasoning = row.pointer("/metadata/reasoning").and_then(Value::as_str);
    if let Some(reasoning) = reasoning.filter(|text| shown.reasoning && !text.is_empty()) {
        messages.push(json!({ "id": reasoning_id(id, 0), "role": "reasoning", "content": reasoning }));
    }
    let calls = calls_of(row);
    if !text.is_empty() || !calls.is_empty() {
        messages.push(assistant(id, text, &calls));
    }
}

fn of_person(row: &Value, shown: &DisplaySettings<'_>) -> Value {
    let text = text_of(row, "content");
    let files = row.get("attachments").and_then(Value::as_array).into_iter().flatten();
    let files: Vec<Value> = files.filter_map(|file| part(file, shown)).collect();
    let content: Value = if files.is_empty() {
        text.into()
    } else {
        let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
        text.into_iter().chain(files).collect()
    };
    let own = row.pointer("/metadata/ag_ui/messages").and_then(Value::as_array).and_then(|ids| ids.last());
    json!({ "id": own.or_else(|| row.get("id")), "role": "user", "content": content })
}

fn part(file: &Value, shown: &DisplaySettings<'_>) -> Option<Value> {
    let (path, kind) = (file.get("path")?.as_str()?, file.get("mimeType")?.as_str()?);
    let known = ["image", "audio", "video"].into_iter().find(|known| kind.split('/').next() == Some(known));
    let source = json!({ "type": "url", "value": shown.links?.to(shown.thread, path), "mimeType": kind });
    Some(
        json!({ "type": known.unwrap_or("document"), "source": source, "metadata": { "filename": file.get("name") } }),
    )
}
