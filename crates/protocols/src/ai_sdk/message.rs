//! Messages of the AI SDK, derived from the chunks of its stream. A page that reads the history gets the same
//! messages as a page that has read the stream.

use serde_json::{Map, Value};

use crate::access::links::Links;
use crate::ai_sdk::stream::{Settings, UiStream};
use bobbin_definitions::error::Result;
use bobbin_definitions::json;

/// A message built from chunks.
#[derive(Debug)]
struct FoldedMessage {
    id: String,
    metadata: Map<String, Value>,
    parts: Vec<Value>,
}

impl FoldedMessage {
    fn new() -> FoldedMessage {
        FoldedMessage { id: String::new(), metadata: Map::new(), parts: Vec::new() }
    }

    fn push(&mut self, chunk: &Value) {
        let text = |name: &str| chunk.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "start" => {
                self.id = text("messageId").to_owned();
                self.merge(chunk);
            }
            "finish" => self.merge(chunk),
            "start-step" => self.parts.push(json!({ "type": "step-start" })),
            "reset-step" => {
                let from = self.parts.iter().rposition(|part| text_of(part, "type") == "step-start");
                self.parts.truncate(from.map_or(0, |from| from + 1));
            }
            "text-start" => self.parts.push(json!({ "type": "text", "text": "", "state": "done" })),
            "reasoning-start" => self.parts.push(json!({ "type": "reasoning", "text": "", "state": "done" })),
            "text-delta" => self.append("text", text("delta")),
            "reasoning-delta" => self.append("reasoning", text("delta")),
            "tool-input-available" => self.tool(chunk, "input-available", &["input", "providerExecuted"]),
            "tool-input-start" => self.tool(chunk, "input-streaming", &["providerExecuted"]),
            "tool-input-delta" => {
                // The input comes in one piece.
                let input: Value =
                    bobbin_definitions::json::from_str(text("inputTextDelta")).unwrap_or_default();
                self.change(chunk, |part| {
                    part.insert("input".into(), input);
                });
            }
            "tool-approval-request" => {
                let id = text("approvalId").to_owned();
                self.change(chunk, |part| {
                    part.insert("state".into(), "approval-requested".into());
                    part.insert("approval".into(), json!({ "id": id }));
                });
            }
            // A preliminary output is replaced by the result, or its reply is not in a history yet.
            "tool-output-available" if chunk.get("preliminary").is_some() => {}
            "tool-output-available" => self.set(chunk, "output-available", "output"),
            "tool-output-error" => self.set(chunk, "output-error", "errorText"),
            "tool-output-denied" => self.change(chunk, |part| {
                part.insert("state".into(), "output-denied".into());
            }),
            "file" => self.parts.push(chunk.clone()),
            kind if kind.starts_with("data-") && chunk.get("transient").is_none() => {
                let same = |part: &Value| ["type", "id"].iter().all(|name| part.get(name) == chunk.get(name));
                self.parts.retain(|part| !same(part));
                self.parts.push(chunk.clone());
            }
            _ => {}
        }
    }

    fn merge(&mut self, chunk: &Value) {
        let metadata = chunk.get("messageMetadata").and_then(Value::as_object).cloned().unwrap_or_default();
        self.metadata.extend(metadata);
    }

    fn append(&mut self, kind: &str, delta: &str) {
        let last = self.parts.iter_mut().rev().find(|part| text_of(part, "type") == kind);
        if let Some(Value::String(text)) = last.and_then(|part| part.get_mut("text")) {
            text.push_str(delta);
        }
    }

    fn tool(&mut self, chunk: &Value, state: &str, fields: &[&str]) {
        let name = chunk.get("toolName").and_then(Value::as_str).unwrap_or_default();
        let mut part =
            json!({ "type": format!("tool-{name}"), "toolCallId": chunk.get("toolCallId"), "state": state });
        if let Some(part) = part.as_object_mut() {
            let given =
                fields.iter().filter_map(|name| Some(((*name).to_owned(), chunk.get(*name)?.clone())));
            part.extend(given);
        }
        let call = chunk.get("toolCallId");
        match self.parts.iter_mut().rev().find(|part| part.get("toolCallId") == call) {
            Some(known) => *known = part,
            None => self.parts.push(part),
        }
    }

    fn set(&mut self, chunk: &Value, state: &str, field: &str) {
        let value = chunk.get(field).cloned().unwrap_or_default();
        self.change(chunk, |part| {
            part.insert("state".into(), state.into());
            part.insert(field.to_owned(), value);
        });
    }

    fn change(&mut self, chunk: &Value, change: impl FnOnce(&mut Map<String, Value>)) {
        let call = chunk.get("toolCallId");
        let part = self.parts.iter_mut().rev().find(|part| call.is_some() && part.get("toolCallId") == call);
        if let Some(part) = part.and_then(Value::as_object_mut) {
            change(part);
        }
    }

    /// Adds the decision about a call, from its result. Only major 7 has a chunk for it, because a client
    /// knows its own answers.
    fn decided(&mut self, row: &Value) {
        let Some(approval) = row.pointer("/metadata/approval") else { return };
        let call = row.get("tool_call_id");
        let part = self.parts.iter_mut().rev().find(|part| call.is_some() && part.get("toolCallId") == call);
        let Some(Value::Object(shown)) = part.and_then(|part| part.get_mut("approval")) else { return };
        shown.insert("approved".into(), (text_of(approval, "decision") == "approve").into());
        if let Some(reason) = approval.get("reason").filter(|reason| reason.is_string()) {
            shown.insert("reason".into(), reason.clone());
        }
    }

    fn message(self) -> Option<Value> {
        let FoldedMessage { id, metadata, parts } = self;
        (!id.is_empty())
            .then(|| json!({ "id": id, "role": "assistant", "metadata": metadata, "parts": parts }))
    }
}

/// A run, for the history of a chat.
#[derive(Debug)]
pub struct RunFrames {
    /// The first frame of its feed.
    pub opening: Value,
    /// Id of its last reply, or of the reply that would have followed.
    pub last: String,
    /// The last frame of its feed, or the frame with which it is parked; `None` while it is active.
    pub closing: Option<(&'static str, Value)>,
}

/// The initial messages of a page, in order, from rows and runs in order. The output of an active run since
/// the last message of a person is left out, because the stream sends all of it.
///
/// # Errors
/// `internal`: the thread's messages are inconsistent.
pub fn history(rows: &[Value], runs: &[RunFrames], settings: &Settings) -> Result<Vec<Value>> {
    let mut told = Vec::new();
    let mut open: Option<(UiStream, FoldedMessage)> = None;
    let mut runs = runs.iter().peekable();
    for row in rows {
        // A run ends before the rows after its last block.
        while let Some(ran) = runs.peek().filter(|ran| seq(row) > seq_of(&ran.last) && !is_of_block(row)) {
            close(&mut open, ran, &mut told)?;
            runs.next();
        }
        let said = is_said(row);
        if said && let Some((mut stream, mut folded)) = open.take() {
            take(&mut stream, &mut folded, "message_data", &frame(row))?;
            told.extend(folded.message());
        }
        if said {
            if row.get("silent").and_then(Value::as_bool) != Some(true) {
                told.push(of_person(row, settings.links.as_ref(), &settings.thread));
            }
            continue;
        }
        if open.is_none() {
            let mut stream = UiStream::new(settings.clone());
            if let Some(ran) = runs.peek() {
                stream.take("run", &ran.opening)?;
            }
            open = Some((stream, FoldedMessage::new()));
        }
        if let Some((stream, folded)) = &mut open {
            take(stream, folded, "message_data", &frame(row))?;
            folded.decided(row);
        }
    }
    if let Some(ran) = runs.next() {
        close(&mut open, ran, &mut told)?;
    }
    told.extend(open.and_then(|(_, folded)| folded.message()));
    Ok(told)
}

fn close(open: &mut Option<(UiStream, FoldedMessage)>, ran: &RunFrames, told: &mut Vec<Value>) -> Result<()> {
    let Some((mut stream, mut folded)) = open.take() else { return Ok(()) };
    if let Some((kind, closing)) = &ran.closing {
        take(&mut stream, &mut folded, kind, closing)?;
        told.extend(folded.message());
    }
    Ok(())
}

fn take(stream: &mut UiStream, folded: &mut FoldedMessage, kind: &str, frame: &Value) -> Result<()> {
    stream.take(kind, frame)?.iter().for_each(|chunk| folded.push(chunk));
    Ok(())
}

fn frame(row: &Value) -> Value {
    json!({ "message_id": row.get("id"), "depth": row.get("depth"), "data": row })
}

/// Whether the message is from a person.
fn is_said(row: &Value) -> bool {
    text_of(row, "role") == "user"
        && (row.pointer("/metadata/prompt").is_none() || row.pointer("/metadata/ui_id").is_some())
}

/// Whether a row was written after a reply by its calls or the runtime.
fn is_of_block(row: &Value) -> bool {
    text_of(row, "role") == "tool" || row.pointer("/metadata/status_kind").is_some()
}

fn seq(row: &Value) -> i64 {
    seq_of(text_of(row, "id"))
}

fn seq_of(id: &str) -> i64 {
    id.rsplit_once('_').and_then(|(_, seq)| seq.parse().ok()).unwrap_or(0)
}

fn of_person(row: &Value, links: Option<&Links>, thread: &str) -> Value {
    let files = row.get("attachments").and_then(Value::as_array).into_iter().flatten();
    let mut parts: Vec<Value> = files
        .filter_map(|file| {
            let path = file.get("path")?.as_str()?;
            Some(json!({
                "type": "file", "mediaType": file.get("mimeType"), "filename": file.get("name"),
                "url": links.map(|links| links.to(thread, path)).unwrap_or_default(),
            }))
        })
        .collect();
    let text = text_of(row, "content");
    if !text.is_empty() || parts.is_empty() {
        parts.push(json!({ "type": "text", "text": text }));
    }
    let id = row.pointer("/metadata/ui_id").or_else(|| row.get("id"));
    let mut message = json!({ "id": id, "role": "user", "parts": parts });
    if let (Some(metadata), Some(fields)) = (row.pointer("/metadata/ui_metadata"), message.as_object_mut()) {
        fields.insert("metadata".into(), metadata.clone());
    }
    message
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
